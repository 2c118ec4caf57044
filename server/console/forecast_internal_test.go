package console

import (
	"testing"

	"github.com/toolward/toolward/policy"
	"github.com/toolward/toolward/server/api"
)

// What the page offers to type must look from where the page looks, else it answers another question.
func TestExplainCommandKeepsTheAngle(t *testing.T) {
	for _, test := range []struct {
		angle api.Angle
		want  string
	}{
		{api.Angle{As: "agent"}, "toolward explain exec --agent coder --args '{…}'"},
		{api.Angle{As: "owner"}, "toolward explain exec --agent coder --owner --args '{…}'"},
		{api.Angle{As: "subagent"}, "toolward explain exec --agent coder --depth 1 --args '{…}'"},
		{api.Angle{As: "sandbox"}, "toolward explain exec --agent coder --sandboxed --args '{…}'"},
		{
			api.Angle{As: "agent", Model: "openai/gpt-5", Session: "agent:coder:it's"},
			`toolward explain exec --agent coder --provider openai --model gpt-5 --session 'agent:coder:it'\''s' --args '{…}'`,
		},
	} {
		o := &api.ToolForecast{As: test.angle.As, Agent: "coder", Forecast: policy.Forecast{Tool: "exec"}}
		if got := explainCommand(o, test.angle); got != test.want {
			t.Errorf("%+v: %s, want %s", test.angle, got, test.want)
		}
	}
}
