package approval

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/toolward/toolward"
)

// Response is a person's answer.
type Response struct {
	ID         string // of the approval, or a prefix of at least 8 characters that only one pending approval has
	Decision   string // one of the three exact words
	Reason     string // with deny: at most 500 characters, passed to the model
	Proposal   int    // with allow-always: which of the proposals that were shown
	Narrow     Narrow // with allow-always: less than the proposal
	By         Authority
	Connection string // that the answer came through
	Device     string

	// Binding is the digest ([Record.Binding]) of what the person was shown; "" if the screen does not bring it back. An
	// asker chooses the id, which is free again after the approval is gone: another question could stand there meanwhile.
	Binding string
	// Shown is the stamp of MarkShown that the entry was displayed with. Screens where people answer what they
	// see must bring it back.
	Shown string
	// Typed is for screens where a person writes the approval's id, such as "approvals allow <id>": there is
	// nothing to click by accident. The approval must still be half a second old.
	Typed bool
}

// Resolve answers a pending approval. The first answer wins; every later one fails with ErrResolved or ErrUnknown
// and changes nothing. It returns the approval as it is now.
func (m *Manager) Resolve(ctx context.Context, r Response) (*Record, error) {
	decision, err := toolward.ParseDecision(r.Decision)
	if err != nil {
		return nil, err
	}
	if err := checkReason(r.Reason); err != nil {
		return nil, err
	}
	if r.By == nil {
		return nil, ErrNotAllowed
	}
	if err := r.By.MayAnswer(); err != nil {
		return nil, err
	}
	if decision == toolward.AllowAlways {
		if err := r.By.MayGrant(); err != nil {
			return nil, err
		}
	}
	e, err := m.answerable(r, decision)
	if err != nil {
		return nil, err
	}
	m.people.active()
	return m.write(ctx, e, answerOf{e.record.taken(decision), r.By.Name(), r.Reason, r.Proposal, r.Narrow, r.By.Means()})
}

// answerable finds the approval and checks that this person may answer it so.
func (m *Manager) answerable(r Response, decision toolward.Decision) (*entry, error) {
	now := time.Now()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.sweep(now)
	e, err := m.find(r.ID)
	if err != nil {
		return nil, err
	}
	switch {
	case isSelf(e.record.Connection, e.record.Device, r.Connection, r.Device):
		return nil, ErrSelfApproval
	case r.Binding != "" && r.Binding != e.record.Binding:
		return nil, ErrChanged
	case !e.record.Offers(e.record.taken(decision)):
		return nil, fmt.Errorf("%w: %s", ErrNotOffered, decision)
	case r.Typed && now.Sub(e.end.Add(-e.life())) < shownAtLeast:
		return nil, ErrTooSoon
	case r.Typed:
		return e, nil
	}
	return e, m.stamps.check(r.Shown, &e.record, r.By.SignIn(), now)
}

// life is how long the approval was to live from its registration on.
func (e *entry) life() time.Duration {
	return time.Duration(e.record.ExpiresMs-e.record.CreatedMs) * time.Millisecond
}

// find returns the pending approval of an id or a unique prefix. The caller holds the lock.
func (m *Manager) find(id string) (*entry, error) {
	if e := m.entries[id]; e != nil {
		switch e.phase {
		case pending:
			return e, nil
		case registering:
			return nil, ErrUnknown // nobody has been shown it yet
		}
		return nil, ErrResolved
	}
	if len(id) < shortestPrefix {
		return nil, ErrUnknown
	}
	var found *entry
	for e := m.bySlug[id[:shortestPrefix]]; e != nil; e = e.next {
		if e.phase != pending || !strings.HasPrefix(e.record.ID, id) {
			continue
		}
		if found != nil {
			return nil, fmt.Errorf("%w: several begin with %q, give more of it", ErrUnknown, id)
		}
		found = e
	}
	if found == nil {
		return nil, ErrUnknown
	}
	return found, nil
}

// write claims the approval, writes the answer and then lets it count. Between claim and commit every other answer
// is too late, and the deadline waits: this one was in time.
func (m *Manager) write(ctx context.Context, e *entry, a answerOf) (*Record, error) {
	m.mu.Lock()
	now := time.Now()
	m.sweep(now)
	if e.phase != pending || e.claimed {
		m.mu.Unlock()
		return nil, ErrResolved
	}
	e.claimed = true
	record := e.record
	detail, restored := e.detail, e.restored != nil
	m.mu.Unlock()

	end := Resolution{Decision: a.decision, By: a.by, AtMs: now.UnixMilli()}
	if a.decision == toolward.DenyCall {
		end.Reason = a.reason
	}
	k, err := kept{}, errRestored
	if !restored || a.decision != toolward.AllowAlways {
		k, err = m.keep(ctx, &record, detail, a, now)
	}
	if errors.Is(err, ErrOnlyOnce) {
		// The person wanted the call to run; what nothing can sign must not last.
		end.Decision, end.Reason, err = toolward.AllowOnce, err.Error(), nil
	}
	if err == nil {
		write, cancel := storeContext(ctx)
		err = k.explain(m.store.ResolveApproval(write, record.Key(), end, k.grant))
		cancel()
	}
	if err != nil && a.decision.Allows() {
		m.release(e)
		return nil, fmt.Errorf("answer to approval %s was not recorded and does not count: %w", record.ID, err)
	}
	if k.grant != nil {
		m.book.add(k.grant)
	}
	m.mu.Lock()
	record = m.settle(e, end, k, time.Now())
	if err != nil {
		m.unwritten = append(m.unwritten, Expiry{record.Key(), end.By, end.AtMs})
	}
	m.mu.Unlock()
	m.wake()
	if a.decision == toolward.DenyCall {
		m.people.deny(Denial{e.session, e.run, e.digest}, now)
	}
	if err != nil {
		// A no counts even if it cannot be written: the call is refused either way.
		return &record, fmt.Errorf("approval %s is denied, but the record of it failed: %w", record.ID, err)
	}
	return &record, nil
}

// release makes a claimed approval answerable again, unless its deadline has passed meanwhile.
func (m *Manager) release(e *entry) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e.claimed = false
	m.schedule.set(e, e.end)
	m.wake()
	if e.askers == 0 && !e.record.Detached && !e.orphan && !e.lasting {
		m.end(e, ByRequesterGone, time.Now()) // whoever waited left while the answer was being written
	}
}
