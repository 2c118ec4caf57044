package plugin

import "sync/atomic"

// set is what one configuration calls. It never changes: a call keeps the set that it began with, and the programs in
// it stay until the last such call has ended.
type set struct {
	handlers
	holders atomic.Int64 // calls in progress, and 1 while the set is in force
	release func()       // lets go of its programs
}

func newSet(h handlers, release func()) *set {
	ordered(h.before)
	ordered(h.after)
	ordered(h.result)
	s := &set{handlers: h, release: release}
	s.holders.Store(1)
	return s
}

// hold keeps the set from being released; false if it was released already.
func (s *set) hold() bool {
	for {
		n := s.holders.Load()
		if n == 0 {
			return false
		}
		if s.holders.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

func (s *set) drop() {
	if s.holders.Add(-1) == 0 && s.release != nil {
		s.release()
	}
}
