package toolward

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
)

// recheck looks again at everything that may have changed while people thought, plug-ins ran or the workspace was kept: targets, level, policy.
// It stops a symbolic link that is swapped, a session that is poisoned, or a policy that is tightened between the
// judgment and the run. Last, the approval is used up.
func (a *admission) recheck(ctx context.Context) error {
	if a.dry {
		return nil
	}
	newest := a.gateway.policy.Snapshot()
	if a.asked || a.hooked || a.kept != "" || newest.Revision() != a.snapshot.Revision() {
		if err := a.recheckFacts(ctx, newest); err != nil {
			return err
		}
	}
	if a.answer.ApprovalID == "" {
		return nil
	}
	if err := a.gateway.approver.Consume(ctx, a.answer.ApprovalID, approvalBinding(a.request)); err != nil {
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
	facts, err := a.gateway.factsOf(ctx, &again)
	if err != nil {
		return refusalOf(a.call.Tool, CodeTargetChanged, err)
	}
	again.Facts = facts
	if a.binding == "" {
		a.binding = approvalBinding(a.request) // nobody was asked, so nobody has needed it
	}
	if approvalBinding(&again) != a.binding {
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
