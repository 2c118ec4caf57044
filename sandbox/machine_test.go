package sandbox

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// decide is one start on a machine with these engines.
func decide(t *testing.T, dir string, isNew bool, c Config, engines ...Engine) Machine {
	t.Helper()
	m, _, err := OpenMachine(dir, !isNew)
	if err != nil {
		t.Fatal(err)
	}
	settings, problems := Compile(Configuration{Defaults: Defaults{Config: c}}, Surroundings{StateDir: dir, Undecided: m.Default()})
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
func fakeOf(name string, level Level) *fakeEngine {
	e := newFake(name)
	e.caps.Level = level
	return e
}

func TestFirstStartDecides(t *testing.T) {
	for name, c := range map[string]struct {
		config  Config
		engines []Engine
		mode    Mode
		engine  string
	}{
		"both work":           {Config{}, []Engine{fakeOf("docker", LevelFull), fakeOf("native", LevelFull)}, ModeNonMain, "native"},
		"one works":           {Config{}, []Engine{fakeOf("native", LevelNone), fakeOf("docker", LevelFull)}, ModeNonMain, "docker"},
		"none works":          {Config{}, []Engine{fakeOf("native", LevelNone), fakeOf("docker", LevelNone)}, ModeOff, ""},
		"not whole":           {Config{}, []Engine{fakeOf("native", LevelNoCgroup)}, ModeOff, ""},
		"not whole, agreed":   {Config{DegradeOK: []string{"cgroup"}}, []Engine{fakeOf("native", LevelNoCgroup)}, ModeNonMain, "native"},
		"another is wanted":   {Config{Engine: "docker"}, []Engine{fakeOf("native", LevelFull), fakeOf("docker", LevelNone)}, ModeOff, ""},
		"docker is preferred": {Config{Docker: DockerConfig{Image: "x"}}, []Engine{fakeOf("native", LevelFull), fakeOf("docker", LevelFull)}, ModeNonMain, "docker"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			first := decide(t, dir, true, c.config, c.engines...)
			if first.Mode != c.mode || first.Engine != c.engine || first.Why == "" || first.Decided.IsZero() || len(first.Instance) != 32 {
				t.Errorf("decided %+v", first)
			}
			// It never changes by itself, whatever the engines can do by then.
			for _, e := range []Engine{fakeOf("native", LevelFull), fakeOf("native", LevelNone)} {
				if again := decide(t, dir, false, Config{}, e); again != first {
					t.Errorf("it became %+v", again)
				}
			}
		})
	}
}

// hungEngine does not say what it can do before it is asked to give up, and then says no.
type hungEngine struct{ *fakeEngine }

func (e hungEngine) Probe(ctx context.Context) (Capabilities, error) {
	<-ctx.Done()
	return Capabilities{}, nil
}

// deafEngine does not even do that.
type deafEngine struct {
	*fakeEngine
	over chan struct{}
}

func (e deafEngine) Probe(context.Context) (Capabilities, error) {
	<-e.over
	return Capabilities{}, nil
}

func TestAnEngineThatDoesNotAnswerDecidesNothing(t *testing.T) {
	dir := t.TempDir()
	failing := fakeOf("docker", LevelFull)
	failing.probeErr = errors.New("connection reset")
	for name, e := range map[string]func(over chan struct{}) Engine{
		"hangs":       func(chan struct{}) Engine { return hungEngine{newFake("docker")} },
		"never wakes": func(over chan struct{}) Engine { return deafEngine{newFake("docker"), over} },
		"fails":       func(chan struct{}) Engine { return failing },
	} {
		synctest.Test(t, func(t *testing.T) {
			over := make(chan struct{})
			defer close(over)
			start := time.Now()
			m := decide(t, dir, true, Config{}, fakeOf("native", LevelNone), e(over))
			if m.Mode != "" || !m.Due || !strings.Contains(m.Why, "docker") || m.Default() != ModeNonMain {
				t.Errorf("%s: decided %+v", name, m)
			}
			if took := time.Since(start); took > decideTime {
				t.Errorf("%s: the start was held up for %s", name, took)
			}
		})
	}
	if m := decide(t, dir, false, Config{}, fakeOf("native", LevelNone), fakeOf("docker", LevelFull)); m.Mode != ModeNonMain {
		t.Errorf("the next start: %+v", m)
	}
}

func TestAnOlderHomeKeepsRunningCommandsWhereItDid(t *testing.T) {
	dir := t.TempDir()
	w := newWorld(t)
	w.write(t, machinePath(dir), `{"instance": "0123456789abcdef0123456789abcdef"}`)
	m := decide(t, dir, false, Config{}, fakeOf("native", LevelFull))
	if m.Mode != ModeOff || m.Due || m.Instance != "0123456789abcdef0123456789abcdef" || !strings.Contains(m.Why, "before") {
		t.Errorf("%+v", m)
	}
	if m := decide(t, t.TempDir(), false, Config{}, fakeOf("native", LevelFull)); m.Mode != ModeOff {
		t.Errorf("without what an earlier start kept: %+v", m)
	}
}

// The advice about a file that cannot be read is to move it away. That must not end what confines.
func TestWhatIsKeptOfAMachineMayGetLost(t *testing.T) {
	dir := t.TempDir()
	decide(t, dir, true, Config{}, fakeOf("native", LevelFull))
	if err := os.Remove(machinePath(dir)); err != nil {
		t.Fatal(err)
	}
	if m := decide(t, dir, false, Config{}, fakeOf("native", LevelFull)); m.Mode != ModeNonMain {
		t.Errorf("%+v", m)
	}
}

func TestWhatIsKeptOfAMachineMustBeWhole(t *testing.T) {
	for _, text := range []string{"{", `{"instance": "short"}`, `{"instance": "0123456789abcdef0123456789abcdef", "mode": "all"}`} {
		dir := t.TempDir()
		newWorld(t).write(t, machinePath(dir), text)
		if _, _, err := OpenMachine(dir, true); CodeOf(err) != CodeConfig {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestWhoSaysWhichSessionsAreSandboxed(t *testing.T) {
	for name, c := range map[string]struct {
		written string
		found   Mode
		mode    Mode
		source  string
	}{
		"nobody":            {"", "", ModeOff, FromDefault},
		"the machine":       {"", ModeNonMain, ModeNonMain, FromProbe},
		"the machine, off":  {"", ModeOff, ModeOff, FromProbe},
		"the configuration": {"off", ModeNonMain, ModeOff, FromGlobal},
	} {
		settings, _ := Compile(Configuration{Defaults: Defaults{Config: Config{Mode: c.written}}}, Surroundings{Undecided: c.found})
		r := settings.For("coder")
		if want := (Source{c.source, "agents.defaults.sandbox.mode"}); r.Mode != c.mode || r.Sources["mode"] != want {
			t.Errorf("%s: %s, %+v", name, r.Mode, r.Sources["mode"])
		}
	}
}

func TestAnAgentWithAWorkspaceWorksInIt(t *testing.T) {
	w := newWorld(t)
	for _, c := range []struct {
		written, workspace string
		want               Access
	}{
		{"", w.workspace, AccessReadWrite}, {"", "", AccessNone}, {"none", w.workspace, AccessNone}, {"ro", w.workspace, AccessReadOnly},
	} {
		w.workspace = c.workspace
		plan, err := w.plan(t, EngineNative, Config{WorkspaceAccess: c.written})
		if err != nil {
			t.Fatal(err)
		}
		if plan.Access != c.want || (plan.WorkspaceDir == c.workspace) != (c.want == AccessReadWrite) {
			t.Errorf("%+v: %s, %s", c, plan.Access, plan.WorkspaceDir)
		}
	}
}

// silentEngine fails the test when it is asked anything.
type silentEngine struct {
	*fakeEngine
	t *testing.T
}

func (e silentEngine) List(context.Context) ([]State, error) {
	e.t.Error("it was asked what it has")
	return nil, nil
}

func (e silentEngine) Sweep(context.Context) error {
	e.t.Error("it was asked to sweep")
	return nil
}

func TestAFirstStartAsksNoEngineWhatIsLeft(t *testing.T) {
	w := newWorld(t)
	m := NewManager(ManagerOptions{
		Engines: []Engine{silentEngine{newFake("docker"), t}}, StateDir: w.state, Settings: w.settings(t, Config{}), NewHome: true,
	})
	defer m.Close()
	if err := m.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
}
