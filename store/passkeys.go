package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"

	"github.com/toolward/toolward/identity"
)

// Passkeys keeps the person's passkeys; it implements [identity.PasskeyStore].
type Passkeys struct{ db *DB }

var _ identity.PasskeyStore = (*Passkeys)(nil)

// NewPasskeys returns the part of the store that passkeys are kept in.
func NewPasskeys(db *DB) *Passkeys { return &Passkeys{db} }

// Passkeys returns every passkey.
func (s *Passkeys) Passkeys(ctx context.Context) ([]identity.PasskeyRecord, error) {
	return PasskeysIn(ctx, s.db.Reader())
}

// PasskeysIn is Passkeys for a database that was opened for reading only.
func PasskeysIn(ctx context.Context, reader *sql.DB) ([]identity.PasskeyRecord, error) {
	rows, err := reader.QueryContext(ctx, `SELECT id, credential, site, handle, public_key, name, transports, count, synced,
		backup, created_ms, created_by, used_ms, suspect_ms FROM passkeys`)
	if err != nil {
		return nil, fmt.Errorf("read passkeys: %w", err)
	}
	defer rows.Close()
	var out []identity.PasskeyRecord
	for rows.Next() {
		var r identity.PasskeyRecord
		var transports []byte
		var created, used, suspect int64
		err := rows.Scan(&r.ID, &r.Credential, &r.Site, &r.Handle, &r.Key, &r.Name, &transports, &r.Count, &r.Synced,
			&r.Backup, &created, &r.CreatedBy, &used, &suspect)
		if err == nil {
			err = json.Unmarshal(transports, &r.Transports)
		}
		if err != nil {
			return nil, fmt.Errorf("read passkeys: %w", err)
		}
		r.Created, r.Used, r.Suspect = momentOf(created), momentOf(used), momentOf(suspect)
		out = append(out, r)
	}
	return out, wrap(rows.Err(), "read passkeys")
}

// SavePasskey inserts or replaces a passkey, durably. A credential that another passkey of the site has is refused.
func (s *Passkeys) SavePasskey(ctx context.Context, r identity.PasskeyRecord) error {
	transports, err := json.Marshal(r.Transports)
	if err != nil {
		return fmt.Errorf("save passkey %s: %w", r.ID, err)
	}
	return s.db.Write(ctx, true, func(tx *Tx) error {
		_, err := tx.Exec(`INSERT INTO passkeys (id, credential, site, handle, public_key, name, transports, count, synced, backup,
			created_ms, created_by, used_ms, suspect_ms) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
			ON CONFLICT (id) DO UPDATE SET name = excluded.name, count = excluded.count, backup = excluded.backup,
				used_ms = excluded.used_ms, suspect_ms = excluded.suspect_ms`,
			r.ID, r.Credential, r.Site, r.Handle, r.Key, r.Name, string(transports), r.Count, r.Synced, r.Backup,
			millis(r.Created), r.CreatedBy, millis(r.Used), millis(r.Suspect))
		return wrap(err, "save passkey %s", r.ID)
	})
}

// RemovePasskey forgets a passkey, durably.
func (s *Passkeys) RemovePasskey(ctx context.Context, id string) error {
	return s.db.Write(ctx, true, func(tx *Tx) error {
		_, err := tx.Exec(`DELETE FROM passkeys WHERE id = ?`, id)
		return wrap(err, "remove passkey %s", id)
	})
}
