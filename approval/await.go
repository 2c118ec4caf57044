package approval

import (
	"context"
	"errors"
	"time"

	"github.com/toolward/toolward"
)

// await waits for the end of e on behalf of one call.
func (m *Manager) await(ctx context.Context, q *toolward.Question, e *entry) (answer toolward.Answer, again bool, err error) {
	<-e.ready // bounded by the store's patience
	if e.failed != nil {
		return toolward.Answer{}, false, m.nobody(q, e.failed)
	}
	if q.Request.Call.Detach {
		return m.pendingOrAnswer(e)
	}
	m.announce(q, e)
	patience, stop := m.patience(e)
	defer stop()
	select {
	case <-e.done:
		m.mu.Lock()
		defer m.mu.Unlock()
		e.askers--
		return m.take(e)
	case <-patience:
		return m.comeBack(e)
	case <-ctx.Done():
		return toolward.Answer{ApprovalID: e.record.ID, Path: m.leave(e, context.Cause(ctx))}, false, nil
	case <-m.stop:
		return toolward.Answer{}, false, m.nobody(q, ErrClosed)
	}
}

// announce tells the call which approval it is about to wait for.
func (m *Manager) announce(q *toolward.Question, e *entry) {
	if q.OnPending == nil {
		return
	}
	m.mu.Lock()
	open := e.phase < resolved
	m.mu.Unlock()
	if open {
		q.OnPending(e.waiting())
	}
}

// patience ends when a call has stayed long enough; never for approvals that do not last.
func (m *Manager) patience(e *entry) (over <-chan time.Time, stop func() bool) {
	if !e.lasting {
		return nil, func() bool { return true }
	}
	timer := time.NewTimer(min(stay, m.settings.Load().Timeout))
	return timer.C, timer.Stop
}

// comeBack sends a call away whose patience is over.
func (m *Manager) comeBack(e *entry) (toolward.Answer, bool, error) {
	m.mu.Lock()
	e.askers--
	m.mu.Unlock()
	return m.pendingOrAnswer(e)
}

// pendingOrAnswer does not wait.
func (m *Manager) pendingOrAnswer(e *entry) (toolward.Answer, bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if e.phase >= resolved {
		return m.take(e)
	}
	waiting := e.waiting()
	return toolward.Answer{}, false, &waiting
}

// take gives the answer of a resolved entry to a call. Only one call gets a yes. The caller holds the lock.
func (m *Manager) take(e *entry) (answer toolward.Answer, again bool, err error) {
	m.told(e, time.Now())
	if e.record.Decision.Allows() {
		if e.taken || e.phase == consumed {
			return toolward.Answer{JudgeAgain: e.record.Decision == toolward.AllowAlways}, true, nil
		}
		e.taken = true
	}
	return answerFrom(&e.record, e.path), false, nil
}

func answerFrom(r *Record, path string) toolward.Answer {
	return toolward.Answer{
		ApprovalID: r.ID, Decision: r.Decision, By: r.ResolvedBy, Reason: r.Reason, Path: path,
		Unanswered: r.Decision == toolward.NoDecision && (r.ResolvedBy == "" || r.ResolvedBy == ByNoApprover),
	}
}

// leave withdraws an approval that nobody waits for any more, and returns the path on which people were asked. A question
// that was left pending on purpose stays.
func (m *Manager) leave(e *entry, cause error) (path string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e.askers--
	if e.phase >= resolved {
		m.keepUntold(e, time.Now()) // it was answered while this call gave up
	}
	canceled := errors.Is(cause, ErrCanceled)
	if e.askers > 0 || e.record.Detached || e.lasting && !canceled || e.phase != pending || e.claimed || m.closed {
		return e.path
	}
	by := ByRequesterGone
	if canceled {
		by = ByCanceled
	}
	m.end(e, by, time.Now())
	return e.path
}

// expire ends a pending approval with a reason; false if it was over already.
func (m *Manager) expire(e *entry, by string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	m.sweep(now)
	if e.phase != pending || e.claimed {
		return false
	}
	m.end(e, by, now)
	return true
}

// nobody refuses because the question cannot be put to anybody now.
func (m *Manager) nobody(q *toolward.Question, cause error) error {
	r := &toolward.Refusal{Tool: q.Request.Tool.Name, Code: toolward.CodeNoApprovalChannel, Cause: cause}
	if errors.Is(cause, ErrTooMany) {
		r.Detail = "too many calls are waiting for an answer already"
	}
	return r
}

// attach counts a call as waiting for e. The caller holds the lock.
func (m *Manager) attach(e *entry, detach bool) {
	if e.orphan {
		e.orphan = false
		m.schedule.set(e, e.end)
	}
	if detach {
		e.record.Detached = true
		return
	}
	e.askers++
}
