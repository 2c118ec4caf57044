package approval

import (
	"crypto/sha256"
	"fmt"
	"time"

	"github.com/toolward/toolward"
)

// ByOther is why a question from before a restart ended that was not what its call is.
const ByOther = "shown-otherwise"

// errRestored stops what would be kept of a question whose row may be somebody else's: its proposals come from there, too.
var errRestored = fmt.Errorf("%w: the question is from before a restart, and its call has not come again", ErrOnlyOnce)

// appearance is a digest of what people are shown of a call, without what is another each time the same call is made.
type appearance [sha256.Size]byte

func appearanceOf(d *Details) (appearance, error) {
	plain := *d
	plain.CallID, plain.Run = "", ""
	text, err := encode(&plain)
	return sha256.Sum256(text), err
}

// settleRestored looks whether a question from before a restart, which a call would take up, shows that very call. The row of a question carries
// no signature: a program of the same user that writes one while no gateway runs would have people allow one thing and run another.
func (m *Manager) settleRestored(q *toolward.Question) error {
	list := m.restoredFor(q)
	if len(list) == 0 {
		return nil
	}
	now := time.Now()
	r, err := m.recordOf(q, now)
	if err != nil {
		return err
	}
	m.people.advise(r.Request)
	is, err := appearanceOf(r.Request)
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, e := range list {
		m.settleAs(e, is, now)
	}
	return nil
}

func (m *Manager) restoredFor(q *toolward.Question) (list []*entry) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, e := range []*entry{m.entries[q.Request.Call.Approval], m.byBinding[q.Binding], m.untold[q.Binding]} {
		if e != nil && e.restored != nil {
			list = append(list, e)
		}
	}
	return list
}

// settleAs lets a restored entry count as the question of a call that looks so, or ends it. The caller holds the lock.
func (m *Manager) settleAs(e *entry, is appearance, now time.Time) {
	switch {
	case e.restored == nil:
	case *e.restored == is:
		e.restored = nil
	case e.phase == pending && !e.claimed:
		m.end(e, ByOther, now)
		m.forgetUntold(e) // its end is not the end of this call
	default:
		e.phase, e.taken = consumed, true // an answer that nobody gave for this call
		m.forgetUntold(e)
	}
}

// looks reports whether a restored entry is the question that a program puts again, and lets it count if so. The caller holds the lock.
func (e *entry) looks(r *Record) bool {
	is, err := appearanceOf(r.Request)
	if err != nil || is != *e.restored || r.Binding != e.record.Binding || !isSelf(e.record.Connection, e.record.Device, r.Connection, r.Device) {
		return false
	}
	e.restored = nil
	return true
}
