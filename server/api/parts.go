package api

import (
	"context"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/policy"
	"github.com/toolward/toolward/policy/visible"
	"github.com/toolward/toolward/sandbox/fleet"
	"github.com/toolward/toolward/sandbox/settings"
)

// Explainer says what would happen to a call. The gateway implements it.
type Explainer interface {
	Explain(context.Context, toolward.Call, toolward.ExplainOptions) toolward.Trace
}

// Policy is the tool policy in force, as people look at it. policy.Snapshot implements it.
//
// Only signed-in people see any of this: an agent that could read which tools others have, and which rows let them
// through, would know what to aim at.
type Policy interface {
	Revision() string
	View(toolward.Caller) []visible.ToolView
	KnownTools() []visible.KnownTool
	Knows(tool string) bool
	AgentIDs() []string
	Forecast(caller toolward.Caller, tool string, level toolward.Level) policy.Forecast
	Layers(toolward.Caller) []visible.StepView
	LayerTrace(caller toolward.Caller, tool string) []visible.StepResult
	ListWarnings(toolward.Caller) []visible.ListWarning
	SandboxTools(toolward.Caller) visible.SandboxPolicy
}

// Sandboxes has the sandboxes of the gateway. The manager of package sandbox implements it.
type Sandboxes interface {
	List(ctx context.Context) ([]fleet.Info, error)
	// Describe says everything that is known of one; sandbox.CodeNotFound if there is none of that name.
	Describe(ctx context.Context, name string) (*fleet.Detail, error)
	// Usage says what those use that run, by name. It returns when ctx ends with what is known by then.
	Usage(ctx context.Context, infos []fleet.Info) map[string]fleet.Usage
	// Found says what the engines can enforce here, without waiting for any.
	Found() []fleet.Found
	Settings() *settings.Settings
}
