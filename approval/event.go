package approval

import "sync"

// EventType says what happened to an approval.
type EventType string

// The events.
const (
	EventRequested EventType = "approval.requested"
	EventResolved  EventType = "approval.resolved" // answered, timed out or withdrawn: every prompt can be closed
)

// Event is news about one approval.
type Event struct {
	Type     EventType
	Approval Record // in a resolved event Request is nil if it is long: Manager.Get has it
	// Missed means that earlier events did not fit the subscriber's buffer: it must list the pending approvals.
	Missed bool
}

// Subscription delivers events to one subscriber.
type Subscription struct {
	C <-chan Event // closed by Close, when the sign-in ends, or with the manager

	list   *subscribers
	by     Authority
	send   chan Event
	missed bool // guarded by the list's lock
}

// subscribers is everybody who gets events.
type subscribers struct {
	mu     sync.Mutex
	list   map[*Subscription]struct{}
	closed bool
}

// Close ends the subscription and closes its channel. Closing twice is harmless.
func (s *Subscription) Close() { s.list.close(s) }

func (l *subscribers) close(s *Subscription) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, open := l.list[s]; open {
		delete(l.list, s)
		close(s.send)
	}
}

func (l *subscribers) closeAll() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	for s := range l.list {
		close(s.send)
	}
	clear(l.list)
}

func (l *subscribers) publish(e Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for s := range l.list {
		if s.by.MayAnswer() != nil {
			delete(l.list, s)
			close(s.send)
			continue
		}
		e.Missed = s.missed
		select {
		case s.send <- e:
			s.missed = false
		default:
			s.missed = true
		}
	}
}
