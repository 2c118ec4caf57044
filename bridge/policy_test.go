package bridge_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/policy"
	"github.com/toolward/toolward/policy/visible"
)

// TestUnderTheRealPolicy judges calls of the client by the class table, without any tool of Toolward registered.
func TestUnderTheRealPolicy(t *testing.T) {
	for _, test := range []struct {
		name        string
		config      policy.Config
		owner       bool
		tool, input string
		want        string // allow, ask, or the code of the refusal
	}{
		{"read in the workspace", policy.Config{}, false, "Read", `{"file_path":"a.txt"}`, "allow"},
		{"read outside", policy.Config{}, false, "Read", `{"file_path":"/etc/hostname"}`, "allow"},
		{"read of a secret", policy.Config{}, false, "Read", `{"file_path":".env"}`, "ask"},
		{"read of Toolward's own state", policy.Config{}, false, "Read", `{"file_path":"{{home}}/.toolward/state.db"}`, "blocked"},
		{"search in the workspace", policy.Config{}, false, "Grep", `{"pattern":"x"}`, "allow"},
		{"search from home", policy.Config{}, false, "Grep", `{"pattern":"x","path":"{{home}}"}`, "blocked"},
		{"file names", policy.Config{}, false, "Glob", `{"pattern":"*"}`, "allow"},
		{"write", policy.Config{}, false, "Write", `{"file_path":"a.txt","content":"x"}`, "ask"},
		{"write, preset workspace", policy.Config{TEG: policy.TEG{Preset: policy.PresetWorkspace}}, false, "Write", `{"file_path":"a.txt","content":"x"}`, "allow"},
		{"write of the client's settings, preset workspace", policy.Config{TEG: policy.TEG{Preset: policy.PresetWorkspace}}, false, "Edit", `{"file_path":".claude/settings.json","old_string":"a","new_string":"b"}`, "ask"},
		{"command", policy.Config{}, false, "Bash", `{"command":"ls"}`, "ask"},
		{"command of Monitor", policy.Config{}, false, "Monitor", `{"command":"ls","description":"d","timeout_ms":1000}`, "ask"},
		{"fetch", policy.Config{}, false, "WebFetch", `{"url":"https://example.org/","prompt":"p"}`, "allow"},
		{"fetch in the clear", policy.Config{}, false, "WebFetch", `{"url":"http://example.org:8080/","prompt":"p"}`, "allow"},
		{"fetch with credentials", policy.Config{}, false, "WebFetch", `{"url":"https://a:b@example.org/","prompt":"p"}`, "validation"},
		{"fetch from this machine", policy.Config{}, false, "WebFetch", `{"url":"http://127.0.0.1:7411/","prompt":"p"}`, "ask"},
		{"fetch from this machine by a number", policy.Config{}, false, "WebFetch", `{"url":"http://2130706433/","prompt":"p"}`, "ask"},
		{"fetch from this machine by few parts", policy.Config{}, false, "WebFetch", `{"url":"http://127.1/","prompt":"p"}`, "ask"},
		{"fetch from this machine in other digits", policy.Config{}, false, "WebFetch", `{"url":"https://①②⑦.0.0.1/","prompt":"p"}`, "ask"},
		{"fetch from this machine by name", policy.Config{}, false, "WebFetch", `{"url":"https://x.LOCALHOST./","prompt":"p"}`, "ask"},
		{"fetch of a cloud's credentials", policy.Config{}, false, "WebFetch", `{"url":"http://169.254.169.254./latest/","prompt":"p"}`, "ask"},
		{"fetch through a translated address", policy.Config{}, false, "WebFetch", `{"url":"http://[64:ff9b::7f00:1]/","prompt":"p"}`, "ask"},
		{"web search", policy.Config{}, false, "WebSearch", `{"query":"q"}`, "allow"},
		{"sub-agent", policy.Config{}, false, "Agent", `{"prompt":"p","description":"d"}`, "ask"},
		{"own shell", policy.Config{}, false, "TaskStop", `{"task_id":"x"}`, "allow"},
		{"to-do list", policy.Config{}, false, "TodoWrite", `{"todos":[]}`, "allow"},
		{"worktree", policy.Config{}, false, "EnterWorktree", `{"name":"x"}`, "ask"},
		{"timers belong to the owner", policy.Config{}, false, "CronList", `{}`, "unknown_tool"},
		{"the owner's timers", policy.Config{}, true, "CronList", `{}`, "allow"},
		{"a new timer", policy.Config{}, true, "CronCreate", `{"cron":"* * * * *","prompt":"p"}`, "ask"},
		{"MCP tool", policy.Config{}, false, "mcp__Srv__Look", `{"q":"x"}`, "ask"},
		{"MCP tool, denied by a glob", policy.Config{Tools: visible.Tools{Deny: []string{"mcp__srv__*"}}}, false, "mcp__Srv__Look", `{"q":"x"}`, "unknown_tool"},
		{"commands denied", policy.Config{Tools: visible.Tools{Deny: []string{"exec"}}}, false, "Bash", `{"command":"ls"}`, "unknown_tool"},
		{"commands denied do not come back with an unknown argument", policy.Config{Tools: visible.Tools{Allow: []string{"read"}}}, false, "Bash", `{"command":"ls","x":1}`, "unknown_tool"},
		{"unknown argument", policy.Config{}, false, "Read", `{"file_path":"a.txt","follow":true}`, "ask"},
		{"tool of a newer client", policy.Config{}, false, "Teleport", `{}`, "ask"},
		{"blank command", policy.Config{}, false, "Bash", `{"command":5}`, "invalid_args"},
	} {
		t.Run(test.name, func(t *testing.T) {
			snapshot, _, err := policy.Compile(test.config, nil)
			if err != nil {
				t.Fatal(err)
			}
			r := newRig(t, toolward.Deny)
			r.useGateway(r.With(t, func(c *toolward.Config) { c.Policy = policy.NewLive(snapshot) }), test.owner)
			if err := os.WriteFile(filepath.Join(r.project, "a.txt"), []byte("a\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			asked := false
			r.Approver.AskFunc = func(context.Context, *toolward.Question) (toolward.Answer, error) {
				asked = true
				return toolward.Answer{}, nil
			}
			d := r.decided(test.tool, test.input)
			got := fmt.Sprint(d.Verdict)
			switch {
			case asked:
				got = "ask"
			case d.Verdict == toolward.Deny:
				got = string(d.Code)
			}
			if got != test.want {
				t.Errorf("%s (%+v), want %s", got, d.Judgment.Reasons, test.want)
			}
		})
	}
}
