package protocol

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/approval"
	"github.com/toolward/toolward/envname"
)

// asked is a call that a program asks about: what it is, as the gate would be given it.
type asked struct {
	tool    string
	args    json.RawMessage // nil: the gate has not seen them
	dir     string
	node    string // the machine where it would run; "" is this one
	agent   string
	session string
}

// checkIdentity refuses a session of another agent than the one that is named, and a name that is none: the rules of one agent would
// be shown with the conversation of another.
func (a *asked) checkIdentity() *Error {
	of := toolward.SessionKey(a.session).Agent()
	switch {
	case a.agent != "" && of != "" && !strings.EqualFold(of, a.agent):
		return withDetail(invalid("sessionKey belongs to another agent than agentId"), "CONTRADICTION")
	case a.session != "" && strings.HasPrefix(a.session, "agent:") && of == "":
		return invalid("sessionKey is not one of an agent")
	}
	return nil
}

// read has the gate read the call, and puts what it says into what people are shown. What the program says of severity, class, reasons
// and the rest is never part of it. A call that cannot be read is as grave as any.
func (r *call) read(ctx context.Context, a *asked, d *approval.Details) *toolward.Question {
	d.Class, d.Severity, d.Level = toolward.NeedsApproval, toolward.Critical, toolward.Lockdown
	if a.args == nil {
		d.Reasons = append(d.Reasons, "the gate does not see the arguments: what the program says of them is its word alone")
		return nil
	}
	trace := r.server.gate.Explain(ctx, r.asGate(a), toolward.ExplainOptions{})
	q := trace.Question
	if q == nil {
		d.Reasons = append(d.Reasons, "the gate cannot read this call: "+(&toolward.Refusal{Code: trace.Code}).Message())
		return nil
	}
	if trace.Verdict == toolward.Deny {
		q.Judgment.Class.Severity = toolward.Critical
		d.Reasons = append(d.Reasons, fmt.Sprintf("the gate would refuse this call (%s)", trace.Code))
	}
	if a.node != "" {
		d.Reasons = append(d.Reasons, "it runs on another machine: its files are not looked at")
	}
	return q
}

// asGate is the call as the gate would get it. The program is no owner, whatever it says.
func (r *call) asGate(a *asked) toolward.Call {
	agent, known := r.server.agents().find(a.agent)
	switch of := toolward.SessionKey(a.session).Agent(); {
	case a.agent == "" && of != "":
		agent, _ = r.server.agents().find(of)
		agent.ID = of
	case !known:
		agent = Agent{ID: a.agent}
	}
	session := toolward.SessionKey(a.session)
	if session.Agent() != agent.ID {
		session, _ = toolward.NewSessionKey(agent.ID, "main") // an id that makes none is refused by the gate
	}
	dir := a.dir
	if dir == "" {
		dir = agent.Workspace
	}
	return toolward.Call{
		Tool: toolward.NormalToolName(a.tool), NativeName: a.tool, Arguments: a.args, Session: session, Surface: toolward.SurfaceAgent, WorkDir: dir,
		Host: toolward.HostGateway, ByClient: true,
		Caller: toolward.Caller{
			Agent: agent.ID, Context: "main", Client: r.admitted.client.name(), Workspace: agent.Workspace, Connection: r.conn.id,
			Device: r.admitted.deviceID, Session: session, Surface: toolward.SurfaceAgent,
		},
	}
}

// dangerousNames are variables that change what programs do, in the gate's words.
func dangerousNames(env map[string]string) (reasons []string) {
	for _, name := range slices.Sorted(maps.Keys(env)) {
		if !envname.Portable(name) || envname.Dangerous(name) {
			reasons = append(reasons, fmt.Sprintf("it sets %q, which changes what programs do", name))
		}
	}
	return reasons
}

// claimed makes claims of what is set.
func claimed(pairs ...string) (list []approval.Claim) {
	for i := 0; i+1 < len(pairs); i += 2 {
		if strings.TrimSpace(pairs[i+1]) != "" {
			list = append(list, approval.Claim{Name: pairs[i], Text: pairs[i+1]})
		}
	}
	return list
}
