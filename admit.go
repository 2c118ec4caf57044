package toolward

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strconv"
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

// steps is the path of a call; the gateway specification, section 1, is its reason. The decision record follows
// the last one, and also every refusal.
var steps = []step{
	{"find", (*admission).find},
	{"decode", (*admission).decode},
	{"level", (*admission).level},
	{"watch", (*admission).watch},
	{"judge", (*admission).judge},
	{"hooks", (*admission).hooks},
	{"ask", (*admission).ask},
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
		// A face that mixes up callers and sessions would let one agent spend another's grants.
		return &Refusal{Tool: c.Tool, Code: CodeInternal, Cause: fmt.Errorf("session %q does not belong to agent %q", c.Session, c.Caller.Agent)}
	}
	tool, reason := visible(a.snapshot, c)
	if tool == nil {
		a.hidden = true
		return &Refusal{Tool: c.Tool, Code: CodeUnknownTool, Reasons: []Reason{reason}}
	}
	c.Tool = tool.Name
	a.request = &Request{Call: *c, Tool: tool}
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

func factsOf(ctx context.Context, r *Request) (Facts, error) {
	if r.Tool.Facts == nil {
		return Facts{}, nil
	}
	return r.Tool.Facts(ctx, r)
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
	if rewritten.Facts, err = factsOf(ctx, a.request); err != nil {
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
		a.judged.Verdict = Stricter(a.judged.Verdict, Ask)
		a.judged.GrantOK, a.judged.AllowAlways, a.judged.Unanswered = false, false, false
		a.judged.Reasons = append(slices.Clip(a.judged.Reasons), Reason{Layer: "hook", Text: "a plug-in asks for a person's decision"})
	}
	return nil
}

// stricterJudgment keeps the second judgment, which is about what will run, but never lets it ask less than the
// first did.
func stricterJudgment(first, second Judgment) Judgment {
	second.Verdict = Stricter(first.Verdict, second.Verdict)
	second.Class.Severity = Graver(first.Class.Severity, second.Class.Severity)
	if first.Verdict == Ask {
		second.GrantOK = second.GrantOK && first.GrantOK
		second.AllowAlways = second.AllowAlways && first.AllowAlways
		second.Unanswered = second.Unanswered && first.Unanswered
		second.Reasons = append(slices.Clip(first.Reasons), second.Reasons...)
		second.Findings = append(slices.Clip(first.Findings), second.Findings...)
	}
	return second
}

// ask settles a verdict of Ask by an earlier grant or by people.
func (a *admission) ask(ctx context.Context) error {
	a.via = viaClass
	if a.judged.Listed {
		a.via = viaAllowlist
	}
	// A call that comes back for its answer is settled by that answer alone, whatever has changed meanwhile: what made
	// it ask may no longer be there to see.
	if a.judged.Verdict == Allow && a.call.Approval == "" {
		return nil
	}
	if a.gateway.observeOnly && a.call.Approval == "" {
		a.via = viaShadow
		return nil
	}
	a.binding = binding(a.request)
	q := &Question{Request: a.request, Judgment: a.judged, Binding: a.binding}
	if a.judged.GrantOK && a.call.Approval == "" {
		look := a.gateway.approver.Granted
		if a.dry {
			look = a.gateway.approver.Covered
		}
		grant, ok, err := look(ctx, q)
		if err != nil {
			return &Refusal{Tool: a.call.Tool, Code: CodeInternal, Cause: fmt.Errorf("look for a grant: %w", err)}
		}
		if ok {
			a.via, a.grant = "grant "+grant, grant
			return nil
		}
	}
	if a.dry {
		a.via = ""
		return nil
	}
	if a.call.ByClient && a.call.ClientAsks {
		a.via = viaClient
		return nil
	}
	return a.askPeople(ctx, q)
}

// What a call was let through by if nobody was asked.
const (
	viaClass      = "class"
	viaAllowlist  = "exec-allowlist"
	viaUnanswered = "exec-allowlist, unanswered"
)

// viaClient marks a call that the client puts to the person in front of it. The operator chose to trust that
// person; whether they agreed is seen by the outcome: a call that they declined is never started.
const viaClient = "client"

func (a *admission) askPeople(ctx context.Context, q *Question) error {
	a.asked = true
	if a.request.Tool.Diff != nil {
		diff, err := a.request.Tool.Diff(ctx, a.request)
		if err != nil {
			diff = "The difference cannot be shown: " + err.Error()
		}
		q.Diff = diff
	}
	answer, err := a.gateway.approver.Ask(ctx, q)
	if a.judged.Unanswered && ctx.Err() == nil && unanswered(answer, err) {
		// The operator's own file says so, of commands that the allowlist covers and nothing else asks about.
		a.via = viaUnanswered
		return nil
	}
	if err == nil && answer.JudgeAgain {
		return a.judgeAgain(ctx)
	}
	a.answer = answer
	if err != nil {
		var pending *Pending
		if errors.As(err, &pending) {
			return pending
		}
		return refusalOf(a.call.Tool, CodeInternal, err)
	}
	switch {
	case answer.Decision == DenyCall:
		return &Refusal{Tool: a.call.Tool, Code: CodeDeniedByUser, Detail: answer.Reason, Approval: answer.ApprovalID}
	case !answer.Decision.Allows():
		// Time-outs, unknown words and disconnects are no decision, and no decision is a refusal.
		return &Refusal{Tool: a.call.Tool, Code: CodeApprovalTimeout, Approval: answer.ApprovalID}
	}
	a.via, a.grant = "approval "+answer.ApprovalID, answer.Grant
	if a.call.Approval != "" && answer.ApprovalID != a.call.Approval {
		return a.watchNew(ctx)
	}
	return nil
}

// judgeAgain judges a call anew whose identical twin somebody has allowed for always: what the answer saved may cover it, and
// then it runs without a question, as the screen has said. Else people are asked about it, too. Plug-ins are not called
// again; what they wanted still holds.
func (a *admission) judgeAgain(ctx context.Context) (err error) {
	again := *a.request
	if again.Facts, err = factsOf(ctx, &again); err != nil {
		return refusalOf(a.call.Tool, CodeValidation, err)
	}
	a.request = &again
	if binding(a.request) != a.binding {
		return &Refusal{Tool: a.call.Tool, Code: CodeTargetChanged}
	}
	a.evaluate()
	if err := a.refusedByPolicy(); err != nil {
		return err
	}
	if a.request.Digest != a.original {
		a.judged = stricterJudgment(a.first, a.judged)
	}
	if err := a.raiseForHook(); err != nil {
		return err
	}
	return a.ask(ctx)
}

// unanswered reports whether people could have answered and did not, or there were none.
func unanswered(answer Answer, err error) bool {
	var refusal *Refusal
	if errors.As(err, &refusal) {
		return refusal.Code == CodeNoApprovalChannel || refusal.Code == CodeApproverAway
	}
	return err == nil && answer.Unanswered && answer.Decision == NoDecision && !answer.JudgeAgain
}

// recheck looks again at everything that may have changed while people thought or plug-ins ran: targets, level, policy.
// It stops a symbolic link that is swapped, a session that is poisoned, or a policy that is tightened between the
// judgment and the run. Last, the approval is used up.
func (a *admission) recheck(ctx context.Context) error {
	if a.dry {
		return nil
	}
	newest := a.gateway.policy.Snapshot()
	if a.asked || a.hooked || newest.Revision() != a.snapshot.Revision() {
		if err := a.recheckFacts(ctx, newest); err != nil {
			return err
		}
	}
	if a.answer.ApprovalID == "" {
		return nil
	}
	if err := a.gateway.approver.Consume(ctx, a.answer.ApprovalID, binding(a.request)); err != nil {
		return &Refusal{Tool: a.call.Tool, Code: CodeTargetChanged, Approval: a.answer.ApprovalID, Cause: err}
	}
	return nil
}

func (a *admission) recheckFacts(ctx context.Context, newest Snapshot) error {
	if err := ctx.Err(); err != nil {
		return &Refusal{Tool: a.call.Tool, Code: CodeApprovalTimeout, Approval: a.answer.ApprovalID, Cause: err}
	}
	tool, reason := visible(newest, &a.call)
	if tool == nil {
		return &Refusal{Tool: a.call.Tool, Code: CodeUnknownTool, Reasons: []Reason{reason}}
	}
	if tool.Plugin != a.request.Tool.Plugin || !bytes.Equal(tool.Schema, a.request.Tool.Schema) {
		// Another server took the name, or the tool means something else by the same arguments.
		return &Refusal{Tool: a.call.Tool, Code: CodeTargetChanged, Approval: a.answer.ApprovalID}
	}
	again := *a.request
	level, inputs, err := a.gateway.sessions.Level(ctx, &a.call)
	if err != nil {
		return &Refusal{Tool: a.call.Tool, Code: CodeInternal, Cause: fmt.Errorf("level of %s: %w", a.call.Session, err)}
	}
	again.Level, again.Inputs = Tenser(level, a.request.Level), inputs
	facts, err := factsOf(ctx, &again)
	if err != nil {
		return refusalOf(a.call.Tool, CodeTargetChanged, err)
	}
	again.Facts = facts
	if a.binding == "" {
		a.binding = binding(a.request) // nobody was asked, so nobody has needed it
	}
	if binding(&again) != a.binding {
		return &Refusal{Tool: a.call.Tool, Code: CodeTargetChanged, Approval: a.answer.ApprovalID}
	}
	judged := newest.Judge(&again)
	if err := a.stillAllowed(ctx, &again, judged); err != nil {
		return err
	}
	a.snapshot, a.request = newest, &again
	a.policy, a.weighed = judged, &again
	return nil
}

// stillAllowed says whether what let the call through holds for the newest judgment of it.
func (a *admission) stillAllowed(ctx context.Context, r *Request, judged Judgment) error {
	switch {
	case judged.Verdict == Deny:
		return &Refusal{Tool: a.call.Tool, Code: cmp.Or(judged.Code, CodeBlocked), Finding: judged.Finding, Reasons: judged.Reasons}
	case judged.Verdict == Allow, a.via == viaClient, a.via == viaShadow:
		return nil
	case a.answer.Decision.Allows() && a.answer.Grant == "":
		return nil // a person said yes, which a rise of the level does not void
	}
	// What ran without a question now needs a person, whom nobody asked; what ran on a grant must still be covered.
	if a.via == viaUnanswered && judged.Unanswered {
		return nil
	}
	if a.via != viaClass && a.via != viaAllowlist && judged.GrantOK {
		_, ok, err := a.gateway.approver.Covered(ctx, &Question{Request: r, Judgment: judged, Binding: a.binding, Grant: a.grant})
		if err != nil {
			return &Refusal{Tool: a.call.Tool, Code: CodeInternal, Cause: fmt.Errorf("look for a grant: %w", err)}
		}
		if ok {
			return nil
		}
	}
	return &Refusal{Tool: a.call.Tool, Code: CodeTargetChanged, Approval: a.answer.ApprovalID, Reasons: judged.Reasons}
}

// binding digests what an approval is bound to: the call, where it runs, its resolved targets and what the tool
// adds, such as the environment of a command.
func binding(r *Request) string {
	b := append(make([]byte, 0, 256), r.Digest...)
	b = appendParts(b, r.Call.WorkDir, string(r.Call.Host), string(r.Facts.Host))
	for _, t := range r.Facts.Targets {
		b = appendParts(b, string(t.Op), t.Real, t.Kind, t.Place)
	}
	b = append(b, ';')
	return hexDigest(appendParts(b, r.Facts.Bound...))
}

// appendParts appends texts so that no two lists give the same bytes. Names of files are bytes and need not be text:
// written as JSON, two of them could look alike.
func appendParts(b []byte, parts ...string) []byte {
	for _, part := range parts {
		b = strconv.AppendInt(b, int64(len(part)), 10)
		b = append(append(b, ':'), part...)
	}
	return b
}
