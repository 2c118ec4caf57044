package config

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/policy"
	"github.com/toolward/toolward/policy/visible"
	"github.com/toolward/toolward/sandbox"
	"github.com/toolward/toolward/sandbox/settings"
)

// sandboxed checks a file whose sandboxes belong to a gateway in /home/gw.
func sandboxed(text string) error {
	_, err := Parse("f", []byte(text), CheckSandbox(settings.Surroundings{StateDir: "/home/gw/.toolward", Home: "/home/gw"}))
	return err
}

func TestSandboxSettingsThatAreWrong(t *testing.T) {
	for text, want := range map[string]string{
		`{"agents": {"defaults": {"sandbox": {"docker": {"privileged": true}}}}}`:                                                                          "f:1:49: agents.defaults.sandbox.docker.privileged: there is no such key",
		`{"agents": {"defaults": {"sandbox": {"mode": "on"}}}}`:                                                                                            `f:1:46: agents.defaults.sandbox.mode: "on": write off`,
		`{"agents": {"defaults": {"sandbox": {"network": "host"}}}}`:                                                                                       "agents.defaults.sandbox.network: network",
		`{"agents": {"defaults": {"sandbox": {"docker": {"memory": "much"}}}}}`:                                                                            "f:1:59: agents.defaults.sandbox.docker.memory: \"much\" is no number of bytes",
		`{"agents": {"defaults": {"sandbox": {"docker": {"memory": true}}}}}`:                                                                              "expected a number of bytes, or a text such as 512m, got true",
		`{"agents": {"defaults": {"sandbox": {"docker": {"ulimits": {"nofile": {"sof": 1}}}}}}}`:                                                           "expected a number, a text or {soft, hard}",
		`{"agents": {"defaults": {"sandbox": {"docker": {"ulimits": {"nofile": "many"}}}}}}`:                                                               `f:1:71: agents.defaults.sandbox.docker.ulimits["nofile"]: "many" is not a whole number`,
		`{"agents": {"defaults": {"sandbox": {"binds": ["/srv/a:/a", "/home/gw/.ssh:/k"]}}}}`:                                                              "f:1:61: agents.defaults.sandbox.binds[1]: /home/gw/.ssh:/k: bind source /home/gw/.ssh is in",
		`{"agents": {"defaults": {"sandbox": {"docker": {"seccompProfile": "Unconfined"}}}}}`:                                                              "takes the protection away",
		`{"agents": {"defaults": {"sandbox": {"limits": {"pids": 0}}}}}`:                                                                                   "agents.defaults.sandbox.limits.pids: 0 is out of range",
		`{"agents": {"defaults": {"sandbox": {"degradeOk": ["all"]}}}}`:                                                                                    "write cgroup or namespaces",
		`{"agents": {"defaults": {"sandbox": {"user": "root"}}}}`:                                                                                          "write numbers, uid:gid",
		`{"agents": {"defaults": {"sandbox": {"tmpfs": ["/tmp:suid"]}}}}`:                                                                                  `option "suid" is not known`,
		`{"agents": {"defaults": {"sandbox": {"docker": {"readOnlyRoot": true}}}, "list": [{"id": "a", "sandbox": {"docker": {"readOnlyRoot": false}}}]}}`: "agents.list[0].sandbox.docker.readOnlyRoot: an agent may not loosen",
		`{"agents": {"defaults": {"sandbox": {"env": {"LD_PRELOAD": "x"}}}}}`:                                                                              `f:1:60: agents.defaults.sandbox.env["LD_PRELOAD"]: this variable never goes into a sandbox`,
		`{"agents": {"defaults": {"sandbox": {"docker": {"image": "--privileged"}}}}}`:                                                                     `"--privileged" is not the name of an image`,
		`{"agents": {"defaults": {"sandbox": {"network": "a b"}}}}`:                                                                                        `"a b" is not the name of a network`,
		`{"agents": {"defaults": {"sandbox": {"docker": {"runtime": "a/b"}}}}}`:                                                                            `"a/b" is not the name of a runtime`,
		`{"agents": {"defaults": {"sandbox": {"tmpfs": ["/workspace/x"]}}}}`:                                                                               "it would hide the workspace",
		`{"agents": {"defaults": {"sandbox": {"docker": {"ulimits": {"-v": 1}}}}}}`:                                                                        `"-v" is not the name of a limit`,
		`{"agents": {"defaults": {"sandbox": {"docker": {"containerPrefix": "` + strings.Repeat("p", 54) + `"}}}}}`:                                        "write at most 53",
	} {
		var wrong Problems
		if err := sandboxed(text); !errors.As(err, &wrong) || !strings.Contains(err.Error(), want) || wrong[0].Line != 1 {
			t.Errorf("%s\ngot  %v\nwant %s", text, err, want)
		}
	}
}

// Every key of the section is on the page, and every key of the page exists.
func TestSandboxPageIsTrue(t *testing.T) {
	raw, err := os.ReadFile("../docs/sandbox.md")
	if err != nil {
		t.Fatal(err)
	}
	onPage := map[string]bool{}
	for line := range strings.Lines(string(raw)) {
		cell, isRow := strings.CutPrefix(line, "| `")
		if !isRow {
			continue
		}
		cells, _, _ := strings.Cut(cell, " |")
		for i, key := range strings.Split("`"+cells, "`") {
			if i%2 == 1 {
				onPage[key] = true
			}
		}
	}
	keys := map[string]bool{}
	collectKeys(t, keys)
	for key := range keys {
		if !onPage[key] {
			t.Errorf("docs/sandbox.md lacks the key %s", key)
		}
	}
}

func collectKeys(t *testing.T, keys map[string]bool) {
	t.Helper()
	leaf := map[reflect.Type]bool{reflect.TypeFor[settings.Quantity](): true, reflect.TypeFor[settings.UlimitConfig](): true}
	var collect func(at string, of reflect.Type)
	collect = func(at string, of reflect.Type) {
		fields := map[string]reflect.Type{}
		collectFields(of, fields)
		for name, field := range fields {
			key := strings.TrimPrefix(at+"."+name, ".")
			if field.Kind() == reflect.Struct && !leaf[field] {
				collect(key, field)
				continue
			}
			keys[key] = true
		}
	}
	collect("", reflect.TypeFor[settings.Defaults]())
	if len(keys) < 60 {
		t.Fatalf("only %d keys", len(keys))
	}
}

// The example means what its comments say.
func TestSandboxExampleIsTrue(t *testing.T) {
	around := settings.Surroundings{StateDir: "/home/gw/.toolward", Home: "/home/gw", Undecided: settings.ModeNonMain}
	loaded, err := Load("../docs/examples/sandboxes.jsonc", CheckPolicy(nil, policy.Surroundings{}), CheckSandbox(around))
	if err != nil {
		t.Fatal(err)
	}
	compiled, _ := settings.Compile(loaded.File.Sandbox(), around)
	for session, want := range map[string]bool{
		"agent:main:main": false, "agent:main:telegram:group:7": false, "agent:coder:main": true, "agent:browser-agent:x": true,
	} {
		if yes, why := compiled.Sandboxed(settings.SessionAgent(session), session); yes != want {
			t.Errorf("%s: %v, %s", session, yes, why)
		}
	}
	coder, browser := compiled.For("coder"), compiled.For("browser-agent")
	if coder.Scope != settings.ScopeSession || coder.Access != settings.AccessReadWrite || *coder.Docker.Network != "bridge" ||
		coder.Docker.Memory.Text() != "2g" || *coder.Docker.PidsLimit != 256 || coder.Docker.CapDrop[0] != "ALL" {
		t.Errorf("coder: %+v", coder)
	}
	if browser.Scope != settings.ScopeAgent || browser.Access != settings.AccessNone || !*browser.Browser.Enabled || *browser.Docker.Network != "none" {
		t.Errorf("browser-agent: %+v", browser)
	}
	snapshot, _, err := policy.Compile(loaded.File.Policy(), nil)
	if err != nil {
		t.Fatal(err)
	}
	lists := snapshot.SandboxTools(toolward.Caller{Agent: "coder"})
	if !slices.Contains(lists.Deny, "cron") || !slices.Contains(lists.Deny, "subagents") {
		t.Errorf("coder is denied %v", lists.Deny)
	}
	lists = snapshot.SandboxTools(toolward.Caller{Agent: "browser-agent"})
	if !slices.Equal(lists.Allow, []string{"browser", "read"}) || slices.Contains(lists.Deny, "browser") {
		t.Errorf("browser-agent: %+v", lists)
	}
}

// Who of the example is confined, to what, and which tools each of its agents sees.
func TestSandboxExampleDecides(t *testing.T) {
	home, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	around := settings.Surroundings{StateDir: filepath.Join(home, ".toolward"), Home: home}
	loaded, err := Load("../docs/examples/sandboxes.jsonc", CheckPolicy(nil, policy.Surroundings{}), CheckSandbox(around))
	if err != nil {
		t.Fatal(err)
	}
	compiled, _ := settings.Compile(loaded.File.Sandbox(), around)
	project := filepath.Join(home, "project")
	if err := os.Mkdir(project, 0o755); err != nil {
		t.Fatal(err)
	}
	layout := func(session string) *settings.Layout {
		t.Helper()
		agent := settings.SessionAgent(session)
		l, err := compiled.For(agent).Layout(settings.Site{Engine: sandbox.EngineDocker}, settings.Request{Agent: agent, Session: session, Workspace: project})
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	// The coder works in the project itself, each session in a sandbox of its own.
	coder, other := layout("agent:coder:main"), layout("agent:coder:telegram:group:7")
	if coder.Name == other.Name || coder.WorkspaceDir != project || coder.Mounts()[0].Source != project || !coder.Mounts()[0].Writable {
		t.Errorf("coder: %+v", coder)
	}
	// The browser's has a directory of its own, the same for all of its sessions, and nothing of the project.
	browser := layout("agent:browser-agent:main")
	if browser.Name != layout("agent:browser-agent:x").Name || len(browser.Mounts()) != 2 || !strings.HasPrefix(browser.WorkspaceDir, around.StateDir+"/sandboxes/") {
		t.Errorf("browser-agent: %+v", browser)
	}
	asked, err := compiled.For("coder").Preview(t.Context(), settings.Request{Agent: "coder", Session: "agent:coder:main", Workspace: project})
	if err != nil {
		t.Fatal(err)
	}
	s := asked.Spec
	if s.Network.Mode != sandbox.NetworkBridge || s.Limits.Memory != 2<<30 || s.Limits.Pids != 256 || !slices.Equal(s.Docker.CapDrop, []string{"ALL"}) ||
		s.Writable || s.Mounts[0].Source != project || s.Mounts[0].Target != project || !s.Mounts[0].Writable {
		t.Errorf("the coder's container is %+v", s)
	}
	// Only container engines have a bridge: another one refuses, and does not make something else of it.
	_, err = compiled.For("coder").Spec(t.Context(), settings.Site{Engine: sandbox.EngineNative}, settings.Request{Agent: "coder", Session: "agent:coder:main", Workspace: project}, nil)
	if err == nil || !strings.Contains(err.Error(), "network bridge is one of container engines") {
		t.Errorf("the native engine: %v", err)
	}

	rules := loaded.File.Policy()
	rules.Around.Confined = func(c toolward.Caller) (yes, readOnly bool) {
		yes, _ = compiled.Sandboxed(c.Agent, string(c.Session))
		return yes, false
	}
	snapshot, _, err := policy.Compile(rules, coreTools())
	if err != nil {
		t.Fatal(err)
	}
	for agent, tools := range map[string]struct{ sees, not []string }{
		"main":          {[]string{"exec", "read", "browser", "cron", "sessions_spawn"}, nil},
		"coder":         {[]string{"exec", "process", "read", "write", "edit", "apply_patch", "image"}, []string{"browser", "cron", "gateway", "nodes", "sessions_spawn", "subagents"}},
		"browser-agent": {[]string{"browser", "read"}, []string{"exec", "process", "write", "edit", "apply_patch", "image", "cron", "gateway", "nodes", "list", "search", "web_fetch"}},
	} {
		var seen []string
		for _, tool := range snapshot.Tools(toolward.Caller{Agent: agent, Session: toolward.SessionKey("agent:" + agent + ":main"), Owner: true}) {
			seen = append(seen, tool.Name)
		}
		for _, name := range tools.sees {
			if !slices.Contains(seen, name) {
				t.Errorf("%s does not see %s, of %v", agent, name, seen)
			}
		}
		for _, name := range tools.not {
			if slices.Contains(seen, name) {
				t.Errorf("%s sees %s", agent, name)
			}
		}
	}
}

// coreTools are all core tools, of which nothing but the name matters.
func coreTools() []*toolward.Tool {
	var tools []*toolward.Tool
	for _, name := range visible.CoreTools() {
		tools = append(tools, &toolward.Tool{
			Name: name, Schema: json.RawMessage(`{"type":"object"}`),
			Run: func(context.Context, *toolward.Request) (toolward.Result, error) { return toolward.TextResult(""), nil },
		})
	}
	return tools
}
