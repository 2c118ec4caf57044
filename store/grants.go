package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"

	"github.com/toolward/toolward/approval"
)

func insertGrant(tx *Tx, g *approval.Grant) error {
	body, err := json.Marshal(g)
	if err != nil {
		return fmt.Errorf("store grant %s: %w", g.ID, err)
	}
	_, err = tx.Exec(`INSERT INTO grants (id, body, agent, tool, created_ms, expires_ms, max_uses) VALUES (?, ?, ?, ?, ?, ?, ?)`,
		g.ID, string(body), g.Agent, g.Tool, g.CreatedMs, g.ExpiresMs, g.MaxUses)
	return wrap(err, "store grant %s", g.ID)
}

// Grants returns every grant in force at a moment.
func (s *Approvals) Grants(ctx context.Context, nowMs int64) ([]*approval.Grant, error) {
	return GrantsIn(ctx, s.db.Reader(), nowMs)
}

// GrantsIn is Grants for a database that was opened for reading only.
func GrantsIn(ctx context.Context, reader *sql.DB, nowMs int64) ([]*approval.Grant, error) {
	return grantsIn(ctx, reader, `revoked_ms = 0 AND expires_ms > ? AND (max_uses = 0 OR uses < max_uses)`, nowMs)
}

// UnexpiredGrants returns every grant that has not expired at a moment, revoked and used up ones too.
func (s *Approvals) UnexpiredGrants(ctx context.Context, nowMs int64) ([]*approval.Grant, error) {
	return UnexpiredGrantsIn(ctx, s.db.Reader(), nowMs)
}

// UnexpiredGrantsIn is UnexpiredGrants for a database that was opened for reading only.
func UnexpiredGrantsIn(ctx context.Context, reader *sql.DB, nowMs int64) ([]*approval.Grant, error) {
	return grantsIn(ctx, reader, `expires_ms > ?`, nowMs)
}

func grantsIn(ctx context.Context, reader *sql.DB, which string, nowMs int64) ([]*approval.Grant, error) {
	rows, err := reader.QueryContext(ctx, `SELECT id, body, expires_ms, uses, max_uses, last_used_ms, revoked_ms FROM grants WHERE `+which, nowMs)
	if err != nil {
		return nil, fmt.Errorf("read grants: %w", err)
	}
	defer rows.Close()
	var out []*approval.Grant
	for rows.Next() {
		var id, body string
		var expires, uses, most, last, revoked int64
		if err := rows.Scan(&id, &body, &expires, &uses, &most, &last, &revoked); err != nil {
			return nil, fmt.Errorf("read grants: %w", err)
		}
		g := new(approval.Grant)
		if err := json.Unmarshal([]byte(body), g); err != nil {
			return nil, fmt.Errorf("read grant %s: %w", id, err)
		}
		g.ID, g.ExpiresMs, g.Uses, g.MaxUses, g.LastUsedMs, g.RevokedMs = id, expires, uses, most, last, revoked
		out = append(out, g)
	}
	return out, wrap(rows.Err(), "read grants")
}

// RevokeGrants marks grants as revoked, durably.
func (s *Approvals) RevokeGrants(ctx context.Context, ids []string, by string, atMs int64) error {
	return s.db.Write(ctx, true, func(tx *Tx) error {
		for _, id := range ids {
			if _, err := tx.Exec(`UPDATE grants SET revoked_ms = ?, revoked_by = ? WHERE id = ? AND revoked_ms = 0`, atMs, by, id); err != nil {
				return fmt.Errorf("revoke grant %s: %w", id, err)
			}
		}
		return nil
	})
}

// SpendGrant takes one of the uses of a grant that has a number of them, durably; false if there is none left.
func (s *Approvals) SpendGrant(ctx context.Context, id string, atMs int64) (ok bool, err error) {
	err = s.db.Write(ctx, true, func(tx *Tx) error {
		n, err := affected(tx.Exec(`UPDATE grants SET uses = uses + 1, last_used_ms = max(last_used_ms, ?)
			WHERE id = ? AND revoked_ms = 0 AND uses < max_uses`, atMs, id))
		ok = n == 1
		return wrap(err, "use grant %s", id)
	})
	return ok && err == nil, err
}

// CountGrantUses adds to the counts of uses.
func (s *Approvals) CountGrantUses(ctx context.Context, uses []approval.GrantUse) error {
	return s.db.Write(ctx, false, func(tx *Tx) error {
		for _, u := range uses {
			if _, err := tx.Exec(`UPDATE grants SET uses = uses + ?, last_used_ms = max(last_used_ms, ?) WHERE id = ?`, u.Uses, u.LastMs, u.ID); err != nil {
				return fmt.Errorf("count uses of grant %s: %w", u.ID, err)
			}
		}
		return nil
	})
}
