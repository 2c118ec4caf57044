package toolward

import (
	"context"
	"errors"
	"fmt"
)

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
	a.binding = approvalBinding(a.request)
	q := &Question{Request: a.request, Judgment: a.judged, Binding: a.binding, OnPending: a.onPending()}
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

// onPending tells the adapter which approval its call waits for. A panic of the adapter there is its own, not the call's.
func (a *admission) onPending() func(Pending) {
	tell := a.call.OnPending
	if tell == nil {
		return nil
	}
	return func(p Pending) {
		defer a.gateway.contain("adapter that is told of a pending approval")
		p.Tool = a.call.Tool
		tell(p)
	}
}

// judgeAgain judges a call anew whose identical twin somebody has allowed for always: what the answer saved may cover it, and
// then it runs without a question, as the screen has said. Else people are asked about it, too. Plug-ins are not called
// again; what they wanted still holds.
func (a *admission) judgeAgain(ctx context.Context) (err error) {
	again := *a.request
	if again.Facts, err = a.gateway.factsOf(ctx, &again); err != nil {
		return refusalOf(a.call.Tool, CodeValidation, err)
	}
	a.request = &again
	if approvalBinding(a.request) != a.binding {
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
