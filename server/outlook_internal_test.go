package server

import (
	"testing"

	"github.com/toolward/toolward/policy"
)

// What the page offers to type must look from where the page looks, else it answers another question.
func TestExplainCommandKeepsTheAngle(t *testing.T) {
	for _, test := range []struct {
		angle angle
		want  string
	}{
		{angle{As: "agent"}, "toolward explain exec --agent coder --args '{…}'"},
		{angle{As: "owner"}, "toolward explain exec --agent coder --owner --args '{…}'"},
		{angle{As: "subagent"}, "toolward explain exec --agent coder --depth 1 --args '{…}'"},
		{angle{As: "sandbox"}, "toolward explain exec --agent coder --sandboxed --args '{…}'"},
		{
			angle{As: "agent", Model: "openai/gpt-5", Session: "agent:coder:it's"},
			`toolward explain exec --agent coder --provider openai --model gpt-5 --session 'agent:coder:it'\''s' --args '{…}'`,
		},
	} {
		o := &ToolOutlook{As: test.angle.As, Agent: "coder", Outlook: policy.Outlook{Tool: "exec"}}
		if got := explainCommand(o, test.angle); got != test.want {
			t.Errorf("%+v: %s, want %s", test.angle, got, test.want)
		}
	}
}
