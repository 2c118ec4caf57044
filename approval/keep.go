package approval

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/toolward/toolward"
)

// kept is what an "always" saved: a grant, or entries of the agent's allowlist. The zero value is nothing.
type kept struct {
	grant   *Grant
	entries []toolward.CommandEntry
}

func (k kept) id() string {
	if k.grant == nil {
		return ""
	}
	return k.grant.ID
}

// explain adds to a failure of the answer that its entries are saved all the same. They are what the person wanted, and
// can be taken away like any others.
func (k kept) explain(err error) error {
	if err == nil || len(k.entries) == 0 {
		return err
	}
	return fmt.Errorf("%w (the allowlist was extended before; see toolward approvals get)", err)
}

// keep saves what an "always" saves, from the proposal that was shown and from nothing else. Entries of the allowlist
// are written here; a grant is only made, and written together with the answer.
func (m *Manager) keep(ctx context.Context, r *Record, detail []byte, a answerOf, now time.Time) (kept, error) {
	if a.decision != toolward.AllowAlways {
		return kept{}, nil
	}
	d, err := m.details(ctx, r.Key(), detail)
	if err != nil {
		return kept{}, err
	}
	if a.proposal < 0 || a.proposal >= len(d.Proposals) {
		return kept{}, fmt.Errorf("%w: there is no proposal %d", ErrNotOffered, a.proposal)
	}
	p, err := a.narrow.of(d.Proposals[a.proposal])
	if err != nil {
		return kept{}, err
	}
	if len(p.Match.Entries) > 0 {
		return m.extend(ctx, d, p.Match.Entries, a.means)
	}
	g := grantFrom(d, p, a.by, now)
	g.GivenBy = a.means
	if err := g.check(now.UnixMilli()); err != nil {
		return kept{}, err
	}
	m.book.mu.RLock()
	full := len(m.book.byID) >= m.settings.Load().MaxGrants
	m.book.mu.RUnlock()
	if full {
		return kept{}, fmt.Errorf("%d grants are in force, which is the limit: revoke some, or allow once", m.settings.Load().MaxGrants)
	}
	return kept{grant: g}, nil
}

// extend adds entries to the allowlist of the agent that asked.
func (m *Manager) extend(ctx context.Context, d *Details, entries []toolward.CommandEntry, means string) (kept, error) {
	if m.remember == nil || d.Level == toolward.Lockdown || !oneAgent(d.Agent) {
		return kept{}, fmt.Errorf("%w: the allowlist cannot be extended; allow once instead", ErrNotOffered)
	}
	write, cancel := storeContext(ctx)
	defer cancel()
	given := slices.Clone(entries)
	for i := range given {
		given[i].GivenBy = means
	}
	err := m.remember(write, d.Agent, given)
	if errors.Is(err, ErrOnlyOnce) {
		return kept{}, err
	}
	if err != nil {
		return kept{}, fmt.Errorf("the allowlist could not be extended: %w; allow once instead", err)
	}
	return kept{entries: entries}, nil
}

// saved is what a stored answer added to the allowlist: what it did not save as a grant. At most one of several
// proposals has entries.
func (r *Record) saved() []toolward.CommandEntry {
	if r.Decision != toolward.AllowAlways || r.Grant != "" || r.Request == nil {
		return nil
	}
	for _, p := range r.Request.Proposals {
		if len(p.Match.Entries) > 0 {
			return p.Match.Entries
		}
	}
	return nil
}

// taken is what an answer means. An "always" for a command of which nothing can be saved allows it once: the person
// wanted it to run.
func (r *Record) taken(d toolward.Decision) toolward.Decision {
	if d == toolward.AllowAlways && r.Kind == KindExec && !r.Offers(d) {
		return toolward.AllowOnce
	}
	return d
}

// answerOf is a checked answer on its way to the store.
type answerOf struct {
	decision toolward.Decision
	by       string
	reason   string
	proposal int
	narrow   Narrow
	means    string // see [Grant.GivenBy]
}
