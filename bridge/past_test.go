package bridge_test

import (
	"context"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/bridge"
	"github.com/toolward/toolward/place"
)

// pastRig tells calls of the past in a home of its own.
type pastRig struct {
	t             *testing.T
	past          *bridge.Past
	home, project string
}

func newPastRig(t *testing.T) *pastRig {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	r := &pastRig{t: t, home: filepath.Join(root, "home"), project: filepath.Join(root, "gone")} // neither is there
	r.past, err = bridge.NewPast(bridge.Config{
		Layout: place.Layout{Home: r.home, StateDir: r.home + "/.toolward", ConfigFile: r.home + "/.toolward/toolward.jsonc"},
		Command: func(_ context.Context, _ *toolward.Request, command string, machine bool) (toolward.Facts, error) {
			facts := toolward.Facts{Command: command}
			if machine {
				facts.HostWhy = "machine"
			}
			return facts, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// facts are those that a gateway would have been told.
func (r *pastRig) facts(client, tool, arguments string) (call toolward.Call, known bool, facts toolward.Facts) {
	r.t.Helper()
	call, known, err := r.past.Call(&bridge.PastCall{
		Client: client, Session: "ses:1/2", Project: r.project, WorkDir: filepath.Join(r.project, "sub"), ID: "1", Tool: tool, Arguments: json.RawMessage(arguments),
	})
	if err != nil {
		r.t.Fatalf("%s %s: %v", client, tool, err)
	}
	params, err := call.Form.Decode(call.Arguments)
	if err != nil {
		r.t.Fatalf("%s %s: %v", client, tool, err)
	}
	facts, err = call.Form.Facts(r.t.Context(), &toolward.Request{Call: call, Tool: call.Form, Params: params})
	if err != nil {
		r.t.Fatalf("%s %s: %v", client, tool, err)
	}
	return call, known, facts
}

// What the tools of each client are in Toolward's words, and which files of the workspace they touch.
func TestPastCallsOfEachClient(t *testing.T) {
	r := newPastRig(t)
	for _, c := range []struct{ client, tool, arguments, want string }{
		{"claude-code", "Read", `{"file_path":"a.go"}`, "read: read workspace sub/a.go"},
		{"claude-code", "Task", `{"description":"d","prompt":"p","subagent_type":"explore"}`, "sessions_spawn: explore"},
		{"codex", "exec_command", `{"command":"ls -la"}`, "exec: $ ls -la"},
		{"codex", "exec_command", `{"command":"ls","escalated":true}`, "exec: $ ls, machine, sandbox_off"},
		{"claude-code", "Bash", `{"command":"ls","dangerouslyDisableSandbox":true}`, "exec: $ ls, machine, sandbox_off"},
		{"codex", "exec_command", `{"command":"python3","tty":true}`, "exec: $ python3, unguarded"},
		{
			"codex", "apply_patch", `{"input":"*** Begin Patch\n*** Update File: a.go\n*** Move to: ../b.go\n@@\n-x\n+y\n*** Delete File: c.go\n*** End Patch"}`,
			"apply_patch: write workspace sub/a.go, write workspace b.go, delete workspace sub/c.go",
		},
		{"codex", "apply_patch", `{"input":"  *** Add File: ~/.ssh/authorized_keys\n+key"}`, "apply_patch: write secret ~/.ssh/authorized_keys"},
		{"codex", "apply_patch", `{"input":"nothing"}`, "apply_patch: patch"},
		{"codex", "apply_patch", `{"input":"*** Add File: a\u0000b\n*** Add File: ok"}`, "apply_patch: write workspace sub/ok, patch"},
		{"codex", "write_stdin", `{"session_id":1,"chars":"rm -rf /\n"}`, "process write"},
		{"codex", "write_stdin:poll", `{"session_id":1,"chars":""}`, "process poll"},
		{"codex", "update_plan", `{"plan":[]}`, "client updateplan"},
		{"gemini", "run_shell_command", `{"command":"ls","dir_path":"sub"}`, "exec: $ ls"},
		{"gemini", "read_file", `{"file_path":"~/.ssh/id_rsa"}`, "read: read secret ~/.ssh/id_rsa"},
		{"gemini", "search_file_content", `{"pattern":"x"}`, "read grep: read workspace sub"},
		{"gemini", "replace", `{"file_path":"a","old_string":"x","new_string":"y","instruction":"z"}`, "edit: write workspace sub/a"},
		{"gemini", "web_fetch", `{"prompt":"read https://example.com/a and say"}`, "web_fetch: https://example.com:443"},
		{"copilot", "bash", `{"command":"ls","description":"d","mode":"sync"}`, "exec: $ ls"},
		{"copilot", "create", `{"path":"a","file_text":"x"}`, "write: write workspace sub/a"},
		{"copilot", "rg", `{"pattern":"x"}`, "read grep: read workspace sub"},
		{"copilot", "grep", `{"pattern":"x","paths":["a","~/.ssh/id_rsa"]}`, "read grep: read workspace sub/a, read secret ~/.ssh/id_rsa"},
		{"copilot", "grep", `{"pattern":"x","paths":[7]}`, "read grep: search_place"},
		{"copilot", "grep", `{"pattern":"x","paths":7}`, "read grep: search_place"},
		{"opencode", "bash", `{"command":"ls","workdir":"/x","description":"d"}`, "exec: $ ls"},
		{"opencode", "edit", `{"filePath":"a","oldString":"x","newString":"y"}`, "edit: write workspace sub/a"},
		{"opencode", "webfetch", `{"url":"https://example.com/","format":"text"}`, "web_fetch: https://example.com:443"},
	} {
		call, known, facts := r.facts(c.client, c.tool, c.arguments)
		if got := r.words(&call, &facts); got != c.want || !known {
			t.Errorf("%s %s %s: %s (known %t), want %s", c.client, c.tool, c.arguments, got, known, c.want)
		}
	}
}

// words are the facts of a call in short.
func (r *pastRig) words(call *toolward.Call, facts *toolward.Facts) string {
	head := call.Form.Name
	if facts.Action != "" {
		head += " " + facts.Action
	}
	var parts []string
	if facts.Command != "" {
		parts = append(parts, "$ "+facts.Command)
	}
	for _, target := range facts.Targets {
		where := strings.NewReplacer(r.project+"/", "", r.home, "~").Replace(target.Real)
		parts = append(parts, string(target.Op)+" "+string(target.Zone)+" "+where)
	}
	if facts.HostWhy != "" {
		parts = append(parts, facts.HostWhy)
	}
	parts = append(parts, facts.Hosts...)
	if call.Form.Name == "sessions_spawn" {
		parts = append(parts, facts.TargetID)
	}
	for _, f := range facts.Findings {
		parts = append(parts, f.Code)
	}
	if len(parts) == 0 {
		return head
	}
	return head + ": " + strings.Join(parts, ", ")
}

// A tool, or an argument, that no table has makes an unknown tool, which passes for none of ours.
func TestPastCallsOfUnknownTools(t *testing.T) {
	r := newPastRig(t)
	for _, c := range []struct{ client, tool, arguments, name string }{
		{"claude-code", "mcp__github__create_issue", `{}`, "mcp__github__create_issue"},
		{"claude-code", "Bash", `{"command":"ls","asRoot":true}`, "claude-code/bash"},
		{"codex", "exec", `{"command":"ls"}`, "codex/exec"},
		{"gemini", "read", `{}`, "gemini/read"},
		{"copilot", "skill", `{"skill":"x"}`, "copilot/skill"},
		{"opencode", "server_tool", `{}`, "opencode/server_tool"},
	} {
		call, known, facts := r.facts(c.client, c.tool, c.arguments)
		if known || call.Tool != c.name || call.Form.Plugin == "" || !facts.Mutates {
			t.Errorf("%s %s: known %t, %s of %q", c.client, c.tool, known, call.Tool, call.Form.Plugin)
		}
	}
	for _, past := range []bridge.PastCall{
		{Client: "nobody", Session: "s", WorkDir: "/w", Tool: "x"},
		{Client: "codex", Session: "s", WorkDir: "relative", Tool: "x"},
		{Client: "codex", Session: "s", WorkDir: "/w", Tool: "a tool\n"},
		{Client: "codex", Session: "", WorkDir: "/w", Tool: "x"},
	} {
		if _, _, err := r.past.Call(&past); err == nil {
			t.Errorf("%+v is a call", past)
		}
	}
}

// What the hook puts to the gateway and what is told of the same call afterwards is one call.
func TestPastIsWhatTheHookSaid(t *testing.T) {
	r := newRig(t, toolward.Allow)
	asked := r.recorded("PreToolUse-Bash.json")
	var event struct {
		Session string          `json:"session_id"`
		WorkDir string          `json:"cwd"`
		ID      string          `json:"tool_use_id"`
		Tool    string          `json:"tool_name"`
		Input   json.RawMessage `json:"tool_input"`
		Prompt  string          `json:"prompt_id"`
	}
	if err := json.Unmarshal(asked, &event); err != nil {
		t.Fatal(err)
	}
	r.post("PreToolUse", asked)
	decisions := r.Auditor.Decisions()
	if len(decisions) != 1 {
		t.Fatalf("%d decisions", len(decisions))
	}
	past, err := bridge.NewPast(bridge.Config{Layout: r.layout()})
	if err != nil {
		t.Fatal(err)
	}
	told, _, err := past.Call(&bridge.PastCall{
		Client: bridge.ClaudeCode, Session: event.Session, Project: r.project, WorkDir: event.WorkDir, ID: event.ID, Tool: event.Tool, Arguments: event.Input,
	})
	if err != nil {
		t.Fatal(err)
	}
	said := decisions[0].Call
	if event.Prompt != "" {
		told.Run = said.Run // transcripts do not name it
	}
	if told.Tool != said.Tool || told.NativeName != said.NativeName || string(told.Arguments) != string(said.Arguments) || told.Session != said.Session ||
		told.WorkDir != said.WorkDir || told.Caller.Workspace != said.Caller.Workspace || told.Caller.Agent != said.Caller.Agent || told.Surface != said.Surface ||
		told.Host != said.Host || told.ByClient != said.ByClient || told.Caller.Context != said.Caller.Context || told.Caller.Owner != said.Caller.Owner {
		t.Errorf("told %+v\nsaid %+v", told, said)
	}
	if !slices.Contains(bridge.ToolNames(), told.Tool) {
		t.Errorf("%s is no tool of a client", told.Tool)
	}
}
