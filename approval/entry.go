package approval

import (
	"container/heap"
	"fmt"
	"slices"
	"time"

	"github.com/toolward/toolward"
)

// entry is one approval in memory: pending, or resolved and in its grace. Everything but done and ready is guarded
// by the manager's lock.
type entry struct {
	record Record    // Request is nil: see details
	detail []byte    // Request as JSON; nil if it is long, then the store has it
	due    time.Time // when the next thing happens by itself: deadline, reattach limit or end of grace
	end    time.Time // the deadline, monotonic
	place  int       // in the schedule; -1 if not in it
	next   *entry    // whose id begins alike

	phase   phase
	claimed bool          // an answer is being written; every other answer is too late
	failed  error         // registration failed; nobody ever saw it
	ready   chan struct{} // closed once the row is committed, or failed
	done    chan struct{} // closed when resolved

	cancel func() // ends the socket prompt, if there is one
	path   string // push or socket

	askers int  // calls that wait for it now
	taken  bool // a waiting call has taken the allowing answer
	orphan bool // loaded after a restart, its caller has not come back yet
	// restored is what a row from before the restart shows; nil once its call has come and looks so.
	restored *appearance
	lasting  bool // its callers leave and come back: see Details
	session  toolward.SessionKey
	run      string
	digest   string
}

type phase uint8

const (
	registering phase = iota
	pending
	resolved
	consumed
)

// inlineDetail is how much of what people are shown stays in memory. The rest is read from the store when somebody
// looks: ten thousand waiting patches must not fill the machine.
const inlineDetail = 2560

func newEntry(r *Record, now time.Time) (*entry, error) {
	e := &entry{
		record: *r, place: -1,
		ready: make(chan struct{}), done: make(chan struct{}),
		session: r.Request.Session, run: r.Request.Run, digest: r.Request.Digest,
		end: now.Add(time.Duration(r.ExpiresMs-r.CreatedMs) * time.Millisecond), lasting: r.Request.Lasting,
	}
	e.due = e.end
	e.record.Request = nil
	detail, err := encode(r.Request)
	if err != nil {
		return nil, fmt.Errorf("encode approval %s: %w", r.ID, err)
	}
	if len(detail) <= inlineDetail {
		e.detail = slices.Clip(slices.Clone(detail))
	}
	return e, nil
}

// waiting is what the caller of a pending approval is told.
func (e *entry) waiting() toolward.Pending {
	return toolward.Pending{ID: e.record.ID, ExpiresAt: time.UnixMilli(e.record.ExpiresMs)}
}

// schedule is a heap of entries by due time: one timer serves all.
type schedule []*entry

func (s schedule) Len() int           { return len(s) }
func (s schedule) Less(i, j int) bool { return s[i].due.Before(s[j].due) }
func (s schedule) Swap(i, j int) {
	s[i], s[j] = s[j], s[i]
	s[i].place, s[j].place = i, j
}

// Push and Pop are for container/heap.
func (s *schedule) Push(x any) {
	e := x.(*entry)
	e.place = len(*s)
	*s = append(*s, e)
}

// Pop removes the last element.
func (s *schedule) Pop() any {
	old := *s
	e := old[len(old)-1]
	old[len(old)-1] = nil
	*s = old[:len(old)-1]
	e.place = -1
	return e
}

// set puts e at its due time.
func (s *schedule) set(e *entry, due time.Time) {
	e.due = due
	if e.place < 0 {
		heap.Push(s, e)
		return
	}
	heap.Fix(s, e.place)
}
