package signed

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/toolward/toolward/approval"
	"github.com/toolward/toolward/authority"
)

// Answers keeps approvals and remembered answers. An answer that is given while nobody can sign is remembered until the gateway
// ends, and longer once somebody has typed the passphrase.
type Answers struct {
	AnswerRows
	keys *authority.Keys
	roll *authority.Roll
	rows sync.Map // by id of the grant
}

// AnswerRows is the store of the rows.
type AnswerRows interface {
	approval.Store
	// UnexpiredGrants returns every grant that has not expired at a moment, revoked and used up ones too.
	UnexpiredGrants(ctx context.Context, nowMs int64) ([]*approval.Grant, error)
}

// NewAnswers signs what rows keeps.
func NewAnswers(rows AnswerRows, keys *authority.Keys) *Answers {
	return &Answers{AnswerRows: rows, keys: keys, roll: keys.Roll("grants", "remembered answers")}
}

// grantRow leaves out what changes at each use.
func grantRow(g *approval.Grant) authority.Row {
	plain := *g
	plain.Uses, plain.LastUsedMs, plain.RevokedMs, plain.RevokedBy = 0, 0, 0, ""
	return authority.RowOf(plain)
}

func grantEntry(g *approval.Grant) authority.Entry {
	return authority.Entry{Row: grantRow(g), Ends: time.UnixMilli(g.ExpiresMs), Name: g.ID + " (" + g.Tool + ")"}
}

// Grants returns the answers in force that a person gave.
func (a *Answers) Grants(ctx context.Context, nowMs int64) ([]*approval.Grant, error) {
	all, err := a.UnexpiredGrants(ctx, nowMs)
	if err != nil {
		return nil, err
	}
	inForce := func(g **approval.Grant) bool {
		return (*g).RevokedMs == 0 && ((*g).MaxUses == 0 || (*g).Uses < (*g).MaxUses)
	}
	row := func(g **approval.Grant) authority.Row { return grantRow(*g) }
	entries := make([]authority.Entry, 0, len(all))
	for _, g := range all {
		if inForce(&g) {
			entries = append(entries, grantEntry(g))
			a.rows.Store(g.ID, grantRow(g))
		}
	}
	counts := a.roll.Load(entries, ended(all, inForce, row)...)
	return slices.DeleteFunc(all, func(g *approval.Grant) bool {
		if !inForce(&g) {
			return true
		}
		if counts(grantRow(g)) {
			return false
		}
		tidy(a.keys, func(ctx context.Context) error {
			return a.AnswerRows.RevokeGrants(ctx, []string{g.ID}, "not signed", time.Now().UnixMilli())
		})
		return true
	}), nil
}

// ResolveApproval signs the answer that is remembered, if any, and writes both.
func (a *Answers) ResolveApproval(ctx context.Context, key approval.Key, end approval.Resolution, g *approval.Grant) error {
	if g == nil {
		return a.AnswerRows.ResolveApproval(ctx, key, end, nil)
	}
	entry := grantEntry(g)
	if err := a.roll.AddNow(ctx, entry); err != nil {
		return err
	}
	a.rows.Store(g.ID, entry.Row)
	err := a.AnswerRows.ResolveApproval(ctx, key, end, g)
	if err != nil {
		a.roll.Remove(entry.Row)
	}
	return err
}

// RevokeGrants ends grants.
func (a *Answers) RevokeGrants(ctx context.Context, ids []string, by string, atMs int64) error {
	var rows []authority.Row
	for _, id := range ids {
		if row, known := a.rows.Load(id); known {
			rows = append(rows, row.(authority.Row))
		}
	}
	a.roll.Remove(rows...)
	return a.AnswerRows.RevokeGrants(ctx, ids, by, atMs)
}
