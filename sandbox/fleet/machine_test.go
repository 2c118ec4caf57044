package fleet

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolward/toolward/sandbox/settings"

	"github.com/toolward/toolward/sandbox"
)

// decide is one start on a machine with these engines.
func decide(t *testing.T, dir string, isNew bool, c settings.Config, engines ...sandbox.Engine) Machine {
	t.Helper()
	m, _, err := OpenMachine(dir, !isNew)
	if err != nil {
		t.Fatal(err)
	}
	compiled, problems := settings.Compile(settings.Configuration{Defaults: settings.Defaults{Config: c}}, settings.Surroundings{StateDir: dir, Undecided: m.Default()})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	if err := m.Decide(t.Context(), dir, engines, compiled.Anyone()); err != nil {
		t.Fatal(err)
	}
	if kept, known, err := ReadMachine(dir); err != nil || !known || kept.Mode != m.Mode || kept.Due != m.Due || kept.Instance != m.Instance {
		t.Fatalf("%+v was decided, %+v is kept (%v)", m, kept, err)
	}
	return m
}

// fakeOf is an engine of a level.
func fakeOf(name string, level sandbox.Level) *fakeEngine {
	e := newFake(name)
	e.caps.Level = level
	return e
}

func TestFirstStartDecides(t *testing.T) {
	for name, c := range map[string]struct {
		config  settings.Config
		engines []sandbox.Engine
		mode    settings.Mode
		engine  string
	}{
		"both work":           {settings.Config{}, []sandbox.Engine{fakeOf("docker", sandbox.LevelFull), fakeOf("native", sandbox.LevelFull)}, settings.ModeNonMain, "native"},
		"one works":           {settings.Config{}, []sandbox.Engine{fakeOf("native", sandbox.LevelNone), fakeOf("docker", sandbox.LevelFull)}, settings.ModeNonMain, "docker"},
		"none works":          {settings.Config{}, []sandbox.Engine{fakeOf("native", sandbox.LevelNone), fakeOf("docker", sandbox.LevelNone)}, settings.ModeOff, ""},
		"not whole":           {settings.Config{}, []sandbox.Engine{fakeOf("native", sandbox.LevelNoCgroup)}, settings.ModeOff, ""},
		"not whole, agreed":   {settings.Config{DegradeOK: []string{"cgroup"}}, []sandbox.Engine{fakeOf("native", sandbox.LevelNoCgroup)}, settings.ModeNonMain, "native"},
		"another is wanted":   {settings.Config{Engine: "docker"}, []sandbox.Engine{fakeOf("native", sandbox.LevelFull), fakeOf("docker", sandbox.LevelNone)}, settings.ModeOff, ""},
		"Landlock, agreed":    {settings.Config{DegradeOK: []string{"namespaces", "cgroup"}}, []sandbox.Engine{fakeOf("native", sandbox.LevelLandlock)}, settings.ModeNonMain, "native"},
		"docker is preferred": {settings.Config{Docker: settings.DockerConfig{Image: "x"}}, []sandbox.Engine{fakeOf("native", sandbox.LevelFull), fakeOf("docker", sandbox.LevelFull)}, settings.ModeNonMain, "docker"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			first := decide(t, dir, true, c.config, c.engines...)
			if first.Mode != c.mode || first.Engine != c.engine || first.Why == "" || first.Decided.IsZero() || len(first.Instance) != 32 {
				t.Errorf("decided %+v", first)
			}
			around := first.Surroundings(dir)
			compiled, problems := settings.Compile(settings.Configuration{Defaults: settings.Defaults{Config: c.config}}, around)
			network := sandbox.NetworkNone
			if c.mode == settings.ModeNonMain && name != "Landlock, agreed" {
				network = sandbox.NetworkEgress
			}
			if r := compiled.Anyone(); len(problems) > 0 || r.NetworkOf(sandbox.EngineNative) != network || r.NetworkOf(sandbox.EngineDocker) != network {
				t.Errorf("the network is %s, want %s", compiled.Anyone().Neutral.Network, network)
			}
			if r, _ := settings.Compile(settings.Configuration{Defaults: settings.Defaults{Config: settings.Config{Network: new("none")}}}, around); r.Anyone().NetworkOf(sandbox.EngineNative) != sandbox.NetworkNone {
				t.Error("what is written does not count")
			}
			// It never changes by itself, whatever the engines can do by then.
			for _, e := range []sandbox.Engine{fakeOf("native", sandbox.LevelFull), fakeOf("native", sandbox.LevelNone)} {
				if again := decide(t, dir, false, settings.Config{}, e); again != first {
					t.Errorf("it became %+v", again)
				}
			}
		})
	}
}

// hungEngine does not say what it can do before it is asked to give up, and then says no.
type hungEngine struct{ *fakeEngine }

func (e hungEngine) Probe(ctx context.Context) (sandbox.Capabilities, error) {
	<-ctx.Done()
	return sandbox.Capabilities{}, nil
}

// deafEngine does not even do that.
type deafEngine struct {
	*fakeEngine
	over chan struct{}
}

func (e deafEngine) Probe(context.Context) (sandbox.Capabilities, error) {
	<-e.over
	return sandbox.Capabilities{}, nil
}

func TestAnEngineThatDoesNotAnswerDecidesNothing(t *testing.T) {
	dir := t.TempDir()
	failing := fakeOf("docker", sandbox.LevelFull)
	failing.probeErr = errors.New("connection reset")
	for name, e := range map[string]func(over chan struct{}) sandbox.Engine{
		"hangs":       func(chan struct{}) sandbox.Engine { return hungEngine{newFake("docker")} },
		"never wakes": func(over chan struct{}) sandbox.Engine { return deafEngine{newFake("docker"), over} },
		"fails":       func(chan struct{}) sandbox.Engine { return failing },
	} {
		synctest.Test(t, func(t *testing.T) {
			over := make(chan struct{})
			defer close(over)
			start := time.Now()
			m := decide(t, dir, true, settings.Config{}, fakeOf("native", sandbox.LevelNone), e(over))
			if m.Mode != "" || !m.Due || !strings.Contains(m.Why, "docker") || m.Default() != settings.ModeNonMain {
				t.Errorf("%s: decided %+v", name, m)
			}
			if took := time.Since(start); took > decideTime {
				t.Errorf("%s: the start was held up for %s", name, took)
			}
		})
	}
	if m := decide(t, dir, false, settings.Config{}, fakeOf("native", sandbox.LevelNone), fakeOf("docker", sandbox.LevelFull)); m.Mode != settings.ModeNonMain {
		t.Errorf("the next start: %+v", m)
	}
}

func TestAnOlderHomeKeepsRunningCommandsWhereItDid(t *testing.T) {
	dir := t.TempDir()
	w := newHome(t)
	w.Write(t, machinePath(dir), `{"instance": "0123456789abcdef0123456789abcdef"}`)
	m := decide(t, dir, false, settings.Config{}, fakeOf("native", sandbox.LevelFull))
	if m.Mode != settings.ModeOff || m.Due || m.Instance != "0123456789abcdef0123456789abcdef" || !strings.Contains(m.Why, "before") {
		t.Errorf("%+v", m)
	}
	if m := decide(t, t.TempDir(), false, settings.Config{}, fakeOf("native", sandbox.LevelFull)); m.Mode != settings.ModeOff {
		t.Errorf("without what an earlier start kept: %+v", m)
	}
}

// The advice about a file that cannot be read is to move it away. That must not end what confines.
func TestWhatIsKeptOfAMachineMayGetLost(t *testing.T) {
	dir := t.TempDir()
	decide(t, dir, true, settings.Config{}, fakeOf("native", sandbox.LevelFull))
	if err := os.Remove(machinePath(dir)); err != nil {
		t.Fatal(err)
	}
	if m := decide(t, dir, false, settings.Config{}, fakeOf("native", sandbox.LevelFull)); m.Mode != settings.ModeNonMain {
		t.Errorf("%+v", m)
	}
}

func TestWhatIsKeptOfAMachineMustBeWhole(t *testing.T) {
	for _, text := range []string{"{", `{"instance": "short"}`, `{"instance": "0123456789abcdef0123456789abcdef", "mode": "all"}`} {
		dir := t.TempDir()
		newHome(t).Write(t, machinePath(dir), text)
		if _, _, err := OpenMachine(dir, true); sandbox.CodeOf(err) != sandbox.CodeConfig {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestWhoSaysWhichSessionsAreSandboxed(t *testing.T) {
	for name, c := range map[string]struct {
		written string
		found   settings.Mode
		mode    settings.Mode
		source  string
	}{
		"nobody":            {"", "", settings.ModeOff, settings.FromDefault},
		"the machine":       {"", settings.ModeNonMain, settings.ModeNonMain, settings.FromProbe},
		"the machine, off":  {"", settings.ModeOff, settings.ModeOff, settings.FromProbe},
		"the configuration": {"off", settings.ModeNonMain, settings.ModeOff, settings.FromGlobal},
	} {
		compiled, _ := settings.Compile(settings.Configuration{Defaults: settings.Defaults{Config: settings.Config{Mode: c.written}}}, settings.Surroundings{Undecided: c.found})
		r := compiled.For("coder")
		if want := (settings.Source{Level: c.source, Key: "agents.defaults.sandbox.mode"}); r.Mode != c.mode || r.Sources["mode"] != want {
			t.Errorf("%s: %s, %+v", name, r.Mode, r.Sources["mode"])
		}
	}
}

// silentEngine fails the test when it is asked anything.
type silentEngine struct {
	*fakeEngine
	t *testing.T
}

func (e silentEngine) List(context.Context) ([]sandbox.State, error) {
	e.t.Error("it was asked what it has")
	return nil, nil
}

func (e silentEngine) Sweep(context.Context) error {
	e.t.Error("it was asked to sweep")
	return nil
}

func TestAFirstStartAsksNoEngineWhatIsLeft(t *testing.T) {
	w := newHome(t)
	m := NewManager(ManagerOptions{
		Engines: []sandbox.Engine{silentEngine{newFake("docker"), t}}, StateDir: w.State, Settings: w.settings(t, settings.Config{}), NewHome: true,
	})
	defer m.Close()
	if err := m.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
}
