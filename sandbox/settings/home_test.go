package settings

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/toolward/toolward/sandbox"

	"github.com/toolward/toolward/place"
)

// homeOf is the mount of the home, the zero value without one.
func homeOf(p *Plan) sandbox.Mount {
	i := slices.IndexFunc(p.Spec.Mounts, func(m sandbox.Mount) bool { return m.Kind == sandbox.MountHome })
	if i < 0 {
		return sandbox.Mount{}
	}
	return p.Spec.Mounts[i]
}

// Programs find a home at the path of the real one, with nothing of it inside, and do not leave what is theirs in the project.
func TestHomeIsOfTheSandbox(t *testing.T) {
	w := newWorld(t)
	w.Write(t, filepath.Join(w.Home, ".ssh", "id"), "secret")
	plan, err := w.plan(t, sandbox.EngineNative, Config{Env: map[string]string{"GOTMPDIR": "/mine"}})
	if err != nil {
		t.Fatal(err)
	}
	home := homeOf(plan)
	if home.Target != w.Home || !home.Writable || !place.Within(home.Source, filepath.Join(w.State, "sandboxes", homesName, sandbox.Slug("agent:coder"))) {
		t.Fatalf("the home is %+v", home)
	}
	dir := home.Source
	if info, err := os.Stat(filepath.Join(dir, homeTmp)); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("no directory for temporary files: %v %v", info, err)
	}
	if _, err := os.Stat(filepath.Join(dir, ".ssh")); err == nil {
		t.Error("something of the real home is in it")
	}
	for name, want := range map[string]string{"HOME": w.Home, "GOTMPDIR": "/mine", "XDG_CACHE_HOME": ""} {
		if got := value(plan.Spec.Env, name); got != want {
			t.Errorf("%s=%s, want %q", name, got, want)
		}
	}
	for _, given := range []string{w.Home + "/.cache/x", "~/.cache/x"} {
		if location, err := plan.Table.Map(given, "", true, nil); err != nil || location.Host != filepath.Join(dir, ".cache/x") {
			t.Errorf("file tools: %+v, %v", location, err) // they have the rights of commands
		}
	}

	project := w.Workspace
	w.Workspace = filepath.Dir(w.Write(t, filepath.Join(w.Home, "other", "f"), "x"))
	if plan, err = w.plan(t, sandbox.EngineNative, Config{}); err != nil {
		t.Fatal(err)
	}
	if other := homeOf(plan).Source; other == dir || other == "" {
		t.Errorf("two workspaces share the home %q", other)
	}
	w.Workspace = project
	external := Config{Binds: []string{project + ":" + filepath.Dir(w.Home)}}
	if plan, err = w.plan(t, sandbox.EngineNative, external); err != nil || homeOf(plan).Source != "" {
		t.Errorf("something else stands there: %v, %v", homeOf(plan), err)
	}
	if plan, err = w.plan(t, sandbox.EngineNative, Config{EnvStrict: new(true)}); err != nil || value(plan.Spec.Env, "GOTMPDIR") != "" || value(plan.Spec.Env, "HOME") == "" {
		t.Errorf("only variables that every system has: %v %v", plan.Spec.Env, err)
	}
}

// The workspace is inside where it is on the machine, also below the home; only where that would hide something of the system,
// and for a private directory, it is at /workspace.
func TestWorkspaceStandsAtItsOwnPath(t *testing.T) {
	w := newWorld(t)
	for name, c := range map[string]struct {
		config Config
		want   string
	}{
		"its own":                   {Config{}, w.Workspace},
		"a private one":             {Config{WorkspaceAccess: "none"}, WorkspaceTarget},
		"written":                   {Config{Workdir: "/code/"}, "/code"},
		"memory would stand in it":  {Config{Tmpfs: []string{w.Workspace + "/tmp"}}, WorkspaceTarget},
		"written for containers":    {Config{Docker: DockerConfig{Workdir: "/image"}}, w.Workspace},
		"written for both, another": {Config{Workdir: "/code", Docker: DockerConfig{Workdir: "/image"}}, "/code"},
	} {
		plan, err := w.plan(t, sandbox.EngineNative, c.config)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if plan.Spec.Workdir != c.want || plan.Spec.Mounts[0].Target != c.want {
			t.Errorf("%s: %s, %+v, want %s", name, plan.Spec.Workdir, plan.Spec.Mounts[0], c.want)
		}
	}
	for _, dir := range []string{"/tmp", "/var", "/usr", "/"} {
		if got := standsAtItself(dir, "/home/a", nil); got != WorkspaceTarget {
			t.Errorf("%s stands at %s", dir, got)
		}
	}
	w.Workspace = filepath.Dir(w.Write(t, filepath.Join(w.Home, "src", "shop", "f"), "x"))
	plan, err := w.plan(t, sandbox.EngineNative, Config{})
	if err != nil || plan.Spec.Workdir != w.Workspace {
		t.Fatalf("%v, %v", plan, err)
	}
	location, err := plan.Table.Map(w.Workspace+"/f", "", true, Host)
	if err != nil || location.Inside != w.Workspace+"/f" || location.Host != w.Workspace+"/f" || location.Mount != sandbox.MountWorkspace {
		t.Errorf("%+v, %v", location, err)
	}
	// What lies beside it in the real home is not there: the path is one of the sandbox's own home.
	if location, err = plan.Table.Map(w.Home+"/src/other", "", false, Host); err != nil || location.Mount != sandbox.MountHome || place.Within(location.Host, w.Home+"/src") {
		t.Errorf("%+v, %v", location, err)
	}
	// Calls are judged before the home is made: that a directory leads to the workspace is known without it.
	if _, above, ok := plan.Table.Find(w.Home + "/src"); !above || !ok {
		t.Errorf("what lies above the workspace: %v %v", above, ok)
	}
	if err := os.Symlink(w.Workspace, w.Home+"/link"); err != nil {
		t.Fatal(err)
	}
	if location, err = plan.Table.Map(w.Home+"/link/f", "", false, Host); err != nil || location.Inside != w.Workspace+"/f" {
		t.Errorf("through a link of the machine: %+v, %v", location, err)
	}
}

// A command can move the directories above its workspace away and put a link there. The next start has a directory again.
func TestWhatStandsInTheWayOfTheWorkspaceGoes(t *testing.T) {
	w := newWorld(t)
	w.Workspace = filepath.Dir(w.Write(t, filepath.Join(w.Home, "src", "shop", "f"), "x"))
	plan, err := w.plan(t, sandbox.EngineNative, Config{})
	if err != nil {
		t.Fatal(err)
	}
	outside := w.Write(t, filepath.Join(w.Home, "kept", "f"), "x")
	src := filepath.Join(homeOf(plan).Source, "src")
	if err := os.RemoveAll(src); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Dir(outside), src); err != nil {
		t.Fatal(err)
	}
	if _, err = w.plan(t, sandbox.EngineNative, Config{}); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Lstat(filepath.Join(src, "shop")); err != nil || !info.IsDir() {
		t.Errorf("%v, %v", info, err)
	}
	if left, err := os.ReadDir(filepath.Dir(outside)); err != nil || len(left) != 1 {
		t.Errorf("something was made where the link leads: %v, %v", left, err)
	}
}

// What people are told by programs inside is theirs: name, shell, language and time. An image knows no locales but its own.
func TestProgramsKnowWhoseMachineItIs(t *testing.T) {
	w := newWorld(t)
	around := w.around()
	around.Person = Person{Name: "ann", Shell: "/bin/bash", Locale: []Variable{{"LANG", "de_DE.UTF-8"}, {"TZ", "Europe/Berlin"}}}
	settings, problems := Compile(Configuration{}, around)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	for engine, lang := range map[string]string{sandbox.EngineNative: "de_DE.UTF-8", sandbox.EngineDocker: "C.UTF-8"} {
		q := Request{Agent: "coder", Session: "agent:coder:x", Workspace: w.Workspace}
		plan, err := settings.For("coder").Spec(t.Context(), Site{Engine: engine}, q, nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(plan.Close)
		for name, want := range map[string]string{"USER": "ann", "SHELL": "/bin/bash", "LANG": lang, "TZ": "Europe/Berlin"} {
			if got := value(plan.Spec.Env, name); got != want {
				t.Errorf("%s: %s=%s, want %s", engine, name, got, want)
			}
		}
		if plan.Spec.Account != (sandbox.Account{Name: "ann", Home: w.Home, Shell: "/bin/bash"}) {
			t.Errorf("%s: %+v", engine, plan.Spec.Account)
		}
	}
}

// value is that of a variable; the last one counts.
func value(env []string, name string) (v string) {
	for _, entry := range env {
		if rest, ok := strings.CutPrefix(entry, name+"="); ok {
			v = rest
		}
	}
	return v
}

func TestAHomeOfAnotherUserIsBegunAnew(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("not run: only root gives files to others")
	}
	dir := filepath.Join(t.TempDir(), "homes", "a", "b")
	mine := filepath.Join(dir, "mine")
	for _, c := range []struct {
		user sandbox.User
		kept bool
	}{{sandbox.User{UID: 1234, GID: 1234}, false}, {sandbox.User{UID: 1234, GID: 1234}, true}, {sandbox.User{UID: 1235, GID: 1235}, false}} {
		if err := prepareHome(dir, c.user, nil); err != nil {
			t.Fatal(err)
		}
		if info, err := os.Stat(dir); err != nil || !belongs(info, c.user) {
			t.Errorf("%+v: %v, %v", c.user, info, err)
		}
		if _, err := os.Stat(mine); (err == nil) != c.kept {
			t.Errorf("%+v: what was in it: %v", c.user, err)
		}
		if err := os.WriteFile(mine, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
