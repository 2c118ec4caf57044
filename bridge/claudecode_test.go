package bridge_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/bridge"
)

const sessionKey = "agent:claude-code:hook:claude-code:11111111-2222-3333-4444-555555555555"

func TestDecisions(t *testing.T) {
	for _, test := range []struct {
		name     string
		verdict  toolward.Verdict
		approver toolward.Decision
		want     string
		outcome  toolward.Status // "" while the client has not reported
	}{
		{"allowed", toolward.Allow, toolward.NoDecision, "allow", ""},
		{"refused", toolward.Deny, toolward.NoDecision, "deny", toolward.StatusDenied},
		{"asked, allowed once", toolward.Ask, toolward.AllowOnce, "allow", ""},
		{"asked, denied", toolward.Ask, toolward.DenyCall, "deny", toolward.StatusDenied},
		{"asked, nobody answered", toolward.Ask, toolward.NoDecision, "deny", toolward.StatusDenied},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := newRig(t, test.verdict)
			r.Approver.Decision = test.approver
			decision, reason := said(t, r.post("PreToolUse", r.recorded("PreToolUse-Bash.json")))
			if decision != test.want {
				t.Errorf("decision %q (%s), want %q", decision, reason, test.want)
			}
			if decision == "deny" && !strings.Contains(reason, "did not run") {
				t.Errorf("the model is not told that the call did not run: %q", reason)
			}
			if o, _ := r.Auditor.Outcome(1); o.Status != test.outcome {
				t.Errorf("outcome %q, want %q", o.Status, test.outcome)
			}
		})
	}
}

func TestRecord(t *testing.T) {
	r := newRig(t, toolward.Allow)
	said(t, r.post("PreToolUse", r.recorded("PreToolUse-Bash-sub.json")))
	d := r.Auditor.Decisions()
	if len(d) != 1 {
		t.Fatalf("%d decisions", len(d))
	}
	got := d[0].Call
	if diff := cmp.Diff(toolward.Caller{
		Agent: "claude-code", Depth: 1, Context: "subagent", Sender: "general-purpose", Client: "Claude Code",
		Workspace: r.project, Connection: "hook:claude-code:11111111-2222-3333-4444-555555555555",
	}, got.Caller); diff != "" {
		t.Errorf("caller (-want +got)\n%s", diff)
	}
	if got.Session != sessionKey || got.Surface != toolward.SurfaceHook || !got.ByClient || got.NativeName != "Bash" ||
		got.WorkDir != r.project || got.Host != toolward.HostGateway || got.ID != "toolu_sub" || d[0].Tool != "exec" {
		t.Errorf("call %+v", got)
	}
	if want := `{"command":"echo insub"}`; string(d[0].Params.Canonical()) != want || d[0].Facts.Command != "echo insub" {
		t.Errorf("params %s, command %q", d[0].Params.Canonical(), d[0].Facts.Command)
	}
}

func TestOutcomes(t *testing.T) {
	for _, test := range []struct {
		name   string
		before string
		event  string
		body   string
		change map[string]any
		want   toolward.Status
		error  string // part of it
	}{
		{"ran", "PreToolUse-Bash.json", "PostToolUse", "PostToolUse-Bash.json", nil, toolward.StatusOK, ""},
		{"failed", "PreToolUse-Bash-failing.json", "PostToolUseFailure", "PostToolUseFailure-Bash.json", nil, toolward.StatusError, "Exit code 3"},
		{"interrupted", "PreToolUse-Bash-failing.json", "PostToolUseFailure", "PostToolUseFailure-Bash.json", map[string]any{"is_interrupt": true}, toolward.StatusAborted, ""},
		{"refused by the client itself", "PreToolUse-Bash.json", "PermissionDenied", "PostToolUse-Bash.json", map[string]any{"hook_event_name": "PermissionDenied", "reason": "a rule"}, toolward.StatusUnused, "a rule"},
		{"other arguments", "PreToolUse-Bash.json", "PostToolUse", "PostToolUse-Bash.json", map[string]any{"tool_input": map[string]any{"command": "rm -rf /"}}, toolward.StatusOK, "other arguments"},
		{"arguments that nobody knows", "PreToolUse-Bash.json", "PostToolUse", "PostToolUse-Bash.json", map[string]any{"tool_input": map[string]any{"command": "cat a.txt", "timeout": 5000, "shell": "sh"}}, toolward.StatusOK, "other arguments"},
		{"no outcome, turn over", "PreToolUse-Bash.json", "Stop", "Stop.json", nil, toolward.StatusUnknown, "no outcome"},
		{"no outcome, sub-agent over", "PreToolUse-Bash-sub.json", "SubagentStop", "SubagentStop-sub.json", nil, toolward.StatusUnknown, "no outcome"},
		{"no outcome, session over", "PreToolUse-Bash-sub.json", "SessionEnd", "SessionEnd.json", nil, toolward.StatusUnknown, "no outcome"},
		{"the turn of the main thread leaves sub-agents alone", "PreToolUse-Bash-sub.json", "Stop", "Stop.json", nil, "", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := newRig(t, toolward.Allow)
			if d, reason := said(t, r.post("PreToolUse", r.recorded(test.before))); d != "allow" {
				t.Fatalf("%s: %s", d, reason)
			}
			if a := r.post(test.event, r.event(test.body, test.change)); a.Exit != 0 {
				t.Errorf("exit %d: %s", a.Exit, a.Stderr)
			}
			o, _ := r.Auditor.Outcome(1)
			if o.Status != test.want || !strings.Contains(o.Error, test.error) {
				t.Errorf("outcome %q %q, want %q %q", o.Status, o.Error, test.want, test.error)
			}
		})
	}
}

// TestRefusedButRan: a client that runs what was refused must be seen.
func TestRefusedButRan(t *testing.T) {
	r := newRig(t, toolward.Deny)
	r.post("PreToolUse", r.recorded("PreToolUse-Bash.json"))
	if a := r.post("PostToolUse", r.recorded("PostToolUse-Bash.json")); !strings.Contains(string(a.Stdout), "refused this call") {
		t.Errorf("nobody is told: %s", a.Stdout)
	}
}

func TestTwoHooksAskOnce(t *testing.T) {
	r := newRig(t, toolward.Ask)
	asked := make(chan struct{})
	answer := make(chan struct{})
	r.Approver.AskFunc = func(context.Context, *toolward.Question) (toolward.Answer, error) {
		close(asked)
		<-answer
		return toolward.Answer{ApprovalID: "1", Decision: toolward.AllowOnce}, nil
	}
	body := r.recorded("PreToolUse-Bash.json")
	results := make(chan string, 2)
	ask := func() {
		d, _ := said(t, r.post("PreToolUse", body))
		results <- d
	}
	go ask()
	<-asked
	go ask() // a second question would close the channel again and panic
	close(answer)
	if a, b := <-results, <-results; a != "allow" || b != "allow" {
		t.Errorf("answers %q and %q", a, b)
	}
	if n := len(r.Auditor.Decisions()); n != 1 {
		t.Errorf("%d decisions for one call", n)
	}
}

func TestSameIdForAnotherCall(t *testing.T) {
	r := newRig(t, toolward.Allow)
	r.post("PreToolUse", r.recorded("PreToolUse-Bash.json"))
	r.post("PreToolUse", r.event("PreToolUse-Bash.json", map[string]any{"tool_input": map[string]any{"command": "id"}}))
	if n := len(r.Auditor.Decisions()); n != 2 {
		t.Errorf("%d decisions for two calls", n)
	}
	if o, _ := r.Auditor.Outcome(1); o.Status != toolward.StatusUnknown {
		t.Errorf("the first call ended as %q", o.Status)
	}
}

func TestClientGoneBeforeTheAnswer(t *testing.T) {
	r := newRig(t, toolward.Allow)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r.postContext(ctx, "PreToolUse", r.recorded("PreToolUse-Bash.json"))
	if o, _ := r.Auditor.Outcome(1); o.Status != toolward.StatusUnused && o.Status != toolward.StatusDenied {
		t.Errorf("outcome %q", o.Status)
	}
}

func TestAttended(t *testing.T) {
	for _, test := range []struct {
		name, mode, attended string
		verdict              toolward.Verdict
		want                 string
	}{
		{"the client asks its person", bridge.AttendedClient, "1", toolward.Ask, "ask"},
		{"a headless session asks Toolward", bridge.AttendedClient, "0", toolward.Ask, "deny"},
		{"Toolward asks by default", "", "1", toolward.Ask, "deny"},
		{"refused stays refused", bridge.AttendedClient, "1", toolward.Deny, "deny"},
		{"allowed is not asked", bridge.AttendedClient, "1", toolward.Allow, "allow"},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := newRig(t, test.verdict, func(c *bridge.Config) { c.Attended = test.mode })
			r.headers["Toolward-Attended"] = test.attended
			if d, reason := said(t, r.post("PreToolUse", r.recorded("PreToolUse-Bash.json"))); d != test.want {
				t.Errorf("%q (%s), want %q", d, reason, test.want)
			}
			if test.want != "ask" {
				return
			}
			if n := len(r.Approver.Asked()); n != 0 {
				t.Errorf("asked here %d times, too", n)
			}
			r.post("Stop", r.recorded("Stop.json"))
			if o, _ := r.Auditor.Outcome(1); o.Status != toolward.StatusUnused {
				t.Errorf("a call that its person declined ended as %q", o.Status)
			}
		})
	}
}

func TestExternalContent(t *testing.T) {
	for _, test := range []struct {
		name, before, event, body string
		want                      []string
	}{
		{"MCP tool", "PreToolUse-mcp.json", "PostToolUse", "PostToolUse-mcp.json", []string{"mcp:Srv"}},
		{"web fetch that failed", "PreToolUse-WebFetch.json", "PostToolUseFailure", "PostToolUseFailure-WebFetch.json", []string{"http://127.0.0.1:1"}},
		{"command", "PreToolUse-Bash.json", "PostToolUse", "PostToolUse-Bash.json", nil},
		{"MCP tool of a call that the daemon does not know", "", "PostToolUse", "PostToolUse-mcp.json", []string{"mcp:Srv"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := newRig(t, toolward.Allow)
			if test.before != "" {
				r.post("PreToolUse", r.recorded(test.before))
			}
			r.post(test.event, r.recorded(test.body))
			got := append(r.Sessions.Exposed(sessionKey), r.reports.exposed...)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestBadEvents(t *testing.T) {
	r := newRig(t, toolward.Allow)
	for _, test := range []struct {
		name string
		body []byte
	}{
		{"empty", nil},
		{"not JSON", []byte("hello")},
		{"array", []byte("[]")},
		{"another event than installed", r.recorded("Stop.json")},
		{"no session", r.event("PreToolUse-Bash.json", map[string]any{"session_id": nil})},
		{"session that forges a key", r.event("PreToolUse-Bash.json", map[string]any{"session_id": "a:b"})},
		{"agent that is a path", r.event("PreToolUse-Bash.json", map[string]any{"agent_id": "../x"})},
		{"relative directory", r.event("PreToolUse-Bash.json", map[string]any{"cwd": "x"})},
		{"no tool", r.event("PreToolUse-Bash.json", map[string]any{"tool_name": nil})},
		{"no call id", r.event("PreToolUse-Bash.json", map[string]any{"tool_use_id": nil})},
		{"no input", r.event("PreToolUse-Bash.json", map[string]any{"tool_input": nil})},
		{"input that is no object", r.event("PreToolUse-Bash.json", map[string]any{"tool_input": "x"})},
		{"required argument missing", r.event("PreToolUse-Bash.json", map[string]any{"tool_input": map[string]any{}})},
		{"wrong type", r.event("PreToolUse-Bash.json", map[string]any{"tool_input": map[string]any{"command": 5}})},
		{"tool name with a line break", r.event("PreToolUse-Bash.json", map[string]any{"tool_name": "mcp__a\nb"})},
		{"tool name that is too long", r.event("PreToolUse-Bash.json", map[string]any{"tool_name": strings.Repeat("x", 200)})},
		{"path with NUL", r.event("PreToolUse-Read.json", map[string]any{"tool_input": map[string]any{"file_path": "/a\x00b"}})},
	} {
		t.Run(test.name, func(t *testing.T) {
			if d, _ := said(t, r.post("PreToolUse", test.body)); d != "deny" && d != "exit 2" {
				t.Errorf("decision %q", d)
			}
		})
	}
}

func TestCanaryIsAlwaysRefused(t *testing.T) {
	r := newRig(t, toolward.Allow)
	if d, _ := said(t, r.post("PreToolUse", r.event("PreToolUse-Bash.json", map[string]any{"tool_name": bridge.CanaryTool}))); d != "deny" {
		t.Errorf("decision %q", d)
	}
}

func TestPanicRefuses(t *testing.T) {
	r := newRig(t, toolward.Allow, func(c *bridge.Config) { c.Redact = func(string) (string, bool) { panic("bug") } })
	if a := r.post("PostToolUse", r.recorded("PostToolUse-Bash.json")); a.Exit != 2 || len(a.Stderr) == 0 {
		t.Errorf("%+v", a)
	}
}

// TestOpenCallsAreBounded: a client that never reports outcomes must not fill the daemon.
func TestOpenCallsAreBounded(t *testing.T) {
	r := newRig(t, toolward.Allow, func(c *bridge.Config) { c.MaxOpen = 3 })
	for _, id := range []string{"a", "b", "c", "d", "e"} {
		r.post("PreToolUse", r.event("PreToolUse-Bash.json", map[string]any{"tool_use_id": id}))
	}
	for id, want := range map[toolward.RecordID]toolward.Status{1: toolward.StatusUnknown, 2: toolward.StatusUnknown, 3: "", 4: "", 5: ""} {
		if o, _ := r.Auditor.Outcome(id); o.Status != want {
			t.Errorf("call %d ended as %q, want %q", id, o.Status, want)
		}
	}
	r.handler.Close(t.Context())
	if o, _ := r.Auditor.Outcome(5); o.Status != toolward.StatusUnknown {
		t.Errorf("an open call ended as %q at shutdown", o.Status)
	}
}

// TestOpenBytesAreBounded: a hundred calls of a megabyte fill the daemon as well as ten thousand small ones.
func TestOpenBytesAreBounded(t *testing.T) {
	r := newRig(t, toolward.Allow)
	big := strings.Repeat("x", 900_000)
	for i := range 40 {
		r.post("PreToolUse", r.event("PreToolUse-Bash.json", map[string]any{
			"tool_use_id": fmt.Sprint(i), "tool_input": map[string]any{"command": "echo " + big},
		}))
	}
	if o, _ := r.Auditor.Outcome(1); o.Status != toolward.StatusUnknown {
		t.Errorf("the first of 40 big calls is still kept: %q", o.Status)
	}
	if o, _ := r.Auditor.Outcome(40); o.Status != "" {
		t.Errorf("the last one is not kept: %q", o.Status)
	}
}
