package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"
)

// Configuration remembers the configuration file that was last put in force.
type Configuration struct{ db *DB }

// NewConfiguration keeps it in db.
func NewConfiguration(db *DB) *Configuration { return &Configuration{db} }

// LastApplied returns the file that was last put in force; known is false before the first start.
func (c *Configuration) LastApplied(ctx context.Context) (source []byte, known bool, err error) {
	return ConfigurationIn(ctx, c.db.Reader())
}

// ConfigurationIn is the file that was last put in force, for whoever only looks.
func ConfigurationIn(ctx context.Context, db *sql.DB) (source []byte, known bool, err error) {
	err = db.QueryRowContext(ctx, `SELECT source FROM configuration WHERE id = 1`).Scan(&source)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("read the configuration last in force: %w", err)
	}
	return source, true, nil
}

// RememberApplied keeps a file as the one in force; it has reached the disk when it returns.
func (c *Configuration) RememberApplied(ctx context.Context, source []byte) error {
	if source == nil {
		source = []byte{}
	}
	return c.db.Write(ctx, true, func(tx *Tx) error {
		_, err := tx.Exec(`INSERT INTO configuration (id, source, applied_ms) VALUES (1, ?, ?)
			ON CONFLICT (id) DO UPDATE SET source = excluded.source, applied_ms = excluded.applied_ms`,
			source, time.Now().UnixMilli())
		return err
	})
}
