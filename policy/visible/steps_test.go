package visible

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/toolward/toolward"
)

// TestLayersSaysWhatEachStepDoes: all ten are there, in order, with their keys and what they take.
func TestLayersSaysWhatEachStepDoes(t *testing.T) {
	s := compile(t, Config{
		Tools:  Tools{Profile: "coding", Deny: []string{"process"}},
		Agents: []Agent{{ID: "coder", Tools: Tools{Allow: []string{"group:fs", "exec", "process", "no_such"}, SelfLimit: []string{"exec"}}}},
	}, coreTools()...)
	steps := s.Layers(toolward.Caller{Agent: "coder"})
	var labels []string
	taken := map[string][]string{}
	for _, step := range steps {
		label := step.Label
		if step.Absent != "" {
			label = "-" + label
		}
		labels = append(labels, label)
		for _, r := range step.Removed {
			taken[step.Label] = append(taken[step.Label], r.Tool)
		}
	}
	want := []string{
		"before the layers", "tools.profile (coding)", "-tools.provider-profile", "tools.global", "-tools.global-provider",
		"tools.agent (coder)", "-tools.agent-provider", "-group tools.allow", "-sandbox tools.allow", "-subagent tools.allow",
		"tools.self-limit (coder)", "-inherited tools",
	}
	if diff := cmp.Diff(want, labels); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if diff := cmp.Diff([]string{"process"}, taken["tools.global"]); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"exec"}, taken["tools.self-limit (coder)"]); diff != "" {
		t.Error(diff)
	}
	agent := steps[5]
	if agent.Number != 5 || agent.AllowKey != "agents.list[0].tools.allow" || !slices.Equal(agent.Unknown, []string{"no_such"}) {
		t.Errorf("%+v", agent)
	}
}
