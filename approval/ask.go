package approval

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/toolward/toolward"
)

// Ask puts the question to people and waits for the answer, the deadline or the end of ctx. When ctx ends and
// nobody else waits, the approval is withdrawn. A question with Detach is left pending and comes back as a
// *toolward.Pending; the caller asks again with the same call and the approval's id.
//
// Identical calls share a prompt. An answer for once is for one of them, and the next is asked about anew; "always" is for
// all of them: by the grant that it made, or by what it saved elsewhere, which is not the manager's to judge by
// ([toolward.Answer].JudgeAgain).
func (m *Manager) Ask(ctx context.Context, q *toolward.Question) (toolward.Answer, error) {
	start := time.Now()
	if q == nil || q.Request == nil || q.Request.Tool == nil || q.Binding == "" {
		return toolward.Answer{}, errors.New("approval: a question without a request or a binding cannot be asked")
	}
	if err := m.settleRestored(q); err != nil {
		return toolward.Answer{}, err
	}
	answer, again, err := toolward.Answer{}, true, error(nil)
	if q.Request.Call.Approval != "" {
		answer, again, err = m.resume(ctx, q)
	} else {
		answer, again = m.untoldAnswer(q)
	}
	for first := true; again && err == nil; first = false {
		if g := m.covering(q); g != nil && (!first || q.Request.Call.Approval != "") {
			used := false
			if used, err = m.use(ctx, g); used {
				answer, err = m.byGrant(ctx, q, g)
			}
			if used || err != nil {
				break
			}
			continue // another call has taken its last use
		}
		if answer.JudgeAgain && q.Request.Call.Approval == "" {
			break
		}
		answer, again, err = m.askOnce(ctx, q)
	}
	answer.Waited = time.Since(start)
	return answer, err
}

// askOnce joins the prompt of an identical pending call or makes a new one. again means that the answer allowed one
// call and another one took it: every call needs its own yes.
func (m *Manager) askOnce(ctx context.Context, q *toolward.Question) (answer toolward.Answer, again bool, err error) {
	if err := m.guard(q); err != nil {
		return toolward.Answer{}, false, err
	}
	e := m.join(q)
	if e == nil {
		if e, err = m.pose(ctx, q); err != nil {
			return toolward.Answer{}, false, err
		}
	}
	return m.await(ctx, q, e)
}

// byGrant answers a call that shared a prompt, or that came back for an answer that was used up, and that the
// person's "always" covers meanwhile, a use of which was taken. It gets an approval of its own, so that each run still uses up exactly one.
func (m *Manager) byGrant(ctx context.Context, q *toolward.Question, g *Grant) (toolward.Answer, error) {
	now := time.Now()
	r, err := m.recordOf(q, now)
	if err != nil {
		return toolward.Answer{}, err
	}
	r.State, r.Decision, r.ResolvedBy = StateResolved, toolward.AllowOnce, "grant "+g.ID
	r.ResolvedMs, r.Grant = now.UnixMilli(), g.ID
	write, cancel := storeContext(ctx)
	defer cancel()
	if err := m.store.AddApproval(write, r); err != nil {
		return toolward.Answer{}, fmt.Errorf("register approval: %w", err)
	}
	answer := answerFrom(r, "push")
	answer.Grant = g.ID // no person answered this call: a rise of the level voids it
	return answer, nil
}

// guard refuses what should not even be asked.
func (m *Manager) guard(q *toolward.Question) error {
	r := q.Request
	switch {
	case m.people.wasDenied(Denial{r.Call.Session, r.Call.Run, r.Digest}):
		return &toolward.Refusal{Tool: r.Tool.Name, Code: toolward.CodeDeniedBefore}
	case m.people.isAway(r.Call.Session, time.Now()):
		return &toolward.Refusal{Tool: r.Tool.Name, Code: toolward.CodeApproverAway}
	}
	return nil
}

// join returns the pending entry of an identical call of the same device, with this call counted as waiting; nil if
// there is none.
func (m *Manager) join(q *toolward.Question) *entry {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.sweep(time.Now())
	e := m.byBinding[q.Binding]
	if e == nil || e.record.Device != q.Request.Call.Caller.Device {
		return nil
	}
	m.attach(e, q.Request.Call.Detach)
	return e
}

// pose registers a new approval and tells people about it.
func (m *Manager) pose(ctx context.Context, q *toolward.Question) (*entry, error) {
	caller := &q.Request.Call.Caller
	approvers := m.people.reachable(caller.Connection, caller.Device)
	prompt := approvers == 0 && m.socketMay(q.Request.Level, q.Judgment.Class.Severity) && m.socket.Reachable(ctx)
	waits := m.settings.Load().Absent == AbsentWait
	if approvers == 0 && !prompt && !waits && len(m.channels) == 0 {
		return nil, m.nobody(q, nil)
	}
	record, err := m.recordOf(q, time.Now())
	if err != nil {
		return nil, err
	}
	m.people.advise(record.Request)
	e, joined, err := m.register(ctx, record, q.Request.Call.Detach, true)
	if err != nil {
		return nil, m.nobody(q, err)
	}
	if joined {
		return e, nil
	}
	m.people.prompted(record.Request, time.Now())
	offered := false
	for _, c := range m.channels {
		offered = c.Offer(ctx, record) || offered
	}
	switch {
	case approvers > 0 || offered:
	case prompt:
		m.prompt(e, record)
	case !waits:
		m.expire(e, ByNoApprover)
		return nil, m.nobody(q, nil)
	}
	return e, nil
}

// register makes a record pending: first a row, then visible. With the id of an approval that is pending with the
// same content it returns that one and joined; with other content it fails, so that nobody inherits or replaces
// another's question.
//
// With share it also joins a pending approval of the same binding and device under any id.
func (m *Manager) register(ctx context.Context, r *Record, detach, share bool) (e *entry, joined bool, err error) {
	now := time.Now()
	e, err = newEntry(r, now)
	if err != nil {
		return nil, false, err
	}
	m.mu.Lock()
	m.sweep(now)
	if old, err := m.sameID(r); old != nil || err != nil {
		if old != nil {
			m.attach(old, detach)
		}
		m.mu.Unlock()
		return old, true, err
	}
	if same := m.byBinding[r.Binding]; share && same != nil && same.record.Device == r.Device {
		m.attach(same, detach)
		m.mu.Unlock()
		return same, true, nil
	}
	if err := m.room(r); err != nil {
		m.mu.Unlock()
		return nil, false, err
	}
	m.insert(e)
	m.attach(e, detach)
	m.mu.Unlock()

	write, cancel := storeContext(ctx)
	err = m.store.AddApproval(write, r)
	cancel()

	m.mu.Lock()
	defer m.mu.Unlock()
	if err != nil {
		// Not committed, never shown: it is as if nobody had asked, and whoever joined meanwhile fails alike.
		e.failed = fmt.Errorf("register approval: %w", err)
		m.uncount(e)
		delete(m.entries, r.ID)
		e.phase = resolved
		close(e.ready)
		close(e.done)
		return nil, false, e.failed
	}
	e.phase, e.path = pending, "push"
	close(e.ready)
	m.schedule.set(e, e.end)
	m.wake()
	m.publish(Event{Type: EventRequested, Approval: *r})
	return e, false, nil
}

// sameID looks for an entry with the id of r. The caller holds the lock.
func (m *Manager) sameID(r *Record) (*entry, error) {
	old := m.entries[r.ID]
	switch {
	case old == nil:
		return nil, nil
	case old.restored != nil && !old.looks(r):
		return nil, ErrIDPending
	case old.phase >= resolved:
		return nil, ErrResolved
	case old.record.Binding != r.Binding || old.record.Connection != r.Connection || old.record.Device != r.Device:
		return nil, ErrIDPending
	}
	return old, nil
}

// room refuses more pending approvals than people can oversee. One session's flood takes no room from another's.
// The caller holds the lock.
func (m *Manager) room(r *Record) error {
	s := m.settings.Load()
	switch {
	case m.closed:
		return ErrClosed
	case r.Request.Session != "" && m.bySession[r.Request.Session] >= s.PerSession: // programs without sessions do not share one
		return fmt.Errorf("%w: %d in this session", ErrTooMany, s.PerSession)
	case r.Connection != "" && m.byConn[r.Connection] >= s.PerConn:
		return fmt.Errorf("%w: %d of this connection", ErrTooMany, s.PerConn)
	// Callers leave these behind for days, and may name ever new sessions: the places of others are not theirs.
	case r.Request.Lasting && m.lastingOf[r.Request.Session.Agent()] >= max(s.Total/4, 1):
		return fmt.Errorf("%w: %d of this agent that may wait for long", ErrTooMany, max(s.Total/4, 1))
	case r.Request.Lasting && m.lasting >= max(s.Total/2, 1):
		return fmt.Errorf("%w: %d that may wait for long", ErrTooMany, max(s.Total/2, 1))
	case m.pending >= s.Total:
		return fmt.Errorf("%w: %d altogether", ErrTooMany, s.Total)
	}
	return nil
}

// socketMay reports whether the approval socket may answer: no person has signed in there, so what matters most waits
// for one.
func (m *Manager) socketMay(level toolward.Level, severity toolward.Severity) bool {
	return m.socket != nil && m.settings.Load().Socket && level != toolward.Lockdown && severity != toolward.Critical
}

// prompt lets the approval socket answer. Its goroutine ends with the approval. An "always" counts once: keeping an
// answer takes a person's sign-in, and any process of the user could be the program at the socket.
func (m *Manager) prompt(e *entry, r *Record) {
	ctx, cancel := context.WithCancel(context.Background())
	m.mu.Lock()
	if e.phase != pending || m.closed {
		m.mu.Unlock()
		cancel()
		return
	}
	e.cancel, e.path = cancel, "socket"
	m.mu.Unlock()
	go func() {
		defer cancel()
		word, by, err := m.socket.Prompt(ctx, r)
		if err != nil || ctx.Err() != nil {
			return // no decision: the deadline refuses
		}
		decision, err := toolward.ParseDecision(word)
		if decision == toolward.AllowAlways {
			decision = toolward.AllowOnce
		}
		if err != nil || !r.Offers(decision) {
			return
		}
		if _, err := m.write(ctx, e, answerOf{decision: decision, by: "socket:" + cut(by, 64)}); err != nil {
			m.log.Warn("an answer of the approval socket was not taken", "approval", r.ID, "err", err)
		}
	}()
}

// untoldAnswer is the answer that a call has come back for by being made again. again means that there is none.
func (m *Manager) untoldAnswer(q *toolward.Question) (answer toolward.Answer, again bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.sweep(time.Now())
	e := m.untold[q.Binding]
	if e == nil || e.record.Device != q.Request.Call.Caller.Device {
		return toolward.Answer{}, true
	}
	answer, again, _ = m.take(e) // of an ended entry it gives no error
	return answer, again
}
