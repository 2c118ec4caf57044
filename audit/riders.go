package audit

import (
	"slices"
	"sync"
	"time"
)

// riders are outcomes that need no transaction of their own: those of safe
// calls, and those whose write has failed. They go into the next one, or into
// one for all of them when none comes soon. A crash before that leaves the
// decision without an outcome, and the next start calls the call lost.
type riders struct {
	mu      sync.Mutex
	waiting []*entry
	timer   *time.Timer
	armed   bool
}

const (
	maxRiders    = 1024                 // that wait; more are written at once, or given up if that fails
	ridersInTurn = 128                  // that go with one entry, whose caller waits for them
	riderDelay   = 3 * time.Millisecond // until they need no entry
)

// ride lets an outcome wait for the next transaction. It reports false when
// too many wait already.
func (l *Log) ride(e *entry) bool {
	r := &l.riders
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.waiting) >= maxRiders {
		return false
	}
	r.waiting = append(r.waiting, e)
	r.arm(riderDelay)
	return true
}

// arm must be called with the lock held.
func (r *riders) arm(delay time.Duration) {
	if !r.armed {
		r.armed = true
		r.timer.Reset(delay)
	}
}

// take appends some of those that wait to with.
func (r *riders) take(with []*entry) []*entry {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := min(len(r.waiting), ridersInTurn)
	with = append(with, r.waiting[:n]...)
	r.waiting = slices.Delete(r.waiting, 0, n)
	return with
}

// giveBack returns the outcomes among entries that were taken in vain.
func (r *riders) giveBack(entries []*entry) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range entries {
		if e.closes != 0 { // checkpoints are made anew
			r.waiting = append(r.waiting, e)
		}
	}
}

// has reports whether the outcome of a decision waits.
func (r *riders) has(decision int64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.ContainsFunc(r.waiting, func(e *entry) bool { return e.closes == decision })
}

func (r *riders) empty() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.waiting) == 0
}

// flushLater is what the timer does.
func (l *Log) flushLater() {
	l.riders.mu.Lock()
	l.riders.armed = false
	l.riders.mu.Unlock()
	l.gate.RLock()
	defer l.gate.RUnlock()
	if !l.closed && l.flush() != nil {
		l.riders.mu.Lock()
		l.riders.arm(l.sealDelay) // a failing disk is not asked more often
		l.riders.mu.Unlock()
	}
}

// flush writes all outcomes that wait.
func (l *Log) flush() error {
	for !l.riders.empty() {
		if err := l.appendNothing(false, func() {}); err != nil {
			return err
		}
	}
	return nil
}
