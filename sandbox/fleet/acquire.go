package fleet

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/toolward/toolward/sandbox/settings"

	"github.com/toolward/toolward/sandbox"
)

// Acquire returns the sandbox of a request, made or started where necessary. It fails with CodeUnavailable where no engine
// can make it, and never runs anything itself.
func (m *Manager) Acquire(ctx context.Context, q settings.Request) (*Lease, error) {
	if lease := m.quick(q); lease != nil {
		m.pruneOnUse()
		return lease, nil
	}
	compiled := m.Settings()
	if yes, why := compiled.Sandboxed(q.Agent, q.Session); !yes {
		return nil, sandbox.Errorf(sandbox.CodeConfig, "session %q is not sandboxed: %s", q.Session, why)
	}
	resolved := compiled.For(q.Agent)
	engine, site, err := m.pick(ctx, resolved)
	if err != nil {
		return nil, err
	}
	layout, err := resolved.Layout(site, q)
	if err != nil {
		return nil, err
	}
	b, err := m.turn(ctx, layout.Name)
	if err != nil {
		return nil, err
	}
	defer b.give()
	// Whoever had the turn before may have made what is wanted.
	if lease := m.quick(q); lease != nil {
		return lease, nil
	}
	lease, err := m.make(ctx, &making{m: m, box: b, settings: compiled, resolved: resolved, engine: engine, site: site, request: q})
	if err != nil {
		m.closeEgress(b)
		m.tell(EventFailed, Event{Name: b.name, ScopeKey: layout.ScopeKey, Engine: engine.Name(), Session: q.Session, Why: err.Error()})
		return nil, err
	}
	m.pruneOnUse()
	return lease, nil
}

// make has the sandbox be what it should be, and leases it.
func (m *Manager) make(ctx context.Context, k *making) (*Lease, error) {
	select {
	case m.making <- struct{}{}:
		defer func() { <-m.making }()
	case <-ctx.Done():
		return nil, sandbox.Errorf(sandbox.CodeTimeout, "wait to make a sandbox: %v", context.Cause(ctx))
	}
	// Another process with this home would make the same.
	unlock, err := m.lockName(k.box.name)
	if err != nil {
		return nil, err
	}
	defer unlock()
	var egress settings.OpenEgress
	if m.options.Egress != nil {
		egress = m.options.Egress.Open
	}
	plan, err := k.resolved.Spec(ctx, k.site, k.request, egress)
	if err != nil {
		return nil, err
	}
	defer plan.Close()
	if len(plan.Blocked) > 0 {
		m.options.Log.Warn("sandbox: variables of the configuration do not go in", "names", plan.Blocked, "sandbox", k.box.name)
	}
	for _, left := range plan.Left {
		m.options.Log.Warn("sandbox: a toolchain is not shown", "toolchain", left, "sandbox", k.box.name)
	}
	entry, err := m.entry(k.box.name)
	if err != nil {
		return nil, err
	}
	if err := k.leaveOther(ctx, entry); err != nil {
		return nil, err
	}
	state, reuse, err := k.decide(ctx, plan, entry)
	if err != nil {
		return nil, err
	}
	return k.act(ctx, plan, state, reuse)
}

func (m *Manager) lockDir() string { return filepath.Join(m.options.StateDir, "sandbox", "locks") }

func (m *Manager) lockName(name string) (func(), error) {
	if err := os.MkdirAll(m.lockDir(), 0o700); err != nil {
		return nil, sandbox.Errorf(sandbox.CodeFailed, "lock sandbox %s: %v", name, err)
	}
	unlock, err := lockFile(filepath.Join(m.lockDir(), name+".lock"))
	if err != nil {
		return nil, sandbox.Errorf(sandbox.CodeUnavailable, "sandbox %s: %v", name, err)
	}
	return unlock, nil
}

// entry is what the registry says of a sandbox.
func (m *Manager) entry(name string) (Registered, error) {
	entries, err := m.registry.Entries()
	if err != nil {
		return Registered{}, err
	}
	if i := slices.IndexFunc(entries, named(name)); i >= 0 {
		return entries[i], nil
	}
	return Registered{}, nil
}

// leaveOther removes the sandbox that another engine has for the same scope: it would be forgotten, and go on.
func (k *making) leaveOther(ctx context.Context, entry Registered) error {
	other := k.m.engines[entry.Engine]
	if other == nil || entry.Engine == k.engine.Name() {
		return nil
	}
	k.m.drain(ctx, k.box)
	handle := k.m.detach(k.box)
	defer k.m.letGo(handle)
	if err := other.Remove(ctx, k.box.name); err != nil {
		return sandbox.Errorf(sandbox.CodeOf(err), "remove the sandbox of engine %s: %v", entry.Engine, err)
	}
	k.m.endPatrol(k.box)
	k.m.tell(EventRemoved, Event{Name: k.box.name, ScopeKey: entry.ScopeKey, Engine: entry.Engine, Why: "the engine is now " + k.engine.Name()})
	return nil
}

// decide looks at what is there.
func (k *making) decide(ctx context.Context, plan *settings.Plan, entry Registered) (sandbox.State, Reuse, error) {
	state, err := k.engine.Lookup(ctx, k.box.name)
	if err != nil && sandbox.CodeOf(err) != sandbox.CodeNotFound {
		return sandbox.State{}, "", err
	}
	e := Existing{
		Exists: err == nil, Running: state.Running, Label: state.Hash, Recorded: entry.Hash,
		Foreign:  foreign(&state, plan.Spec.Instance, plan.ScopeKey),
		Security: entry.SecurityHash == "" || entry.SecurityHash != plan.SecurityHash,
	}
	if e.Label == "" && entry.Engine != k.engine.Name() {
		e.Recorded = "" // that was another one
	}
	if k.replaced(plan) {
		e.Label, e.Recorded, e.Security = "", "", true
	}
	k.m.mu.Lock()
	used := k.box.used
	users := k.box.users
	k.m.mu.Unlock()
	if used.IsZero() && entry.UsedMs > 0 {
		used = time.UnixMilli(entry.UsedMs)
	}
	if idle := max(0, time.Since(used)); !used.IsZero() {
		if users > 0 {
			idle = 0
		}
		e.Idle = &idle
	}
	return state, e.Decide(plan.Spec.Hash), nil
}

// act does what was decided.
func (k *making) act(ctx context.Context, plan *settings.Plan, state sandbox.State, reuse Reuse) (*Lease, error) {
	kind, why := EventCreated, ""
	switch reuse {
	case ReuseConflict:
		return nil, &sandbox.Error{
			Code: sandbox.CodeConflict, Text: "a sandbox named " + k.box.name + " is there, and it is not ours",
			Fix: "remove it, or set sandbox.docker.containerPrefix",
		}
	case ReuseUse, ReuseStart, ReuseKeep:
		return k.attach(ctx, plan, state, reuse)
	case ReuseDrain, ReuseRecreate:
		kind, why = EventRecreated, "it was not what the configuration says"
		if reuse == ReuseDrain {
			why += ", in what confines"
			k.m.drain(ctx, k.box)
		}
		defer k.m.letGo(k.m.detach(k.box))
		if err := k.engine.Remove(ctx, k.box.name); err != nil {
			return nil, sandbox.Errorf(sandbox.CodeOf(err), "make sandbox %s anew: %v", k.box.name, err)
		}
		k.m.endPatrol(k.box)
		if err := k.m.registry.Update(dropped(k.box.name)); err != nil {
			return nil, err
		}
	}
	handle, err := k.engine.Ensure(ctx, plan.Spec)
	if err != nil {
		return nil, err
	}
	return k.done(ctx, plan, handle, kind, why, true, time.Time{})
}

// attach uses a sandbox that is there.
func (k *making) attach(ctx context.Context, plan *settings.Plan, state sandbox.State, reuse Reuse) (*Lease, error) {
	spec, until := *plan.Spec, time.Time{}
	if reuse == ReuseKeep {
		spec.Hash, until = state.Hash, time.Now().Add(keepWarned)
		k.m.options.Log.Warn("a sandbox is not what the configuration says, but it is in use",
			"sandbox", k.box.name, "remedy", "toolward sandbox recreate --session "+plan.ScopeKey)
	}
	var handle sandbox.Handle
	if reuse != ReuseStart {
		k.m.mu.Lock()
		handle = k.box.alive()
		k.m.mu.Unlock()
	}
	kind, why, fresh := EventKind(""), "", false
	if handle == nil {
		var err error
		if handle, err = k.engine.Ensure(ctx, &spec); err != nil {
			return nil, err
		}
		if !state.Running {
			kind = EventStarted
		}
		if fresh = state.Detached && handle.State().EngineID != state.EngineID; !fresh && state.Detached {
			if k.former, err = k.resumed(plan, handle); err != nil {
				return nil, k.giveUp(ctx, handle, true, err) // nobody knows who acts in it
			}
		}
	}
	switch {
	case fresh:
		kind, why = EventRecreated, "the one that had outlived its gateway could not be used again"
	case reuse == ReuseKeep:
		kind = EventKept
	}
	plan.Spec.Hash = spec.Hash
	if reuse == ReuseKeep {
		plan.SecurityHash = "" // the registry keeps that of the sandbox
	}
	return k.done(ctx, plan, handle, kind, why, fresh, until)
}

// done writes the sandbox down and leases it. A crash before this leaves one that the next start adopts.
func (k *making) done(ctx context.Context, plan *settings.Plan, handle sandbox.Handle, kind EventKind, why string, fresh bool, until time.Time) (*Lease, error) {
	now := time.Now()
	state := handle.State()
	entry := Registered{
		Name: plan.Name, ScopeKey: plan.ScopeKey, CreatedMs: now.UnixMilli(), UsedMs: now.UnixMilli(), Image: state.Image,
		Hash: plan.Spec.Hash, SecurityHash: plan.SecurityHash, Engine: k.engine.Name(), EngineID: state.EngineID,
	}
	if err := k.remember(plan, handle, fresh); err != nil {
		return nil, k.giveUp(ctx, handle, fresh, err)
	}
	err := k.m.registry.Update(func(entries []Registered) ([]Registered, bool) {
		if fresh {
			return Replace(entries, entry), true
		}
		return Upsert(entries, entry), true
	})
	if err != nil {
		return nil, k.giveUp(ctx, handle, fresh, err)
	}
	k.m.mu.Lock()
	b, old := k.box, k.box.handle
	b.handle, b.engine, b.layout, b.resolved = handle, k.engine.Name(), &plan.Layout, k.resolved
	b.made = madeAs(b.made, plan, kind, fresh || old != handle && b.engine == sandbox.EngineNative && k.former == nil)
	if fresh || old != handle {
		b.workspace = nil
	}
	if fresh || old != handle && b.engine == sandbox.EngineNative && k.former == nil {
		b.workspace = mountedWorkspace(plan)
	}
	before := k.m.patrols(b, plan, fresh || old != handle, k.request.Session)
	former := []string{}
	for _, f := range k.former {
		former = append(former, f.Session)
	}
	k.m.ran(b, former...) // nobody has looked at what their programs have made meanwhile
	closed := k.m.closed
	if len(k.m.ready) >= maxReady {
		clear(k.m.ready)
	}
	if k.settings == k.m.settings {
		k.m.ready[k.request] = readyBox{b, until}
	}
	lease := k.m.lease(b, k.request.Session)
	if !closed && old != handle {
		k.m.workers.Go(func() { k.m.watch(b, handle) })
	}
	k.m.mu.Unlock()
	if before != nil {
		before.last()
	}
	if old != nil && old != handle { // nobody answered in it: that it ended is seen here first
		k.m.letGo(old)
		k.m.tell(EventEnded, Event{Name: b.name, ScopeKey: plan.ScopeKey, Engine: b.engine, Why: endedAlone})
	}
	if closed {
		return nil, errors.Join(sandbox.Errorf(sandbox.CodeUnavailable, "the gateway is ending"), handle.Close())
	}
	if kind != "" {
		k.m.tell(kind, Event{Name: b.name, ScopeKey: plan.ScopeKey, Engine: b.engine, Session: k.request.Session, Why: why})
	}
	return lease, nil
}

// giveUp ends a sandbox that could not be written down: nobody would find it, and it would go on.
func (k *making) giveUp(ctx context.Context, handle sandbox.Handle, fresh bool, why error) error {
	k.m.mu.Lock()
	used := k.box.handle == handle
	k.m.mu.Unlock()
	if !used { // by calls that have found it before
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoTime)
		defer cancel()
		k.m.letGo(handle)
		if fresh {
			if err := k.engine.Remove(ctx, k.box.name); err != nil {
				k.m.options.Log.Error("a sandbox that could not be written down could not be removed", "sandbox", k.box.name, "err", err)
			}
		}
	}
	e := sandbox.Errorf(sandbox.CodeUnavailable, "sandbox %s could not be written down: %v", k.box.name, why)
	e.Fix = "see to the directory " + filepath.Dir(k.m.registry.path)
	return e
}
