package approval

import "time"

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
	s := &Subscription{list: m.subs, by: by, send: make(chan Event, max(buffer, 1))}
	s.C = s.send
	m.subs.mu.Lock()
	defer m.subs.mu.Unlock()
	if m.subs.closed {
		return nil, ErrClosed
	}
	m.subs.list[s] = struct{}{}
	return s, nil
}

// Attach registers an approver until its Close. Only somebody who may answer counts as one: otherwise an agent
// could keep calls waiting by pretending that somebody looks.
func (m *Manager) Attach(a Approver) (*Presence, error) {
	if a.By == nil {
		return nil, ErrNotAllowed
	}
	if err := a.By.MayAnswer(); err != nil {
		return nil, err
	}
	p := &Presence{people: m.people, approver: a}
	m.people.mu.Lock()
	m.people.present[p] = struct{}{}
	m.people.mu.Unlock()
	p.Active()
	return p, nil
}

// MarkShown returns the stamp to put beside an approval that is being shown to by, right now: r is what is shown. The answer
// must bring it back ([Response].Shown).
func (m *Manager) MarkShown(r *Record, by Authority) string {
	session := ""
	if by != nil {
		session = by.SignIn()
	}
	return m.stamps.sign(r, session, time.Now())
}
