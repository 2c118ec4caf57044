package visible

import (
	"strings"

	"github.com/toolward/toolward"
)

// StepView is one step on the way from all tools to those that a caller sees.
type StepView struct {
	Number   int           `json:"number,omitempty"` // of the ten layers; 0 for the cuts around them
	Label    string        `json:"label"`
	Absent   string        `json:"absent,omitempty"` // why the step does not exist for this caller; "" if it does
	AllowKey string        `json:"allowKey,omitempty"`
	DenyKey  string        `json:"denyKey,omitempty"`
	Allow    []string      `json:"allow,omitempty"` // as in force; none: everything
	Deny     []string      `json:"deny,omitempty"`
	Unknown  []string      `json:"unknown,omitempty"`  // entries of the allow list that match nothing
	Stripped bool          `json:"stripped,omitempty"` // the allow list is ignored: it names nothing that is there
	Removed  []RemovedTool `json:"removed"`            // tools that this step is the first to take away
	layer    *layer
	cut      func(*toolward.Tool) (toolward.Reason, bool)
}

// RemovedTool is a tool that a step takes away.
type RemovedTool struct {
	Tool   string          `json:"tool"`
	Reason toolward.Reason `json:"reason"`
}

// pipelineStep is one of the ten layers, and why a caller may have none.
type pipelineStep struct{ label, absent string }

// pipelineSteps are the ten layers in their order. A label that names an agent or a profile goes on in brackets.
var pipelineSteps = [...]pipelineStep{
	{"tools.profile", "no profile is set"},
	{"tools.provider-profile", "no profile is set for the caller's model"},
	{"tools.global", "tools.allow and tools.deny are not set"},
	{"tools.global-provider", "tools.byProvider has no lists for the caller's model"},
	{"tools.agent", "the agent has no lists of its own"},
	{"tools.agent-provider", "the agent has no lists for the caller's model"},
	{"group tools.allow", "the caller is in no chat group that has lists"},
	{sandboxTools, "the session is not sandboxed"},
	{"subagent tools.allow", "the caller is not a sub-agent"},
	{inheritedLayer, "no parent handed limits down"},
}

// selfLimitStep stands between the ninth layer and the tenth.
const selfLimitStep = "tools.self-limit"

func (p pipelineStep) is(label string) bool {
	return label == p.label || strings.HasPrefix(label, p.label+" (")
}

// Layers lists every step for a caller in order, with what each takes away: the cuts before the layers, the ten layers
// with those that the caller has not, what the agent gives up for itself, and the cut of the HTTP endpoint.
func (b *Book) Layers(c toolward.Caller) []StepView {
	a := b.agentOf(&c)
	if a == nil {
		return nil
	}
	steps := b.view(a, &c).stepViews()
	for _, t := range b.rules.inventory.tools {
		for i := range steps {
			if reason, gone := steps[i].takes(t); gone {
				steps[i].Removed = append(steps[i].Removed, RemovedTool{t.Name, reason})
				break
			}
		}
	}
	return steps
}

// StepResult is what one step says about one tool.
type StepResult struct {
	Number int              `json:"number,omitempty"`
	Label  string           `json:"label"`
	Absent string           `json:"absent,omitempty"` // why the step does not exist for this caller
	Takes  *toolward.Reason `json:"takes,omitempty"`  // why the step takes the tool away; nil if it does not
}

// LayerTrace tells what every step says about one tool, also the steps after the one that takes it away: whoever
// changes the first must know about the next.
func (b *Book) LayerTrace(c toolward.Caller, name string) []StepResult {
	a := b.agentOf(&c)
	if a == nil {
		return nil
	}
	t := b.tools[name]
	if t == nil {
		t = &toolward.Tool{Name: NormalizeName(name)}
	}
	var out []StepResult
	for _, step := range b.view(a, &c).stepViews() {
		r := StepResult{Number: step.Number, Label: step.Label, Absent: step.Absent}
		if reason, gone := step.takes(t); gone {
			r.Takes = &reason
		}
		out = append(out, r)
	}
	return out
}

// takes reports whether the step takes a tool away, and why.
func (v *StepView) takes(t *toolward.Tool) (toolward.Reason, bool) {
	switch {
	case v.cut != nil:
		return v.cut(t)
	case v.layer != nil:
		return pipeline{v.layer}.remover(t.Name, t.Plugin)
	}
	return toolward.Reason{}, false
}

// stepViews lays the caller's layers beside the ten that there are.
func (v *view) stepViews() []StepView {
	steps := []StepView{{Label: "before the layers", cut: v.before, Removed: []RemovedTool{}}}
	add := func(number int, of pipelineStep) {
		found := false
		for _, l := range v.pipeline {
			if of.is(l.label) {
				found = true
				steps = append(steps, l.stepView(number))
			}
		}
		if !found && of.absent != "" {
			steps = append(steps, StepView{Number: number, Label: of.label, Absent: of.absent, Removed: []RemovedTool{}})
		}
	}
	for i, of := range pipelineSteps {
		if of.label == inheritedLayer {
			add(0, pipelineStep{label: selfLimitStep})
		}
		add(i+1, of)
	}
	if v.http != nil {
		steps = append(steps, StepView{Label: httpLayer, cut: v.after, Removed: []RemovedTool{}})
	}
	return steps
}

func (l *layer) stepView(number int) StepView {
	return StepView{
		Number: number, Label: l.label, AllowKey: l.allowKey, DenyKey: l.denyKey, Allow: l.effective.Allow, Deny: l.effective.Deny,
		Unknown: l.unknown, Stripped: l.stripped, Removed: []RemovedTool{}, layer: l,
	}
}
