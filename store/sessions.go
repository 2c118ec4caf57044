package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/session"
)

// Sessions keeps what conversations have been exposed to. It implements session.Store.
type Sessions struct{ db *DB }

var _ session.Store = (*Sessions)(nil)

// NewSessions keeps sessions in db.
func NewSessions(db *DB) *Sessions { return &Sessions{db} }

// LoadSession reads a conversation's state.
func (s *Sessions) LoadSession(ctx context.Context, key toolward.SessionKey) (session.State, bool, error) {
	var encoded string
	err := s.db.Reader().QueryRowContext(ctx, `SELECT state FROM sessions WHERE session_key = ?`, string(key)).Scan(&encoded)
	if errors.Is(err, sql.ErrNoRows) {
		return session.State{}, false, nil
	}
	if err != nil {
		return session.State{}, false, fmt.Errorf("load session: %w", err)
	}
	state, err := decodeSession(string(key), encoded)
	return state, err == nil, err
}

func decodeSession(key, encoded string) (state session.State, err error) {
	if err := json.Unmarshal([]byte(encoded), &state); err != nil {
		return session.State{}, fmt.Errorf("load session %s: %w", key, err)
	}
	state.Key = toolward.SessionKey(key)
	return state, nil
}

// RecentSessions lists the states that were saved last.
func (s *Sessions) RecentSessions(ctx context.Context, limit int) ([]session.State, error) {
	rows, err := s.db.Reader().QueryContext(ctx, `SELECT session_key, state FROM sessions ORDER BY updated_ms DESC LIMIT ?`, limit)
	if err != nil {
		return nil, fmt.Errorf("list sessions: %w", err)
	}
	defer rows.Close()
	var list []session.State
	for rows.Next() {
		var key, encoded string
		if err := rows.Scan(&key, &encoded); err != nil {
			return nil, fmt.Errorf("list sessions: %w", err)
		}
		state, err := decodeSession(key, encoded)
		if err != nil {
			return nil, err
		}
		list = append(list, state)
	}
	return list, rows.Err()
}

// SaveSession writes a conversation's state.
func (s *Sessions) SaveSession(ctx context.Context, state session.State) error {
	encoded, err := json.Marshal(state)
	if err != nil {
		return fmt.Errorf("save session: %w", err)
	}
	return s.db.Write(ctx, false, func(tx *Tx) error {
		_, err := tx.Exec(`INSERT INTO sessions (session_key, state, updated_ms) VALUES (?, ?, ?)
			ON CONFLICT (session_key) DO UPDATE SET state = excluded.state, updated_ms = excluded.updated_ms`,
			string(state.Key), string(encoded), state.Updated.UnixMilli())
		return err
	})
}
