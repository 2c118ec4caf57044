package store

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/toolward/toolward/mcp"
)

// Upstreams keeps what people accepted of foreign MCP servers.
type Upstreams struct{ db *DB }

var _ mcp.AcceptanceStore = (*Upstreams)(nil)

// NewUpstreams keeps it in db.
func NewUpstreams(db *DB) *Upstreams { return &Upstreams{db} }

// Acceptances returns the acceptance of every server.
func (u *Upstreams) Acceptances(ctx context.Context) (all []mcp.Acceptance, err error) {
	rows, err := u.db.Reader().QueryContext(ctx, `SELECT server, launch, tools, accepted_by, accepted_ms FROM upstreams`)
	if err != nil {
		return nil, fmt.Errorf("read accepted servers: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var a mcp.Acceptance
		var tools []byte
		if err := rows.Scan(&a.Server, &a.Launch, &tools, &a.By, &a.AtMs); err != nil {
			return nil, fmt.Errorf("read accepted servers: %w", err)
		}
		if err := json.Unmarshal(tools, &a.Tools); err != nil {
			return nil, fmt.Errorf("read accepted tools of server %s: %w", a.Server, err)
		}
		all = append(all, a)
	}
	return all, rows.Err()
}

// Accept keeps an acceptance in the place of an earlier one; it has reached the disk when it returns.
func (u *Upstreams) Accept(ctx context.Context, a mcp.Acceptance) error {
	tools, err := json.Marshal(a.Tools)
	if err != nil {
		return err
	}
	return u.db.Write(ctx, true, func(tx *Tx) error {
		_, err := tx.Exec(`INSERT INTO upstreams (server, launch, tools, accepted_by, accepted_ms) VALUES (?, ?, ?, ?, ?)
			ON CONFLICT (server) DO UPDATE SET launch = excluded.launch, tools = excluded.tools,
				accepted_by = excluded.accepted_by, accepted_ms = excluded.accepted_ms`,
			a.Server, a.Launch, tools, a.By, a.AtMs)
		return err
	})
}
