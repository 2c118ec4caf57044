package approval

import (
	"path"
	"slices"
	"strconv"
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
