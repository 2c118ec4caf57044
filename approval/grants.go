package approval

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/toolward/toolward"
)

// Granted returns the id of a grant that covers the question, and counts its use.
func (m *Manager) Granted(ctx context.Context, q *toolward.Question) (grant string, ok bool, err error) {
	for g := m.covering(q); g != nil; g = m.covering(q) {
		if ok, err := m.use(ctx, g); ok || err != nil {
			return g.ID, ok, err
		}
	}
	return "", false, nil
}

// use counts one use of a grant; false if another call has taken the last one. Uses without a number are counted in
// memory and written in batches; the others are on the disk before the call runs, because after a crash a use that nobody
// remembers would be there again.
func (m *Manager) use(ctx context.Context, g *Grant) (ok bool, err error) {
	now := time.Now()
	if g.MaxUses == 0 {
		if m.book.count(g.ID, now) {
			m.wake()
		}
		return true, nil
	}
	if !m.book.spend(g.ID, now) {
		return false, nil
	}
	write, cancel := storeContext(ctx)
	defer cancel()
	if ok, err = m.store.SpendGrant(write, g.ID, now.UnixMilli()); err != nil {
		return false, fmt.Errorf("a use of grant %s could not be recorded: %w", g.ID, err)
	}
	return ok, nil
}

// Covered is Granted without counting a use.
func (m *Manager) Covered(_ context.Context, q *toolward.Question) (grant string, ok bool, err error) {
	g := m.covering(q)
	if g == nil && mayCover(q) && q.Grant != "" {
		g = m.book.stillCovers(q.Grant, q.Request, q.Judgment.Class.Grant, time.Now())
	}
	if g == nil {
		return "", false, nil
	}
	return g.ID, true, nil
}

func (m *Manager) covering(q *toolward.Question) *Grant {
	if !mayCover(q) {
		return nil
	}
	return m.book.find(q.Request, q.Judgment.Class.Grant, time.Now())
}

// mayCover reports whether any grant may count. Policy says so; lockdown and critical rows never reach the book.
func mayCover(q *toolward.Question) bool {
	return q != nil && q.Request != nil && q.Request.Tool != nil && q.Judgment.GrantOK && q.Request.Level != toolward.Lockdown
}

// Grants lists the grants in force, newest first.
func (m *Manager) Grants() []*Grant {
	now := time.Now().UnixMilli()
	m.book.mu.RLock()
	defer m.book.mu.RUnlock()
	out := make([]*Grant, 0, len(m.book.byID))
	for _, g := range m.book.byID {
		if now < g.ExpiresMs {
			out = append(out, g.clone())
		}
	}
	slices.SortFunc(out, func(a, b *Grant) int {
		if a.CreatedMs != b.CreatedMs {
			return int(b.CreatedMs - a.CreatedMs)
		}
		return strings.Compare(a.ID, b.ID)
	})
	return out
}

// Revoke ends one grant, named by its id or a unique prefix of at least 8 characters. From the moment it returns no
// call runs on it.
func (m *Manager) Revoke(ctx context.Context, by Authority, id string) (*Grant, error) {
	if err := mayGrant(by); err != nil {
		return nil, err
	}
	m.book.mu.RLock()
	found := m.book.byID[id]
	if found == nil && len(id) >= shortestPrefix {
		matches := 0
		for have, g := range m.book.byID {
			if strings.HasPrefix(have, id) {
				found = g
				matches++
			}
		}
		if matches > 1 {
			m.book.mu.RUnlock()
			return nil, fmt.Errorf("grant %q: %d grants begin so, give more of the id", id, matches)
		}
	}
	m.book.mu.RUnlock()
	if found == nil {
		return nil, fmt.Errorf("grant %q: no such grant in force", id)
	}
	_, err := m.drop(ctx, by.Name(), func(g *Grant) bool { return g.ID == found.ID })
	return found.clone(), err
}

// DropGrants ends every grant that which names, for a reason that is recorded: a session was reset, an agent's
// workspace changed, a node was paired again, a process ended, the policy of a row was tightened. It returns how
// many there were.
func (m *Manager) DropGrants(ctx context.Context, why string, which func(*Grant) bool) (int, error) {
	if which == nil || why == "" {
		return 0, errors.New("drop grants: say which and why")
	}
	return m.drop(ctx, why, which)
}

// drop ends grants in memory first: if the store fails they are still gone until a restart, and the error says so.
func (m *Manager) drop(ctx context.Context, by string, which func(*Grant) bool) (int, error) {
	now := time.Now().UnixMilli()
	var ids []string
	m.book.mu.Lock()
	for id, g := range m.book.byID {
		if which(g) {
			ids = append(ids, id)
		}
	}
	for _, id := range ids {
		m.book.remove(id)
	}
	for id, g := range m.book.spent {
		if which(g) { // the call that took its last use has not run yet
			delete(m.book.spent, id)
		}
	}
	m.book.mu.Unlock()
	if len(ids) == 0 {
		return 0, nil
	}
	ctx, cancel := storeContext(ctx)
	defer cancel()
	if err := m.store.RevokeGrants(ctx, ids, by, now); err != nil {
		return len(ids), fmt.Errorf("grants are revoked until the next start only, the store failed: %w", err)
	}
	return len(ids), nil
}

func mayGrant(by Authority) error {
	if by == nil {
		return ErrNotAllowed
	}
	return by.MayGrant()
}
