package approval

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/toolward/toolward"
)

// Register makes a record pending that was not made by Ask, such as a request over RPC. It is committed when
// Register returns. joined reports that the same request is pending under this id already. The record's decision
// fields are ignored; CreatedMs and ExpiresMs are set from timeout, where zero means the default and too much is
// cut.
func (m *Manager) Register(ctx context.Context, r Record, timeout time.Duration) (joined bool, err error) {
	if r.ID == "" {
		return false, fmt.Errorf("register approval: %w", CheckID(""))
	}
	if err := CheckID(r.ID); err != nil {
		return false, err
	}
	if r.Request == nil || r.Binding == "" || len(r.Allowed) == 0 {
		return false, fmt.Errorf("register approval %s: request, binding and allowed decisions are required", r.ID)
	}
	s := m.settings.Load()
	if timeout == 0 {
		timeout = s.Timeout
	}
	if timeout < time.Millisecond {
		return false, fmt.Errorf("register approval %s: time-out %s, expected at least 1ms", r.ID, timeout)
	}
	now := time.Now()
	r.State, r.Decision, r.ResolvedBy, r.Reason, r.ResolvedMs, r.ConsumedMs, r.Grant = StatePending, toolward.NoDecision, "", "", 0, 0, ""
	r.CreatedMs, r.ExpiresMs = now.UnixMilli(), now.Add(min(timeout, s.MaxTimeout)).UnixMilli()
	r.Detached = true
	e, joined, err := m.register(ctx, &r, true, false)
	if err != nil {
		return false, err
	}
	<-e.ready
	return joined, e.failed
}

// NewID returns a random id for Register.
func NewID() string { return newID() }

// Wait returns the decision of an approval: at once when it is resolved, for 15 seconds after that; otherwise it
// waits until it is. Any number of callers may wait; one that gives up does not resolve anything. It fails with
// ErrUnknown when there is no such approval (any more), which callers treat as no decision,
// and with ErrRestored if its question is from before a restart and was not put again since.
func (m *Manager) Wait(ctx context.Context, id string) (toolward.Decision, error) {
	m.mu.Lock()
	m.sweep(time.Now())
	e := m.entries[id]
	restored := e != nil && e.restored != nil
	m.mu.Unlock()
	switch {
	case e == nil:
		return toolward.NoDecision, ErrUnknown
	case restored: // whoever asks by id alone does not say what for
		return toolward.NoDecision, ErrRestored
	}
	select {
	case <-e.done: // known already: the context does not matter
	default:
		select {
		case <-e.done:
		case <-ctx.Done():
			return toolward.NoDecision, ctx.Err()
		case <-m.stop:
			return toolward.NoDecision, ErrClosed
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if e.failed != nil {
		return toolward.NoDecision, ErrUnknown
	}
	return e.record.Decision, nil
}

// Expire ends a pending approval without a decision, for a reason that is recorded; false if it is not pending.
func (m *Manager) Expire(id, reason string) bool {
	m.mu.Lock()
	e := m.entries[id]
	m.mu.Unlock()
	return e != nil && m.expire(e, reason)
}

// Cancel withdraws an approval for the one who requested it.
func (m *Manager) Cancel(id, connection, device string) error {
	m.mu.Lock()
	e := m.entries[id]
	m.mu.Unlock()
	if e == nil || !isSelf(e.record.Connection, e.record.Device, connection, device) {
		return ErrUnknown // another's approval looks like none
	}
	if !m.expire(e, ByCanceled) {
		return ErrResolved
	}
	return nil
}

// Count is the number of pending approvals.
func (m *Manager) Count() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.sweep(time.Now())
	return m.pending
}

// Pending lists what waits for an answer, the next to expire first.
func (m *Manager) Pending(ctx context.Context, by Authority) ([]*Record, error) {
	if err := mayAnswer(by); err != nil {
		return nil, err
	}
	type look struct {
		record Record
		detail []byte
	}
	m.mu.Lock()
	m.sweep(time.Now())
	list := make([]look, 0, m.pending)
	for _, e := range m.entries {
		if e.phase == pending {
			list = append(list, look{e.record, e.detail})
		}
	}
	m.mu.Unlock()
	slices.SortFunc(list, func(a, b look) int {
		if a.record.ExpiresMs != b.record.ExpiresMs {
			return int(a.record.ExpiresMs - b.record.ExpiresMs)
		}
		return strings.Compare(a.record.ID, b.record.ID)
	})
	out := make([]*Record, 0, len(list))
	for _, l := range list {
		d, err := m.details(ctx, l.record.Key(), l.detail)
		if err != nil {
			return nil, err
		}
		l.record.Request = d
		out = append(out, &l.record)
	}
	return out, nil
}

// Get returns one approval, pending or past, by its id or, while it is pending, a unique prefix of at least 8
// characters.
func (m *Manager) Get(ctx context.Context, by Authority, id string) (*Record, error) {
	if err := mayAnswer(by); err != nil {
		return nil, err
	}
	m.mu.Lock()
	m.sweep(time.Now())
	e := m.entries[id]
	if e == nil {
		e, _ = m.find(id)
	}
	if e == nil || e.phase == registering {
		m.mu.Unlock()
		return m.getStored(ctx, id)
	}
	r, detail := e.record, e.detail
	m.mu.Unlock()
	d, err := m.details(ctx, r.Key(), detail)
	if err != nil {
		return nil, err
	}
	r.Request = d
	return &r, nil
}

func (m *Manager) getStored(ctx context.Context, id string) (*Record, error) {
	if CheckID(id) != nil {
		return nil, ErrUnknown
	}
	r, err := m.store.Approval(ctx, id)
	if err != nil {
		return nil, fmt.Errorf("look up approval %s: %w", id, err)
	}
	if r == nil {
		return nil, ErrUnknown
	}
	r.Saved = r.saved()
	return r, nil
}

// Shown returns what people are shown of an approval. It is for adapters that pass on an event whose request was too long
// for it, to people who may see it.
func (m *Manager) Shown(ctx context.Context, key Key) (*Details, error) {
	return m.details(ctx, key, nil)
}

// Recent lists the approvals that ended last, newest first, at most 500.
func (m *Manager) Recent(ctx context.Context, by Authority, limit int) ([]*Record, error) {
	if err := mayAnswer(by); err != nil {
		return nil, err
	}
	list, err := m.store.RecentApprovals(ctx, min(max(limit, 1), 500))
	if err != nil {
		return nil, fmt.Errorf("list recent approvals: %w", err)
	}
	for _, r := range list {
		r.Saved = r.saved()
	}
	return list, nil
}

func mayAnswer(by Authority) error {
	if by == nil {
		return ErrNotAllowed
	}
	return by.MayAnswer()
}

// details returns what people are shown of an approval, from memory or from its row.
func (m *Manager) details(ctx context.Context, key Key, detail []byte) (*Details, error) {
	if detail != nil {
		return decodeDetails(detail)
	}
	r, err := m.store.ApprovalByKey(ctx, key)
	if err != nil {
		return nil, fmt.Errorf("read approval %s: %w", key.ID, err)
	}
	if r == nil || r.Request == nil {
		return nil, fmt.Errorf("read approval %s: %w", key.ID, ErrUnknown)
	}
	return r.Request, nil
}
