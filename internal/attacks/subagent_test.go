package attacks

import (
	"context"
	"errors"
	"fmt"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/policy"
)

// spawn makes a sub-agent, if its parent may: the parent calls sessions_spawn, a person agrees, and the child carries
// what its parent's policies leave. The child also keeps acting for the owner, so that nothing but the rules for
// sub-agents can take a tool away from it.
func (p *approvalPlay) spawn(s fields) (outcome, error) {
	if err := s.only("spawn", "op", "child", "by", "tools"); err != nil {
		return outcome{}, err
	}
	parent, err := p.caller(s.text("by"), "s1")
	if err != nil {
		return outcome{}, err
	}
	call := p.newCall(parent, "sessions_spawn", map[string]any{"task": s.text("child")})
	a := p.admit(call)
	if a.answer == asked {
		if _, err := p.answer(a.approval, "allow-once", "op1"); err != nil {
			return outcome{}, err
		}
		call.Approval = a.approval
		a = p.admit(call)
	}
	if a.answer != allowed {
		return p.outcome(a), nil
	}
	snapshot, ok := p.policy.Snapshot().(*policy.Snapshot)
	if !ok {
		return outcome{}, errors.New("no policy is in force")
	}
	child := parent
	child.Depth, child.Context, child.Parent = parent.Depth+1, "subagent", parent.Session
	child.Session = toolward.SessionKey("agent:main:subagent:" + s.text("child"))
	child.Connection = "agent " + s.text("child")
	child.Ceiling = snapshot.Ceiling(parent, s.list("tools")...)
	p.agents[s.text("child")] = child
	return p.outcome(a), nil
}

// callTool calls a tool that is there: a refusal must come from the rules.
func (p *approvalPlay) callTool(s fields) (outcome, error) {
	if err := s.only("call", "op", "tool", "agent", "args"); err != nil {
		return outcome{}, err
	}
	caller, err := p.caller(s.text("agent"), "s1")
	if err != nil {
		return outcome{}, err
	}
	if caller.Agent != "main" {
		return outcome{}, unsupported{"a call of an agent that nobody spawned"}
	}
	tool := p.registered(s.text("tool"))
	if tool == nil {
		return outcome{}, unsupported{"a tool that does not exist: " + s.text("tool")}
	}
	args := s["args"]
	if args == nil {
		args = minimalArgs(tool.Schema)
	}
	a := p.admit(p.newCall(caller, s.text("tool"), args))
	if a.answer == allowed {
		if result, err := a.pass.Run(context.Background()); err != nil || result.IsError {
			return outcome{answer: denied, why: fmt.Sprintf("admitted, but it failed: %v %v", result.Content, err)}, nil
		}
	}
	return p.outcome(a), nil
}
