package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/toolward/toolward/identity"
)

// Devices keeps the passphrase's verifier and agent tokens; it implements [identity.Store].
type Devices struct{ db *DB }

var _ identity.Store = (*Devices)(nil)

// NewDevices returns the part of the store that the device keeper works with.
func NewDevices(db *DB) *Devices { return &Devices{db} }

// ErrPersonExists is returned when a first passphrase is saved although there is one.
var ErrPersonExists = errors.New("a passphrase is set already")

// Verifier returns what recognizes the person's passphrase; found is false before the first setup.
func (s *Devices) Verifier(ctx context.Context) (v identity.Verifier, found bool, err error) {
	var changed int64
	row := s.db.Reader().QueryRowContext(ctx, `SELECT name, salt, memory_kib, passes, lanes, verifier, changed_ms FROM people ORDER BY name LIMIT 1`)
	err = row.Scan(&v.Person, &v.Salt, &v.Memory, &v.Passes, &v.Lanes, &v.Check, &changed)
	if errors.Is(err, sql.ErrNoRows) {
		return identity.Verifier{}, false, nil
	}
	if err != nil {
		return identity.Verifier{}, false, fmt.Errorf("read passphrase verifier: %w", err)
	}
	v.Changed = time.UnixMilli(changed)
	return v, true, nil
}

// SaveVerifier replaces the verifier, durably. With first it fails if there is one already.
func (s *Devices) SaveVerifier(ctx context.Context, v identity.Verifier, first bool) error {
	return s.db.Write(ctx, true, func(tx *Tx) error {
		if first {
			var n int
			if err := tx.QueryRow(`SELECT count(*) FROM people`).Scan(&n); err != nil {
				return fmt.Errorf("save passphrase verifier: %w", err)
			}
			if n > 0 {
				return ErrPersonExists
			}
		}
		_, err := tx.Exec(`INSERT INTO people (name, salt, memory_kib, passes, lanes, verifier, changed_ms) VALUES (?, ?, ?, ?, ?, ?, ?)
			ON CONFLICT (name) DO UPDATE SET salt = excluded.salt, memory_kib = excluded.memory_kib, passes = excluded.passes,
				lanes = excluded.lanes, verifier = excluded.verifier, changed_ms = excluded.changed_ms`,
			v.Person, v.Salt, v.Memory, v.Passes, v.Lanes, v.Check, v.Changed.UnixMilli())
		return wrap(err, "save passphrase verifier")
	})
}

// AgentTokens returns every token, revoked ones included.
func (s *Devices) AgentTokens(ctx context.Context) ([]identity.TokenRecord, error) {
	return AgentTokensIn(ctx, s.db.Reader())
}

// AgentTokensIn is AgentTokens for a database that was opened for reading only.
func AgentTokensIn(ctx context.Context, reader *sql.DB) ([]identity.TokenRecord, error) {
	rows, err := reader.QueryContext(ctx, `SELECT id, hash, prefix, name, agent, workspace, owner, gateway,
		created_ms, created_by, expires_ms, last_used_ms, revoked_ms FROM agent_tokens`)
	if err != nil {
		return nil, fmt.Errorf("read agent tokens: %w", err)
	}
	defer rows.Close()
	var out []identity.TokenRecord
	for rows.Next() {
		var t identity.TokenRecord
		var hash []byte
		var created, expires, used, revoked int64
		err := rows.Scan(&t.ID, &hash, &t.Prefix, &t.Name, &t.Agent, &t.Workspace, &t.Owner, &t.Gateway, &created, &t.CreatedBy, &expires, &used, &revoked)
		if err == nil && len(hash) != len(t.Hash) {
			err = fmt.Errorf("token %s: its hash has %d bytes", t.ID, len(hash))
		}
		if err != nil {
			return nil, fmt.Errorf("read agent tokens: %w", err)
		}
		copy(t.Hash[:], hash)
		t.Created, t.Expires, t.LastUsed, t.Revoked = momentOf(created), momentOf(expires), momentOf(used), momentOf(revoked)
		out = append(out, t)
	}
	return out, wrap(rows.Err(), "read agent tokens")
}

// AddAgentToken inserts a token, durably.
func (s *Devices) AddAgentToken(ctx context.Context, t identity.TokenRecord) error {
	return s.db.Write(ctx, true, func(tx *Tx) error {
		_, err := tx.Exec(`INSERT INTO agent_tokens (id, hash, prefix, name, agent, workspace, owner, gateway, created_ms, created_by, expires_ms)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
			t.ID, t.Hash[:], t.Prefix, t.Name, t.Agent, t.Workspace, t.Owner, t.Gateway, millis(t.Created), t.CreatedBy, millis(t.Expires))
		return wrap(err, "save agent token")
	})
}

// RevokeAgentToken marks a token revoked, durably; false if there is no such token or it is revoked already.
func (s *Devices) RevokeAgentToken(ctx context.Context, id string, at time.Time) (revoked bool, err error) {
	err = s.db.Write(ctx, true, func(tx *Tx) error {
		n, err := affected(tx.Exec(`UPDATE agent_tokens SET revoked_ms = ? WHERE id = ? AND revoked_ms = 0`, millis(at), id))
		revoked = n == 1
		return wrap(err, "revoke agent token %s", id)
	})
	return revoked && err == nil, err
}

// TouchAgentToken notes when a token was last used.
func (s *Devices) TouchAgentToken(ctx context.Context, id string, at time.Time) error {
	return s.db.Write(ctx, false, func(tx *Tx) error {
		_, err := tx.Exec(`UPDATE agent_tokens SET last_used_ms = max(last_used_ms, ?) WHERE id = ?`, millis(at), id)
		return wrap(err, "note use of agent token %s", id)
	})
}

// millis is a moment as the tables keep it; the zero time is 0.
func millis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

func momentOf(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms)
}
