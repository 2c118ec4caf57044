package fleet

import (
	"context"
	"maps"
	"time"

	"github.com/toolward/toolward/sandbox"
	"github.com/toolward/toolward/sandbox/settings"
)

const endedAlone = "it ended by itself, or from outside"

// watch notices the end of a sandbox.
func (m *Manager) watch(b *box, handle sandbox.Handle) {
	select {
	case <-m.ended.Done():
		return
	case <-handle.Done():
	}
	m.mu.Lock()
	unexpected := b.handle == handle
	var patrol *patrol
	if unexpected {
		patrol, b.handle, b.patrol = b.patrol, nil, nil
	}
	event := Event{Name: b.name, Engine: b.engine, Why: endedAlone}
	if b.layout != nil {
		event.ScopeKey = b.layout.ScopeKey
	}
	m.mu.Unlock()
	if unexpected {
		m.letGo(handle)
		m.tell(EventEnded, event)
		if patrol != nil {
			patrol.last()
		}
		if b.take(m.ended) == nil { // somebody who makes it anew meanwhile has opened it anew
			m.closeEgress(b)
			b.give()
		}
	}
}

// drain lets what runs in a sandbox end, up to a bound. New calls wait for the turn that the caller holds.
func (m *Manager) drain(ctx context.Context, b *box) {
	m.mu.Lock()
	m.unready(b)
	if b.users == 0 {
		m.mu.Unlock()
		return
	}
	if b.idle == nil {
		b.idle = make(chan struct{})
	}
	idle := b.idle
	m.mu.Unlock()
	timer := time.NewTimer(drainTime)
	defer timer.Stop()
	select {
	case <-idle:
	case <-timer.C:
		m.options.Log.Warn("a sandbox is ended although commands run in it: it must be made anew", "sandbox", b.name)
	case <-ctx.Done():
	case <-m.ended.Done():
	}
}

// unready takes back that a box may be used without a second look. The caller holds the mutex.
func (m *Manager) unready(b *box) {
	maps.DeleteFunc(m.ready, func(_ settings.Request, r readyBox) bool { return r.box == b })
}

// detach takes a sandbox out of use before it is stopped or removed, so that its end is nobody's surprise.
func (m *Manager) detach(b *box) sandbox.Handle {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.unready(b)
	handle := b.handle
	b.handle = nil
	return handle
}

// letGo closes the handle of a sandbox that was detached.
func (m *Manager) letGo(handle sandbox.Handle) {
	if handle == nil {
		return
	}
	if err := handle.Close(); err != nil {
		m.options.Log.Debug("sandbox: let go", "err", err)
	}
}

// closeEgress ends the way out of a sandbox that does not run. The caller has the turn of the box.
func (m *Manager) closeEgress(b *box) {
	if m.options.Egress == nil {
		return
	}
	m.mu.Lock()
	running := b.alive() != nil
	m.mu.Unlock()
	if e := m.engines[sandbox.EngineNative]; e != nil && !running { // one that goes on has the directory mounted, whether or not it is used now
		state, err := e.Lookup(context.Background(), b.name)
		running = err == nil && state.Detached
	}
	if !running {
		m.options.Egress.Close(b.name)
	}
}

// undoTime bounds how long the engine may take to remove what could not be written down.
const undoTime = 30 * time.Second
