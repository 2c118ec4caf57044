package policy

import (
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/toolward/toolward"
	"github.com/toolward/toolward/internal/gatetest"
	"github.com/toolward/toolward/policy/report"
	"github.com/toolward/toolward/policy/visible"
)

func TestCompileRefuses(t *testing.T) {
	for _, c := range []struct {
		name   string
		config Config
		want   []string
	}{
		{"blank entry", Config{Tools: visible.Tools{Allow: []string{"read", " "}}}, []string{`tools.allow[1]: the entry is blank; name a tool, a glob or a group, or remove it`}},
		{
			"blank entry of an agent",
			Config{Agents: []Agent{{ID: "a"}, {ID: "b", Tools: visible.Tools{Deny: []string{""}}}}},
			[]string{`agents.list[1].tools.deny[0]: the entry is blank; name a tool, a glob or a group, or remove it`},
		},
		{
			"agents",
			Config{Agents: []Agent{{ID: ""}, {ID: "a:b"}, {ID: "x"}, {ID: " X "}}},
			[]string{
				`agents.list[0].id: "" is not an agent id; use a name without colons and spaces`,
				`agents.list[1].id: "a:b" is not an agent id; use a name without colons and spaces`,
				`agents.list[3].id: there are two agents "x"`,
			},
		},
		{"preset", Config{TEG: TEG{Preset: "loose"}}, []string{`teg.preset: "loose" is not a preset; use strict or workspace`}},
		{"level", Config{TEG: TEG{DefaultLevel: "calm"}}, []string{`teg.defaultLevel: invalid level "calm": expected one of ["lockdown" "elevated" "normal"]`}},
		{"high water", Config{TEG: TEG{HighWater: 0.9}}, []string{`teg.highWater: 0.9 is out of range; it may only be lowered, to a value above 0 and at most 0.8`}},
		{"class", Config{TEG: TEG{Tools: map[string]string{"gateway.restart": "ok"}}}, []string{`teg.tools["gateway.restart"]: "ok" is not a class; use safe, needs_approval or blocked`}},
		{"class of an agent", Config{Agents: []Agent{{ID: "a", TEG: AgentTEG{Tools: map[string]string{"read": ""}}}}}, []string{`agents.list[0].teg.tools.read: "" is not a class; use safe, needs_approval or blocked`}},
		{"sandbox", Config{TEG: TEG{Exec: TEGExec{Sandbox: "off"}}}, []string{`teg.exec.sandbox: "off" is unknown; use auto or ask`}},
		{"security", Config{Tools: visible.Tools{Exec: visible.Exec{Security: "all"}}}, []string{`tools.exec.security: invalid security "all": use one of ["deny" "allowlist" "full"]`}},
		{"ask", Config{Agents: []Agent{{ID: "a", Tools: visible.Tools{Exec: visible.Exec{Ask: "never"}}}}}, []string{`agents.list[0].tools.exec.ask: invalid ask "never": use one of ["always" "on-miss" "off"]`}},
		{"approval", Config{TEG: TEG{Approval: Approval{TimeoutMs: -1, MaxPendingPerSession: -1, Absent: "skip"}}}, []string{
			`teg.approval.timeoutMs: -1 is out of range; use 1000 to 86400000 milliseconds`,
			`teg.approval.maxPendingPerSession: -1 is out of range; use 1 to 10000`,
			`teg.approval.absent: "skip" is unknown; use refuse or wait`,
		}},
		{"hosts", Config{TEG: TEG{Web: Web{AllowHosts: []string{"*.example.org", "ftp://a", "https://u@a", "a/b"}}}}, []string{
			`teg.web.allowHosts[0]: "*.example.org": hosts are not patterns; write each one`,
			`teg.web.allowHosts[1]: "ftp://a": only http and https hosts can be allowed`,
			`teg.web.allowHosts[2]: "https://u@a": only a host and a port count here, not a path or a user`,
			`teg.web.allowHosts[3]: "a/b": only a host and a port count here, not a path or a user`,
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, _, err := Compile(c.config, coreTools())
			wrong, ok := errors.AsType[report.Errors](err)
			if !ok {
				t.Fatalf("got %v, want ConfigErrors", err)
			}
			var got []string
			for _, w := range wrong {
				got = append(got, w.Error())
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestEnableNamesBlockedRowsOnly(t *testing.T) {
	for _, name := range enableable() {
		if _, _, err := Compile(Config{TEG: TEG{Enable: []string{name}}}, nil); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, name := range []string{"", "exec", "read", "read.self", "nodes.invoke", "nodes.*", "nodes.camera_snapp", "message.broadcast"} {
		if _, _, err := Compile(Config{TEG: TEG{Enable: []string{name}}}, nil); err == nil {
			t.Errorf("%q was accepted", name)
		}
	}
	_, _, err := Compile(Config{TEG: TEG{Enable: []string{"nodes.camera_snapp"}}}, nil)
	if wrong, ok := errors.AsType[report.Errors](err); !ok || wrong[0].Path.Pointer() != "/teg/enable/0" {
		t.Errorf("got %v", err)
	}
}

func TestWarnings(t *testing.T) {
	tools := slices.Concat(coreTools(), gatetest.Plugin("github", "github__create_issue"))
	for _, c := range []struct {
		name   string
		config Config
		want   []string
	}{
		{"nothing to say", Config{Tools: visible.Tools{Allow: []string{"group:fs", "github", "github__*", "group:plugins", "todo", "Bash"}}, Around: Surroundings{ClientTools: []string{"todo"}}}, nil},
		{
			"unknown entries",
			Config{Tools: visible.Tools{Deny: []string{"exce", "group:nope", "zzz*"}}},
			[]string{
				`tools.deny[0]: tools.global: "exce" matches no tool, group or plug-in; did you mean "exec"? (policy.unknown_entries)`,
				`tools.deny[1]: tools.global: "group:nope" matches no tool, group or plug-in; did you mean "group:core"? (policy.unknown_entries)`,
				`tools.deny[2]: tools.global: "zzz*" matches no tool, group or plug-in (policy.unknown_entries)`,
			},
		},
		{
			"overrides",
			Config{TEG: TEG{Tools: map[string]string{"*": "safe", "canvas": "safe", "ttss": "blocked", "write": "safe", "exec": "blocked"}}},
			[]string{
				`teg.tools["*"]: "*" cannot make a call safer: name the tool, or the tool and action (teg.glob_cannot_loosen)`,
				`teg.tools.canvas: "canvas" does not make canvas: eval safer, which is critical: name the action (teg.name_the_action)`,
				`teg.tools.canvas: canvas: show runs without a question at level normal (teg.loosened)`,
				`teg.tools.ttss: no tool is called "ttss"; did you mean "tts"? (policy.unknown_entries)`,
				`teg.tools.write: write: workspace runs without a question at level normal (teg.loosened)`,
				`teg.tools.write: write: instructions, outside runs without a question at level normal (teg.loosened)`,
				`teg.tools.write: "write" does not make write: protected, secret safer, which is critical: name the action (teg.name_the_action)`,
			},
		},
		{"enabled", Config{TEG: TEG{Enable: []string{"exec.elevated"}}}, []string{`teg.enable[0]: exec.elevated is enabled: it asks each time instead of being refused (teg.blocked_enabled)`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, warnings, err := Compile(c.config, tools)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, w := range warnings {
				got = append(got, w.String())
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestRegistration(t *testing.T) {
	offenders := slices.Concat(
		gatetest.Plugin("s1", "read", "mcp__s2__add", "fine"), gatetest.Plugin("s2", "fine"),
		[]*toolward.Tool{{Name: "bad_schema", Plugin: "s1", Schema: []byte(`{"$ref":"http://evil.example/s.json"}`)}, {Name: "no_schema", Plugin: "s1"}},
	)
	s, warnings, err := Compile(Config{}, append(coreTools(), offenders...))
	if err != nil {
		t.Fatal(err)
	}
	var refused []string
	for _, w := range warnings {
		refused = append(refused, w.Tool+" "+w.Code)
	}
	want := []string{"read policy.tool_refused", "mcp__s2__add policy.tool_refused", "fine policy.tool_refused", "bad_schema policy.tool_refused", "no_schema policy.tool_refused"}
	if diff := cmp.Diff(want, refused); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if s.Tool("fine").Plugin != "s1" || s.Tool("read").Plugin != "" {
		t.Error("a later tool took the place of an earlier one")
	}
	for _, own := range []*toolward.Tool{nil, {Name: "Bad", Schema: []byte(`{}`)}, {Name: "good"}} {
		if _, _, err := Compile(Config{}, []*toolward.Tool{own}); err == nil {
			t.Errorf("a broken tool of our own was registered: %v", own)
		}
	}
}

func TestRevision(t *testing.T) {
	base := compile(t, Config{}, coreTools()...).Revision()
	if again := compile(t, Config{}, coreTools()...).Revision(); again != base || base == "" {
		t.Errorf("the same configuration has the revisions %q and %q", base, again)
	}
	for name, other := range map[string]*Snapshot{
		"configuration": compile(t, Config{Tools: visible.Tools{Deny: []string{"tts"}}}, coreTools()...),
		"tools":         compile(t, Config{}, append(coreTools(), gatetest.Plugin("p", "x")...)...),
	} {
		if other.Revision() == base {
			t.Errorf("another %s has the same revision", name)
		}
	}
}

func TestPath(t *testing.T) {
	p := report.Path{"teg", "tools", "a.b/c~"}
	if p.String() != `teg.tools["a.b/c~"]` || p.Pointer() != "/teg/tools/a.b~1c~0" {
		t.Errorf("got %s and %s", p, p.Pointer())
	}
}
