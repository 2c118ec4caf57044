package settings

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/toolward/toolward/sandbox"

	"github.com/toolward/toolward/internal/gatetest"
)

// world is a home of the gateway and a workspace of an agent on a real disk.
type world struct{ *gatetest.World }

func newWorld(t *testing.T) *world { return &world{gatetest.NewWorld(t)} }

func (w *world) around() Surroundings {
	return Surroundings{StateDir: w.State, Home: w.Home, Instance: "test", Undecided: ModeNonMain}
}

func (w *world) settings(t *testing.T, c Config) *Settings {
	t.Helper()
	settings, problems := Compile(Configuration{Defaults: Defaults{Config: c}}, w.around())
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	return settings
}

func (w *world) plan(t *testing.T, engine string, c Config) (*Plan, error) {
	t.Helper()
	q := Request{Agent: "coder", Session: "agent:coder:x", Workspace: w.Workspace}
	plan, err := w.settings(t, c).For("coder").Spec(t.Context(), Site{Engine: engine}, q, nil)
	if plan != nil {
		t.Cleanup(plan.Close)
	}
	return plan, err
}

func TestPrivateWorkspaceIsSeeded(t *testing.T) {
	w := newWorld(t)
	w.Write(t, filepath.Join(w.Workspace, "AGENTS.md"), "be kind")
	w.Write(t, filepath.Join(w.Workspace, "TOOLS.md"), strings.Repeat("x", maxSeedFile+1))
	if err := os.Symlink(w.Write(t, filepath.Join(w.Home, "secret"), "s"), filepath.Join(w.Workspace, "SOUL.md")); err != nil {
		t.Fatal(err)
	}
	plan, err := w.plan(t, sandbox.EngineNative, Config{WorkspaceAccess: "none"})
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(w.State, "sandboxes", sandbox.Slug("agent:coder"))
	if plan.WorkspaceDir != dir || len(plan.Mounts()) != 2 || !plan.Spec.Mounts[0].Writable || plan.Spec.Mounts[0].Target != "/workspace" {
		t.Errorf("%q %+v", plan.WorkspaceDir, plan.Spec.Mounts)
	}
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v %v", info, err)
	}
	entries, _ := os.ReadDir(dir)
	if len(entries) != 1 || entries[0].Name() != "AGENTS.md" {
		t.Errorf("seeded: %v", entries)
	}
	w.Write(t, filepath.Join(dir, "AGENTS.md"), "mine")
	if _, err = w.plan(t, sandbox.EngineNative, Config{WorkspaceAccess: "none"}); err != nil {
		t.Fatal(err)
	}
	if got, _ := os.ReadFile(filepath.Join(dir, "AGENTS.md")); string(got) != "mine" {
		t.Errorf("a file of the sandbox was replaced by %q", got)
	}
	if os.Geteuid() == 0 && plan.Spec.User != (sandbox.User{UID: plainUser, GID: plainUser}) {
		t.Errorf("runs as %v", plan.Spec.User)
	}
}

func TestReadOnlyAccess(t *testing.T) {
	w := newWorld(t)
	plan, err := w.plan(t, sandbox.EngineNative, Config{WorkspaceAccess: "readonly"})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range plan.Mounts() {
		if m.Writable != (m.Kind == sandbox.MountHome) {
			t.Errorf("%s can be written to: %v", m.Target, m.Writable)
		}
		got = append(got, m.Target)
	}
	if !slices.Equal(got, []string{"/workspace", "/agent", w.Home}) || len(plan.Spec.Protected) != 0 {
		t.Errorf("%v %v", got, plan.Spec.Protected)
	}
}

func TestProtectedPathsAreFoundAtEveryDepth(t *testing.T) {
	w := newWorld(t)
	for _, name := range []string{".git/hooks/pre-commit", ".git/config", "a/b/vendored/.git/hooks/x", "a/.vscode/settings.json", ".envrc", "src/main.go", "cache/.git/hooks/x"} {
		w.Write(t, filepath.Join(w.Workspace, name), "x")
	}
	shown := filepath.Join(w.Workspace, "shown")
	w.Write(t, filepath.Join(shown, ".envrc"), "x")
	c := Config{WorkspaceAccess: "rw", Docker: DockerConfig{AllowReservedTargets: new(true)}, Binds: []string{shown + ":" + w.Workspace + "/cache:ro"}}
	plan, err := w.plan(t, sandbox.EngineNative, c)
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, name := range []string{".envrc", ".git/config", ".git/hooks", "a/.vscode", "a/b/vendored/.git/hooks", "shown/.envrc"} {
		want = append(want, w.Workspace+"/"+name)
	}
	if !slices.Equal(plan.Spec.Protected, want) {
		t.Errorf("got %q", plan.Spec.Protected)
	}
	c.FS.AllowProtected = new(true)
	if plan, err = w.plan(t, sandbox.EngineNative, c); err != nil || len(plan.Spec.Protected) != 0 {
		t.Errorf("%v %v", plan, err)
	}
}

func TestWorkspacesThatShowTooMuch(t *testing.T) {
	w := newWorld(t)
	for _, dir := range []string{"/", w.Home, filepath.Join(w.Home, ".ssh"), w.State, "/etc", filepath.Dir(w.Home), "rel"} {
		w.Workspace = dir
		if _, err := w.plan(t, sandbox.EngineNative, Config{WorkspaceAccess: "rw"}); sandbox.CodeOf(err) != sandbox.CodeConfig {
			t.Errorf("%s: %v", dir, err)
		}
	}
	w.Workspace = ""
	if _, err := w.plan(t, sandbox.EngineNative, Config{WorkspaceAccess: "rw"}); sandbox.CodeOf(err) != sandbox.CodeConfig {
		t.Errorf("no workspace: %v", err)
	}
	root := (&BindRules{Home: "/root", StateDir: "/root/.toolward"})
	for dir, want := range map[string]sandbox.Code{"/root/project": "", "/root": CodeTargets, "/root/.ssh/x": CodeTargets, "/root/.toolward": CodeTargets, "/root/.config": CodeTargets} {
		if code, _ := root.blockedWorkspace(dir); code != want {
			t.Errorf("%s: %q", dir, code)
		}
	}
}

func TestBindsAtRunTime(t *testing.T) {
	w := newWorld(t)
	outside := filepath.Dir(w.Write(t, filepath.Join(filepath.Dir(w.Home), "other", "f"), "x"))
	c := Config{Binds: []string{outside + ":/data:ro"}}
	if _, err := w.plan(t, sandbox.EngineNative, c); sandbox.CodeOf(err) != sandbox.CodeConfig || !strings.Contains(err.Error(), "dangerouslyAllowExternalBindSources") {
		t.Errorf("outside: %v", err)
	}
	c.Docker.AllowExternalSources = new(true)
	plan, err := w.plan(t, sandbox.EngineNative, c)
	if err != nil {
		t.Fatal(err)
	}
	m := plan.Spec.Mounts[len(plan.Spec.Mounts)-2]
	if m.Kind != sandbox.MountBind || m.Source != outside || m.Pinned == nil {
		t.Errorf("%+v", m)
	}
	c.Binds = []string{outside + "/missing:/data:ro"}
	if _, err := w.plan(t, sandbox.EngineNative, c); sandbox.CodeOf(err) != sandbox.CodeConfig || !strings.Contains(err.Error(), "does not exist") {
		t.Errorf("missing: %v", err)
	}
	if err := os.Symlink(filepath.Join(w.Home, ".ssh"), filepath.Join(outside, "keys")); err != nil {
		t.Fatal(err)
	}
	// When the configuration is read it is refused as well.
	_, problems := Compile(Configuration{Defaults: Defaults{Config: Config{Binds: []string{outside + "/keys:/data:ro"}}}}, w.around())
	if len(problems) != 1 || problems[0].Code != CodeTargets || problems[0].Key != "agents.defaults.sandbox.binds[0]" {
		t.Errorf("%+v", problems)
	}
}

// What stands at the path when it is opened is what was judged, or it is refused.
func TestPinRefusesWhatWasSwapped(t *testing.T) {
	w := newWorld(t)
	dir := filepath.Join(w.Workspace, "data")
	if err := os.MkdirAll(filepath.Join(dir, "deep"), 0o755); err != nil {
		t.Fatal(err)
	}
	pinned, err := pin(filepath.Join(dir, "deep"))
	if err != nil {
		t.Fatal(err)
	}
	defer pinned.Close()
	if err := os.Rename(dir, dir+"2"); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(w.Home, dir); err != nil {
		t.Fatal(err)
	}
	if f, err := pin(filepath.Join(dir, "deep")); sandbox.CodeOf(err) != sandbox.CodeChanged && !os.IsNotExist(err) {
		t.Errorf("%v %v", f, err)
	}
	if f, err := pin(dir); sandbox.CodeOf(err) != sandbox.CodeChanged {
		t.Errorf("%v %v", f, err)
	}
}

func TestNetworkOfTheEngine(t *testing.T) {
	w := newWorld(t)
	bridge := Config{Docker: DockerConfig{Network: new("bridge")}}
	if _, err := w.plan(t, sandbox.EngineNative, bridge); sandbox.CodeOf(err) != sandbox.CodeConfig {
		t.Errorf("native with a bridge: %v", err)
	}
	for written, want := range map[string]string{" Bridge ": "bridge", "EGRESS": "none", "None": "none", "My-Net": "My-Net"} {
		settings := w.settings(t, Config{Docker: DockerConfig{Network: new(written)}})
		p, err := settings.For("coder").Preview(t.Context(), Request{Agent: "coder", Session: "agent:coder:x", Workspace: w.Workspace})
		if err != nil || string(p.Spec.Network.Mode) != want {
			t.Errorf("the command line for %q: %+v %v", written, p, err)
		}
	}
	if plan, err := w.plan(t, sandbox.EngineDocker, bridge); err != nil || plan.Spec.Network.Mode != sandbox.NetworkBridge {
		t.Errorf("docker with a bridge: %v", err)
	}
	if _, err := w.plan(t, sandbox.EngineNative, Config{Network: new("egress")}); sandbox.CodeOf(err) != sandbox.CodeUnavailable {
		t.Errorf("egress without a proxy: %v", err)
	}
}

func TestHashes(t *testing.T) {
	w := newWorld(t)
	plan := func(c Config) *Plan {
		t.Helper()
		p, err := w.plan(t, sandbox.EngineNative, c)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	first, again := plan(Config{}), plan(Config{})
	if first.Spec.Hash != again.Spec.Hash || len(first.Spec.Hash) != 64 {
		t.Errorf("%q %q", first.Spec.Hash, again.Spec.Hash)
	}
	limits := plan(Config{Limits: LimitsConfig{Memory: `"1g"`}})
	if limits.Spec.Hash == first.Spec.Hash || limits.SecurityHash != first.SecurityHash {
		t.Error("a limit is part of what a sandbox is, not of what confines")
	}
	for name, c := range map[string]Config{
		"access": {WorkspaceAccess: "ro"}, "env": {Env: map[string]string{"A": "1"}}, "ptrace": {AllowPtrace: new(true)},
		"user": {User: "1234:1234"}, "degrade": {DegradeOK: []string{"cgroup"}},
	} {
		if p := plan(c); p.SecurityHash == first.SecurityHash || p.Spec.Hash == first.Spec.Hash {
			t.Errorf("%s does not count as what confines", name)
		}
	}
}

func TestSettingsForOneEngineAndForAll(t *testing.T) {
	w := newWorld(t)
	c := Configuration{
		Defaults: Defaults{Config: Config{
			Limits: LimitsConfig{Memory: `"1g"`, Pids: new(int64(100))}, Env: map[string]string{"A": "all", "B": "all"}, Network: new("none"),
			Docker: DockerConfig{Memory: `"2g"`, Env: map[string]string{"A": "docker"}, Network: new("bridge")},
		}},
		Agents: []AgentConfig{{ID: "Quiet", Config: Config{Network: new("none")}}},
	}
	settings, problems := Compile(c, w.around())
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	r := settings.For("coder")
	docker, native := r.view(sandbox.EngineDocker), r.view(sandbox.EngineNative)
	if docker.Limits.Memory.Text() != "2g" || native.Limits.Memory.Text() != "1g" || *docker.Limits.Pids != 100 {
		t.Errorf("%+v %+v", docker.Limits, native.Limits)
	}
	if docker.Env["A"] != "docker" || docker.Env["B"] != "all" || native.Env["A"] != "all" {
		t.Errorf("%v %v", docker.Env, native.Env)
	}
	if docker.Network != "bridge" || native.Network != "none" {
		t.Errorf("%q %q", docker.Network, native.Network)
	}
	// What an agent says for every engine stands before what all agents have for docker.
	if quiet := settings.For("quiet"); quiet.view(sandbox.EngineDocker).Network != "none" || quiet.Sources["docker.network"] != (Source{FromAgent, "agents.list[].sandbox.network"}) {
		t.Errorf("%q %v", quiet.view(sandbox.EngineDocker).Network, quiet.Sources["docker.network"])
	}
	// A limit that was only written for docker is not lost with another engine.
	only := w.settings(t, Config{Docker: DockerConfig{Memory: `"3g"`}}).For("coder")
	if got := only.view(sandbox.EngineNative).Limits.Memory.Text(); got != "3g" {
		t.Errorf("got %q", got)
	}
}

func TestAgentsLoosenNothing(t *testing.T) {
	w := newWorld(t)
	all := Config{Docker: DockerConfig{
		ReadOnlyRoot: new(true), CapDrop: []string{"ALL"}, SeccompProfile: "/p.json", AppArmorProfile: "a", User: "1:1",
	}}
	own := Config{Docker: DockerConfig{
		ReadOnlyRoot: new(false), CapDrop: []string{"NET_RAW"}, SeccompProfile: "/q.json", AppArmorProfile: "b", User: "0:0",
	}}
	c := Configuration{Defaults: Defaults{Config: all}, Agents: []AgentConfig{{ID: "coder", Config: own}}}
	_, problems := Compile(c, w.around())
	var keys []string
	for _, p := range problems {
		keys = append(keys, strings.TrimPrefix(p.Key, "agents.list[0].sandbox.docker."))
	}
	slices.Sort(keys)
	if !slices.Equal(keys, []string{"apparmorProfile", "capDrop", "readOnlyRoot", "seccompProfile", "user"}) {
		t.Errorf("%v", problems)
	}
	c.Defaults.AllowAgentLoosening = true
	if _, problems = Compile(c, w.around()); len(problems) > 0 {
		t.Errorf("allowed: %v", problems)
	}
	c.Defaults = Defaults{}
	if _, problems = Compile(c, w.around()); len(problems) > 0 {
		t.Errorf("nothing is written for all: %v", problems)
	}
}

func TestAnAgentWithAWorkspaceWorksInIt(t *testing.T) {
	w := newWorld(t)
	for _, c := range []struct {
		written, workspace string
		want               Access
	}{
		{"", w.Workspace, AccessReadWrite}, {"", "", AccessNone}, {"none", w.Workspace, AccessNone}, {"ro", w.Workspace, AccessReadOnly},
	} {
		w.Workspace = c.workspace
		plan, err := w.plan(t, sandbox.EngineNative, Config{WorkspaceAccess: c.written})
		if err != nil {
			t.Fatal(err)
		}
		if plan.Access != c.want || (plan.WorkspaceDir == c.workspace) != (c.want == AccessReadWrite) {
			t.Errorf("%+v: %s, %s", c, plan.Access, plan.WorkspaceDir)
		}
	}
}
