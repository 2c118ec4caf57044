package fleet

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/toolward/toolward/sandbox/settings"

	"github.com/toolward/toolward/sandbox"
)

// List says which sandboxes there are, the last used first. What an engine did not answer is in the error; the list
// is what is known without it.
func (m *Manager) List(ctx context.Context) ([]Info, error) {
	entries, warning := m.registry.List()
	states, failed := m.states(ctx)
	current := m.Settings()
	// A container engine that is away, and in which nothing of ours is written down, is not the concern of whoever looks for
	// sandboxes: doctor and probe tell of it.
	maps.DeleteFunc(failed, func(engine string, err error) bool {
		return warning == nil && sandbox.CodeOf(err) == sandbox.CodeUnavailable && !slices.ContainsFunc(entries, func(e Registered) bool { return e.Engine == engine })
	})
	infos := []Info{}
	for _, e := range entries {
		resolved := current.ForScope(e.ScopeKey)
		state, found := states[e.Engine+" "+e.Name]
		i := Info{
			Name: e.Name, ScopeKey: e.ScopeKey, Agent: settings.ScopeAgentID(e.ScopeKey), Engine: e.Engine, EngineID: cmp.Or(state.EngineID, e.EngineID),
			Running: state.Running, Detached: state.Detached, Image: cmp.Or(state.Image, e.Image), Created: time.UnixMilli(e.CreatedMs), Used: time.UnixMilli(e.UsedMs),
			Missing: !found && failed[e.Engine] == nil && e.Engine != sandbox.EngineNative, Silent: failed[e.Engine] != nil, Sessions: []string{}, Ports: []Listening{},
		}
		if level, known := m.levelOf(e.Engine); known {
			i.Level = level.Words()
		}
		i.ImageMatch = e.Engine != sandbox.EngineDocker || i.Image == resolved.Docker.Image
		m.mu.Lock()
		var as *made
		if b := m.boxes[e.Name]; b != nil {
			i.Users, i.Sessions, i.Ports, as = b.users, sessionNames(b.sessions), b.portsOf(), b.made
			if b.used.After(i.Used) {
				i.Used = b.used
			}
		}
		m.mu.Unlock()
		i.confined(as, resolved)
		infos = append(infos, i)
	}
	slices.SortStableFunc(infos, func(a, b Info) int { return b.Used.Compare(a.Used) })
	return infos, errors.Join(warning, joined(failed))
}

// states is what all engines have, by engine and name, and why an engine did not tell.
func (m *Manager) states(ctx context.Context) (all map[string]sandbox.State, failed map[string]error) {
	names := m.engineNames()
	answers := make([]listing, len(names))
	var asked sync.WaitGroup
	for i, name := range names {
		asked.Go(func() { answers[i] = m.listOf(ctx, name) })
	}
	asked.Wait()
	all, failed = map[string]sandbox.State{}, map[string]error{}
	for i, name := range names {
		if err := answers[i].err; err != nil {
			failed[name] = sandbox.Errorf(sandbox.CodeOf(err), "engine %s: %v", name, err)
			continue
		}
		for _, s := range answers[i].states {
			s.Engine = name
			all[name+" "+s.Name] = s
		}
	}
	return all, failed
}

// listing is what an engine says that it has.
type listing struct {
	states []sandbox.State
	err    error
}

// unanswered is how many questions to one engine may be open at once.
const unanswered = 4

// listOf asks one engine what it has. It returns when ctx ends, whatever the engine does: an engine that is stuck holds
// no more than a few goroutines, and never a page or the other engine's answer.
func (m *Manager) listOf(ctx context.Context, name string) listing {
	asking := m.asking[name]
	select {
	case asking <- struct{}{}:
	case <-ctx.Done():
		return listing{err: sandbox.Errorf(sandbox.CodeTimeout, "it does not answer")}
	}
	said := make(chan listing, 1)
	go func() {
		defer func() { <-asking }()
		states, err := m.engines[name].List(ctx)
		said <- listing{states, err}
	}()
	select {
	case a := <-said:
		return a
	case <-ctx.Done():
		return listing{err: sandbox.Errorf(sandbox.CodeTimeout, "it does not answer")}
	}
}

func joined(failed map[string]error) error {
	var all error
	for _, name := range slices.Sorted(maps.Keys(failed)) {
		all = errors.Join(all, failed[name])
	}
	return all
}

// Stats is what a sandbox uses; nil where it does not run.
func (m *Manager) Stats(ctx context.Context, name string) (*sandbox.Stats, error) {
	m.mu.Lock()
	var handle sandbox.Handle
	if b := m.boxes[name]; b != nil {
		handle = b.alive()
	}
	m.mu.Unlock()
	if handle == nil {
		return nil, nil
	}
	stats, err := handle.Stats(ctx)
	return &stats, err
}

// Stop ends everything that runs in a sandbox. Its files stay, and the next call starts it.
func (m *Manager) Stop(ctx context.Context, name, why string) error {
	return m.finish(ctx, name, why, settings.PruneStop)
}

// Remove removes a sandbox; the next call makes it anew. Files of its private directory stay.
func (m *Manager) Remove(ctx context.Context, name, why string) error {
	return m.finish(ctx, name, why, settings.PruneRemove)
}

// finish stops or removes one sandbox of the registry, whoever uses it.
func (m *Manager) finish(ctx context.Context, name, why string, how settings.Pruning) error {
	b, err := m.turn(ctx, name)
	if err != nil {
		return err
	}
	defer b.give()
	entry, err := m.entry(name)
	if err != nil {
		return err
	}
	if entry.Name == "" {
		return sandbox.Errorf(sandbox.CodeNotFound, "there is no sandbox %s", name)
	}
	return m.finishBox(ctx, b, entry, why, how)
}

// finishBox does it; the caller has the turn.
func (m *Manager) finishBox(ctx context.Context, b *box, entry Registered, why string, how settings.Pruning) error {
	engine := m.engines[entry.Engine]
	if engine == nil {
		return sandbox.Errorf(sandbox.CodeUnavailable, "sandbox %s: this program has no engine %q", entry.Name, entry.Engine)
	}
	defer m.endPatrol(b)
	defer m.letGo(m.detach(b))
	told := Event{Name: entry.Name, ScopeKey: entry.ScopeKey, Engine: entry.Engine, Why: why}
	if how == settings.PruneStop {
		if err := engine.Stop(ctx, entry.Name); err != nil {
			return sandbox.Errorf(sandbox.CodeOf(err), "stop sandbox %s: %v", entry.Name, err)
		}
		m.forget(entry.Name)
		m.closeEgress(b)
		m.tell(EventStopped, told)
		return nil
	}
	if err := engine.Remove(ctx, entry.Name); err != nil {
		return sandbox.Errorf(sandbox.CodeOf(err), "remove sandbox %s: %v", entry.Name, err)
	}
	// The entry is dropped only when the engine confirms: one that is forgotten too early goes on for ever.
	if _, err := engine.Lookup(ctx, entry.Name); sandbox.CodeOf(err) != sandbox.CodeNotFound {
		return sandbox.Errorf(sandbox.CodeFailed, "sandbox %s is still there: %v", entry.Name, err)
	}
	m.forget(entry.Name)
	m.closeEgress(b)
	m.tell(EventRemoved, told)
	if err := m.Settings().RemoveHomes(entry.ScopeKey); err != nil {
		m.options.Log.Warn("what a sandbox kept for later could not be removed", "sandbox", entry.Name, "err", err)
	}
	if err := m.registry.Update(dropped(entry.Name)); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if b.users == 0 && m.boxes[b.name] == b {
		delete(m.boxes, b.name)
	}
	return nil
}

// Pruned is what Prune has done.
type Pruned struct {
	Stopped []string `json:"stopped"`
	Removed []string `json:"removed"`
	Failed  []string `json:"failed"` // with the reason
}

// Prune ends the sandboxes that are old or unused, by the settings of their own agents. One that is in use is kept.
func (m *Manager) Prune(ctx context.Context) (Pruned, error) {
	m.mu.Lock()
	m.pruned = time.Now()
	m.mu.Unlock()
	done := Pruned{Stopped: []string{}, Removed: []string{}, Failed: []string{}}
	if err := m.flush(); err != nil {
		return done, err
	}
	entries, err := m.registry.Entries()
	if err != nil {
		return done, err
	}
	for _, e := range entries {
		if ctx.Err() != nil {
			return done, ctx.Err()
		}
		how, err := m.pruneOne(ctx, e)
		switch {
		case err != nil:
			done.Failed = append(done.Failed, err.Error())
			m.options.Log.Warn("a sandbox could not be pruned", "sandbox", e.Name, "err", err)
		case how == settings.PruneStop:
			done.Stopped = append(done.Stopped, e.Name)
		case how == settings.PruneRemove:
			done.Removed = append(done.Removed, e.Name)
		}
	}
	return done, nil
}

func (m *Manager) pruneOne(ctx context.Context, e Registered) (settings.Pruning, error) {
	m.mu.Lock()
	b := m.boxNamed(e.Name)
	m.mu.Unlock()
	select {
	case b.turn <- struct{}{}:
		defer b.give()
	default:
		return settings.PruneKeep, nil // somebody is about to use it
	}
	engine := m.engines[e.Engine]
	if engine == nil {
		return settings.PruneKeep, nil
	}
	state, err := engine.Lookup(ctx, e.Name)
	if err != nil && sandbox.CodeOf(err) != sandbox.CodeNotFound {
		return settings.PruneKeep, err
	}
	// From here on no new lease is given without a look at ready, which is taken away first.
	m.mu.Lock()
	live, used := b.users > 0, time.UnixMilli(e.UsedMs)
	if b.used.After(used) {
		used = b.used
	}
	how := m.settings.ForScope(e.ScopeKey).PruneRules().Decide(time.Now(), time.UnixMilli(e.CreatedMs), used, live, state.Running)
	if how != settings.PruneKeep {
		m.unready(b)
	}
	m.mu.Unlock()
	if how == settings.PruneKeep {
		return how, nil
	}
	why := "nobody used it"
	if how == settings.PruneRemove {
		why = "it was old, or nobody used it"
	}
	return how, m.finishBox(ctx, b, e, why, how)
}

// sweep removes what an earlier run left half made: it was killed. Nobody else works in this home.
func (m *Manager) sweep(ctx context.Context) error {
	locks, _ := os.ReadDir(m.lockDir()) // none yet
	for _, lock := range locks {
		reclaim(filepath.Join(m.lockDir(), lock.Name()), 0)
	}
	if err := errors.Join(m.registry.sweep(), sweepWriting(machinePath(m.options.StateDir))); err != nil {
		return err
	}
	for _, name := range m.engineNames() {
		if err := m.engines[name].Sweep(ctx); err != nil {
			m.options.Log.Warn("what an earlier run left could not all be removed", "engine", name, "err", err)
		}
	}
	return nil
}

// reconcile brings registry and engines together after a start: what an engine has of ours without an entry is taken
// over (a crash came between making it and writing it down), and entries without a sandbox are dropped. Whether one
// that was taken over is what it should be is looked at when it is used.
func (m *Manager) reconcile(ctx context.Context) error {
	states, failed := m.states(ctx)
	if len(failed) > 0 {
		m.options.Log.Warn("sandboxes of an earlier run could not all be found", "err", joined(failed))
	}
	m.outlived(ctx, states)
	instance := m.Settings().Instance()
	var adopted []sandbox.State
	err := m.registry.Update(func(entries []Registered) ([]Registered, bool) {
		before := len(entries)
		entries = slices.DeleteFunc(entries, func(e Registered) bool {
			_, found := states[e.Engine+" "+e.Name]
			return !found && m.engines[e.Engine] != nil && failed[e.Engine] == nil
		})
		changed := len(entries) != before
		for _, s := range states {
			if s.Instance != instance || slices.ContainsFunc(entries, named(s.Name)) {
				continue
			}
			now := time.Now()
			entries = append(entries, Registered{
				Name: s.Name, ScopeKey: s.ScopeKey, CreatedMs: s.Created.UnixMilli(), UsedMs: now.UnixMilli(), Image: s.Image,
				Hash: s.Hash, Engine: s.Engine, EngineID: s.EngineID,
			})
			adopted, changed = append(adopted, s), true
		}
		return entries, changed
	})
	if err != nil {
		return err
	}
	for _, s := range adopted {
		m.tell(EventAdopted, Event{Name: s.Name, ScopeKey: s.ScopeKey, Engine: s.Engine, Why: "it was made shortly before the gateway ended"})
	}
	return nil
}

// Selector says which sandboxes are meant: all, those of an agent, or that of a session.
type Selector struct {
	All            bool
	Agent, Session string
}

// Matches reports whether a sandbox is meant.
func (s Selector) Matches(i Info) bool {
	switch {
	case s.All:
		return true
	case s.Session != "":
		return i.ScopeKey == strings.TrimSpace(s.Session)
	case s.Agent != "":
		own := "agent:" + settings.AgentID(s.Agent)
		return i.ScopeKey == own || len(i.ScopeKey) > len(own) && i.ScopeKey[:len(own)+1] == own+":"
	}
	return false
}
