package fleet

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/toolward/toolward/sandbox/settings"

	"github.com/toolward/toolward/sandbox"
)

// Lease is the right to use a sandbox. Hold it as long as anything of the caller runs inside: a sandbox with a lease is
// not ended for being idle.
type Lease struct {
	sandbox.Handle
	Layout   *settings.Layout
	Resolved *settings.Resolved
	Engine   string

	manager *Manager
	box     *box
	session string
	patrol  *patrol
	started atomic.Bool // a command
	once    sync.Once
}

var errOtherSandbox = errors.New("the sandbox is another one than that in which the call was judged, because its settings have changed; nothing ran, try again")

// AcquireJudged is Acquire for a call that was judged in the sandbox of an [Layout.Identity]: a configuration that changes while
// people think, or a link above the workspace, must not lead what they approved to other files.
func (m *Manager) AcquireJudged(ctx context.Context, q settings.Request, identity string) (*Lease, error) {
	lease, err := m.Acquire(ctx, q)
	if err != nil {
		return nil, err
	}
	if lease.Layout.Identity() != identity {
		lease.Release()
		return nil, errOtherSandbox
	}
	return lease, nil
}

// Release gives the lease back. It may be called more than once.
func (l *Lease) Release() {
	l.once.Do(func() {
		l.manager.mu.Lock()
		defer l.manager.mu.Unlock()
		b := l.box
		b.used, b.unsaved = time.Now(), true
		if l.started.Load() {
			l.manager.ran(b, l.session)
			l.manager.listen(b)
		}
		if b.sessions[l.session]--; b.sessions[l.session] <= 0 {
			delete(b.sessions, l.session)
		}
		if b.users--; b.users == 0 && b.idle != nil {
			close(b.idle)
			b.idle = nil
		}
	})
}

// Start starts a command. The rules for variables hold for what a call sets, and for what a client's shell has, too.
func (l *Lease) Start(ctx context.Context, command sandbox.Command) (sandbox.Process, error) {
	if blocked := l.blocked(&command); len(blocked) > 0 {
		return nil, &sandbox.Error{
			Code: sandbox.CodeDenied, Text: "the variable " + blocked[0] + " does not go into a sandbox",
			Fix: "leave it out; one that only looks like a credential can be named in sandbox.envAllow",
		}
	}
	l.started.Store(true)
	process, err := l.Handle.Start(ctx, command)
	if err != nil || l.patrol == nil {
		return process, err
	}
	return &looked{Process: process, patrol: l.patrol, session: l.session}, nil
}

// blocked are the variables of a command that may not go in.
func (l *Lease) blocked(command *sandbox.Command) []string {
	rules := l.Resolved.EnvRules()
	if command.OfClient {
		_, left := rules.OfClient(command.Env, func(string) bool { return false }) // whoever gave it has looked at the values
		return left
	}
	given := make([]settings.Variable, 0, len(command.Env))
	for _, entry := range command.Env {
		name, value, _ := strings.Cut(entry, "=")
		given = append(given, settings.Variable{Name: name, Value: value})
	}
	return rules.Filter(given).Blocked
}

// quick leases a sandbox that was found right for this very request before.
func (m *Manager) quick(q settings.Request) *Lease {
	before, layout := m.readyFor(q)
	m.mu.Lock()
	defer m.mu.Unlock()
	r, ok := m.ready[q]
	if !ok || r.box != before.box || r.box.layout != layout || m.closed || r.box.alive() == nil || !r.until.IsZero() && time.Now().After(r.until) {
		return nil
	}
	return m.lease(r.box, q.Session)
}

// lease counts a user of a box that runs. The caller holds the mutex.
func (m *Manager) lease(b *box, session string) *Lease {
	b.users++
	if b.sessions == nil {
		b.sessions = map[string]int{}
	}
	b.sessions[session]++
	b.used, b.unsaved = time.Now(), true
	return &Lease{Handle: b.handle, Layout: b.layout, Resolved: b.resolved, Engine: b.engine, manager: m, box: b, session: session, patrol: b.patrol}
}
