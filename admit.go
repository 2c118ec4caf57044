package toolward

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"time"
	"unicode/utf8"
)

// admission is the state of one call on its way through the steps.
type admission struct {
	gateway  *Gateway
	snapshot Snapshot
	call     Call
	request  *Request
	alarm    Alarm    // what the watcher said
	first    Judgment // before hooks
	judged   Judgment // what counts
	policy   Judgment // the last one of the policy alone, before anything raised it
	weighed  *Request // what policy is about; nil as long as nothing was judged
	hidden   bool     // the policy does not show the tool to this caller
	original string   // digest before hooks rewrote
	hookRuns []HookRun
	hooked   bool // plug-ins ran, so time has passed
	hookAsks bool
	kept     string // by what name the keeper has the workspace as it was before
	via      string
	grant    string // that a use was taken of
	answer   Answer
	binding  string
	asked    bool // people were asked, so time has passed
	dry      bool // explaining: nobody is asked, nothing is used up, recorded or run
	hooksOff bool
	trace    *Trace
}

// step is one step of admission. A non-nil error ends it: a *Refusal refuses, a *Pending waits.
type step struct {
	name string
	do   func(*admission, context.Context) error
}

// steps is the path of a call; docs/develop/steps.md says why they stand in this order. After the last one the decision is
// recorded and the pass made (admit); every refusal on the way is recorded too (refuse).
var steps = []step{
	{"find", (*admission).find},
	{"decode", (*admission).decode},
	{"level", (*admission).level},
	{"look", (*admission).look},
	{"watch", (*admission).watch},
	{"judge", (*admission).judge},
	{"hooks", (*admission).hooks},
	{"ask", (*admission).ask},
	{"keep", (*admission).keep},
	{"re-check", (*admission).recheck},
}

// Admit decides a call. It returns a pass, or a *Refusal, or — for a detached call that people must decide — a
// *Pending. It waits for people as long as the approval lives; a canceled context withdraws the approval.
func (g *Gateway) Admit(ctx context.Context, call Call) (*Pass, error) {
	a := &admission{gateway: g, call: call}
	var pass *Pass
	err := g.observed(ctx, "call", &a.call, func(ctx context.Context) (err error) {
		pass, err = a.decide(ctx)
		return err
	})
	return pass, err
}

// decide takes the call through the steps and records what they led to.
func (a *admission) decide(ctx context.Context) (*Pass, error) {
	if err := a.run(ctx); err != nil {
		var pending *Pending
		if errors.As(err, &pending) {
			pending.Tool = a.call.Tool
			return nil, pending
		}
		return nil, a.refuse(ctx, refusalOf(a.call.Tool, CodeInternal, err))
	}
	return a.admit(ctx)
}

// run takes the call through the steps. A panic in any of them is a refusal: a crash must never open the gate.
func (a *admission) run(ctx context.Context) (err error) {
	name := "start"
	defer func() {
		if v := recover(); v != nil {
			a.gateway.log.Error("admission panicked", "step", name, "tool", a.call.Tool, "panic", v, "stack", string(debug.Stack()))
			err = &Refusal{Tool: a.call.Tool, Code: CodeInternal, Cause: fmt.Errorf("panic in step %s: %v", name, v)}
		}
	}()
	a.snapshot = a.gateway.policy.Snapshot()
	for _, s := range steps {
		name = s.name
		err := a.gateway.observed(ctx, name, &a.call, func(ctx context.Context) error { return s.do(a, ctx) })
		a.note(name, err)
		if err != nil {
			return err
		}
	}
	return nil
}

// find looks the tool up among those visible to the caller. Invisible and absent tools are refused alike, so that
// names cannot be probed.
func (a *admission) find(context.Context) error {
	c := &a.call
	if agent := c.Session.Agent(); agent == "" || agent != c.Caller.Agent || !utf8.ValidString(string(c.Session)) {
		// An adapter that mixes up callers and sessions would let one agent spend another's grants.
		return &Refusal{Tool: c.Tool, Code: CodeInternal, Cause: fmt.Errorf("session %q does not belong to agent %q", c.Session, c.Caller.Agent)}
	}
	tool, reason := visible(a.snapshot, c)
	if tool == nil {
		a.hidden = true
		return &Refusal{Tool: c.Tool, Code: CodeUnknownTool, Reasons: []Reason{reason}}
	}
	c.Tool = tool.Name
	a.request = &Request{Call: *c, Tool: tool}
	a.request.Call.OnPending = nil // for the approver alone: tools and plug-ins could tell the client of approvals that are none
	return nil
}

func (a *admission) decode(context.Context) error {
	params, err := decodeFor(a.snapshot, a.request.Tool, a.call.Arguments)
	if err != nil {
		return refusalOf(a.call.Tool, CodeInvalidArgs, err)
	}
	a.setParams(params)
	a.original = a.request.Digest
	return nil
}

func (a *admission) setParams(params Params) {
	a.request.Params = params
	a.request.Digest = params.Digest(a.request.Tool.Name, a.call.Caller.Agent, a.call.Session)
}

func (a *admission) level(ctx context.Context) (err error) {
	a.request.Level, a.request.Inputs, err = a.gateway.sessions.Level(ctx, &a.call)
	if err != nil {
		return &Refusal{Tool: a.call.Tool, Code: CodeInternal, Cause: fmt.Errorf("level of %s: %w", a.call.Session, err)}
	}
	return nil
}

// look finds out what the call would touch: the facts that every later step decides on.
func (a *admission) look(ctx context.Context) (err error) {
	if a.request.Facts, err = a.gateway.factsOf(ctx, a.request); err != nil {
		return refusalOf(a.call.Tool, CodeValidation, err)
	}
	return nil
}

func (a *admission) judge(context.Context) error {
	a.evaluate()
	a.first = a.judged
	return a.refusedByPolicy()
}

// evaluate has policy judge the request, and raises what it says where the watcher wants that.
func (a *admission) evaluate() {
	a.policy, a.weighed = a.snapshot.Judge(a.request), a.request
	a.judged = a.policy
	a.raiseForAlarm()
}

func (a *admission) refusedByPolicy() error {
	if a.judged.Verdict != Deny {
		return nil
	}
	return &Refusal{Tool: a.call.Tool, Code: cmp.Or(a.judged.Code, CodeBlocked), Finding: a.judged.Finding, Reasons: a.judged.Reasons}
}

// hooks runs the plug-ins and judges again what they rewrote. The result is the stricter of both judgments: a
// rewrite can raise what the model's own call required, never lower it.
func (a *admission) hooks(ctx context.Context) error {
	if a.gateway.hooks == nil || a.hooksOff {
		return nil
	}
	shown := *a.request // a copy: what a plug-in writes into it must not become what runs
	answer := a.gateway.hooks.Before(ctx, &shown)
	a.hookRuns = answer.Runs
	a.hookAsks = answer.Ask
	a.hooked = len(answer.Runs) > 0 || answer.Params != nil || answer.Ask
	switch {
	case answer.Code != "":
		return &Refusal{Tool: a.call.Tool, Code: answer.Code, Detail: answer.Reason}
	case answer.Block:
		return &Refusal{Tool: a.call.Tool, Code: CodeHookBlock, Detail: cmp.Or(answer.Reason, "Tool call blocked by plugin hook")}
	case answer.Params == nil || bytes.Equal(answer.Params, a.request.Params.canonical):
		return a.raiseForHook()
	case a.call.ByClient:
		// The client runs the arguments that it sent: people would decide about others than those that run.
		return &Refusal{Tool: a.call.Tool, Code: CodeHookBlock, Detail: clientRewrite}
	}
	params, err := decodeFor(a.snapshot, a.request.Tool, answer.Params)
	if err != nil {
		return refusalOf(a.call.Tool, CodeInvalidArgs, err)
	}
	if bytes.Equal(params.canonical, a.request.Params.canonical) {
		return a.raiseForHook()
	}
	before := a.request
	rewritten := *before
	a.request = &rewritten
	a.setParams(params)
	if rewritten.Facts, err = a.gateway.factsOf(ctx, a.request); err != nil {
		return refusalOf(a.call.Tool, CodeValidation, err)
	}
	a.evaluate()
	if err := a.refusedByPolicy(); err != nil {
		return err
	}
	a.judged = stricterJudgment(a.first, a.judged)
	return a.raiseForHook()
}

// clientRewrite is what the model of a client is told when a plug-in rewrote a call that the client runs.
const clientRewrite = "A plug-in changed its arguments, and this client cannot take the change over."

// raiseForHook asks people where a plug-in wants them. No grant answers it: whoever said "always" did not know what
// the plug-in sees now.
func (a *admission) raiseForHook() error {
	if a.hookAsks {
		a.judged.needPerson(Reason{Layer: "hook", Text: "a plug-in asks for a person's decision"})
	}
	return nil
}

// admit makes the decision durable and then the pass: the only place where one is made. No record, no run.
func (a *admission) admit(ctx context.Context) (pass *Pass, err error) {
	defer func() {
		if v := recover(); v != nil {
			a.gateway.log.Error("admission panicked", "step", "record", "panic", v, "stack", string(debug.Stack()))
			pass, err = nil, &Refusal{Tool: a.call.Tool, Code: CodeAuditUnavailable, Cause: fmt.Errorf("panic: %v", v)}
			a.dropKept()
		}
	}()
	record := a.record(Allow, "")
	var id RecordID
	err = a.gateway.observed(ctx, "record", &a.call, func(ctx context.Context) (err error) {
		id, err = a.gateway.auditor.Decide(ctx, record)
		return err
	})
	if err != nil {
		a.dropKept()
		return nil, &Refusal{Tool: a.call.Tool, Code: CodeAuditUnavailable, Approval: a.answer.ApprovalID, Cause: err}
	}
	// A grant is for more calls than the one that a person saw when it was given.
	a.request.Seen = a.answer.Decision.Allows() && a.answer.Grant == ""
	return &Pass{
		gateway: a.gateway, request: a.request, record: id, kept: a.kept, admission: ctx,
		bound:    passBinding(a.request, a.request.Digest, a.snapshot.Revision()),
		asks:     a.via == viaClient,
		listed:   a.via == viaAllowlist,
		deadline: time.Now().Add(a.gateway.passLife),
	}, nil
}

// Refuse records a refusal that an adapter had to make itself, such as one for a forged resume token, and returns it.
// The call has not been decided; an adapter can refuse by itself, never allow.
func (g *Gateway) Refuse(ctx context.Context, call Call, refusal *Refusal) *Refusal {
	return (&admission{gateway: g, call: call}).refuse(ctx, refusal)
}

// refuse records a refusal. It is a refusal whether or not the record can be written.
func (a *admission) refuse(ctx context.Context, refusal *Refusal) (out *Refusal) {
	out = refusal
	defer func() {
		if v := recover(); v != nil {
			a.gateway.log.Error("recording a refusal panicked", "panic", v, "stack", string(debug.Stack()))
		}
	}()
	a.dropKept()
	ctx = context.WithoutCancel(ctx)
	a.via = "denied"
	record := a.record(Deny, refusal.Code)
	if refusal.Cause != nil {
		record.Cause = refusal.Cause.Error()
	}
	record.Judgment.Reasons = append(slices.Clip(record.Judgment.Reasons), missingReasons(record.Judgment.Reasons, refusal.Reasons)...)
	id, err := a.gateway.auditor.Decide(ctx, record)
	outcome := &OutcomeRecord{Time: time.Now(), Status: StatusDenied, Error: refusal.Message()}
	if err == nil {
		err = a.gateway.auditor.Conclude(ctx, id, outcome)
	}
	if err != nil {
		a.gateway.log.Error("a refusal could not be recorded", "tool", a.call.Tool, "code", refusal.Code, "err", err)
	}
	a.watchRefused(ctx, refusal.Code)
	if a.request != nil {
		a.gateway.after(ctx, a.request, outcome, nil)
	}
	return refusal
}
