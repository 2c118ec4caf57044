package fleet

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/toolward/toolward/sandbox/settings"

	"github.com/toolward/toolward/sandbox"
)

// fakeEgress remembers what it was told.
type fakeEgress struct {
	mu       sync.Mutex
	opened   []string
	closed   []string
	outlived []map[string][]Former
}

func (e *fakeEgress) Open(name string) (string, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.opened = append(e.opened, name)
	return "/egress/" + name, nil
}

func (e *fakeEgress) Close(name string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.closed = append(e.closed, name)
}

func (e *fakeEgress) Outlived(sessions map[string][]Former) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.outlived = append(e.outlived, sessions)
}

// detaching are settings with which sandboxes go on when the gateway ends.
func detaching() settings.Config {
	return settings.Config{Native: settings.NativeConfig{Detach: new(true)}}
}

// next is the next gateway with the same engine.
func (m *managed) next(t *testing.T, c settings.Config, egress Egress) *managed {
	t.Helper()
	n := &managed{home: m.home, engine: m.engine, events: &events{}}
	n.Manager = NewManager(ManagerOptions{
		Engines: []sandbox.Engine{m.engine}, StateDir: m.home.State, Settings: m.home.settings(t, c), Observe: n.events.put, Egress: egress,
	})
	if err := n.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(n.Close)
	return n
}

// A sandbox that goes on is told of when its gateway ends and when the next one begins, with who has used it, and is used
// again as it is.
func TestOutlivedIsFoundAndUsed(t *testing.T) {
	w := newHome(t)
	first := manage(t, w, newFake("native"), detaching())
	lease := first.lease(t, "one")
	lease.Release()
	first.lease(t, "two").Release()
	first.lease(t, "one").Release()
	first.Close()
	if got := first.events.kinds(); !slices.Equal(got, []EventKind{EventCreated, EventLeft}) {
		t.Errorf("the first told %v", got)
	}
	egress := &fakeEgress{}
	second := first.next(t, detaching(), egress)
	want := []map[string][]Former{{lease.Layout.Name: {{"coder", "agent:coder:one"}, {"coder", "agent:coder:two"}}}}
	if !slices.EqualFunc(egress.outlived, want, func(a, b map[string][]Former) bool {
		return maps.EqualFunc(a, b, slices.Equal[[]Former])
	}) {
		t.Errorf("the proxy is told %v, want %v", egress.outlived, want)
	}
	if list, err := second.List(t.Context()); err != nil || len(list) != 1 || !list[0].Running || !list[0].Detached {
		t.Errorf("it is listed as %+v %v", list, err)
	}
	second.lease(t, "one").Release()
	if first.engine.ensured != 1 {
		t.Errorf("%d were made", first.engine.ensured)
	}
	if got := second.events.kinds(); !slices.Equal(got, []EventKind{EventFound}) {
		t.Errorf("the second told %v", got)
	}
	if d, err := second.Describe(t.Context(), lease.Layout.Name); err != nil || d.ProtectedKnown {
		t.Errorf("what is protected in it is said to be known: %v", err)
	}
	if err := second.Remove(t.Context(), lease.Layout.Name, "test"); err != nil {
		t.Fatal(err)
	}
	if left, _ := os.ReadDir(second.rememberedDir()); len(left) > 0 || len(egress.closed) != 1 {
		t.Errorf("left %v, closed %v", left, egress.closed)
	}
}

// One whose users are not known, or that nobody wants any more, is ended, whenever that is found.
func TestOutlivedThatMustNotGoOn(t *testing.T) {
	for name, c := range map[string]struct {
		change func(t *testing.T, path string)
		next   settings.Config
	}{
		"forgotten":        {change: func(t *testing.T, path string) { os.Remove(path) }, next: detaching()},
		"damaged":          {change: func(t *testing.T, path string) { os.WriteFile(path, []byte("{"), 0o600) }, next: detaching()},
		"of another":       {change: func(t *testing.T, path string) { os.WriteFile(path, []byte(`{"engineId": "77"}`), 0o600) }, next: detaching()},
		"too many":         {change: crowd, next: detaching()},
		"not wanted":       {next: settings.Config{}},
		"off":              {next: settings.Config{Mode: "off", Native: settings.NativeConfig{Detach: new(true)}}},
		"of containers":    {next: settings.Config{Engine: "docker", Native: settings.NativeConfig{Detach: new(true)}}},
		"wanted after all": {next: detaching()},
	} {
		t.Run(name, func(t *testing.T) {
			first := manage(t, newHome(t), newFake("native"), detaching())
			lease := first.lease(t, "one")
			lease.Release()
			first.Close()
			if c.change != nil {
				c.change(t, first.rememberedPath(lease.Layout.Name))
			}
			egress := &fakeEgress{}
			second := first.next(t, c.next, egress)
			kept := name == "wanted after all"
			if left := len(first.engine.names()) == 1; left != kept {
				t.Errorf("it is there: %v", left)
			}
			if listed := len(second.entries(t)) == 1; listed != kept {
				t.Errorf("it is listed: %v", listed)
			}
			want := []EventKind{EventRemoved}
			if kept {
				want = []EventKind{EventFound}
			}
			if got := second.events.kinds(); !slices.Equal(got, want) {
				t.Errorf("told %v", got)
			}
			if len(egress.outlived) != 1 || (len(egress.outlived[0]) == 1) != kept {
				t.Errorf("the proxy is told %v", egress.outlived)
			}
		})
	}
}

// crowd is a sandbox that more sessions have used than are remembered.
func crowd(t *testing.T, path string) {
	var sessions []string
	for i := range maxSessions {
		sessions = append(sessions, fmt.Sprintf(`{"agentId": "coder", "sessionKey": "%d"}`, i))
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(data), `"sessions"`)
	_, rest, _ = strings.Cut(rest, "]")
	before, _, _ := strings.Cut(string(data), `"sessions"`)
	text := before + `"sessions": [` + strings.Join(sessions, ",") + "]" + rest
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// A gateway that ends leaves nothing that its configuration does not want any more, though it was made so that it could.
func TestLeavesOnlyWhatIsWanted(t *testing.T) {
	first := manage(t, newHome(t), newFake("native"), detaching())
	first.lease(t, "one").Release()
	first.Configure(first.home.settings(t, settings.Config{}))
	first.Close()
	if left := first.engine.names(); len(left) > 0 {
		t.Errorf("left %v", left)
	}
	if got := first.events.kinds(); !slices.Equal(got, []EventKind{EventCreated, EventRemoved}) {
		t.Errorf("told %v", got)
	}
	if left, _ := os.ReadDir(first.rememberedDir()); len(left) > 0 {
		t.Errorf("remembered: %v", left)
	}
}

// What programs made while no gateway looked is told, once there is one, of every session that may have left them.
func TestProtectedMadeWithoutAGateway(t *testing.T) {
	w := newHome(t)
	w.Write(t, filepath.Join(w.Workspace, "old/.git/hooks/pre-commit"), "echo there before")
	first := manage(t, w, newFake("native"), detaching())
	first.lease(t, "one").Release()
	lease := first.lease(t, "two")
	lease.Release()
	first.Close()
	w.Write(t, filepath.Join(w.Workspace, "new/.git/hooks/pre-commit"), "echo made meanwhile")
	second := first.next(t, detaching(), nil)
	second.lease(t, "three").Release()
	second.Close() // after whoever looks has looked
	told := map[string]bool{}
	for _, e := range second.events.list {
		if e.Kind != EventProtected {
			continue
		}
		told[e.Session] = true
		if !e.Runs || !slices.Equal(e.Paths, []string{w.Workspace + "/new/.git/hooks"}) {
			t.Errorf("told of %v, it runs: %v", e.Paths, e.Runs)
		}
	}
	if !told["agent:coder:one"] || !told["agent:coder:two"] {
		t.Errorf("told of %v", told)
	}
}

// One that could not be used again is another one: nobody's programs are in it.
func TestOutlivedThatIsMadeAnew(t *testing.T) {
	first := manage(t, newHome(t), newFake("native"), detaching())
	lease := first.lease(t, "one")
	lease.Release()
	first.Close()
	second := first.next(t, detaching(), nil)
	first.engine.mu.Lock()
	first.engine.made = func() { first.engine.boxes[lease.Layout.Name].state.EngineID = "anew" }
	first.engine.mu.Unlock()
	second.lease(t, "two").Release()
	if got := second.events.kinds(); !slices.Equal(got, []EventKind{EventFound, EventRecreated}) {
		t.Errorf("told %v", got)
	}
	r, err := second.recall(lease.Layout.Name, "anew")
	if err != nil || !slices.Equal(r.Sessions, []Former{{"coder", "agent:coder:two"}}) {
		t.Errorf("remembered: %+v %v", r, err)
	}
}

// Who uses a sandbox is written down before it can be used; where that cannot be done, it is not used.
func TestUsersThatCannotBeWrittenDown(t *testing.T) {
	m := manage(t, newHome(t), newFake("native"), detaching())
	if err := os.WriteFile(m.rememberedDir(), nil, 0o600); err != nil { // no directory can be made there
		t.Fatal(err)
	}
	if _, err := m.Acquire(t.Context(), m.request("one")); sandbox.CodeOf(err) != sandbox.CodeUnavailable {
		t.Errorf("%v", err)
	}
	if left := m.engine.names(); len(left) > 0 {
		t.Errorf("left %v", left)
	}
}

// What is mounted in a sandbox that goes on stays there, whatever becomes of a call that wanted it.
func TestEgressOfOutlivedStaysOpen(t *testing.T) {
	w := newHome(t)
	c := detaching()
	c.Network = new("egress")
	egress := &fakeEgress{}
	m := &managed{home: w, engine: newFake("native"), events: &events{}}
	first := m.next(t, c, egress)
	lease := first.lease(t, "one")
	lease.Release()
	first.Close()
	second := first.next(t, c, egress)
	first.engine.fail = sandbox.Errorf(sandbox.CodeUnavailable, "not now")
	if _, err := second.Acquire(t.Context(), second.request("one")); err == nil {
		t.Error("it was acquired")
	}
	if len(egress.closed) > 0 {
		t.Errorf("closed: %v", egress.closed)
	}
}

// A look that is broken off because the gateway ends does not forget whose commands it was for: the last look tells of them.
func TestBrokenOffLook(t *testing.T) {
	m := manage(t, newHome(t), newFake("native"), settings.Config{})
	lease := m.lease(t, "one")
	m.mu.Lock()
	p := m.boxes[lease.Layout.Name].patrol
	m.mu.Unlock()
	p.mu.Lock()
	p.wrote["agent:coder:one"] = true
	p.mu.Unlock()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	p.look(ctx)
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.wrote["agent:coder:one"] {
		t.Error("it is forgotten")
	}
}
