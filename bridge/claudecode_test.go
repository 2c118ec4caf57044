package bridge_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
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

func TestContextUse(t *testing.T) {
	r := newRig(t, toolward.Allow)
	transcript := filepath.Join(r.project, "transcript.jsonl")
	body := func(extra string) []byte {
		return r.event("PreToolUse-Bash.json", map[string]any{"transcript_path": transcript, "tool_use_id": extra})
	}
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(transcript, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	recorded := string(r.recorded("transcript.jsonl"))
	answer := `{"type":"assistant","message":{"model":"claude-haiku-4","usage":{"input_tokens":10,"cache_creation_input_tokens":20,"cache_read_input_tokens":170000,"output_tokens":3}}}` + "\n"

	for i, step := range []struct {
		name           string
		text           string
		tokens, window int64
		compacted      int
	}{
		{"recorded", recorded, 1002, 1_000_000, 0},
		{"cache counts, unknown model", recorded + answer, 170_030, 200_000, 0},
		{"a long result after the last answer", answer + `{"type":"user","x":"` + strings.Repeat("a", 300<<10) + `"}` + "\n", 170_030, 200_000, 0},
		{"compacted after the last answer", answer + `{"type":"system","subtype":"compact_boundary"}` + "\n", 170_030, 200_000, 1},
		{"an answer without a number", strings.Replace(answer, "170000", "1e30", 1), -1, 200_000, 1},
		{"an answer that is being written", answer + `{"type":"assistant","message":{"usage":{"input_tokens":1`, 170_030, 200_000, 1},
		{"so much that the last answer is not found", answer + strings.Repeat("{\"type\":\"user\"}\n", 300<<10), -1, 200_000, 1},
		{"negative", strings.Replace(answer, "170000", "-5", 1), -1, 200_000, 1},
		{"an answer quoted in a tool's result", answer + `{"type":"user","message":{"usage":{"input_tokens":1},"role":"assistant"}}` + "\n", 170_030, 200_000, 1},
	} {
		t.Run(step.name, func(t *testing.T) {
			write(step.text)
			r.post("PreToolUse", body("toolu_use_"+string(rune('a'+i))))
			last := len(r.reports.tokens) - 1
			if last < 0 || r.reports.tokens[last] != step.tokens || r.reports.windows[last] != step.window || r.reports.compacted != step.compacted {
				t.Errorf("tokens %v of %v, compacted %d", r.reports.tokens, r.reports.windows, r.reports.compacted)
			}
		})
	}
	r.post("PreCompact", r.event("Stop.json", map[string]any{"hook_event_name": "PreCompact", "trigger": "auto"}))
	r.post("SessionStart", r.event("SessionStart.json", map[string]any{"source": "compact"}))
	if r.reports.compacted != 3 {
		t.Errorf("compacted %d times, want 3", r.reports.compacted)
	}
}

// TestFirstCall: the client writes its transcript behind, and a session must not be tense for that.
func TestFirstCall(t *testing.T) {
	r := newRig(t, toolward.Allow)
	transcript := filepath.Join(r.project, "t.jsonl")
	for _, text := range []string{"", `{"type":"user","message":{"role":"user","content":"go"}}` + "\n"} {
		if err := os.WriteFile(transcript, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		r.post("PreToolUse", r.event("PreToolUse-Bash.json", map[string]any{"transcript_path": transcript}))
	}
	if len(r.reports.tokens) != 0 {
		t.Errorf("reported %v", r.reports.tokens)
	}
}

func TestSessionThatCannotBeNotedRefuses(t *testing.T) {
	r := newRig(t, toolward.Allow)
	r.reports.err = errors.New("disk full")
	transcript := filepath.Join(r.project, "t.jsonl")
	if err := os.WriteFile(transcript, r.recorded("transcript.jsonl"), 0o600); err != nil {
		t.Fatal(err)
	}
	if d, _ := said(t, r.post("PreToolUse", r.event("PreToolUse-Bash.json", map[string]any{"transcript_path": transcript}))); d != "deny" {
		t.Errorf("decision %q", d)
	}
	if a := r.post("PreCompact", r.event("Stop.json", map[string]any{"hook_event_name": "PreCompact"})); a.Exit != 2 || len(a.Stderr) == 0 {
		t.Errorf("compaction went on unnoted: %+v", a)
	}
}

func TestRedaction(t *testing.T) {
	for _, test := range []struct {
		name   string
		body   string
		change map[string]any
		want   string // the answer, or a part if it begins with …
	}{
		{"command", "PostToolUse-Bash.json", nil, `{"hookSpecificOutput":{"hookEventName":"PostToolUse","updatedToolOutput":{"stdout":"token [hidden]","stderr":"","interrupted":false,"isImage":false,"noOutputExpected":false}}}`},
		{"file", "PostToolUse-Read.json", nil, `…"content":"token [hidden]\n","numLines":2`},
		{"MCP", "PostToolUse-mcp.json", nil, `…"updatedToolOutput":[{"type":"text","text":"the secret is [hidden]"}]`},
		{"search", "PostToolUse-Grep.json", nil, `…a.txt:1:token [hidden]`},
		{"nothing to hide", "PostToolUse-Edit.json", nil, ""},
		{"keys and numbers stay", "PostToolUse-Bash.json", map[string]any{"tool_response": map[string]any{secret: 1, "b": []any{secret, nil, true}}}, `…{"b":["[hidden]",null,true],"` + secret + `":1}`},
		{"an image is left alone", "PostToolUse-Read.json", map[string]any{"tool_response": map[string]any{"base64": secret}}, ""},
		{"a tool whose answer is unknown", "PostToolUse-Agent.json", map[string]any{"tool_response": map[string]any{"x": secret}}, `{"systemMessage":"Toolward: the result of Agent holds a secret, and it is not known whether the client lets it be hidden."}`},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := newRig(t, toolward.Allow)
			a := r.post("PostToolUse", r.event(test.body, test.change))
			part, isPart := strings.CutPrefix(test.want, "…")
			if a.Exit != 0 || (isPart && !strings.Contains(string(a.Stdout), part)) || (!isPart && string(a.Stdout) != test.want && !sameJSON(string(a.Stdout), test.want)) {
				t.Errorf("got  %s\nwant %s", a.Stdout, test.want)
			}
		})
	}
}

func TestSearchHidesLinesOfSecretFiles(t *testing.T) {
	r := newRig(t, toolward.Allow)
	if err := os.WriteFile(filepath.Join(r.project, ".env"), []byte("KEY=1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	content := "main.go:3:KEY\n.env:1:KEY=1\n.env-2-OTHER=2\nREADME.md:9:see .env:1:KEY\n"
	a := r.post("PostToolUse", r.event("PostToolUse-Grep.json", map[string]any{"tool_response": map[string]any{"mode": "content", "content": content}}))
	for _, hidden := range []string{"KEY=1", "OTHER=2"} {
		if strings.Contains(string(a.Stdout), hidden) {
			t.Errorf("%s is shown: %s", hidden, a.Stdout)
		}
	}
	for _, shown := range []string{"main.go:3:KEY", "README.md:9:see .env:1:KEY"} {
		if !strings.Contains(string(a.Stdout), shown) {
			t.Errorf("%s is hidden: %s", shown, a.Stdout)
		}
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
