package fleet

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolward/toolward/sandbox/settings"

	"github.com/toolward/toolward/sandbox"
)

func TestWhatIsKnownOfASandbox(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newHome(t)
		c := settings.Config{Scope: "agent", WorkspaceAccess: "none", Limits: settings.LimitsConfig{Memory: `"1g"`, CPUs: new(1.5)}, Env: map[string]string{"GREETING": "hello"}}
		m := manage(t, w, newFake("native"), c)
		one, other := m.lease(t, "a"), m.lease(t, "b")
		again := m.lease(t, "a")
		name := one.Layout.Name
		list, err := m.List(t.Context())
		if err != nil || len(list) != 1 {
			t.Fatalf("%v, %+v", err, list)
		}
		i := list[0]
		if !slices.Equal(i.Sessions, []string{"agent:coder:a", "agent:coder:b"}) || i.Users != 3 || i.Limits.Memory != 1<<30 || i.Limits.CPUs != 1.5 ||
			i.Network != sandbox.NetworkNone || i.Access != settings.AccessNone || i.Level != "everything" || i.ByConfiguration || i.Outdated || i.Silent || i.Scope != settings.ScopeAgent {
			t.Errorf("%+v", i)
		}
		again.Release()
		other.Release()
		other.Release()
		d, err := m.Describe(t.Context(), name)
		if err != nil || !slices.Equal(d.Sessions, []string{"agent:coder:a"}) || !slices.Equal(d.Env, []string{"HOME", "GOTMPDIR", "GREETING"}) || !d.ProtectedKnown ||
			len(d.Mounts) != 3 || d.Mounts[0].Target != settings.WorkspaceTarget || !d.Mounts[0].Writable || d.IdleAfter != 24*time.Hour || len(d.Settings) == 0 {
			t.Errorf("%v, %+v", err, d)
		}
		one.Release()
		if _, err := m.Describe(t.Context(), "none"); sandbox.CodeOf(err) != sandbox.CodeNotFound {
			t.Errorf("one that is not there: %v", err)
		}

		// Another gateway has not used it: it says what the configuration says, and no mounts.
		m.Close()
		next := manage(t, w, m.engine, c)
		d, err = next.Describe(t.Context(), name)
		if err != nil || !d.ByConfiguration || len(d.Mounts) != 0 || d.ProtectedKnown || d.Limits.Memory != 1<<30 {
			t.Errorf("after a restart: %v, %+v", err, d)
		}
	})
}

// stuckEngine does not answer once it is stuck, whatever its context says.
type stuckEngine struct {
	*fakeEngine
	stuck   atomic.Bool
	release chan struct{}
}

func (e *stuckEngine) List(ctx context.Context) ([]sandbox.State, error) {
	if e.stuck.Load() {
		<-e.release
	}
	return e.fakeEngine.List(ctx)
}

// A stuck engine does not keep the list, nor what another engine says, from people.
func TestListWithAStuckEngine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, docker := newHome(t), &stuckEngine{fakeEngine: newFake("docker"), release: make(chan struct{})}
		m := NewManager(ManagerOptions{Engines: []sandbox.Engine{newFake("native"), docker}, StateDir: w.State, Settings: w.settings(t, settings.Config{})})
		if err := m.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		lease, err := m.Acquire(t.Context(), settings.Request{Agent: "coder", Session: "agent:coder:a", Workspace: w.Workspace})
		if err != nil {
			t.Fatal(err)
		}
		lease.Release()
		docker.stuck.Store(true)
		for range 3 * unanswered {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			began := time.Now()
			list, err := m.List(ctx)
			if len(list) != 1 || !list[0].Running || list[0].Silent || err == nil || !strings.Contains(err.Error(), "engine docker: it does not answer") || time.Since(began) > time.Second {
				t.Errorf("%v, %v after %v", list, err, time.Since(began))
			}
			cancel()
		}
		if open := len(m.asking["docker"]); open != unanswered {
			t.Errorf("%d questions are open", open)
		}
		close(docker.release)
	})
}

// A container engine that is away is told of to whoever lists sandboxes where it has one, and not where it has none.
func TestListWithAnEngineAway(t *testing.T) {
	native, docker := newFake("native"), newFake("docker")
	w := newHome(t)
	m := NewManager(ManagerOptions{Engines: []sandbox.Engine{native, docker}, StateDir: w.State, Settings: w.settings(t, settings.Config{})})
	if err := m.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	lease, err := m.Acquire(t.Context(), settings.Request{Agent: "coder", Session: "agent:coder:a", Workspace: w.Workspace})
	if err != nil {
		t.Fatal(err)
	}
	lease.Release()
	docker.listErr = sandbox.Errorf(sandbox.CodeUnavailable, "nobody answers")
	if list, err := m.List(t.Context()); len(list) != 1 || list[0].Silent || err != nil {
		t.Errorf("nothing is in it: %+v, %v", list, err)
	}
	err = m.registry.Update(func(entries []Registered) ([]Registered, bool) {
		return append(entries, Registered{Name: "tw-1", ScopeKey: "agent:coder:b", Engine: sandbox.EngineDocker}), true
	})
	if err != nil {
		t.Fatal(err)
	}
	if list, err := m.List(t.Context()); len(list) != 2 || !strings.Contains(fmt.Sprint(err), "engine docker: nobody answers") {
		t.Errorf("one is in it: %+v, %v", list, err)
	}
}

// What engines can do is told without waiting for them.
func TestFoundDoesNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newFake("native")
		e.caps = sandbox.Capabilities{Level: sandbox.LevelNoCgroup, Checks: []sandbox.Check{{Name: "control groups", Found: "not delegated", Fix: "delegate them"}}}
		m := manage(t, newHome(t), e, settings.Config{})
		if found := m.Found(); len(found) != 1 || !found[0].Trying {
			t.Errorf("%+v", found)
		}
		synctest.Wait()
		found := m.Found()
		if len(found) != 1 || found[0].Trying || found[0].Level != sandbox.LevelNoCgroup || found[0].Level.Words() != "all but hard limits" || len(found[0].Checks) != 1 || found[0].Engine != "native" {
			t.Errorf("%+v", found)
		}
		m.probes["native"].turn <- struct{}{} // somebody tries it
		if found := m.Found(); !found[0].Trying {
			t.Errorf("%+v", found)
		}
		<-m.probes["native"].turn
	})
}
