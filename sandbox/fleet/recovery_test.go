package fleet

import (
	"slices"
	"testing"
	"testing/synctest"

	"github.com/toolward/toolward/sandbox"
	"github.com/toolward/toolward/sandbox/settings"
)

func TestAfterACrash(t *testing.T) {
	w := newHome(t)
	e := newFake("native")
	m := manage(t, w, e, settings.Config{Scope: "session"})
	lease := m.lease(t, "a")
	lease.Release()
	m.Close()
	// The gateway died between making a sandbox and writing it down; and somebody removed another one.
	made := *lease.Layout
	if err := m.registry.Update(func(entries []Registered) ([]Registered, bool) {
		entries, _ = Drop(entries, made.Name)
		return append(entries, Registered{Name: "gone", ScopeKey: "agent:coder:gone", Engine: "native"}, Registered{Name: "else", Engine: "docker"}), true
	}); err != nil {
		t.Fatal(err)
	}
	e.boxes["foreign"] = &fakeBox{state: sandbox.State{Name: "foreign", Instance: "another home", Engine: "native"}}
	again := manage(t, w, e, settings.Config{Scope: "session"})
	var names []string
	for _, entry := range again.entries(t) {
		names = append(names, entry.Name)
	}
	if !slices.Equal(names, []string{"else", made.Name}) {
		t.Errorf("%v", names)
	}
	again.lease(t, "a").Release()
	if e.ensured != 1 {
		t.Errorf("what was adopted is not used: %d made", e.ensured)
	}
	if infos, err := again.List(t.Context()); err != nil || len(infos) != 2 || infos[0].Name != made.Name || !infos[0].Running {
		t.Errorf("%+v %v", infos, err)
	}
}

func TestSandboxThatIsNotOurs(t *testing.T) {
	w := newHome(t)
	e := newFake("native")
	m := manage(t, w, e, settings.Config{})
	name, _ := settings.ContainerName(settings.DefaultPrefix, settings.ScopeAgent, "agent:coder")
	e.boxes[name] = &fakeBox{state: sandbox.State{Name: name, Instance: "another home", ScopeKey: "agent:coder"}}
	if _, err := m.Acquire(t.Context(), m.request("s")); sandbox.CodeOf(err) != sandbox.CodeConflict {
		t.Errorf("%v", err)
	}
	if !slices.Equal(e.names(), []string{name}) {
		t.Error("what is not ours was removed")
	}
}

func TestSandboxThatEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newFake("native")
		m := manage(t, newHome(t), e, settings.Config{})
		lease := m.lease(t, "s")
		if err := e.Remove(t.Context(), lease.Layout.Name); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		again := m.lease(t, "s")
		if e.ensured != 2 {
			t.Errorf("%d made", e.ensured)
		}
		if got := m.events.kinds(); !slices.Equal(got, []EventKind{EventCreated, EventEnded, EventCreated}) {
			t.Errorf("told %v", got)
		}
		lease.Release()
		again.Release()
		m.Close()
	})
}

func TestAnotherEngineLeavesNothingBehind(t *testing.T) {
	w := newHome(t)
	native, docker := newFake("native"), newFake("docker")
	m := NewManager(ManagerOptions{Engines: []sandbox.Engine{native, docker}, StateDir: w.State, Settings: w.settings(t, settings.Config{})})
	if err := m.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	q := settings.Request{Agent: "coder", Session: "agent:coder:s", Workspace: w.Workspace}
	for _, engine := range []string{"native", "docker"} {
		m.Configure(w.settings(t, settings.Config{Engine: engine}))
		lease, err := m.Acquire(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		lease.Release()
	}
	if len(native.names()) != 0 || len(docker.names()) != 1 {
		t.Errorf("%v %v", native.names(), docker.names())
	}
}

func TestFailureIsToldAndTriedAgain(t *testing.T) {
	e := newFake("native")
	e.fail = sandbox.Errorf(sandbox.CodeUnavailable, "no space")
	m := manage(t, newHome(t), e, settings.Config{})
	if _, err := m.Acquire(t.Context(), m.request("s")); sandbox.CodeOf(err) != sandbox.CodeUnavailable {
		t.Errorf("%v", err)
	}
	e.fail = nil
	m.lease(t, "s").Release()
	if got := m.events.kinds(); !slices.Equal(got, []EventKind{EventFailed, EventCreated}) {
		t.Errorf("told %v", got)
	}
}
