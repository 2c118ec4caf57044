package settings

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/toolward/toolward/sandbox"

	"github.com/toolward/toolward/sandbox/task"
)

// What must not be seen must not be seen where it really is, either: keys are often links to a directory of dotfiles.
func TestBindsOfWhatLinksLeadTo(t *testing.T) {
	rules := BindRules{
		Home: "/home/gw", StateDir: "/home/gw/.toolward", WorkspaceRoot: "/home/gw/.toolward/sandboxes",
		Files: links{"/home/gw/.ssh": "/data/dot/ssh", "/home/gw/.toolward": "/data/toolward", "/var/lib/docker": "/data/docker"},
	}
	for source, want := range map[string]sandbox.Code{
		"/data/dot/ssh":           CodeTargets,
		"/data/dot/ssh/id":        CodeTargets,
		"/data/dot":               CodeCovers,
		"/data":                   CodeCovers,
		"/data/docker/x":          CodeTargets,
		"/data/toolward/state.db": CodeTargets,
		"/data/dotfiles":          "",
	} {
		if _, err := rules.Validate([]string{source + ":/x"}); sandbox.CodeOf(err) != want {
			t.Errorf("%s: %v, want %q", source, err, want)
		}
	}
}

// A home that is not an absolute path may be anywhere, and so may the keys in it.
func TestNoBindsWithARelativeHome(t *testing.T) {
	for name, rules := range map[string]BindRules{
		"home":          {Home: "gw", StateDir: "/var/lib/toolward"},
		"another home":  {Home: "/home/gw", OtherHomes: []string{"./ann"}, StateDir: "/var/lib/toolward"},
		"of root":       {Home: "/root", OtherHomes: []string{"../root"}, StateDir: "/var/lib/toolward"},
		"Toolward's":    {Home: "/home/gw", StateDir: ".toolward"},
		"and a private": {Home: "/home/gw", StateDir: ".toolward", WorkspaceRoot: ".toolward/sandboxes"},
	} {
		rules.Files = links{}
		if _, err := rules.Validate([]string{"/srv/gw:/x"}); sandbox.CodeOf(err) != CodeTargets {
			t.Errorf("%s: %v", name, err)
		}
		if code, _ := rules.blockedWorkspace("/root/project"); code != CodeTargets {
			t.Errorf("%s, a workspace: %q", name, code)
		}
	}
}

// HOME may name another directory than the one where the user's keys are.
func TestBindsOfTheHomeOfTheAccount(t *testing.T) {
	around := Surroundings{StateDir: "/var/lib/toolward", Home: "/var/lib/toolward", OtherHomes: []string{"/home/ann"}, Files: links{}}
	for source, want := range map[string]sandbox.Code{
		"/home/ann/.ssh/id": CodeTargets, "/home/ann": CodeCovers, "/home/ann/project": "", "/var/lib/toolward/.aws": CodeTargets,
	} {
		_, problems := Compile(Configuration{Defaults: Defaults{Config: Config{Binds: []string{source + ":/x"}}}}, around)
		if (len(problems) > 0) != (want != "") || want != "" && problems[0].Code != want {
			t.Errorf("bind of %s: %v, want %q", source, problems, want)
		}
		_, problems = Compile(Configuration{Defaults: Defaults{Config: Config{WorkspaceRoot: source}}}, around)
		if (len(problems) > 0) != (want != "") {
			t.Errorf("private directories below %s: %v", source, problems)
		}
	}
	root := Surroundings{StateDir: "/srv/state", Home: "/srv/state", OtherHomes: []string{"/root"}, Files: links{}}
	settings, _ := Compile(Configuration{}, root)
	for workspace, ok := range map[string]bool{"/root/project": true, "/root": false, "/root/.ssh": false, "/root/.config": false, "/srv/state/.ssh": false} {
		_, err := settings.For("main").Layout(Site{Engine: sandbox.EngineNative}, Request{Agent: "main", Session: "agent:main:x", Workspace: workspace})
		if (err == nil) != ok {
			t.Errorf("workspace %s: %v", workspace, err)
		}
	}
}

// Nothing takes the place of the workspace unless that is asked for by name, wherever the workspace is.
func TestWhatWouldHideTheWorkspace(t *testing.T) {
	w := newWorld(t)
	inside := w.Write(t, filepath.Join(w.Workspace, "sub", "f"), "x")
	sub := filepath.Dir(inside)
	for _, test := range []struct {
		c    Config
		want sandbox.Code
	}{
		{Config{Docker: DockerConfig{Workdir: "/home/me", Binds: []string{sub + ":/home/me"}}}, CodeReservedTarget},
		{Config{Docker: DockerConfig{Workdir: "/home/me/", Binds: []string{sub + ":/home/me/x"}}}, CodeReservedTarget},
		{Config{Docker: DockerConfig{Workdir: "/home/me", Binds: []string{sub + ":/home/other"}}}, ""},
		{Config{Docker: DockerConfig{Workdir: "/home/me", Tmpfs: []string{"/home/me"}}}, sandbox.CodeConfig},
		{Config{Docker: DockerConfig{Workdir: "/home/me"}, Tmpfs: []string{"/home/me/tmp"}}, sandbox.CodeConfig},
		{Config{Docker: DockerConfig{Workdir: "/agent"}}, sandbox.CodeConfig},
		{Config{Docker: DockerConfig{Workdir: "/agent/x"}}, sandbox.CodeConfig},
		{Config{Tmpfs: []string{"/tmp:exec,noexec"}}, sandbox.CodeConfig},
		{Config{Tmpfs: []string{"/tmp:noexec,size=1m,exec"}}, sandbox.CodeConfig},
		{Config{Tmpfs: []string{"/tmp:noexec,noexec"}}, ""},
	} {
		_, problems := Compile(Configuration{Defaults: Defaults{Config: test.c}}, w.around())
		if (len(problems) > 0) != (test.want != "") || len(problems) > 0 && problems[0].Code != test.want {
			t.Errorf("%+v: %v, want %q", test.c.Docker, problems, test.want)
		}
	}
	// The workspace itself a second time: it would have two rights.
	again := Config{Binds: []string{w.Workspace + ":" + w.Workspace + ":ro"}, Docker: DockerConfig{AllowReservedTargets: new(true)}}
	if _, err := w.plan(t, sandbox.EngineDocker, again); sandbox.CodeOf(err) != sandbox.CodeConfig {
		t.Errorf("the workspace twice: %v", err)
	}
	// An agent's directory that all agents' file systems in memory would hide is found when it is made.
	settings, problems := Compile(Configuration{
		Defaults: Defaults{Config: Config{Tmpfs: []string{"/scratch"}}},
		Agents:   []AgentConfig{{"coder", Config{Docker: DockerConfig{Workdir: "/scratch"}}}},
	}, w.around())
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	q := Request{Agent: "coder", Session: "agent:coder:x", Workspace: w.Workspace}
	if plan, err := settings.For("coder").Spec(t.Context(), Site{Engine: sandbox.EngineDocker}, q, nil); sandbox.CodeOf(err) != sandbox.CodeConfig {
		t.Errorf("a file system in memory over the workspace: %v, %v", plan, err)
	}
}

// An agent's binds come behind those of all agents: two at one place are refused when the configuration is read.
func TestBindsOfAnAgentAndOfAll(t *testing.T) {
	all := Config{Binds: []string{"/srv/a:/a", "/srv/b:/b"}}
	for _, test := range []struct {
		own Config
		key string
	}{
		{Config{Binds: []string{"/srv/c:/c", "/srv/x:/a/"}}, "agents.list[1].sandbox.binds[1]"},
		{Config{Docker: DockerConfig{Binds: []string{"/srv/x:/b:ro"}}}, "agents.list[1].sandbox.docker.binds[0]"},
		{Config{Binds: []string{"/srv/c:/c"}}, ""},
		{Config{Scope: "shared", Binds: []string{"/srv/x:/a"}}, ""}, // they do not count
	} {
		_, problems := Compile(Configuration{Defaults: Defaults{Config: all}, Agents: []AgentConfig{{ID: "main"}, {"coder", test.own}}}, vectorSurroundings)
		if test.key == "" && len(problems) > 0 || test.key != "" && (len(problems) != 1 || problems[0].Key != test.key || problems[0].Code != CodeDuplicateTarget) {
			t.Errorf("%v %v: %v", test.own.Binds, test.own.Docker.Binds, problems)
		}
	}
}

// What is bound at the place of a file system in memory is there, with every engine.
func TestBindInThePlaceOfTmpfs(t *testing.T) {
	w := newWorld(t)
	sub := filepath.Dir(w.Write(t, filepath.Join(w.Workspace, "sub", "f"), "x"))
	plan, err := w.plan(t, sandbox.EngineDocker, Config{Binds: []string{sub + ":/var/tmp/"}})
	if err != nil {
		t.Fatal(err)
	}
	var targets []string
	for _, m := range plan.Spec.Tmpfs {
		targets = append(targets, m.Target)
	}
	if !slices.Equal(targets, []string{"/tmp", "/run"}) {
		t.Errorf("in memory are %q", targets)
	}
}

// Whoever writes to the directory of the hook decides about every call.
func TestNobodyReplacesToolwardsPrograms(t *testing.T) {
	around := Surroundings{
		StateDir: "/home/gw/.toolward", Home: "/home/gw", Programs: []string{"/home/gw/.cache/toolward", "/opt/tw/bin/toolward", "/home/gw/link/toolward-hook"},
		Files: links{"/srv/tools": "/opt/tw", "/home/gw/link": "/srv/hooks"},
	}
	for bind, want := range map[string]sandbox.Code{
		"/home/gw/.cache:/c": CodeCovers, "/home/gw/.cache:/c:ro": "", "/home/gw/.cache/toolward/bin:/c": CodeTargets, "/home/gw/.cache/pip:/c": "",
		"/opt/tw:/c": CodeCovers, "/opt/tw/bin/toolward:/c": CodeTargets, "/opt/tw:/c:ro": "", "/opt/tw/bin/toolward2:/c": "", "/opt/tw/share:/c": "",
		"/srv/tools/bin:/c": CodeCovers, "/srv/hooks:/c": CodeCovers,
	} {
		_, problems := Compile(Configuration{Defaults: Defaults{Config: Config{Binds: []string{bind}}}}, around)
		if (len(problems) > 0) != (want != "") || want != "" && problems[0].Code != want {
			t.Errorf("%s: %v, want %q", bind, problems, want)
		}
	}
	for access, ok := range map[string]bool{"rw": false, "ro": true, "none": true} {
		settings, problems := Compile(Configuration{Defaults: Defaults{Config: Config{WorkspaceAccess: access}}}, around)
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		for workspace, holds := range map[string]bool{"/opt/tw": true, "/opt/tw/src": false} {
			q := Request{Agent: "coder", Session: "agent:coder:x", Workspace: workspace}
			if _, err := settings.For("coder").Layout(Site{Engine: sandbox.EngineNative}, q); (err == nil) != (ok || !holds) {
				t.Errorf("workspace %s, %s: %v", workspace, access, err)
			}
		}
	}
}

// Where private directories are may be seen; what a directory that contains Toolward's home would free may not.
func TestWorkspaceRootFreesNothingElse(t *testing.T) {
	for root, allowed := range map[string]bool{
		"/home/gw/.toolward/sandboxes": true, "/home/gw/.toolward": false, "/home/gw": false, "/": false, "/srv/boxes": false, "": false,
	} {
		rules := BindRules{Home: "/home/gw", StateDir: "/home/gw/.toolward", WorkspaceRoot: root}
		if _, err := rules.Validate([]string{"/home/gw/.toolward/state.db:/x"}); sandbox.CodeOf(err) != CodeTargets {
			t.Errorf("with root %q, Toolward's home: %v", root, err)
		}
		if _, err := rules.Validate([]string{"/home/gw/.toolward/sandboxes/a:/x"}); (err == nil) != allowed {
			t.Errorf("with root %q, a private directory: %v", root, err)
		}
	}
}

func TestWorkspaceRootsThatAreWrong(t *testing.T) {
	around := Surroundings{StateDir: "/home/gw/.toolward", Home: "/home/gw", Files: links{"/srv/link": "/home/gw/.ssh", "/srv/boxes": "/data/boxes"}}
	for root, wrong := range map[string]bool{
		"/srv/boxes": false, "/home/gw/.toolward/sandboxes": false, "/home/gw/.toolward/sandboxes/more": false, "/home/gw/boxes": false,
		"/home/gw/.toolward": true, "/home/gw/.toolward/sandbox": true, "/home/gw": true, "/": true, "/etc/boxes": true, "/home/gw/.ssh": true,
		"/srv/link/x": true, "boxes": true, "/srv/../etc": true,
	} {
		_, problems := Compile(Configuration{Defaults: Defaults{Config: Config{WorkspaceRoot: root}}}, around)
		if (len(problems) > 0) != wrong {
			t.Errorf("%s: %v", root, problems)
		}
	}
}

// One directory at several places inside: binds are found before the workspace, and the first of them.
func TestHostPathsThatAreMountedTwice(t *testing.T) {
	mounts := Mounts(AccessReadWrite, "/workspace/", "/srv/a", "/srv/a", []Bind{{Source: "/srv/a", Target: "/b"}, {Source: "/srv/a", Target: "/longer"}})
	l, err := NewMountTable("/workspace/", mounts).Map("/srv/a/x", "", false, nil)
	if err != nil || l.Inside != "/b/x" || l.Writable || l.Mount != sandbox.MountBind {
		t.Errorf("%+v %v", l, err)
	}
	if l, err = NewMountTable("/workspace/", mounts).Map("y", "", true, nil); err != nil || l.Inside != "/workspace/y" || l.Relative != "y" {
		t.Errorf("%+v %v", l, err)
	}
}

// An agent must not get another user by writing it under the other key.
func TestUsersAreLoosenedUnderNoKey(t *testing.T) {
	neutral, docker := func(u string) Config { return Config{User: u} }, func(u string) Config { return Config{Docker: DockerConfig{User: u}} }
	for _, tt := range []struct {
		all, own Config
		wrong    bool
	}{
		{neutral("1000:1000"), docker("0:0"), true},
		{docker("1000:1000"), neutral("0:0"), true},
		{docker("1000:1000"), docker("0:0"), true},
		{neutral("1000:1000"), docker("1000"), false},
		{Config{}, docker("0:0"), false},
		{neutral("1000"), Config{}, false},
	} {
		_, problems := Compile(Configuration{Defaults: Defaults{Config: tt.all}, Agents: []AgentConfig{{"a", tt.own}}}, Surroundings{StateDir: "/s", Files: links{}})
		if (len(problems) > 0) != tt.wrong {
			t.Errorf("%+v: %v", tt, problems)
		}
	}
}

// Two agents never share settings or a sandbox because their ids look alike.
func TestAgentsWithSimilarIDs(t *testing.T) {
	for id, want := range map[string]string{
		"main-": "main-", "main": "main", " Main ": "main", "a_-b--": "a_-b--", "-a-": "a", "a.b": "a-b", "é": "main", "_x": "_x",
		strings.Repeat("a", 63) + "-": strings.Repeat("a", 63) + "-", strings.Repeat("a", 63) + "-b": strings.Repeat("a", 63) + "-",
	} {
		if got := AgentID(id); got != want {
			t.Errorf("%q: %q, want %q", id, got, want)
		}
	}
	settings, problems := Compile(Configuration{Agents: []AgentConfig{{"main", Config{Mode: "off"}}, {"main-", Config{Mode: "all"}}}}, vectorSurroundings)
	if len(problems) > 0 || settings.For("main").Mode != ModeOff || settings.For("main-").Mode != ModeAll {
		t.Errorf("%v, main- has mode %s", problems, settings.For("main-").Mode)
	}
	if ScopeKey(ScopeAgent, "agent:main-:x") != "agent:main-" {
		t.Error("main- uses the sandbox of main")
	}
	_, problems = Compile(Configuration{Agents: []AgentConfig{{ID: "main"}, {ID: "é"}, {ID: "Main"}, {ID: "coder"}, {ID: ""}}}, vectorSurroundings)
	var keys []string
	for _, p := range problems {
		keys = append(keys, p.Key)
	}
	if !slices.Equal(keys, []string{"agents.list[1].id", "agents.list[2].id"}) {
		t.Errorf("%v", problems)
	}
}

// Tools that write are there where something can be written.
func TestReadOnlySandboxes(t *testing.T) {
	for _, test := range []struct {
		c         Config
		workspace string
		readOnly  bool
	}{
		{Config{WorkspaceAccess: "ro"}, "/srv/project", true},
		{Config{WorkspaceAccess: "readonly", Binds: []string{"/srv/data:/data:ro"}}, "/srv/project", true},
		{Config{WorkspaceAccess: "ro", Binds: []string{"/srv/data:/data:ro", "/srv/out:/out"}}, "/srv/project", false},
		{Config{WorkspaceAccess: "ro", Docker: DockerConfig{Binds: []string{"/srv/out:/out"}}}, "/srv/project", false},
		{Config{WorkspaceAccess: "none"}, "/srv/project", false},
		{Config{}, "/srv/project", false}, // rw
	} {
		settings, problems := Compile(Configuration{Defaults: Defaults{Config: test.c}}, vectorSurroundings)
		if len(problems) > 0 || settings.For("coder").ReadOnly(test.workspace) != test.readOnly {
			t.Errorf("%s with %q: %v, want %v; %v", test.c.WorkspaceAccess, test.c.Binds, !test.readOnly, test.readOnly, problems)
		}
	}
}

// What commands are judged by is what they get.
func TestEnvironIsThatOfTheSandbox(t *testing.T) {
	w := newWorld(t)
	c := Config{Env: map[string]string{"A": "1", "MY_TOKEN": "t"}, Docker: DockerConfig{Env: map[string]string{"A": "2"}, Workdir: "/code"}}
	for _, engine := range []string{sandbox.EngineNative, sandbox.EngineDocker} {
		plan, err := w.plan(t, engine, c)
		if err != nil {
			t.Fatal(err)
		}
		want := append([]string{"PATH=" + task.DefaultPath, "HOME=" + w.Home}, plan.Spec.Env[1:]...)
		if !slices.Equal(plan.Environ, want) || !slices.Contains(want, map[string]string{sandbox.EngineNative: "A=1", sandbox.EngineDocker: "A=2"}[engine]) {
			t.Errorf("%s: %q, want %q", engine, plan.Environ, want)
		}
	}
}

// The gateway has one place for the control groups of all sandboxes, and it is one of the kernel.
func TestPlaceOfControlGroups(t *testing.T) {
	for dir, ok := range map[string]bool{
		"": true, "/sys/fs/cgroup/toolward": true, "/sys/fs/cgroup/a.slice/b.scope": true,
		"/sys/fs/cgroup": false, "/sys/fs/cgroup/": false, "/sys/fs/cgroup/../x": false, "/sys/fs/cgroupx/a": false, "toolward": false, "/sys/fs/cgroup/a/": false,
	} {
		_, problems := Compile(Configuration{Defaults: Defaults{Config: Config{Native: NativeConfig{Cgroup: dir}}}}, Surroundings{StateDir: "/nowhere"})
		if (len(problems) == 0) != ok {
			t.Errorf("%q: %v", dir, problems)
		}
		_, problems = Compile(Configuration{Agents: []AgentConfig{{"a", Config{Native: NativeConfig{Cgroup: dir}}}}}, Surroundings{StateDir: "/nowhere"})
		if (len(problems) == 0) != (dir == "") {
			t.Errorf("%q of an agent: %v", dir, problems)
		}
	}
	settings, _ := Compile(Configuration{Defaults: Defaults{Config: Config{Native: NativeConfig{Cgroup: "/sys/fs/cgroup/x"}}}}, Surroundings{StateDir: "/nowhere"})
	if r := settings.For("coder"); r.Cgroup != "/sys/fs/cgroup/x" || r.Sources["native.cgroup"].Key != "agents.defaults.sandbox.native.cgroup" {
		t.Errorf("%q, %+v", r.Cgroup, r.Sources["native.cgroup"])
	}
}
