package fleet

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolward/toolward/sandbox"
	"github.com/toolward/toolward/sandbox/settings"
)

// events remembers what was told.
type events struct {
	mu   sync.Mutex
	list []Event
}

func (e *events) put(event Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.list = append(e.list, event)
}

func (e *events) kinds() []EventKind {
	e.mu.Lock()
	defer e.mu.Unlock()
	var kinds []EventKind
	for _, event := range e.list {
		kinds = append(kinds, event.Kind)
	}
	return kinds
}

type managed struct {
	*Manager
	home   *home
	engine *fakeEngine
	events *events
}

// manage starts a Manager with a fake native engine.
func manage(t *testing.T, w *home, e *fakeEngine, c settings.Config) *managed {
	t.Helper()
	m := &managed{home: w, engine: e, events: &events{}}
	m.Manager = NewManager(ManagerOptions{Engines: []sandbox.Engine{e}, StateDir: w.State, Settings: w.settings(t, c), Observe: m.events.put})
	if err := m.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	return m
}

func (m *managed) request(session string) settings.Request {
	return settings.Request{Agent: "coder", Session: "agent:coder:" + session, Workspace: m.home.Workspace}
}

func (m *managed) lease(t *testing.T, session string) *Lease {
	t.Helper()
	lease, err := m.Acquire(t.Context(), m.request(session))
	if err != nil {
		t.Fatal(err)
	}
	return lease
}

func (m *managed) entries(t *testing.T) []Registered {
	t.Helper()
	entries, err := m.registry.Entries()
	if err != nil {
		t.Fatal(err)
	}
	return entries
}

func TestManyCallsMakeOneSandbox(t *testing.T) {
	e := newFake("native")
	e.slow = 20 * time.Millisecond
	m := manage(t, newHome(t), e, settings.Config{})
	var wg sync.WaitGroup
	for i := range 200 {
		wg.Go(func() {
			lease, err := m.Acquire(t.Context(), m.request(fmt.Sprint("s", i%7)))
			if err != nil {
				t.Error(err)
				return
			}
			defer lease.Release()
			if lease.Layout.Table == nil || lease.Engine != "native" {
				t.Errorf("%+v", lease.Layout)
			}
		})
	}
	wg.Wait()
	if e.ensured != 1 || len(m.entries(t)) != 1 {
		t.Errorf("%d made, %d entries", e.ensured, len(m.entries(t)))
	}
	if got := m.events.kinds(); !slices.Equal(got, []EventKind{EventCreated}) {
		t.Errorf("told %v", got)
	}
}

func TestManySandboxesAtOnce(t *testing.T) {
	e := newFake("native")
	e.slow = time.Millisecond
	m := manage(t, newHome(t), e, settings.Config{Scope: "session", Prune: settings.PruneConfig{IdleAction: "remove"}})
	var wg sync.WaitGroup
	for i := range 200 {
		wg.Go(func() {
			lease, err := m.Acquire(t.Context(), m.request(fmt.Sprint("s", i)))
			if err != nil {
				t.Error(err)
				return
			}
			lease.Release()
			lease.Release()
			if err := m.Remove(t.Context(), lease.Layout.Name, "test"); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if len(e.names()) != 0 || len(m.entries(t)) != 0 || e.ensured != 200 {
		t.Errorf("left %v, %d entries, %d made", e.names(), len(m.entries(t)), e.ensured)
	}
	if len(m.boxes) != 0 || len(m.ready) != 0 {
		t.Errorf("%d boxes and %d ready are remembered", len(m.boxes), len(m.ready))
	}
	if e.most > cap(m.making) {
		t.Errorf("%d made at once", e.most)
	}
	if left, _ := filepath.Glob(filepath.Join(m.home.State, "sandbox", "locks", "*")); len(left) != 0 {
		t.Errorf("locks left: %v", left)
	}
}

// Nothing is ever run outside because there is no engine.
func TestWithoutAnEngineTheCallFails(t *testing.T) {
	w := newHome(t)
	e := newFake("native")
	e.caps = sandbox.Capabilities{Checks: []sandbox.Check{{Name: "user namespace", Found: "refused by AppArmor", Fix: "load the shipped profile"}}}
	m := manage(t, w, e, settings.Config{})
	_, err := m.Acquire(t.Context(), m.request("s"))
	var coded *sandbox.Error
	if !errors.As(err, &coded) || coded.Code != sandbox.CodeUnavailable || coded.Fix == "" || !strings.Contains(err.Error(), "load the shipped profile") {
		t.Errorf("%v", err)
	}
	e.caps = sandbox.Capabilities{Level: sandbox.LevelNoCgroup}
	m.probes["native"].at = time.Time{}
	if _, err := m.Acquire(t.Context(), m.request("s")); sandbox.CodeOf(err) != sandbox.CodeUnavailable || !strings.Contains(err.Error(), "degradeOk may name cgroup") {
		t.Errorf("%v", err)
	}
	m.Configure(w.settings(t, settings.Config{DegradeOK: []string{"cgroup"}}))
	if _, err := m.Acquire(t.Context(), m.request("s")); err != nil {
		t.Errorf("agreed to: %v", err)
	}
	m.Configure(w.settings(t, settings.Config{Engine: "docker"}))
	if _, err := m.Acquire(t.Context(), m.request("s")); sandbox.CodeOf(err) != sandbox.CodeUnavailable {
		t.Errorf("%v", err)
	}
	m.Configure(w.settings(t, settings.Config{Mode: "off"}))
	if _, err := m.Acquire(t.Context(), m.request("s")); sandbox.CodeOf(err) != sandbox.CodeConfig {
		t.Errorf("a session that is not sandboxed: %v", err)
	}
}

// The first call is judged before its sandbox is made: by the directory that it will have.
func TestLayoutMakesThePrivateDirectory(t *testing.T) {
	w := newHome(t)
	w.Write(t, filepath.Join(w.Workspace, "AGENTS.md"), "be kind")
	native := newFake("native")
	native.caps.Level, native.caps.InPlace = sandbox.LevelLandlock, true
	c := settings.Config{Mode: "all", WorkspaceAccess: "none", DegradeOK: []string{"namespaces"}}
	m := NewManager(ManagerOptions{Engines: []sandbox.Engine{native}, StateDir: w.State, Settings: w.settings(t, c)})
	defer m.Close()
	layout, err := m.Layout(t.Context(), settings.Request{Agent: "coder", Session: "agent:coder:x", Workspace: w.Workspace})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(filepath.Join(layout.WorkspaceDir, "AGENTS.md")); err != nil || string(got) != "be kind" {
		t.Errorf("%q, %v", got, err)
	}
	// This engine mounts nothing.
	mounts := layout.Mounts()
	if layout.Workdir != layout.WorkspaceDir || len(mounts) != 2 || mounts[0].Target != mounts[0].Source || native.ensured != 0 {
		t.Errorf("%s, %+v, %d made", layout.Workdir, mounts, native.ensured)
	}
}

// What a call was judged in is what it gets, unless the settings have changed: then it can tell.
func TestIdentityOfALayout(t *testing.T) {
	w := newHome(t)
	m := NewManager(ManagerOptions{Engines: []sandbox.Engine{newFake("native")}, StateDir: w.State, Settings: w.settings(t, settings.Config{Mode: "all"})})
	defer m.Close()
	request := settings.Request{Agent: "coder", Session: "agent:coder:x", Workspace: w.Workspace}
	seen := map[string]string{}
	for name, c := range map[string]settings.Config{
		"rw": {Mode: "all"}, "none": {Mode: "all", WorkspaceAccess: "none"}, "ro": {Mode: "all", WorkspaceAccess: "ro"},
		"session": {Mode: "all", Scope: "session"}, "network": {Mode: "all", Docker: settings.DockerConfig{Network: new("bridge")}, Network: new("egress")},
	} {
		m.Configure(w.settings(t, c))
		judged, err := m.Layout(t.Context(), request)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if other := seen[judged.Identity()]; other != "" {
			t.Errorf("%s is the same as %s", name, other)
		}
		seen[judged.Identity()] = name
		if name == "network" {
			continue // there is no proxy here
		}
		for range 2 {
			lease, err := m.Acquire(t.Context(), request)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if again, err := m.Layout(t.Context(), request); err != nil || lease.Layout.Identity() != judged.Identity() || again.Identity() != judged.Identity() {
				t.Errorf("%s: it is another one when it is made (%v)", name, err)
			}
			lease.Release()
		}
	}
}

func TestEngineIsChosenByConfigurationAndMachine(t *testing.T) {
	w := newHome(t)
	native, docker := newFake("native"), newFake("docker")
	m := NewManager(ManagerOptions{Engines: []sandbox.Engine{native, docker}, StateDir: w.State, Settings: w.settings(t, settings.Config{})})
	defer m.Close()
	chosen := func(c settings.Config) string {
		e, _, err := m.pick(t.Context(), w.settings(t, c).For("coder"))
		if err != nil {
			return err.Error()
		}
		return e.Name()
	}
	image := settings.Config{Docker: settings.DockerConfig{Image: "mine:1"}}
	for _, tc := range []struct {
		got, want string
	}{
		{chosen(settings.Config{}), "native"},
		{chosen(image), "docker"},
		{chosen(settings.Config{Docker: settings.DockerConfig{Network: new("bridge")}}), "docker"},
		{chosen(settings.Config{Network: new("egress")}), "native"},
		{chosen(settings.Config{Engine: "docker"}), "docker"},
	} {
		if tc.got != tc.want {
			t.Errorf("got %s, want %s", tc.got, tc.want)
		}
	}
	native.caps.Level = sandbox.LevelNone
	m.probes["native"].at = time.Time{}
	m.probes["native"].found = sandbox.Capabilities{}
	if got := chosen(settings.Config{}); got != "docker" {
		t.Errorf("native does not work: %s", got)
	}
}

func TestChangedConfiguration(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newHome(t)
		m := manage(t, w, newFake("native"), settings.Config{})
		first := m.lease(t, "s")
		first.Release()

		// A limit does not confine: a sandbox in use is kept, with its old hash.
		hash := m.entries(t)[0].Hash
		m.Configure(w.settings(t, settings.Config{Limits: settings.LimitsConfig{Memory: `"1g"`}}))
		m.lease(t, "s").Release()
		if e := m.entries(t)[0]; e.Hash != hash || e.SecurityHash == "" || m.engine.ensured != 1 {
			t.Errorf("hot: %+v, %d made", e, m.engine.ensured)
		}
		// Once it is idle it is made anew.
		time.Sleep(6 * time.Minute)
		m.lease(t, "s").Release()
		if e := m.entries(t)[0]; e.Hash == hash || m.engine.ensured != 2 {
			t.Errorf("cold: %+v, %d made", e, m.engine.ensured)
		}

		// A variable confines: commands get ten seconds.
		busy := m.lease(t, "s")
		m.Configure(w.settings(t, settings.Config{Env: map[string]string{"A": "1"}}))
		start := time.Now()
		go func() {
			time.Sleep(3 * time.Second)
			busy.Release()
		}()
		m.lease(t, "s").Release()
		if took := time.Since(start); took != 3*time.Second || m.engine.ensured != 3 {
			t.Errorf("drained for %v, %d made", took, m.engine.ensured)
		}
		busy = m.lease(t, "s")
		m.Configure(w.settings(t, settings.Config{Env: map[string]string{"A": "2"}}))
		start = time.Now()
		m.lease(t, "s").Release()
		if took := time.Since(start); took != drainTime || m.engine.ensured != 4 {
			t.Errorf("drained for %v, %d made", took, m.engine.ensured)
		}
		select {
		case <-busy.Done():
		default:
			t.Error("the old sandbox goes on")
		}
		busy.Release()
		want := []EventKind{EventCreated, EventKept, EventRecreated, EventRecreated, EventRecreated}
		if got := m.events.kinds(); !slices.Equal(got, want) {
			t.Errorf("told %v", got)
		}
		m.Close()
	})
}

func TestPruning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newHome(t)
		m := manage(t, w, newFake("native"), settings.Config{Scope: "session"})
		held, other := m.lease(t, "held"), m.lease(t, "other")
		other.Release()
		time.Sleep(25 * time.Hour)
		synctest.Wait()
		running := func(l *Lease) bool {
			state, err := m.engine.Lookup(t.Context(), l.Layout.Name)
			return err == nil && state.Running
		}
		if !running(held) || running(other) {
			t.Errorf("after a day: %v %v", running(held), running(other))
		}
		if len(m.entries(t)) != 2 {
			t.Errorf("%+v", m.entries(t))
		}
		m.lease(t, "other").Release() // starts again, and is used
		if !running(other) || m.engine.ensured != 2 {
			t.Error("a stopped sandbox is not started again")
		}
		time.Sleep(7 * 24 * time.Hour)
		synctest.Wait()
		if !running(held) || len(m.engine.names()) != 1 {
			t.Errorf("after a week: %v", m.engine.names())
		}
		held.Release()
		m.engine.hold(true)
		time.Sleep(time.Hour)
		synctest.Wait()
		if len(m.entries(t)) != 1 {
			t.Error("an entry was dropped although the sandbox is still there")
		}
		m.engine.hold(false)
		time.Sleep(time.Hour)
		synctest.Wait()
		if len(m.entries(t)) != 0 || len(m.engine.names()) != 0 {
			t.Errorf("%v %v", m.entries(t), m.engine.names())
		}
		m.Close()
	})
}

// When a sandbox was used is written down while it is used, not only when it is made.
func TestUseIsWrittenDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := manage(t, newHome(t), newFake("native"), settings.Config{})
		m.lease(t, "s").Release()
		made := m.entries(t)[0].UsedMs
		time.Sleep(time.Hour)
		m.lease(t, "s").Release()
		time.Sleep(flushEvery + time.Second)
		synctest.Wait()
		if got := m.entries(t)[0].UsedMs; got-made != time.Hour.Milliseconds() {
			t.Errorf("%d ms later", got-made)
		}
		m.Close()
	})
}

func TestCallsSetNoDangerousVariables(t *testing.T) {
	m := manage(t, newHome(t), newFake("native"), settings.Config{EnvAllow: []string{"MY_TOKEN"}})
	lease := m.lease(t, "s")
	defer lease.Release()
	for env, want := range map[string]sandbox.Code{"LD_PRELOAD=x": sandbox.CodeDenied, "API_KEY=x": sandbox.CodeDenied, "A-B=1": sandbox.CodeDenied, "MY_TOKEN=x": "", "PATH=/bin": "", "CI=1": ""} {
		if _, err := lease.Start(t.Context(), sandbox.Command{Env: []string{env}}); sandbox.CodeOf(err) != want {
			t.Errorf("%s: %v", env, err)
		}
	}
}
