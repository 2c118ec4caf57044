package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"

	"github.com/toolward/toolward/identity"
)

// Paired keeps the devices that may connect; it implements [identity.PairStore].
type Paired struct{ db *DB }

var _ identity.PairStore = (*Paired)(nil)

// NewPaired returns the part of the store that pairing works with.
func NewPaired(db *DB) *Paired { return &Paired{db} }

// PairedDevices returns every paired device.
func (s *Paired) PairedDevices(ctx context.Context) ([]identity.PairedDevice, error) {
	return PairedDevicesIn(ctx, s.db.Reader())
}

// PairedDevicesIn is PairedDevices for a database that was opened for reading only.
func PairedDevicesIn(ctx context.Context, reader *sql.DB) ([]identity.PairedDevice, error) {
	rows, err := reader.QueryContext(ctx, `SELECT id, public_key, name, roles, scopes, vouched, person, platform, family,
		client, mode, ip, tokens, created_ms, approved_ms, seen_ms FROM paired_devices`)
	if err != nil {
		return nil, fmt.Errorf("read paired devices: %w", err)
	}
	defer rows.Close()
	var out []identity.PairedDevice
	for rows.Next() {
		var d identity.PairedDevice
		var roles, scopes, vouched, tokens []byte
		var created, approved, seen int64
		err := rows.Scan(&d.ID, &d.Key, &d.Name, &roles, &scopes, &vouched, &d.Person, &d.Platform, &d.Family,
			&d.ClientID, &d.Mode, &d.IP, &tokens, &created, &approved, &seen)
		for _, column := range []struct {
			raw  []byte
			into any
		}{{roles, &d.Roles}, {scopes, &d.Scopes}, {vouched, &d.Vouched}, {tokens, &d.Tokens}} {
			if err == nil {
				err = json.Unmarshal(column.raw, column.into)
			}
		}
		if err != nil {
			return nil, fmt.Errorf("read paired devices: %w", err)
		}
		d.Created, d.Approved, d.Seen = momentOf(created), momentOf(approved), momentOf(seen)
		out = append(out, d)
	}
	return out, wrap(rows.Err(), "read paired devices")
}

// SavePairedDevice inserts or replaces a device, durably.
func (s *Paired) SavePairedDevice(ctx context.Context, d identity.PairedDevice) error {
	var columns [4][]byte
	for i, v := range []any{d.Roles, d.Scopes, d.Vouched, d.Tokens} {
		raw, err := json.Marshal(v)
		if err != nil {
			return fmt.Errorf("save device %s: %w", d.ID, err)
		}
		columns[i] = raw
	}
	return s.db.Write(ctx, true, func(tx *Tx) error {
		_, err := tx.Exec(`INSERT OR REPLACE INTO paired_devices (id, public_key, name, roles, scopes, vouched, person, platform,
			family, client, mode, ip, tokens, created_ms, approved_ms, seen_ms) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
			d.ID, d.Key, d.Name, string(columns[0]), string(columns[1]), string(columns[2]), d.Person, d.Platform,
			d.Family, d.ClientID, d.Mode, d.IP, string(columns[3]), millis(d.Created), millis(d.Approved), millis(d.Seen))
		return wrap(err, "save device %s", d.ID)
	})
}

// RemovePairedDevice forgets a device, durably.
func (s *Paired) RemovePairedDevice(ctx context.Context, id string) error {
	return s.db.Write(ctx, true, func(tx *Tx) error {
		_, err := tx.Exec(`DELETE FROM paired_devices WHERE id = ?`, id)
		return wrap(err, "remove device %s", id)
	})
}
