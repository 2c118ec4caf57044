package gatetest_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/approval"
	"github.com/toolward/toolward/internal/gatetest"
	"github.com/toolward/toolward/policy"
	"github.com/toolward/toolward/session"
)

// How many calls are explained and admitted: so many configurations with so many calls each.
const (
	lawConfigs = 100
	lawCalls   = 100
)

// TestExplainEqualsAdmitForRandomCalls compares explanation and decision of 10,000 random calls through the real policy,
// the real approval manager with grants that people gave on the way, and the real levels of sessions that are exposed,
// compacted and raised on the way. Only disk and record are plain.
func TestExplainEqualsAdmitForRandomCalls(t *testing.T) {
	seen := map[string]int{}
	for n := range uint64(lawConfigs) {
		synctest.Test(t, func(t *testing.T) {
			w := newLawWorld(t, rand.New(rand.NewPCG(n, 2026)))
			defer w.approver.Close()
			for range lawCalls {
				w.step(t, seen)
				if t.Failed() {
					t.Fatalf("with configuration %d: %s", n, jsonOf(w.config))
				}
			}
		})
	}
	t.Logf("%d calls: %v", lawConfigs*lawCalls, seen)
	for _, way := range []string{"allow class", "allow grant", "ask", "deny unknown_tool", "deny invalid_args", "deny blocked", "deny validation", "deny blocked_in_lockdown"} {
		if seen[way] < 5 {
			t.Errorf("only %d calls ended with %q: the calls are not random enough to mean something", seen[way], way)
		}
	}
}

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

func newLawWorld(t *testing.T, r *rand.Rand) *lawWorld {
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
	w.gateway, err = toolward.New(toolward.Config{Policy: w.live, Approver: w.approver, Auditor: w.auditor, Sessions: w.sessions})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// configure puts a random configuration in force.
func (w *lawWorld) configure(t *testing.T) {
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
	tools := func() policy.Tools {
		only := w.IntN(4) == 0
		c := policy.Tools{FS: policy.FS{WorkspaceOnly: &only}, Exec: policy.Exec{
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
	}}
	if w.IntN(2) == 0 {
		c.TEG.Enable = []string{"exec.elevated", "nodes.camera_snap", "nodes.invoke:sms.send"}
	}
	if w.IntN(2) == 0 {
		c.TEG.Web.AllowHosts = []string{"example.org"}
	}
	if w.IntN(2) == 0 {
		c.Agents = []policy.Agent{{ID: "coder", Tools: tools(), TEG: policy.AgentTEG{Tools: overrides()}}}
	}
	snapshot, _, err := policy.Compile(c, w.tools)
	if err != nil {
		t.Fatalf("%v: %s", err, jsonOf(c))
	}
	w.config = c
	w.live.Swap(snapshot)
}

// step changes the world a little, then explains and admits one call.
func (w *lawWorld) step(t *testing.T, seen map[string]int) {
	call := w.call()
	if n := len(w.granted); n > 0 && w.IntN(4) == 0 {
		call = w.granted[w.IntN(n)]
		call.Detach = false
	}
	if w.IntN(10) == 0 {
		w.disturb(t, call.Session)
	}
	if w.IntN(25) == 0 {
		w.configure(t)
	}
	uses := w.uses()
	records := len(w.auditor.Decisions())
	trace := w.gateway.Explain(t.Context(), call, toolward.ExplainOptions{})
	if diff := cmp.Diff(uses, w.uses()); diff != "" || len(w.auditor.Decisions()) != records || w.approver.Count() != 0 {
		t.Errorf("explaining %s left a trace: %d records, %d questions\n%s", jsonOf(call), len(w.auditor.Decisions())-records, w.approver.Count(), diff)
	}
	call.Detach = true
	pass, err := w.gateway.Admit(t.Context(), call)
	var pending *toolward.Pending
	var refusal *toolward.Refusal
	got := toolward.Trace{Verdict: toolward.Allow}
	switch {
	case err == nil:
		got.Via = w.auditor.Decisions()[records].Via
		seen["allow "+got.Via[:5]]++
	case errors.As(err, &pending):
		got.Verdict = toolward.Ask
		seen["ask"]++
		if w.answer(t, pending.ID) {
			w.granted = append(w.granted, call)
		}
	case errors.As(err, &refusal):
		got.Verdict, got.Code = toolward.Deny, refusal.Code
		seen["deny "+string(refusal.Code)]++
	default:
		t.Fatalf("%v", err)
	}
	if got.Verdict != trace.Verdict || got.Code != trace.Code || got.Via != trace.Via {
		t.Errorf("%s\nexplained as %v %s %s\nadmitted as  %v %s %s (%v)", jsonOf(call), trace.Verdict, trace.Code, trace.Via, got.Verdict, got.Code, got.Via, err)
	}
	if (pass != nil) != (got.Verdict == toolward.Allow) {
		t.Errorf("%s: pass %v with verdict %v", jsonOf(call), pass != nil, got.Verdict)
	}
	if pending == nil {
		w.compareRecord(t, &trace, &w.auditor.Decisions()[records])
	}
}

// compareRecord compares an explanation with the record of the decision.
func (w *lawWorld) compareRecord(t *testing.T, trace *toolward.Trace, d *toolward.DecisionRecord) {
	want := toolward.Trace{
		Tool: d.Tool, Verdict: d.Verdict, Code: d.Code, Level: d.Level, Row: d.Judgement.Row, Class: d.Judgement.Class.Class,
		Severity: d.Judgement.Class.Severity, Digest: d.Digest, Findings: d.Judgement.Findings, Reasons: d.Judgement.Reasons,
	}
	got := *trace
	got.Steps, got.Via = nil, ""
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the explanation differs from the record (-record +explanation):\n%s", diff)
	}
}

// disturb lets something happen to a conversation.
func (w *lawWorld) disturb(t *testing.T, key toolward.SessionKey) {
	var err error
	switch ctx := t.Context(); w.IntN(7) {
	case 0:
		err = w.sessions.Expose(ctx, key, toolward.Exposure{External: []string{"https://example.org"}})
	case 1:
		err = w.sessions.Compacted(ctx, key)
	case 2:
		err = w.sessions.Usage(ctx, key, int64(w.IntN(220_000))-1, 200_000)
	case 3:
		err = w.sessions.RaiseFloor(ctx, key, pick(w, toolward.Elevated, toolward.Lockdown), time.Minute, "alarm")
	case 4:
		var o session.Overview
		if o, err = w.sessions.Overview(ctx, key); err == nil {
			err = w.sessions.Clear(ctx, key, o.SourcesStamp(), "owner")
		}
	case 5:
		err = w.sessions.Reset(ctx, key)
	default:
		time.Sleep(time.Duration(w.IntN(30)) * time.Hour) // the bubble's clock: grants expire, floors end
	}
	if err != nil {
		t.Fatal(err)
	}
}

// answer sometimes lets a person say "always", which leaves a grant, and otherwise takes the question back.
func (w *lawWorld) answer(t *testing.T, id string) (always bool) {
	record, err := w.approver.Get(t.Context(), everybody{}, id)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(record.Request.Proposals); n > 0 && w.IntN(2) == 0 {
		time.Sleep(time.Second) // long enough to have read it
		if _, err := w.approver.Resolve(t.Context(), approval.Response{
			ID: id, Decision: "allow-always", Proposal: w.IntN(n), By: everybody{}, Typed: true,
		}); err != nil {
			t.Fatal(err)
		}
		return true
	}
	if err := w.approver.Withdraw(t.Context(), id, approval.ErrCancelled); err != nil {
		t.Fatal(err)
	}
	return false
}

func (w *lawWorld) uses() map[string]int64 {
	uses := map[string]int64{}
	for _, g := range w.approver.Grants() {
		uses[g.ID] = g.Uses
	}
	return uses
}

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
	"command":       {"ls", "make test", "rm -rf /", "echo \u200b", ""},
	"url":           {"https://example.org/", "http://user:pw@example.org", "ftp://x", "https://other.example/x", "not a url"},
	"to":            {"chat:main:bob", "chat:main:alice", "nonsense"},
	"elevated":      {true, false, "yes"},
	"content":       {"hello", ""},
	"data":          {"hello", "ghp_0123456789abcdefghijABCDEFGHIJ456789"},
	"invokeCommand": {"sms.send", "device.info", "system.run", "other.thing"},
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
		target := toolward.Target{Path: path, Real: path, Op: toolward.OpRead, Place: place, Kind: "file", Links: 1}
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
func (everybody) Session() string  { return "s" }

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
