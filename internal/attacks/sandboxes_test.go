package attacks

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"strings"
	"testing"

	"github.com/toolward/toolward/sandbox/settings"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/builtin"
	"github.com/toolward/toolward/config"
	"github.com/toolward/toolward/sandbox"
	"github.com/toolward/toolward/sandbox/docker"
	"github.com/toolward/toolward/sandbox/fleet"
)

// sandboxAround is what the configuration of a world does not say about its sandboxes.
func (w *world) sandboxAround() settings.Surroundings {
	return settings.Surroundings{StateDir: w.stateDir, Home: w.at("/home/dev"), Instance: w.t.Name(), FoldCase: w.foldCase}
}

// sandboxSettings are those of a configuration that was checked.
func (w *world) sandboxSettings(loaded *config.Loaded) *settings.Settings {
	compiled, problems := settings.Compile(loaded.File.Sandbox(), w.sandboxAround())
	if len(problems) > 0 {
		w.t.Fatal(problems)
	}
	return compiled
}

// openSandboxes opens what makes sandboxes; compile tells it the settings.
func (w *world) openSandboxes() {
	compiled, _ := settings.Compile(settings.Configuration{}, w.sandboxAround())
	w.sandboxes = fleet.NewManager(fleet.ManagerOptions{Engines: w.engines, StateDir: w.stateDir, Settings: compiled})
	must(w.t, w.sandboxes.Start(context.Background()))
}

// closeSandboxes removes what the world's calls have made.
func (w *world) closeSandboxes() {
	ctx := context.Background()
	made, err := w.sandboxes.List(ctx)
	if err != nil && sandbox.CodeOf(err) != sandbox.CodeUnavailable {
		w.t.Error(err)
	}
	for _, box := range made {
		if err := w.sandboxes.Remove(ctx, box.Name, "the case is over"); err != nil {
			w.t.Error(err)
		}
	}
	w.sandboxes.Close()
}

// confined tells the policy whose sessions are sandboxed, as the daemon does.
func (w *world) confined(c toolward.Caller) (yes, readOnly bool) {
	yes, _ = w.sandboxes.Sandboxed(c.Agent, string(c.Session))
	return yes, yes && w.sandboxes.Settings().For(c.Agent).Access == settings.AccessReadOnly
}

// request is whose sandbox the main agent uses.
func (w *world) request() settings.Request {
	caller, key := w.main("s1")
	return settings.Request{Agent: caller.Agent, Session: string(key), Workspace: caller.Workspace}
}

// Confinement is the sandbox of a call, as the daemon finds it.
func (w *world) Confinement(ctx context.Context, call *toolward.Call) (*builtin.Confinement, error) {
	request := settings.Request{Agent: call.Caller.Agent, Session: string(call.Session), Workspace: call.Caller.Workspace}
	if yes, _ := w.sandboxes.Sandboxed(request.Agent, request.Session); !yes {
		return nil, nil
	}
	layout, err := w.sandboxes.Layout(ctx, request)
	if err != nil {
		return nil, err
	}
	return &builtin.Confinement{
		Workdir: layout.Workdir,
		Mounts:  layout.Mounts(), FoldCase: layout.FoldCase,
		Env: w.sandboxes.Settings().For(request.Agent).EnvRules(), Environ: layout.Environ,
		Acquire: func(ctx context.Context, _ string) (sandbox.Handle, func(), error) {
			lease, err := w.sandboxes.Acquire(ctx, request)
			if err != nil {
				return nil, nil, err
			}
			return lease, lease.Release, nil
		},
	}, nil
}

// sandboxed is a world with a configuration in which all sessions are sandboxed, and which sets value under keys of the
// sandbox object of all agents, or of one.
func (w *world) sandboxed(ofAgent bool, value any, keys ...string) {
	w.config = map[string]any{}
	for key, value := range map[string]any{"mode": "all", "scope": "session", "workspaceAccess": "rw", "degradeOk": []any{"cgroup"}} {
		w.set(value, "agents", "defaults", "sandbox", key)
	}
	if !ofAgent {
		w.set(value, append([]string{"agents", "defaults", "sandbox"}, keys...)...)
		return
	}
	own := map[string]any{}
	at := own
	for _, key := range keys[:len(keys)-1] {
		next := map[string]any{}
		at[key], at = next, next
	}
	at[keys[len(keys)-1]] = value
	w.set([]any{map[string]any{"id": "main", "sandbox": own}}, "agents", "list")
}

// outcomeOfConfig says what comes of a configuration: whether it is read, and then what either engine would be given.
func (w *world) outcomeOfConfig() (o outcome) {
	defer func() { o.took = w.watch.longest }()
	var loaded *config.Loaded
	var err error
	w.watch.time(func() { loaded, err = w.load() })
	if err != nil {
		return outcome{answer: denied, why: err.Error()}
	}
	resolved := w.sandboxSettings(loaded).For("main")
	for _, engine := range []string{sandbox.EngineNative, sandbox.EngineDocker} {
		var plan *settings.Plan
		w.watch.time(func() {
			plan, err = resolved.Spec(context.Background(), settings.Site{Engine: engine}, w.request(), nil)
		})
		if err == nil {
			plan.Close()
			if len(plan.Blocked) == 0 {
				return outcome{answer: allowed, why: fmt.Sprintf("%s would be given %+v", engine, plan.Spec)}
			}
			err = fmt.Errorf("these do not go in: %v", plan.Blocked)
		}
	}
	return outcome{answer: denied, why: err.Error()}
}

// judgeBindMount: somebody asks for a directory of the machine in a sandbox. However the configuration says it, it is refused
// when it is read, or before anything is made.
func judgeBindMount(t *testing.T, c *attack) (outcome, error) {
	err := errors.Join(setupOnly(c, "profile", "symlinks", "hardlinks", "files", "fs", "rootIsSymlink"), c.Attempt.only("attempt", "bind"), c.Check.only("check"))
	if err != nil {
		return outcome{}, err
	}
	specs := c.Attempt.list("bind")
	if one := c.Attempt.text("bind"); one != "" || len(specs) == 0 {
		specs = []string{one}
	}
	w := newWorld(t, func(w *world) { w.foldCase = c.Setup.text("fs") == "case-insensitive" })
	if err := w.build(c); err != nil {
		return outcome{}, err
	}
	binds := make([]any, len(specs))
	for i, spec := range specs {
		binds[i] = w.bindAt(spec)
	}
	o := outcome{answer: denied}
	for _, keys := range [][]string{{"binds"}, {"docker", "binds"}} {
		for _, ofAgent := range []bool{false, true} {
			w.sandboxed(ofAgent, binds, keys...)
			if o = w.outcomeOfConfig(); o.answer != denied {
				return o, nil
			}
		}
	}
	return o, nil
}

// bindAt is a bind whose source lies in the tree of the world, where the corpus names such a path.
func (w *world) bindAt(spec string) string {
	source, rest, _ := strings.Cut(spec, ":")
	if clean := path.Clean(source); w.at(clean) != clean {
		source = w.at(source)
	}
	return strings.TrimSuffix(source+":"+rest, ":")
}

// theirOptions are options of container engines in the words of the corpus, and ours for the same.
var theirOptions = map[string][]string{
	"apparmor": {"apparmorProfile"}, "seccomp": {"seccompProfile"}, "name": {"containerPrefix"}, "net": {"network"}, "networkMode": {"network"},
	"volumes": {"binds"}, "mounts": {"binds"}, "dropCaps": {"capDrop"}, "readonly": {"readOnlyRoot"}, "readOnly": {"readOnlyRoot"},
	"securityOpt": {"seccompProfile", "apparmorProfile"}, "environment": {"env"}, "cmd": {"setupCommand"},
}

// strict is what all agents have to begin with, where an agent is to be judged that wants less.
var strict = map[string]any{
	"readOnlyRoot": true, "capDrop": []any{"ALL"}, "seccompProfile": "/opt/profiles/ours.json", "apparmorProfile": "ours", "user": "1000:1000",
}

// judgeSandboxOptions: somebody asks for options of a container, in the word of container engines and under our own
// key. What cannot be had by any key cannot be had.
func judgeSandboxOptions(t *testing.T, c *attack) (outcome, error) {
	err := errors.Join(setupOnly(c, "profile"), c.Attempt.only("attempt", "docker"), c.Check.only("check"))
	if err != nil {
		return outcome{}, err
	}
	options := c.Attempt.object("docker")
	if options.flag("runtimeMissing") {
		if err := options.only("docker", "runtimeMissing"); err != nil {
			return outcome{}, err
		}
		return judgeMissingRuntime(t)
	}
	levels := []bool{false, true}
	switch from := options.text("from"); from {
	case "":
	case "agent-config", "agent":
		levels = []bool{true}
	default:
		return outcome{}, unsupported{"options from " + from}
	}
	w := newWorld(t)
	o := outcome{answer: denied}
	for name, value := range options {
		if name == "from" {
			continue
		}
		for _, key := range append([]string{name}, theirOptions[name]...) {
			for _, ofAgent := range levels {
				w.sandboxed(ofAgent, value, "docker", key)
				if before, ok := strict[key]; ok && options.has("from") {
					w.set(before, "agents", "defaults", "sandbox", "docker", key)
				}
				if o = w.outcomeOfConfig(); o.answer != denied {
					return o, nil
				}
			}
		}
	}
	return o, nil
}

// judgeMissingRuntime: sessions are to be sandboxed, and nothing on this machine can make a sandbox. A command fails, and
// runs nowhere else.
func judgeMissingRuntime(t *testing.T) (outcome, error) {
	t.Setenv("DOCKER_HOST", "unix://"+t.TempDir()+"/nobody.sock")
	engine := docker.New(docker.Options{Instance: t.Name()})
	defer engine.Close()
	w := newWorld(t, func(w *world) {
		w.engines = []sandbox.Engine{engine}
		w.set(map[string]any{"mode": "all", "workspaceAccess": "rw", "engine": "docker"}, "agents", "defaults", "sandbox")
		w.set("full", "tools", "exec", "security") // outside, it would run without a question
		w.set("off", "tools", "exec", "ask")
	})
	caller, _ := w.main("s1")
	for tool, args := range map[string]map[string]any{
		"exec":  {"command": "touch PWNED"},
		"write": {"path": "PWNED", "content": "x"},
		"read":  {"path": "README.md"},
	} {
		a := w.admit(w.newCall(caller, tool, args))
		if a.answer == allowed {
			result, err := a.pass.Run(context.Background())
			if err == nil && !result.IsError {
				return outcome{answer: harmful, why: fmt.Sprint(tool, " ran: ", result.Content)}, nil
			}
		}
	}
	if _, err := os.Lstat(w.at("/ws/PWNED")); err == nil {
		return outcome{answer: harmful, why: "it ran outside"}, nil
	}
	return outcome{answer: denied, took: w.watch.longest}, nil
}

// What nobody has anything against is given: judges that refuse everything prove nothing.
func TestSandboxJudgesAllowTheHarmless(t *testing.T) {
	for _, bind := range []string{"/ws/src:/src:ro", "/ws/src:/src", "/ws/./src/:/src:RO,z", "/ws/missing:/x"} {
		o, err := judgeBindMount(t, &attack{Attempt: fields{"bind": bind}})
		if bind == "/ws/missing:/x" { // it is missing when the sandbox is made
			if err != nil || o.answer != denied || !strings.Contains(o.why, "does not exist") {
				t.Errorf("%s: %+v %v", bind, o, err)
			}
			continue
		}
		if err != nil || o.answer != allowed {
			t.Errorf("%s: %+v %v", bind, o, err)
		}
	}
	for key, value := range map[string]any{
		"memory": "2g", "pidsLimit": 64.0, "capDrop": []any{"ALL"}, "env": map[string]any{"CI": "1"}, "readOnlyRoot": true, "runtime": "runsc",
		"apparmorProfile": "ours", "dns": []any{"192.0.2.1"}, "ulimits": map[string]any{"nofile": 1024.0}, "user": "1000:1000",
	} {
		o, err := judgeSandboxOptions(t, &attack{Attempt: fields{"docker": map[string]any{key: value}}})
		if err != nil || o.answer != allowed {
			t.Errorf("%s: %+v %v", key, o, err)
		}
	}
}

// Other ways to ask for what the corpus asks for.
func TestSandboxJudgesRefuseTheLike(t *testing.T) {
	for _, bind := range []string{
		"/ws/src/../../etc:/x", "/ws/link/ssh:/x", "/etc", "/ws:/", "/ws:/proc/1", "/ws:/a:shared", "/ws:/a:ro:Z", "/ws::ro", ":/a", "/ws:/.toolward/x",
		"/ws/\x00:/x", " /etc:/x", "//:/x", "/outside:/x", "/ws/src:/workspace/../agent", "/home/dev/.ssh:/x:ro", "/home/dev/.toolward:/x", "/var:/x",
		"~/x:/x", "C:\\x:/x", "/ws:relative", "/ws/dangling:/x", "/ws/up:/x",
	} {
		c := &attack{
			Setup:   fields{"symlinks": map[string]any{"/ws/link": "/etc", "/ws/dangling": "/root/none", "/ws/up": "../.."}},
			Attempt: fields{"bind": bind},
		}
		if o, err := judgeBindMount(t, c); err != nil || o.answer != denied {
			t.Errorf("%q: %+v %v", bind, o, err)
		}
	}
	for key, values := range map[string][]any{
		"network": {"host", " HOST ", "container:x", "ns:/proc/1/ns/net", "--privileged", "a b"}, "seccomp": {"unconfined"}, "apparmor": {" Unconfined"},
		"privileged": {true}, "capAdd": {[]any{"ALL"}}, "ipc": {"host"}, "uts": {"host"}, "userns": {"host"}, "cgroupns": {"host"}, "cgroup": {"host"},
		"devices": {[]any{"/dev/sda"}}, "volumesFrom": {[]any{"x"}}, "publish": {[]any{"80:80"}}, "securityOpt": {"unconfined"},
		"image": {"--privileged", "a b", "-v/:/x"}, "runtime": {"--x", "a/b"}, "workdir": {"/", "/proc", "-x", "/etc/..", "/.toolward/agent"},
		"user": {"root", "-1:0", "0:0 --privileged"}, "env": {map[string]any{"BASH_ENV": "x"}, map[string]any{"GITHUB_TOKEN": "x"}, map[string]any{"A B": "x"}},
		"tmpfs": {[]any{"/proc"}, []any{"/x:suid"}, []any{"/workspace"}}, "pidsLimit": {0.0, -1.0}, "memory": {"-1", "x"}, "extraHosts": {[]any{"--privileged"}},
		"dns": {[]any{"--privileged"}}, "ulimits": {map[string]any{"nofile": "x"}, map[string]any{"--privileged": 1.0}}, "name": {"--privileged", "a b", "../x"},
	} {
		for _, value := range values {
			o, err := judgeSandboxOptions(t, &attack{Attempt: fields{"docker": map[string]any{key: value}}})
			if err != nil || o.answer != denied {
				t.Errorf("%s %v: %+v %v", key, value, o, err)
			}
		}
	}
	for key, value := range map[string]any{"capDrop": []any{"NET_RAW"}, "seccompProfile": "/tmp/mine.json", "apparmorProfile": "mine", "user": "0:0"} {
		o, err := judgeSandboxOptions(t, &attack{Attempt: fields{"docker": map[string]any{key: value, "from": "agent-config"}}})
		if err != nil || o.answer != denied {
			t.Errorf("of an agent, %s %v: %+v %v", key, value, o, err)
		}
	}
}
