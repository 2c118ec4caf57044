package plugin_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/internal/gatetest"
	"github.com/toolward/toolward/plugin"
)

// flow is the input of a case of kind "hookFlow": what policy says of the model's call and of any other, what the
// plug-in does, and what a person answers.
type flow struct {
	First, Second toolward.Verdict
	Params        json.RawMessage
	Hook          *struct {
		Block, Timeout, Error, RequireApproval bool
		Params                                 any
	}
	Decision toolward.Decision
}

// The cases are the root package's, which runs them on the gateway alone; here a real runner calls the plug-in.
func TestHookFlowVectors(t *testing.T) {
	t.Chdir("..")
	gatetest.Run(t, "policy.json", "hookFlow", func(t *testing.T, input json.RawMessage) (answer any) {
		var in flow
		gatetest.Decode(t, input, &in)
		synctest.Test(t, func(t *testing.T) { answer = in.play(t) })
		return answer
	})
}

func (in *flow) play(t *testing.T) map[string]any {
	var reached atomic.Bool
	registry := plugin.NewRegistry()
	if in.Hook != nil {
		registry = registryOf(t, before{id: "guard", f: func(context.Context, plugin.BeforeToolCallEvent) (out plugin.BeforeToolCallResult, err error) {
			reached.Store(true)
			switch {
			case in.Hook.Timeout:
				time.Sleep(time.Hour)
			case in.Hook.Error:
				err = errors.New("failed")
			}
			out.Block, out.RequireApproval = in.Hook.Block, in.Hook.RequireApproval
			if object, ok := in.Hook.Params.(map[string]any); ok { // the types admit nothing else
				out.Params = plugin.Change(object)
			}
			return out, err
		}})
	}
	g := newGuarded(t, toolward.Deny, registry, plugin.Config{})
	g.Approver.Decision = in.Decision
	original, err := g.Policy.Decode(nil, in.Params)
	if err != nil {
		t.Fatal(err)
	}
	evaluations := 0
	policy := &snapshots{Policy: g.Policy}
	g.Policy.JudgeFunc = func(r *toolward.Request) toolward.Judgment {
		verdict := in.Second
		if bytes.Equal(r.Params.Canonical(), original.Canonical()) {
			verdict = in.First
		}
		if policy.looks == 1 { // later judgments are the re-check
			evaluations++
		}
		return toolward.Judgment{Verdict: verdict, Code: toolward.CodeBlocked}
	}
	g.gateway = g.With(t, func(c *toolward.Config) { c.Policy, c.Hooks = policy, g.runner })
	err = g.write(t, string(in.Params))
	time.Sleep(2 * time.Hour) // a plug-in that was given up ends, too
	answer := map[string]any{"hookStage": reached.Load(), "evaluations": evaluations, "final": "deny", "executed": "none"}
	if len(g.ran) > 0 {
		answer["executed"] = json.RawMessage(g.ran[0])
	}
	if err == nil {
		answer["final"], answer["asked"] = "allow", len(g.Approver.Asked()) > 0
		return answer
	}
	answer["code"] = codeOf(err)
	if codeOf(err) == toolward.CodeBlocked || codeOf(err) == toolward.CodeInvalidArgs {
		answer["code"] = "gate"
	}
	return answer
}

// snapshots counts how often the gateway looked for the policy in force.
type snapshots struct {
	*gatetest.Policy
	looks int
}

func (p *snapshots) Snapshot() toolward.Snapshot { p.looks++; return p.Policy }
