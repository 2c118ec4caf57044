package fleet

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolward/toolward/sandbox"
)

// decide is one start on a machine with these engines.
func decide(t *testing.T, dir string, isNew bool, c sandbox.Config, engines ...sandbox.Engine) Machine {
	t.Helper()
	m, _, err := OpenMachine(dir, !isNew)
	if err != nil {
		t.Fatal(err)
	}
	settings, problems := sandbox.Compile(sandbox.Configuration{Defaults: sandbox.Defaults{Config: c}}, sandbox.Surroundings{StateDir: dir, Undecided: m.Default()})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	if err := m.Decide(t.Context(), dir, engines, settings.Anyone()); err != nil {
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
		config  sandbox.Config
		engines []sandbox.Engine
		mode    sandbox.Mode
		engine  string
	}{
		"both work":           {sandbox.Config{}, []sandbox.Engine{fakeOf("docker", sandbox.LevelFull), fakeOf("native", sandbox.LevelFull)}, sandbox.ModeNonMain, "native"},
		"one works":           {sandbox.Config{}, []sandbox.Engine{fakeOf("native", sandbox.LevelNone), fakeOf("docker", sandbox.LevelFull)}, sandbox.ModeNonMain, "docker"},
		"none works":          {sandbox.Config{}, []sandbox.Engine{fakeOf("native", sandbox.LevelNone), fakeOf("docker", sandbox.LevelNone)}, sandbox.ModeOff, ""},
		"not whole":           {sandbox.Config{}, []sandbox.Engine{fakeOf("native", sandbox.LevelNoCgroup)}, sandbox.ModeOff, ""},
		"not whole, agreed":   {sandbox.Config{DegradeOK: []string{"cgroup"}}, []sandbox.Engine{fakeOf("native", sandbox.LevelNoCgroup)}, sandbox.ModeNonMain, "native"},
		"another is wanted":   {sandbox.Config{Engine: "docker"}, []sandbox.Engine{fakeOf("native", sandbox.LevelFull), fakeOf("docker", sandbox.LevelNone)}, sandbox.ModeOff, ""},
		"docker is preferred": {sandbox.Config{Docker: sandbox.DockerConfig{Image: "x"}}, []sandbox.Engine{fakeOf("native", sandbox.LevelFull), fakeOf("docker", sandbox.LevelFull)}, sandbox.ModeNonMain, "docker"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			first := decide(t, dir, true, c.config, c.engines...)
			if first.Mode != c.mode || first.Engine != c.engine || first.Why == "" || first.Decided.IsZero() || len(first.Instance) != 32 {
				t.Errorf("decided %+v", first)
			}
			// It never changes by itself, whatever the engines can do by then.
			for _, e := range []sandbox.Engine{fakeOf("native", sandbox.LevelFull), fakeOf("native", sandbox.LevelNone)} {
				if again := decide(t, dir, false, sandbox.Config{}, e); again != first {
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
			m := decide(t, dir, true, sandbox.Config{}, fakeOf("native", sandbox.LevelNone), e(over))
			if m.Mode != "" || !m.Due || !strings.Contains(m.Why, "docker") || m.Default() != sandbox.ModeNonMain {
				t.Errorf("%s: decided %+v", name, m)
			}
			if took := time.Since(start); took > decideTime {
				t.Errorf("%s: the start was held up for %s", name, took)
			}
		})
	}
	if m := decide(t, dir, false, sandbox.Config{}, fakeOf("native", sandbox.LevelNone), fakeOf("docker", sandbox.LevelFull)); m.Mode != sandbox.ModeNonMain {
		t.Errorf("the next start: %+v", m)
	}
}

func TestAnOlderHomeKeepsRunningCommandsWhereItDid(t *testing.T) {
	dir := t.TempDir()
	w := newHome(t)
	w.Write(t, machinePath(dir), `{"instance": "0123456789abcdef0123456789abcdef"}`)
	m := decide(t, dir, false, sandbox.Config{}, fakeOf("native", sandbox.LevelFull))
	if m.Mode != sandbox.ModeOff || m.Due || m.Instance != "0123456789abcdef0123456789abcdef" || !strings.Contains(m.Why, "before") {
		t.Errorf("%+v", m)
	}
	if m := decide(t, t.TempDir(), false, sandbox.Config{}, fakeOf("native", sandbox.LevelFull)); m.Mode != sandbox.ModeOff {
		t.Errorf("without what an earlier start kept: %+v", m)
	}
}

// The advice about a file that cannot be read is to move it away. That must not end what confines.
func TestWhatIsKeptOfAMachineMayGetLost(t *testing.T) {
	dir := t.TempDir()
	decide(t, dir, true, sandbox.Config{}, fakeOf("native", sandbox.LevelFull))
	if err := os.Remove(machinePath(dir)); err != nil {
		t.Fatal(err)
	}
	if m := decide(t, dir, false, sandbox.Config{}, fakeOf("native", sandbox.LevelFull)); m.Mode != sandbox.ModeNonMain {
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
		found   sandbox.Mode
		mode    sandbox.Mode
		source  string
	}{
		"nobody":            {"", "", sandbox.ModeOff, sandbox.FromDefault},
		"the machine":       {"", sandbox.ModeNonMain, sandbox.ModeNonMain, sandbox.FromProbe},
		"the machine, off":  {"", sandbox.ModeOff, sandbox.ModeOff, sandbox.FromProbe},
		"the configuration": {"off", sandbox.ModeNonMain, sandbox.ModeOff, sandbox.FromGlobal},
	} {
		settings, _ := sandbox.Compile(sandbox.Configuration{Defaults: sandbox.Defaults{Config: sandbox.Config{Mode: c.written}}}, sandbox.Surroundings{Undecided: c.found})
		r := settings.For("coder")
		if want := (sandbox.Source{Level: c.source, Key: "agents.defaults.sandbox.mode"}); r.Mode != c.mode || r.Sources["mode"] != want {
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
		Engines: []sandbox.Engine{silentEngine{newFake("docker"), t}}, StateDir: w.State, Settings: w.settings(t, sandbox.Config{}), NewHome: true,
	})
	defer m.Close()
	if err := m.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
}
