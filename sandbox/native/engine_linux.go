package native

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/toolward/toolward/sandbox"
	"github.com/toolward/toolward/sandbox/inside"
)

var _ sandbox.Engine = (*Engine)(nil)

// New returns an engine.
func New(options Options) *Engine {
	e := &Engine{
		options: options, log: options.Log, root: os.Geteuid() == 0, starter: newStarter(),
		spares: map[identity][]*spare{}, supervised: supervised{dir: options.Dir},
	}
	if e.log == nil {
		e.log = slog.New(slog.DiscardHandler)
	}
	sum := sha256.Sum256([]byte(options.Instance))
	e.options.Instance = hex.EncodeToString(sum[:4])
	e.owner = strconv.Itoa(os.Getpid()) + "-" + startTime(os.Getpid())
	e.null, e.err = os.OpenFile(os.DevNull, os.O_RDWR, 0)
	e.capabilities = sync.OnceValue(e.probe)
	e.groups = sync.OnceValues(func() (*hierarchies, error) {
		return findHierarchies(e.options.Cgroup, e.options.Instance, e.log)
	})
	return e
}

// Sweep finds the sandboxes that have outlived their gateway, and removes the control groups of gateways that do not run any
// more: processes end with their gateway, their groups stay.
func (e *Engine) Sweep(ctx context.Context) error {
	err := e.findSupervised(ctx)
	sweepAll(e.options.Cgroup, e.options.Instance, func(group string) bool { return ownerRuns(group) || e.supervisedGroup(group) })
	return err
}

// Name is "native".
func (*Engine) Name() string { return Name }

// Ensure returns the running sandbox of a name, or makes it.
func (e *Engine) Ensure(ctx context.Context, spec *sandbox.Spec) (sandbox.Handle, error) {
	begin := func() *box { return e.newBox(spec) }
	b, err := e.boxes.Ensure(ctx, spec, begin, func(b *box) error { return e.fill(ctx, b, spec) })
	if err != nil {
		return nil, err
	}
	return b, nil
}

func (e *Engine) newBox(spec *sandbox.Spec) *box {
	b := &box{engine: e, done: make(chan struct{})}
	b.state = sandbox.State{
		Name: spec.Name, Engine: Name, ScopeKey: spec.ScopeKey, Hash: spec.Hash, Instance: spec.Instance, Created: time.Now(),
	}
	return b
}

// fill makes what newBox promised.
func (e *Engine) fill(ctx context.Context, b *box, spec *sandbox.Spec) error {
	if resumed, err := e.fillBefore(ctx, b, spec); resumed || err != nil {
		return err
	}
	err := e.make(ctx, b, spec)
	if err == nil && spec.Setup != "" {
		if err = b.setUp(ctx, spec.Setup); err == nil {
			err = b.ready()
		}
	}
	if err != nil {
		_ = b.end() // the first error counts
		if spec.Detach > 0 {
			_ = e.supervised.remove(spec.Name) // as above: the next start removes what is left
		}
		return unavailable(err)
	}
	if b.namespaced() {
		e.refill(e.identityOf(spec.User))
	}
	return nil
}

func (e *Engine) make(ctx context.Context, b *box, spec *sandbox.Spec) error {
	if err := e.check(spec); err != nil {
		return err
	}
	start := e.startNamespaces
	if !b.namespaced() {
		var err error
		if spec, err = b.withTemporary(spec); err != nil {
			return err
		}
		start = e.startLandlock
	}
	if err := start(ctx, b, spec); err != nil {
		return err
	}
	if spec.Detach > 0 {
		var err error
		if b.record, err = e.recordOf(ctx, b, spec); err != nil {
			return err
		}
	}
	client, err := inside.Connect(ctx, b.helper.conn, e.settingsOf(b, spec))
	if err != nil {
		return err
	}
	b.begin(client, spec)
	return nil
}

// startNamespaces makes a sandbox with namespaces and a root of its own.
func (e *Engine) startNamespaces(ctx context.Context, b *box, spec *sandbox.Spec) error {
	who := e.identityOf(spec.User)
	s, err := e.takeSpare(ctx, who)
	if err != nil {
		return err
	}
	b.helper, b.group = s.helper, s.group
	if b.group != nil {
		if err := b.group.limit(spec.Limits); err != nil {
			return fmt.Errorf("set limits: %w", err)
		}
	}
	m, err := e.mountsOf(ctx, spec, who)
	if err != nil {
		return err
	}
	defer m.close()
	plan, err := e.lastPlan(spec, who, m)
	if err != nil {
		return err
	}
	if spec.Detach > 0 {
		door, err := e.newDoor(spec.Name)
		if err != nil {
			return err
		}
		m.fds = append(m.fds, door) // closed with the others: the helper has a copy
		plan.Door = uint32(len(m.fds))
	}
	return explainSetup(b.helper.send(ctx, plan, m.fds))
}

// check refuses what this engine cannot enforce.
func (e *Engine) check(spec *sandbox.Spec) error {
	capabilities := e.capabilities()
	switch spec.Network.Mode {
	case sandbox.NetworkNone, sandbox.NetworkEgress, "":
	default:
		return sandbox.Errorf(sandbox.CodeConfig, `the native engine has no network %q, only "none" and "egress"`, spec.Network.Mode)
	}
	if err := allowed(capabilities, spec.DegradeOK); err != nil {
		return err
	}
	return e.checkDetach(spec, capabilities.Level)
}

// Lookup says what exists under a name.
func (e *Engine) Lookup(ctx context.Context, name string) (sandbox.State, error) {
	b, ok := e.boxes.Look(name)
	if !ok {
		if r := e.known(ctx, name); r != nil {
			return r.state(), nil
		}
		return sandbox.State{}, sandbox.Errorf(sandbox.CodeNotFound, "there is no sandbox %s", name)
	}
	return b.State(), nil
}

// List returns the sandboxes of this engine, and those that have outlived an earlier one.
func (e *Engine) List(ctx context.Context) ([]sandbox.State, error) {
	var states []sandbox.State
	for _, name := range e.supervisedNames() {
		if r := e.known(ctx, name); r != nil {
			states = append(states, r.state())
		}
	}
	for _, b := range e.boxes.All() {
		states = append(states, b.State())
	}
	return states, nil
}

// Stop ends everything that runs in a sandbox. Nothing of a native sandbox is left but its files.
func (e *Engine) Stop(ctx context.Context, name string) error { return e.Remove(ctx, name) }

// Remove ends a sandbox.
func (e *Engine) Remove(ctx context.Context, name string) error {
	b, ok, err := e.boxes.Settled(ctx, name)
	if err != nil {
		return err
	}
	if ok {
		if err := b.end(); err != nil {
			return err
		}
	}
	if r := e.takeSupervised(name); r != nil { // one that was let go, or that this gateway has never used
		return e.endSupervised(ctx, r)
	}
	return nil
}

// Close ends every sandbox and helper and waits for them, but those that go on without a gateway.
func (e *Engine) Close() error {
	names, first := e.boxes.Close()
	if !first {
		return nil
	}
	e.mu.Lock()
	e.closed = true
	spares := e.spares
	e.spares = nil
	e.mu.Unlock()
	var failed []error
	for _, name := range names {
		if b, ok, err := e.boxes.Settled(context.Background(), name); ok && err == nil {
			failed = append(failed, b.Close())
		}
	}
	for _, list := range spares {
		for _, s := range list {
			failed = append(failed, s.end())
		}
	}
	e.live.Wait()
	e.starter.close()
	e.idmaps.close()
	if h, err := e.groups(); err == nil {
		h.release()
	}
	if e.null != nil {
		_ = e.null.Close() // nothing was written to it
	}
	return errors.Join(failed...)
}

// fillBefore takes over what goes on under the name of a sandbox. What cannot be taken over is ended, so that the name is
// free: nothing else could ever use it.
func (e *Engine) fillBefore(ctx context.Context, b *box, spec *sandbox.Spec) (resumed bool, err error) {
	r := e.takeSupervised(spec.Name)
	if r == nil {
		return false, nil
	}
	if r.Hash != spec.Hash || r.ScopeKey != spec.ScopeKey {
		e.putSupervised(r)
		return false, sandbox.Errorf(sandbox.CodeConflict, "sandbox %s exists and was made for %q from another configuration", r.Name, r.ScopeKey)
	}
	if err = e.check(spec); err == nil {
		if err = e.resume(ctx, b, spec, r); err == nil {
			return true, nil
		}
	}
	b.helper, b.group, b.record = nil, nil, nil
	if ctx.Err() != nil || errors.Is(err, errBusy) {
		e.putSupervised(r)
		return false, unavailable(err)
	}
	e.log.Warn("a sandbox that has outlived its gateway cannot be used again: it is made anew", "sandbox", r.Name, "error", err)
	return false, e.endSupervised(ctx, r)
}
