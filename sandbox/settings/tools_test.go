package settings

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/toolward/toolward/sandbox"
	"github.com/toolward/toolward/sandbox/task"
	"github.com/toolward/toolward/sandbox/toolchain"
)

// toolsWorld is a world whose home has toolchains.
func toolsWorld(t *testing.T) (*world, Surroundings) {
	t.Helper()
	w := newWorld(t)
	for _, name := range []string{".pyenv/shims/python3", ".pyenv/versions/3/pip.conf", ".nvm/bin/node", ".ssh/id"} {
		w.Write(t, filepath.Join(w.Home, name), "x")
	}
	around := w.around()
	around.Tools = toolchain.Detect(toolchain.Machine{Home: w.Home, Path: w.Home + "/.pyenv/shims:/usr/bin:" + w.Home + "/.nvm/bin:/srv/bin", Getenv: func(string) string { return "" }})
	return w, around
}

func toolPlan(t *testing.T, w *world, around Surroundings, site Site, c Config) *Plan {
	t.Helper()
	settings, problems := Compile(Configuration{Defaults: Defaults{Config: c}}, around)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	plan, err := settings.For("coder").Spec(t.Context(), site, Request{Agent: "coder", Session: "agent:coder:x", Workspace: w.Workspace}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(plan.Close)
	return plan
}

func (p *Plan) shownTools() (shown []string) {
	for _, m := range p.Spec.Mounts {
		if m.Kind == sandbox.MountTools && !m.Writable && m.Source == m.Target && m.Pinned != nil {
			shown = append(shown, m.Source)
		}
	}
	slices.Sort(shown)
	return shown
}

func TestToolchainsAreShownReadOnly(t *testing.T) {
	w, around := toolsWorld(t)
	native := Site{Engine: sandbox.EngineNative}
	plan := toolPlan(t, w, around, native, Config{})
	if got := plan.shownTools(); !slices.Equal(got, []string{w.Home + "/.nvm", w.Home + "/.pyenv"}) {
		t.Errorf("shown: %q", got)
	}
	search := strings.Split(value(plan.Spec.Env, "PATH"), ":")
	if want := []string{w.Home + "/.pyenv/shims", "/usr/bin", w.Home + "/.nvm/bin"}; !slices.Equal(search[:3], want) || slices.Contains(search, "/srv/bin") || !slices.Contains(search, "/usr/local/go/bin") {
		t.Errorf("PATH is %q", search)
	}
	hidden := slices.ContainsFunc(plan.Spec.Mounts, func(m sandbox.Mount) bool {
		text, err := os.ReadFile(m.Source)
		return m.Target == w.Home+"/.pyenv/versions/3/pip.conf" && !m.Writable && err == nil && string(text) == "\n"
	})
	if !hidden {
		t.Errorf("credentials are not hidden: %+v", plan.Spec.Mounts)
	}
	if docker := toolPlan(t, w, around, Site{Engine: sandbox.EngineDocker}, Config{}); !strings.HasPrefix(value(docker.Spec.Env, "PATH"), task.DefaultPath+":"+w.Home) || len(docker.shownTools()) != 2 {
		t.Errorf("in containers: %q %s", docker.shownTools(), value(docker.Spec.Env, "PATH"))
	}
	for name, c := range map[string]struct {
		config ToolchainsConfig
		want   []string
	}{
		"one struck out":         {ToolchainsConfig{Without: []string{"pyenv"}}, []string{w.Home + "/.nvm"}},
		"one struck out by path": {ToolchainsConfig{Without: []string{w.Home + "/.nvm"}}, []string{w.Home + "/.pyenv"}},
		"none":                   {ToolchainsConfig{Without: []string{"*"}}, nil},
		"another":                {ToolchainsConfig{Without: []string{"*"}, With: []string{filepath.Dir(w.Home) + "/tools"}}, []string{filepath.Dir(w.Home) + "/tools"}},
	} {
		w.Write(t, filepath.Dir(w.Home)+"/tools/bin/x", "x")
		if plan := toolPlan(t, w, around, native, Config{Toolchains: c.config}); !slices.Equal(plan.shownTools(), c.want) {
			t.Errorf("%s: %q, want %q", name, plan.shownTools(), c.want)
		}
	}
	for name, c := range map[string]ToolchainsConfig{
		"keys": {With: []string{w.Home + "/.ssh"}}, "the home": {With: []string{w.Home}}, "Toolward's": {With: []string{w.State}},
		"the system": {With: []string{"/usr"}}, "relative": {With: []string{"tools"}}, "a name that is none": {Without: []string{"nvmm"}},
	} {
		if _, problems := Compile(Configuration{Defaults: Defaults{Config: Config{Toolchains: c}}}, around); len(problems) != 1 {
			t.Errorf("%s: %v", name, problems)
		}
	}
}

// What was a toolchain when it was looked for may be a link to the keys by now: an agent of the machine has put it there.
func TestToolchainsThatBecameLinksAreLeftOut(t *testing.T) {
	w, around := toolsWorld(t)
	if err := os.Rename(w.Home+"/.nvm", w.Home+"/.nvm.old"); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(".ssh", w.Home+"/.nvm"); err != nil {
		t.Fatal(err)
	}
	plan := toolPlan(t, w, around, Site{Engine: sandbox.EngineNative}, Config{})
	if got := plan.shownTools(); !slices.Equal(got, []string{w.Home + "/.pyenv"}) || len(plan.Left) != 1 || !strings.Contains(plan.Left[0], "leads to "+w.Home+"/.ssh") {
		t.Errorf("shown: %q, left out: %q", got, plan.Left)
	}
	// A record that names what sandboxes must not see, whoever has written it there, shows nothing of it.
	around.Tools.Dirs = append(around.Tools.Dirs, toolchain.Dir{Tool: "go", Path: w.Home + "/.ssh"}, toolchain.Dir{Tool: "go", Path: w.State}, toolchain.Dir{Tool: "go", Path: w.Home}, toolchain.Dir{Tool: "go", Path: "/etc"})
	if got := toolPlan(t, w, around, Site{Engine: sandbox.EngineNative}, Config{}).shownTools(); !slices.Equal(got, []string{w.Home + "/.pyenv"}) {
		t.Errorf("shown: %q", got)
	}
	// Where nothing can be mounted, nothing can be hidden.
	if got := toolPlan(t, w, around, Site{Engine: sandbox.EngineNative, InPlace: true}, Config{}); len(got.shownTools()) != 0 {
		t.Errorf("in place: %q, left out: %q", got.shownTools(), got.Left)
	}
}

func TestAgentsStrikeOutAsWell(t *testing.T) {
	w, around := toolsWorld(t)
	settings, problems := Compile(Configuration{
		Defaults: Defaults{Config: Config{Toolchains: ToolchainsConfig{Without: []string{"nvm"}}}},
		Agents:   []AgentConfig{{"coder", Config{Toolchains: ToolchainsConfig{Without: []string{"pyenv"}}}}, {"other", Config{Toolchains: ToolchainsConfig{Without: []string{}}}}},
	}, around)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	for agent, want := range map[string]int{"coder": 0, "other": 1} {
		layout, err := settings.For(agent).Layout(Site{Engine: sandbox.EngineNative}, Request{Agent: agent, Session: "agent:" + agent + ":x", Workspace: w.Workspace})
		if err != nil || len(layout.Tools) != want {
			t.Errorf("%s: %+v, %v", agent, layout, err)
		}
	}
}

// What the machine has fetched is read, and what a sandbox adds is its own: nothing of it is written back.
func TestCachesAreReadAndNotWritten(t *testing.T) {
	w, around := toolsWorld(t)
	modules := w.Home + "/go/pkg/mod"
	w.Write(t, modules+"/cache/download/x", "x")
	w.Write(t, w.Home+"/.npm/_cacache/index", "x")
	around.Tools.Caches = []toolchain.Dir{{Tool: toolchain.GoModules, Path: modules}, {Tool: "npm-cache", Path: w.Home + "/.npm/_cacache"}, {Tool: "go-build", Path: w.Home + "/.ssh"}}
	around.Tools.Env = map[string]string{"GOPROXY": "https://proxy.example", "GOFLAGS": "-v"}
	caches := func(p *Plan) (list []string) {
		for _, m := range p.Spec.Mounts {
			if m.Kind == sandbox.MountCache {
				if m.Writable || m.Pinned == nil {
					t.Errorf("%+v", m)
				}
				list = append(list, m.Source+" "+m.Target+map[bool]string{true: " layered"}[m.Layer != ""])
			}
		}
		return list
	}
	native := toolPlan(t, w, around, Site{Engine: sandbox.EngineNative}, Config{})
	if got, want := caches(native), []string{modules + " " + modules + " layered", w.Home + "/.npm/_cacache " + w.Home + "/.npm/_cacache layered"}; !slices.Equal(got, want) {
		t.Errorf("native: %q, want %q", got, want)
	}
	if value(native.Spec.Env, "GOPROXY") != "https://proxy.example" || value(native.Spec.Env, "GOFLAGS") != "-v" {
		t.Errorf("native: %q", native.Spec.Env)
	}
	for site, want := range map[Site]string{
		{Engine: sandbox.EngineDocker}:                "/var/cache/machine/go",
		{Engine: sandbox.EngineNative, InPlace: true}: modules + "/cache/download",
	} {
		plan := toolPlan(t, w, around, site, Config{})
		if got := caches(plan); !slices.Equal(got, []string{modules + "/cache/download " + want}) {
			t.Errorf("%+v: %q", site, got)
		}
		if value(plan.Spec.Env, "GOPROXY") != "file://"+want+",https://proxy.example" || value(plan.Spec.Env, "GOFLAGS") != "-v -modcacherw" {
			t.Errorf("%+v: %q", site, plan.Spec.Env)
		}
	}
	if got := caches(toolPlan(t, w, around, Site{Engine: sandbox.EngineNative}, Config{Toolchains: ToolchainsConfig{Without: []string{"npm-cache"}}})); len(got) != 1 {
		t.Errorf("one struck out: %q", got)
	}
	if err := os.RemoveAll(w.Home + "/.npm"); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(w.Home+"/.npm", 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("../.ssh", w.Home+"/.npm/_cacache"); err != nil {
		t.Fatal(err)
	}
	if plan := toolPlan(t, w, around, Site{Engine: sandbox.EngineNative}, Config{}); len(caches(plan)) != 1 || len(plan.Left) != 1 {
		t.Errorf("one that became a link: %q, %q", caches(plan), plan.Left)
	}
}
