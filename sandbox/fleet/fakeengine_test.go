package fleet

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/toolward/toolward/sandbox"
)

// fakeEngine keeps sandboxes in memory, as an engine keeps them outside the gateway: they outlive a Manager.
type fakeEngine struct {
	name string

	mu       sync.Mutex
	boxes    map[string]*fakeBox
	caps     sandbox.Capabilities
	probeErr error
	ensured  int
	making   int // at this moment
	most     int
	fail     error // of Ensure
	listErr  error
	ending   bool // Close of a handle ends the sandbox
	swept    int
	made     func() // called when Ensure has made one
	stuck    bool   // Remove removes nothing
	slow     time.Duration
	ports    []sandbox.Port // on which programs inside listen
}

type fakeBox struct {
	state sandbox.State
	done  chan struct{}
	ends  sync.Once
	deaf  atomic.Bool // nobody inside answers any more, but it has not ended yet
}

func newFake(name string) *fakeEngine {
	return &fakeEngine{name: name, boxes: map[string]*fakeBox{}, caps: sandbox.Capabilities{Engine: name, Level: sandbox.LevelFull}}
}

func (e *fakeEngine) Name() string { return e.name }
func (e *fakeEngine) Close() error { return nil }

func (e *fakeEngine) Sweep(context.Context) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.swept++
	return nil
}

func (e *fakeEngine) Probe(context.Context) (sandbox.Capabilities, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.caps, e.probeErr
}

func (e *fakeEngine) Ensure(_ context.Context, s *sandbox.Spec) (sandbox.Handle, error) {
	e.mu.Lock()
	e.making++
	e.most = max(e.most, e.making)
	slow := e.slow
	e.mu.Unlock()
	time.Sleep(slow)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.making--
	if e.fail != nil {
		return nil, e.fail
	}
	b := e.boxes[s.Name]
	switch {
	case b == nil:
		e.ensured++
		b = &fakeBox{state: sandbox.State{
			Name: s.Name, Engine: e.name, EngineID: fmt.Sprint(e.ensured), ScopeKey: s.ScopeKey, Hash: s.Hash, Instance: s.Instance,
			Image: s.Docker.Image, Created: time.Now(), Detached: s.Detach > 0,
		}}
		e.boxes[s.Name] = b
	case b.state.Hash != s.Hash || b.state.Instance != s.Instance:
		return nil, sandbox.Errorf(sandbox.CodeConflict, "another one")
	}
	if e.made != nil {
		e.made()
	}
	if !b.state.Running {
		b.state.Running, b.done, b.ends = true, make(chan struct{}), sync.Once{}
	}
	return &fakeHandle{e: e, box: b, done: b.done}, nil
}

func (e *fakeEngine) Lookup(_ context.Context, name string) (sandbox.State, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if b := e.boxes[name]; b != nil {
		return b.state, nil
	}
	return sandbox.State{}, sandbox.Errorf(sandbox.CodeNotFound, "no %s", name)
}

func (e *fakeEngine) List(context.Context) ([]sandbox.State, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.listErr != nil {
		return nil, e.listErr
	}
	var all []sandbox.State
	for _, b := range e.boxes {
		all = append(all, b.state)
	}
	return all, nil
}

func (e *fakeEngine) Stop(_ context.Context, name string) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if b := e.boxes[name]; b != nil && b.state.Running {
		b.state.Running = false
		b.ends.Do(func() { close(b.done) })
	}
	return nil
}

func (e *fakeEngine) Remove(ctx context.Context, name string) error {
	if err := e.Stop(ctx, name); err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.stuck {
		delete(e.boxes, name)
	}
	return nil
}

// hold makes Remove remove nothing.
func (e *fakeEngine) hold(stuck bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.stuck = stuck
}

func (e *fakeEngine) names() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Sorted(maps.Keys(e.boxes))
}

type fakeHandle struct {
	sandbox.Handle
	e    *fakeEngine
	box  *fakeBox
	done chan struct{}
}

func (h *fakeHandle) Ports(context.Context) ([]sandbox.Port, bool, error) {
	h.e.mu.Lock()
	defer h.e.mu.Unlock()
	return h.e.ports, false, nil
}

func (h *fakeHandle) Done() <-chan struct{} { return h.done }

func (h *fakeHandle) Runs() bool {
	select {
	case <-h.done:
		return false
	default:
		return !h.box.deaf.Load()
	}
}

func (h *fakeHandle) Close() error {
	if h.e.ending {
		return h.e.Stop(context.Background(), h.box.state.Name)
	}
	return nil
}

func (h *fakeHandle) State() sandbox.State {
	h.e.mu.Lock()
	defer h.e.mu.Unlock()
	return h.box.state
}

func (h *fakeHandle) Start(context.Context, sandbox.Command) (sandbox.Process, error) {
	return nil, nil
}
