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

	manager *Manager
	by      Authority
	send    chan Event
	missed  bool // guarded by the list's lock
}

// subscribers is everybody who gets events.
type subscribers struct {
	mu     sync.Mutex
	list   map[*Subscription]struct{}
	closed bool
}

// Subscribe delivers events until Close. Requests are told to nobody who may not answer: they show what an agent
// is about to do. A subscriber that is too slow loses events, never holds anybody up, and is told that it lost
// some.
func (m *Manager) Subscribe(by Authority, buffer int) (*Subscription, error) {
	if by == nil {
		return nil, ErrNotAllowed
	}
	if err := by.MayAnswer(); err != nil {
		return nil, err
	}
	s := &Subscription{manager: m, by: by, send: make(chan Event, max(buffer, 1))}
	s.C = s.send
	m.subs.mu.Lock()
	defer m.subs.mu.Unlock()
	if m.subs.closed {
		return nil, ErrClosed
	}
	m.subs.list[s] = struct{}{}
	return s, nil
}

// Close ends the subscription and closes its channel. Closing twice is harmless.
func (s *Subscription) Close() { s.manager.subs.close(s) }

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
