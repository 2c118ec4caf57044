package approval

import (
	"time"

	"github.com/toolward/toolward"
)

// A lasting approval (docs/develop/approvals.md, "After the answer") waits for up to seven days, because a rule says so. Clients end
// their requests after a minute or two, so that a call that stays would be taken back each time. Its caller is told
// after a while that the answer is pending; the same call, made again, waits for it or gets it. What ended meanwhile is
// kept for the caller, a yes until the deadline that people were shown. Nothing is lent by that: an answer is found by
// the digest of everything that it was given for, on the same device, and lets one call run.
const (
	stay       = 50 * time.Second // of a call; clients commonly give up after 60 s
	keptUntold = 24 * time.Hour   // for the caller to be told of an end without a yes
	maxUntold  = 1000             // beyond them the answer is lost: the call is asked anew
)

// waitOf is how long people may take for a question.
func waitOf(q *toolward.Question, s *Settings) time.Duration {
	if q.Judgment.Wait <= 0 {
		return s.Timeout
	}
	return min(max(q.Judgment.Wait, time.Millisecond), maxLife)
}

// keepUntold keeps an ended lasting approval that nobody waits for, for its caller to come back. One that its caller
// took back is told to nobody. The caller holds the lock.
func (m *Manager) keepUntold(e *entry, now time.Time) {
	allows := e.record.Decision.Allows()
	switch {
	case !e.lasting || e.askers > 0 || e.taken || e.phase == consumed, e.record.ResolvedBy == ByCanceled, len(m.untold) >= maxUntold:
		return
	case allows && !e.end.After(now.Add(grace)):
		return // it is gone with the grace
	}
	until := now.Add(keptUntold)
	if allows {
		until = e.end
	}
	m.untold[e.record.Binding] = e
	m.schedule.set(e, until)
}

// told notes that the caller knows how its approval ended. The caller of told holds the lock.
func (m *Manager) told(e *entry, now time.Time) {
	if m.untold[e.record.Binding] == e {
		m.forgetUntold(e)
		m.schedule.set(e, now.Add(grace))
		m.wake()
	}
}

func (m *Manager) forgetUntold(e *entry) {
	if m.untold[e.record.Binding] == e {
		delete(m.untold, e.record.Binding)
	}
}
