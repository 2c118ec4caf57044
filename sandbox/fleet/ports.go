package fleet

import (
	"context"
	"slices"
	"time"

	"github.com/toolward/toolward/sandbox"
)

// Listening is a port on which programs in a sandbox listen, as people see it. What the program is called it says itself.
type Listening struct {
	Port    uint16 `json:"port"`
	Program string `json:"program,omitempty"`
	PID     int    `json:"pid,omitempty"` // inside
	Local   bool   `json:"local"`         // it is reached at the sandbox's own loopback address
}

// Bounds of what is remembered and recorded of ports.
const (
	// portsAfter is how long after a command a look begins: commands come one after another, and the next is not to wait for it.
	portsAfter = 300 * time.Millisecond
	portsTime  = 3 * time.Second // one look may take so long
	portsTold  = 32              // of one sandbox since it was started: tests open ports by the hundred
)

// ears is what was heard of the ports of a sandbox. Guarded by the Manager's mutex.
type ears struct {
	of      sandbox.Handle
	now     []Listening
	told    map[uint16]bool
	looking bool
}

// Running is the sandbox of a name, if it runs and this gateway holds it.
func (m *Manager) Running(name string) (sandbox.Handle, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if b := m.boxes[name]; b != nil && b.alive() != nil && !m.closed {
		return b.handle, nil
	}
	return nil, &sandbox.Error{
		Code: sandbox.CodeNotFound, Text: "sandbox " + name + " does not run, or this gateway has not used it yet", Fix: "the next call in it starts it",
	}
}

// Ports are those on which programs in a sandbox listen now, and whether there are more.
func (m *Manager) Ports(ctx context.Context, name string) ([]Listening, bool, error) {
	handle, err := m.Running(name)
	if err != nil {
		return nil, false, err
	}
	ports, more, err := handle.Ports(ctx)
	return listening(ports), more, err
}

func listening(ports []sandbox.Port) []Listening {
	list := make([]Listening, 0, len(ports))
	for _, p := range ports {
		list = append(list, Listening{Port: p.Number, Program: p.Program, PID: p.PID, Local: p.Local})
	}
	return list
}

// listen has the ports of a box looked at. The caller holds the mutex.
func (m *Manager) listen(b *box) {
	handle := b.alive()
	if handle == nil || m.closed || b.ears.looking {
		return
	}
	b.ears.looking = true
	m.workers.Go(func() { m.hear(b, handle) })
}

// hear looks at the ports of a box once, and tells of those that stay: seen in two looks, and not told of before.
func (m *Manager) hear(b *box, handle sandbox.Handle) {
	select {
	case <-time.After(portsAfter):
	case <-m.ended.Done():
	}
	ctx, cancel := context.WithTimeout(m.ended, portsTime)
	defer cancel()
	ports, _, err := handle.Ports(ctx)
	m.mu.Lock()
	fresh := b.ears.heard(handle, listening(ports), err)
	event := Event{Name: b.name, Engine: b.engine}
	if b.layout != nil {
		event.ScopeKey = b.layout.ScopeKey
	}
	m.mu.Unlock()
	for _, p := range fresh {
		event.Port, event.Program = p.Port, p.Program
		m.tell(EventListening, event)
	}
}

// heard keeps what a look has found, and returns what is to be told.
func (e *ears) heard(handle sandbox.Handle, ports []Listening, err error) (fresh []Listening) {
	e.looking = false
	if e.of != handle {
		*e = ears{of: handle, told: map[uint16]bool{}}
	}
	if err != nil {
		ports = nil
	}
	for _, p := range ports {
		before := slices.ContainsFunc(e.now, func(q Listening) bool { return q.Port == p.Port })
		if before && !e.told[p.Port] && len(e.told) < portsTold {
			e.told[p.Port] = true
			fresh = append(fresh, p)
		}
	}
	e.now = ports
	return fresh
}

// portsOf are those that the last look has found. The caller holds the mutex.
func (b *box) portsOf() []Listening {
	if b.alive() == nil || b.ears.of != b.handle {
		return []Listening{}
	}
	return append([]Listening{}, b.ears.now...)
}
