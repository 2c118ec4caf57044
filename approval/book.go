package approval

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/toolward/toolward"
)

// book holds the grants in memory, indexed so that looking one up does not depend on how many there are.
type book struct {
	mu    sync.RWMutex
	byID  map[string]*Grant
	index map[string][]*Grant // by agent, tool and what the match is about
	exact map[string]int      // how many exact grants an agent has for a tool
	spent map[string]*Grant   // whose last use was just taken, by a call that is checked once more before it runs
	used  map[string]*GrantUse
	since time.Time // of the first use not written yet
}

func newBook() *book {
	return &book{byID: map[string]*Grant{}, index: map[string][]*Grant{}, exact: map[string]int{}, spent: map[string]*Grant{}, used: map[string]*GrantUse{}}
}

// keyOf is where a grant is found. Paths are found by each of their ancestors.
func keyOf(agent, tool string, kind toolward.GrantKind, about string) string {
	return agent + "\x00" + tool + "\x00" + string(kind) + "\x00" + about
}

func (g *Grant) key() string {
	m := &g.Match
	about := m.ID
	kind := m.Kind
	switch kind {
	case toolward.GrantExact, toolward.GrantExec:
		kind, about = toolward.GrantExact, m.Digest
	case toolward.GrantPath:
		about = m.Prefix
	case toolward.GrantHost:
		about = Address{m.Scheme, m.Host, m.Port}.key()
	case toolward.GrantRecipient:
		about = m.Channel + "\x00" + m.Account + "\x00" + m.To
	}
	return keyOf(g.Agent, g.Tool, kind, about)
}

func (a Address) key() string { return a.Scheme + "://" + a.Host + ":" + strconv.Itoa(a.Port) }

func (b *book) add(g *Grant) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.byID[g.ID] = g
	b.index[g.key()] = append(b.index[g.key()], g)
	b.countExact(g, 1)
}

// countExact lets calls skip hashing when no exact grant could cover them.
func (b *book) countExact(g *Grant, n int) {
	if g.Match.Digest == "" {
		return
	}
	key := keyOf(g.Agent, g.Tool, "", "")
	if b.exact[key] += n; b.exact[key] <= 0 {
		delete(b.exact, key)
	}
}

func (b *book) remove(id string) {
	g := b.byID[id]
	if g == nil {
		return
	}
	delete(b.byID, id)
	b.countExact(g, -1)
	key := g.key()
	left := slices.DeleteFunc(b.index[key], func(o *Grant) bool { return o == g })
	if len(left) == 0 {
		delete(b.index, key)
		return
	}
	b.index[key] = left
}

// find returns the grant that covers the request, or nil.
func (b *book) find(r *toolward.Request, kind toolward.GrantKind, now time.Time) *Grant {
	b.mu.RLock()
	defer b.mu.RUnlock()
	if len(b.byID) == 0 {
		return nil
	}
	a := attemptOf(r, now)
	look := func(kind toolward.GrantKind, about string) *Grant {
		for _, g := range b.index[keyOf(a.Agent, a.Tool, kind, about)] {
			if g.Refuses(a) == "" {
				return g
			}
		}
		return nil
	}
	// An exact grant counts for every kind of row: it is narrower than any other.
	if b.exact[keyOf(a.Agent, a.Tool, "", "")] > 0 {
		a.bindExact(r)
		if g := look(toolward.GrantExact, a.Digest); g != nil {
			return g
		}
	}
	switch kind {
	case toolward.GrantPath:
		if len(a.Targets) == 0 {
			return nil
		}
		for p := a.Targets[0].Real; path.IsAbs(p) && p != "/"; p = path.Dir(p) {
			if g := look(kind, p); g != nil {
				return g
			}
		}
	case toolward.GrantHost:
		if len(a.Addresses) > 0 {
			return look(kind, a.Addresses[0].key())
		}
	case toolward.GrantRecipient:
		if len(a.Recipients) > 0 {
			to := a.Recipients[0]
			return look(kind, to.Channel+"\x00"+to.Account+"\x00"+to.To)
		}
	case toolward.GrantSession, toolward.GrantAgent, toolward.GrantNode, toolward.GrantProcess:
		return look(kind, a.TargetID)
	}
	return nil
}

// count notes a use and reports whether it is the first of a batch. Counts reach the store in batches; the audit
// log has every single one.
func (b *book) count(id string, now time.Time) (first bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	g := b.byID[id]
	if g == nil {
		return false // revoked in between; the call that used it is already past
	}
	if first = len(b.used) == 0; first {
		b.since = now
	}
	g.Uses++
	g.LastUsedMs = now.UnixMilli()
	u := b.used[id]
	if u == nil {
		u = &GrantUse{ID: id}
		b.used[id] = u
	}
	u.Uses++
	u.LastMs = g.LastUsedMs
	return first
}

// spend takes one of the uses of a grant that has a number of them; false if there is none left. Memory comes first: a
// use that cannot be written is lost, never there twice.
func (b *book) spend(id string, now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	g := b.byID[id]
	if g == nil || g.Uses >= g.MaxUses {
		return false
	}
	g.Uses++
	g.LastUsedMs = now.UnixMilli()
	if g.Uses >= g.MaxUses {
		b.remove(id)
		b.spent[id] = g
	}
	return true
}

// stillCovers reports whether a grant whose last use a call has taken covers that call: it was not ended meanwhile, and the
// call is still what it was given for.
func (b *book) stillCovers(id string, r *toolward.Request, kind toolward.GrantKind, now time.Time) *Grant {
	b.mu.RLock()
	defer b.mu.RUnlock()
	g := b.spent[id]
	if g == nil {
		return nil
	}
	a := attemptOf(r, now)
	if g.Match.Digest != "" {
		a.bindExact(r)
	} else if g.Match.Kind != kind {
		return nil
	}
	uncounted := *g
	uncounted.MaxUses = 0
	if uncounted.Refuses(a) != "" {
		return nil
	}
	return g
}

// settled is long enough for a call to be checked once more after it has taken the last use of a grant.
const settled = time.Minute

func (b *book) hasUses() bool {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return len(b.used) > 0
}

func (b *book) usesDue(now time.Time) bool {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return len(b.used) > 0 && now.Sub(b.since) >= flushEvery
}

// takeUses returns the uses that have not been written yet and forgets them.
func (b *book) takeUses() []GrantUse {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.used) == 0 {
		return nil
	}
	out := make([]GrantUse, 0, len(b.used))
	for _, u := range b.used {
		out = append(out, *u)
	}
	clear(b.used)
	return out
}

// giveBack puts uses back that could not be written.
func (b *book) giveBack(uses []GrantUse) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, u := range uses {
		if have := b.used[u.ID]; have != nil {
			have.Uses += u.Uses
		} else if b.byID[u.ID] != nil {
			b.used[u.ID] = &u
		}
	}
	b.since = time.Now()
}

// dropExpired removes grants that can never match again.
func (b *book) dropExpired(nowMs int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for id, g := range b.byID {
		if nowMs >= g.ExpiresMs {
			b.remove(id)
		}
	}
	for id, g := range b.spent {
		if nowMs-g.LastUsedMs >= settled.Milliseconds() || nowMs < g.LastUsedMs {
			delete(b.spent, id)
		}
	}
}

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
