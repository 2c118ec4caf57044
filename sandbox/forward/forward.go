// Package forward lets a person open what listens in a sandbox: it listens on the machine's loopback address and carries each
// connection into the sandbox, to a port on the loopback address there.
//
// A forward is a hole from the machine into a sandbox, never the other way: what runs inside cannot ask for one, and can only answer who
// connects. It binds nothing but 127.0.0.1, so that no other machine gets in; it ends with its sandbox, when nothing has used it
// for a while, when a person says so, and with the gateway. What it serves is whatever the agent's program says: a page behind it is a
// stranger's page in the person's browser, at another port of the console's host. The console does not rely on ports to be told apart
// from it (its cookie is bound to a path that nobody can guess), and pages that rebind a name to 127.0.0.1 reach the agent's server,
// which is its own matter, and nothing of Toolward's.
package forward

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/toolward/toolward/sandbox"
)

// Bounds of forwards.
const (
	maxForwards    = 16
	maxConnections = 64 // of one forward, at the same time; more wait to be accepted
	idleTime       = 30 * time.Minute
	lookTime       = 5 * time.Second  // that a sandbox may take to say who listens
	connectTime    = 10 * time.Second // that it may take to connect
	firstPort      = 1024             // below are those that a machine trusts more than others
)

// Sandboxes are those that can be forwarded from. The manager of package fleet implements it.
type Sandboxes interface {
	// Running is a sandbox that runs; CodeNotFound if it does not.
	Running(name string) (sandbox.Handle, error)
}

// Forward is one port of a sandbox on the machine.
type Forward struct {
	Sandbox string    `json:"sandbox"`
	Scope   string    `json:"sessionKey"`    // whose the sandbox is
	Port    uint16    `json:"port"`          // inside
	Local   uint16    `json:"localPort"`     // at 127.0.0.1 of the machine
	Since   time.Time `json:"since"`         // it was started
	Open    int       `json:"open"`          // connections
	Why     string    `json:"why,omitempty"` // Local is another port than was asked for
}

// URL is where a browser opens it. The name localhost could lead to another program that listens at ::1.
func (f *Forward) URL() string { return "http://127.0.0.1:" + strconv.Itoa(int(f.Local)) + "/" }

// Forwards are those of a gateway. Its methods may be called from any goroutine.
type Forwards struct {
	sandboxes Sandboxes
	ended     func(f Forward, why string)
	log       *slog.Logger

	mu     sync.Mutex
	open   []*running
	closed bool
	work   sync.WaitGroup
}

// New makes none yet. ended is told of each that has ended, however it did.
func New(sandboxes Sandboxes, ended func(f Forward, why string), log *slog.Logger) *Forwards {
	return &Forwards{sandboxes: sandboxes, ended: ended, log: log}
}

// running is a forward that has not ended.
type running struct {
	Forward
	handle   sandbox.Handle
	listener net.Listener
	idle     *idleness
	conns    atomic.Int64
	ctx      context.Context
	end      context.CancelCauseFunc // with why, as an error
}

func (r *running) shown() Forward {
	f := r.Forward
	f.Open = int(r.conns.Load())
	return f
}

// listens is the sandbox, if something in it listens on the port and can be reached.
func (s *Forwards) listens(ctx context.Context, name string, port, to uint16) (sandbox.Handle, error) {
	if port == 0 || to != 0 && to < firstPort {
		return nil, sandbox.Errorf(sandbox.CodeConfig, "ports are numbers from 1 to 65535, and on the machine from %d", firstPort)
	}
	handle, err := s.sandboxes.Running(name)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	ports, more, err := handle.Ports(ctx)
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(ports, func(p sandbox.Port) bool { return p.Number == port })
	switch {
	case at < 0 && more:
		return handle, nil // it may be one that was not told; who connects finds out
	case at < 0:
		return nil, &sandbox.Error{Code: sandbox.CodeNotFound, Text: fmt.Sprintf("nothing listens at port %d in sandbox %s", port, name), Fix: "toolward sandbox ports " + name}
	case !ports[at].Local:
		return nil, sandbox.Errorf(sandbox.CodeNotFound, "%s listens at port %d in sandbox %s, but not at its loopback address, where a forward leads", ports[at].Program, port, name)
	}
	return handle, nil
}

// Start forwards a port of a sandbox to one of the machine's loopback address: to, or where that is 0, the same number. Where that is taken,
// or may not be used, it is a free one, and Why says so. One that is there already is returned. record is called before anybody can
// connect; what it refuses is not forwarded.
func (s *Forwards) Start(ctx context.Context, name string, port, to uint16, record func(Forward) error) (Forward, error) {
	handle, err := s.listens(ctx, name, port, to)
	if err != nil {
		return Forward{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return Forward{}, sandbox.Errorf(sandbox.CodeUnavailable, "the gateway is ending")
	}
	for _, r := range s.open {
		if r.Sandbox == name && r.Port == port && r.handle == handle {
			return r.shown(), nil
		}
	}
	if len(s.open) >= maxForwards {
		return Forward{}, &sandbox.Error{Code: sandbox.CodeFailed, Text: fmt.Sprintf("%d ports are forwarded already", maxForwards), Fix: "stop one"}
	}
	return s.begin(handle, name, port, cmp.Or(to, port), record)
}

// begin listens, and serves who comes. The caller holds the mutex.
func (s *Forwards) begin(handle sandbox.Handle, name string, port, to uint16, record func(Forward) error) (Forward, error) {
	listener, why, err := listen(to)
	if err != nil {
		return Forward{}, sandbox.Errorf(sandbox.CodeFailed, "listen on the machine: %v", err)
	}
	r := &running{
		Forward: Forward{Sandbox: name, Scope: handle.State().ScopeKey, Port: port, Local: uint16(listener.Addr().(*net.TCPAddr).Port), Since: time.Now(), Why: why},
		handle:  handle, listener: listener, idle: newIdleness(),
	}
	if err := record(r.Forward); err != nil {
		_ = listener.Close() // nobody was let in
		return Forward{}, err
	}
	r.ctx, r.end = context.WithCancelCause(context.Background())
	s.open = append(s.open, r)
	s.work.Go(func() { s.serve(r) })
	return r.shown(), nil
}

// listen listens on the loopback address and nowhere else: the port that is wanted, or a free one.
func listen(port uint16) (listener net.Listener, why string, err error) {
	if port < firstPort {
		why = fmt.Sprintf("ports below %d are not used on the machine", firstPort)
	} else if listener, err = net.Listen("tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(int(port)))); err != nil {
		why = fmt.Sprintf("port %d of the machine is taken", port)
	}
	if listener == nil {
		listener, err = net.Listen("tcp4", "127.0.0.1:0")
	}
	return listener, why, err
}

// List are the forwards that have not ended, in the order in which they were started.
func (s *Forwards) List() []Forward {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := make([]Forward, 0, len(s.open))
	for _, r := range s.open {
		list = append(list, r.shown())
	}
	return list
}

// Stop ends the forward of a port of a sandbox; CodeNotFound if there is none.
func (s *Forwards) Stop(name string, port uint16, why string) error {
	s.mu.Lock()
	at := slices.IndexFunc(s.open, func(r *running) bool { return r.Sandbox == name && r.Port == port })
	if at < 0 {
		s.mu.Unlock()
		return sandbox.Errorf(sandbox.CodeNotFound, "port %d of sandbox %s is not forwarded", port, name)
	}
	r := s.open[at]
	s.mu.Unlock()
	r.end(errors.New(why))
	s.drop(r) // whoever asks next finds it gone
	return nil
}

// drop takes a forward out of the list, and frees its port. false: somebody has.
func (s *Forwards) drop(r *running) bool {
	s.mu.Lock()
	at := slices.Index(s.open, r)
	if at >= 0 {
		s.open = slices.Delete(s.open, at, at+1)
	}
	s.mu.Unlock()
	_ = r.listener.Close() // whoever was first
	return at >= 0
}

// Close ends all of them.
func (s *Forwards) Close() {
	s.mu.Lock()
	s.closed = true
	for _, r := range s.open {
		r.end(errors.New("the gateway ended"))
	}
	s.mu.Unlock()
	s.work.Wait()
}
