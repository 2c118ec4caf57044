package approval

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/toolward/toolward"
)

// errForeign stops a caller from spending an approval that is not its own, or that was given for other arguments,
// another directory, session, host or target.
var errForeign = errors.New("approval belongs to another caller or another call")

// resume settles a call that comes back with the id of its approval. again means that the approval was used up and
// this call needs a new one.
func (m *Manager) resume(ctx context.Context, q *toolward.Question) (answer toolward.Answer, again bool, err error) {
	id := q.Request.Call.Approval
	m.mu.Lock()
	m.sweep(time.Now())
	e := m.entries[id]
	if e == nil {
		m.mu.Unlock()
		return m.resumeStored(ctx, q, id)
	}
	if e.record.Binding != q.Binding || e.record.Device != q.Request.Call.Caller.Device {
		m.mu.Unlock()
		return toolward.Answer{}, false, m.foreign(q, id)
	}
	if e.phase >= resolved {
		defer m.mu.Unlock()
		return m.take(e)
	}
	m.attach(e, q.Request.Call.Detach)
	m.mu.Unlock()
	return m.await(ctx, q, e)
}

// resumeStored answers from the row of an approval that is not in memory any more.
func (m *Manager) resumeStored(ctx context.Context, q *toolward.Question, id string) (answer toolward.Answer, again bool, err error) {
	if err := CheckID(id); err != nil {
		return toolward.Answer{}, false, m.foreign(q, cut(id, longestID))
	}
	r, err := m.store.Approval(ctx, id)
	if err != nil {
		return toolward.Answer{}, false, fmt.Errorf("look up approval %s: %w", id, err)
	}
	if r == nil {
		return toolward.Answer{ApprovalID: id}, false, nil // unknown is no decision
	}
	if r.Binding != q.Binding || r.Device != q.Request.Call.Caller.Device {
		return toolward.Answer{}, false, m.foreign(q, id)
	}
	switch {
	case r.State == StatePending:
		return toolward.Answer{ApprovalID: id}, false, nil // its deadline has passed, or it would be in memory
	case !r.Decision.Allows():
		answer := answerFrom(r, "push")
		answer.Unanswered = false // its call was told long ago: people are to be asked about each call anew
		return answer, false, nil
	case r.State == StateResolved && time.Now().UnixMilli() < r.ExpiresMs:
		return answerFrom(r, "push"), false, nil // Consume decides who of several gets it
	}
	return toolward.Answer{}, true, nil
}

func (m *Manager) foreign(q *toolward.Question, id string) error {
	return &toolward.Refusal{
		Tool: q.Request.Tool.Name, Code: toolward.CodeTargetChanged, Approval: id, Cause: errForeign,
		Reasons: []toolward.Reason{{Layer: "approval", Matched: id, Text: errForeign.Error()}},
	}
}

// Consume marks an allowing answer as used, durably. It succeeds at most once for every approval, before its
// deadline, and only for the binding that was approved.
func (m *Manager) Consume(ctx context.Context, id, binding string) error {
	fail := func(why string) error { return fmt.Errorf("%w: %s: %s", ErrNotUsable, id, why) }
	now := time.Now()
	m.mu.Lock()
	m.sweep(now)
	e := m.entries[id]
	var key Key
	if e != nil {
		why := ""
		switch {
		case e.phase == consumed:
			why = "it was used already"
		case e.phase != resolved || !e.record.Decision.Allows():
			why = "nobody has allowed it"
		case e.restored != nil:
			why = "it was asked before a restart, and its call has not come again"
		case !now.Before(e.end):
			why = "it has expired"
		case binding == "" || e.record.Binding != binding:
			why = "it was given for another call"
		}
		if why != "" {
			m.mu.Unlock()
			return fail(why)
		}
		// Used up in memory first: if the store fails it is lost, never used twice.
		e.phase, e.taken = consumed, true
		e.record.State, e.record.ConsumedMs = StateConsumed, now.UnixMilli()
		key = e.record.Key()
	}
	m.mu.Unlock()
	if e == nil {
		r, err := m.storedUsable(ctx, id, binding, now)
		if err != nil {
			return err
		}
		key = r.Key()
	}
	write, cancel := storeContext(ctx)
	defer cancel()
	first, err := m.store.ConsumeApproval(write, key, now.UnixMilli())
	if err != nil {
		return fmt.Errorf("%w: %s: it could not be recorded as used: %w", ErrNotUsable, id, err)
	}
	if !first {
		return fail("it was used already")
	}
	return nil
}

// storedUsable finds the row of an approval whose time in memory is over, if it may still be used.
func (m *Manager) storedUsable(ctx context.Context, id, binding string, now time.Time) (*Record, error) {
	if err := CheckID(id); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotUsable, err)
	}
	r, err := m.store.Approval(ctx, id)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: %s: %w", ErrNotUsable, id, err)
	case r == nil:
		return nil, fmt.Errorf("%w: %w", ErrNotUsable, ErrUnknown)
	case r.State != StateResolved || !r.Decision.Allows() || binding == "" || r.Binding != binding:
		return nil, fmt.Errorf("%w: %s: it does not allow this call", ErrNotUsable, id)
	case now.UnixMilli() >= r.ExpiresMs:
		return nil, fmt.Errorf("%w: %s: it has expired", ErrNotUsable, id)
	}
	return r, nil
}
