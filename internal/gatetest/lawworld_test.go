package gatetest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/approval"
	"github.com/toolward/toolward/internal/gatetest"
	"github.com/toolward/toolward/modes"
	"github.com/toolward/toolward/policy"
	"github.com/toolward/toolward/policy/visible"
	"github.com/toolward/toolward/session"
)

// lawWorld is a gateway of real parts, driven by one source of chance.
type lawWorld struct {
	*rand.Rand
	config   policy.Config
	live     *policy.Live
	tools    []*toolward.Tool
	approver *approval.Manager
	sessions *session.Tracker
	auditor  *gatetest.Auditor
	gateway  *toolward.Gateway
	granted  []toolward.Call // calls that people said "always" to
}

// newLawWorld makes the world of one source of chance, with a shadow policy or without.
func newLawWorld(t *testing.T, r *rand.Rand, shadow toolward.Policy) *lawWorld {
	w := &lawWorld{Rand: r, auditor: &gatetest.Auditor{}, live: &policy.Live{}, tools: lawTools()}
	w.configure(t)
	var err error
	w.approver, err = approval.Open(t.Context(), approval.Options{
		Store: newRows(), Redact: func(s string) string { return s },
		Settings: approval.Settings{PerSession: 1e6, PerConn: 1e6, Total: 1e6},
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.approver.Attach(approval.Approver{Name: "console", By: everybody{}}); err != nil {
		t.Fatal(err)
	}
	if w.sessions, err = session.New(session.Options{
		Store: states{}, Settings: session.Settings{DefaultLevel: toolward.Normal},
	}); err != nil {
		t.Fatal(err)
	}
	w.gateway = w.with(t, func(c *toolward.Config) { c.Shadow = shadow })
	return w
}

// with is a gateway of the world, with what change adds.
func (w *lawWorld) with(t *testing.T, change func(*toolward.Config)) *toolward.Gateway {
	t.Helper()
	c := toolward.Config{Policy: w.live, Approver: w.approver, Auditor: w.auditor, Sessions: w.sessions}
	change(&c)
	g, err := toolward.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// configure puts a random configuration in force.
func (w *lawWorld) configure(t *testing.T) {
	w.config = w.anyConfig()
	snapshot, _, err := policy.Compile(w.config, w.tools)
	if err != nil {
		t.Fatalf("%v: %s", err, jsonOf(w.config))
	}
	w.live.Swap(snapshot)
}

// anyConfig draws a configuration.
func (w *lawWorld) anyConfig() policy.Config {
	entries := []string{"*", "read", "bash", "group:fs", "web_*", "mail__*", "mail", "group:plugins", "nodes", "own_tool"}
	overrides := func() map[string]string {
		m := map[string]string{}
		for range w.IntN(4) {
			key := pick(w, "*", "read", "write", "exec", "web_*", "nodes.invoke", "nodes.camera_snap", "message", "message.broadcast", "process.submit", "mail__send", "own_tool")
			m[key] = pick(w, "safe", "needs_approval", "blocked")
		}
		return m
	}
	list := func() (out []string) {
		for range w.IntN(3) {
			out = append(out, entries[w.IntN(len(entries))])
		}
		return out
	}
	tools := func() visible.Tools {
		only := w.IntN(4) == 0
		c := visible.Tools{FS: visible.FS{WorkspaceOnly: &only}, Exec: visible.Exec{
			Security: pick(w, "", "deny", "allowlist", "full"), Ask: pick(w, "", "off", "on-miss", "always"),
		}}
		if w.IntN(4) == 0 {
			c.Deny = list()
		}
		if w.IntN(8) == 0 {
			c.Allow = append(list(), "group:fs")
		}
		return c
	}
	c := policy.Config{Tools: tools(), TEG: policy.TEG{
		Preset: pick(w, policy.PresetStrict, policy.PresetWorkspace), Tools: overrides(), Exec: policy.TEGExec{Sandbox: pick(w, "auto", "ask")},
		MCP: map[string]policy.MCPServer{"mail": {TrustHints: w.IntN(2) == 0}},
	}, Around: policy.Surroundings{Recipients: friends{}}}
	if w.IntN(2) == 0 {
		c.TEG.Enable = []string{"exec.elevated", "nodes.camera_snap", "nodes.invoke:sms.send"}
	}
	if w.IntN(2) == 0 {
		c.TEG.Web.AllowHosts = []string{"example.org"}
	}
	if w.IntN(2) == 0 {
		c.Agents = []policy.Agent{{ID: "coder", Tools: tools(), TEG: policy.AgentTEG{Tools: overrides()}}}
	}
	if w.IntN(3) == 0 {
		group := visible.Lists{Deny: list()}
		c.Channels = map[string]visible.Channel{"slack": {Groups: map[string]visible.Group{
			"g": {Tools: &group, ToolsBySender: visible.Senders{"id:x": {Allow: list()}}},
		}}}
		c.Tools.ByProvider = map[string]visible.ProviderTools{"openai": {Deny: list()}}
		c.Tools.Sandbox.Tools = visible.SandboxLists{Allow: []string{"*"}, Deny: list()}
		c.Tools.Subagents.Tools = visible.Lists{AlsoAllow: list()}
		c.HTTP = visible.HTTPTools{Allow: []string{"exec", "write"}, Deny: list()}
	}
	return c
}

// friends knows everybody but "nonsense".
type friends struct{}

func (friends) Known(_ toolward.SessionKey, to string) bool { return to != "nonsense" }
func (friends) Granted(*toolward.Call, string) bool         { return false }

// call draws a call: mostly one that could run.
func (w *lawWorld) call() toolward.Call {
	agent := pick(w, "main", "coder")
	c := toolward.Call{
		ID: "c", Run: pick(w, "r1", "r2"), Tool: w.tools[w.IntN(len(w.tools))].Name,
		Caller: toolward.Caller{
			Agent: agent, Owner: w.IntN(3) > 0, Context: pick(w, "main", "main", "group"), Workspace: pick(w, "/ws", "/ws", "/other"),
		},
		Session: toolward.SessionKey("agent:" + agent + ":" + pick(w, "a", "b")), Surface: toolward.SurfaceMCP,
		WorkDir: "/ws", Host: pick(w, toolward.HostGateway, toolward.HostGateway, toolward.HostSandbox),
	}
	if w.IntN(4) == 0 { // facts that layers look at
		c.Surface = pick(w, toolward.SurfaceMCP, toolward.SurfaceAgent, toolward.SurfaceHTTP)
		c.Caller.Provider, c.Caller.Sender = pick(w, "", "openai", "openai-codex"), pick(w, "", "x")
		c.Caller.Sandboxed, c.Caller.Depth = w.IntN(4) == 0, w.IntN(6)/4
		c.Caller.Parent = pick(w, toolward.SessionKey(""), "agent:main:slack:group:g")
		c.Caller.Ceiling = pick(w, toolward.Ceiling(""), "", "", `[{"deny":["exec","web_*"]}]`, `[{"deny":["exec","web_*"]}]`, "damaged")
	}
	arguments := map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(lawArguments)) {
		if values := lawArguments[name]; w.IntN(2) > 0 {
			arguments[name] = values[w.IntN(len(values))]
		}
	}
	if w.IntN(12) > 0 {
		keep := lawNeeds[c.Tool] // only what the tool takes
		maps.DeleteFunc(arguments, func(name string, _ any) bool { return !slices.Contains(keep, name) })
		for _, name := range keep {
			if _, there := arguments[name]; !there && name != "elevated" {
				arguments[name] = lawArguments[name][w.IntN(len(lawArguments[name]))]
			}
		}
	}
	c.Arguments, _ = json.Marshal(arguments)
	switch w.IntN(40) {
	case 0:
		c.Tool = pick(w, "nope", "bash", " READ ", "Apply-Patch", "")
	case 1:
		c.Arguments = json.RawMessage(pick(w, ``, `[]`, `{`, `{"path":"a","path":"b"}`, `{"__proto__":1}`, `{"PATH":"/ws/a"}`, `{"path":null}`, `{"path":"\u0000"}`, "{\"path\":\"\xff\"}", `{"path":1e400}`))
	case 2:
		c.Session = pick(w, toolward.SessionKey(""), "agent:other:a", "agent:main:", "main")
	}
	if w.IntN(5) == 0 {
		c.ByClient = true
		form := *w.tools[w.IntN(len(w.tools))]
		form.Run = nil
		if form.Plugin != "" {
			form.Name = "mcp__" + form.Name
		}
		c.Tool, c.Form = form.Name, &form
	}
	return c
}

func pick[T any](w *lawWorld, from ...T) T { return from[w.IntN(len(from))] }

func jsonOf(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprintf("%+v", v)
	}
	return string(raw)
}

// lawArguments are values of the tools' parameters.
var lawArguments = map[string][]any{
	"path":          {"/ws/a.txt", "/ws/dir/b.go", "/ws/CLAUDE.md", "/etc/hosts", "/home/p/.ssh/id_rsa", "/home/p/.toolward/state.db", "/tmp/x", "/ws/fifo", "/ws/\u202egnp", " "},
	"action":        {"list", "poll", "kill", "submit", "send", "broadcast", "camera_snap", "invoke", "run", "status", "nonsense", "SEND"},
	"command":       lawCommands(),
	"url":           {"https://example.org/", "http://user:pw@example.org", "ftp://x", "https://other.example/x", "not a url"},
	"to":            {"chat:main:bob", "chat:main:alice", "nonsense"},
	"elevated":      {true, false, "yes"},
	"content":       {"hello", ""},
	"data":          {"hello", "ghp_0123456789abcdefghijABCDEFGHIJ456789"},
	"invokeCommand": {"sms.send", "device.info", "system.run", "other.thing"},
}

// lawCommands are a few commands that nobody analyzed, and more that somebody did.
func lawCommands() []any {
	commands := []any{"ls", "make test", "rm -rf /", "echo \u200b", ""}
	for i := range 20 {
		commands = append(commands, fmt.Sprintf("make target%d", i))
	}
	return commands
}

// lawAnalysis is what analysis would say of a command: anything, but always the same of the same command.
func lawAnalysis(command string) *toolward.CommandAnalysis {
	if !strings.HasPrefix(command, "make target") {
		return nil
	}
	hash := fnv.New64a()
	hash.Write([]byte(command))
	draw := rand.New(rand.NewPCG(hash.Sum64(), 0))
	word := func(words ...string) string { return words[draw.IntN(len(words))] }
	a := &toolward.CommandAnalysis{
		Understood: draw.IntN(4) > 0, Covered: draw.IntN(3) > 0, Unanswered: draw.IntN(3) == 0,
		Security: word("", "", "", "", "deny", "allowlist", "full", "nonsense"), Ask: word("", "", "", "", "off", "on-miss", "always", "nonsense"),
	}
	if draw.IntN(4) == 0 {
		a.Findings = append(a.Findings, word(modes.FindingHeredoc, modes.FindingInlineEval, modes.FindingObfuscation, modes.FindingRule, "new"))
	}
	if draw.IntN(8) == 0 {
		a.Forbidden = "a rule of the test"
	}
	if draw.IntN(2) == 0 {
		a.Always = []toolward.CommandEntry{{Pattern: "/usr/bin/make", Effects: []string{"read"}}}
	}
	return a
}

// lawNeeds are the parameters that each tool takes.
var lawNeeds = map[string][]string{
	"read": {"path"}, "write": {"path", "content"}, "exec": {"command", "elevated"}, "process": {"action", "data"},
	"web_fetch": {"url"}, "message": {"action", "to", "data"}, "nodes": {"action", "invokeCommand", "elevated"},
	"own_tool": {"data"}, "mail__send": {"to", "data"}, "mail__list": {},
}

// lawTools are tools with rows of every kind, a declared one, and two of a server.
func lawTools() []*toolward.Tool {
	var tools []*toolward.Tool
	for _, name := range slices.Sorted(maps.Keys(lawNeeds)) {
		properties := map[string]any{}
		for _, p := range lawNeeds[name] {
			properties[p] = map[string]any{"type": "string"}
		}
		if _, there := properties["elevated"]; there {
			properties["elevated"] = map[string]any{}
		}
		raw, _ := json.Marshal(map[string]any{"type": "object", "properties": properties})
		tool := &toolward.Tool{Name: name, Schema: raw, Facts: lawFacts, OwnerOnly: name == "own_tool"}
		switch name {
		case "own_tool":
			tool.Declared = func(p toolward.Params) toolward.Classification {
				return toolward.Classification{Class: toolward.Class(p.Len() % 3), From: toolward.Elevated, Severity: toolward.Info, Grant: toolward.GrantExact}
			}
		case "mail__send", "mail__list":
			tool.Plugin = "mail"
			tool.Declared = func(toolward.Params) toolward.Classification {
				return toolward.Classification{Class: toolward.Safe, From: toolward.Lockdown, Severity: toolward.Info}
			}
		}
		tools = append(tools, tool)
	}
	return tools
}

var lawPlaces = map[string]string{
	"/ws/a.txt": "workspace", "/ws/dir/b.go": "workspace", "/ws/CLAUDE.md": "instructions", "/etc/hosts": "protected",
	"/home/p/.ssh/id_rsa": "secret", "/home/p/.toolward/state.db": "self", "/tmp/x": "outside", "/ws/fifo": "workspace", "/ws/\u202egnp": "workspace",
}

// lawFacts says what a call touches, by its parameters alone.
func lawFacts(_ context.Context, r *toolward.Request) (toolward.Facts, error) {
	facts := toolward.Facts{Action: r.Params.Text("action"), Command: r.Params.Text("command"), Mutates: r.Tool.Name != "read"}
	if path, ok := r.Params.String("path"); ok {
		place, known := lawPlaces[path]
		if !known {
			return facts, &toolward.InvalidArgs{Field: "path", Text: "is not a path"}
		}
		target := toolward.Target{Path: path, Real: path, Op: toolward.OpRead, Zone: toolward.Zone(place), Kind: "file", Links: 1}
		if r.Tool.Name == "write" {
			target.Op = toolward.OpWrite
		}
		if path == "/ws/fifo" {
			target.Kind = "fifo"
		}
		facts.Targets = []toolward.Target{target}
	}
	if url := r.Params.Text("url"); url != "" {
		facts.URLs = []string{url}
		if url == "https://example.org/" {
			facts.Hosts = []string{"https://example.org:443"}
		}
	}
	if to := r.Params.Text("to"); to != "" {
		facts.Recipients = []string{to}
	}
	if data := r.Params.Text("data"); data != "" && r.Tool.Name != "write" {
		facts.Outbound, facts.TargetID = []string{data}, "p1"
	}
	facts.Analysis = lawAnalysis(facts.Command)
	if r.Params.Text("command") == "rm -rf /" {
		facts.Findings = []toolward.Finding{{Code: "command_dangerous", Effect: toolward.EffectAsk}}
	}
	return facts, nil
}

// everybody is a signed-in person.
type everybody struct{}

func (everybody) MayAnswer() error { return nil }
func (everybody) MayGrant() error  { return nil }
func (everybody) Name() string     { return "owner" }
func (everybody) SignIn() string   { return "s" }
func (everybody) Means() string    { return "" }

// states keeps sessions in memory.
type states map[toolward.SessionKey]session.State

func (s states) LoadSession(_ context.Context, key toolward.SessionKey) (session.State, bool, error) {
	state, ok := s[key]
	return state, ok, nil
}

func (s states) RecentSessions(context.Context, int) ([]session.State, error) { return nil, nil }

func (s states) SaveSession(_ context.Context, state session.State) error {
	s[state.Key] = state
	return nil
}
