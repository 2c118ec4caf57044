package tui

import (
	"slices"
	"strings"
	"time"
)

// lingers is how long a call stays in the queue after its deadline: the gateway's word on it may be on the way.
const lingers = 500 * time.Millisecond

// queue is what waits, in the order of arrival.
type queue struct{ calls []Call }

// sync replaces everything.
func (q *queue) sync(calls []Call) {
	q.calls = nil
	for _, c := range calls {
		if c.valid() {
			q.put(c)
		}
	}
}

// put adds a call; one with the same id is replaced.
func (q *queue) put(c Call) {
	q.drop(c.ID)
	at, _ := slices.BinarySearchFunc(q.calls, c, func(a, b Call) int {
		if a.CreatedMs != b.CreatedMs {
			return int(a.CreatedMs - b.CreatedMs)
		}
		return strings.Compare(a.ID, b.ID)
	})
	q.calls = slices.Insert(q.calls, at, c)
}

// drop removes a call and reports whether it was there.
func (q *queue) drop(id string) bool {
	at := q.index(id)
	if at < 0 {
		return false
	}
	q.calls = slices.Delete(q.calls, at, at+1)
	return true
}

// expire removes the calls that nobody can answer any more.
func (q *queue) expire(now time.Time) (gone []Call) {
	q.calls = slices.DeleteFunc(q.calls, func(c Call) bool {
		late := now.Sub(time.UnixMilli(c.ExpiresMs)) >= lingers
		if late {
			gone = append(gone, c)
		}
		return late
	})
	return gone
}

// index is the position of a call, or -1.
func (q *queue) index(id string) int {
	return slices.IndexFunc(q.calls, func(c Call) bool { return c.ID == id })
}

// soonest is the position of the call whose time ends first; -1 unless there are several.
func (q *queue) soonest() int {
	if len(q.calls) < 2 {
		return -1
	}
	first := 0
	for i, c := range q.calls {
		if c.ExpiresMs < q.calls[first].ExpiresMs {
			first = i
		}
	}
	return first
}
