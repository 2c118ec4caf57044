package toolward

import (
	"context"
	"fmt"
	"runtime/debug"
	"slices"
	"time"
)

// admit makes the decision durable and issues the pass. No record, no run.
func (a *admission) admit(ctx context.Context) (pass *Pass, err error) {
	defer func() {
		if v := recover(); v != nil {
			a.gateway.log.Error("admission panicked", "step", "record", "panic", v, "stack", string(debug.Stack()))
			pass, err = nil, &Refusal{Tool: a.call.Tool, Code: CodeAuditUnavailable, Cause: fmt.Errorf("panic: %v", v)}
		}
	}()
	record := a.record(Allow, "")
	var id RecordID
	err = a.gateway.observed(ctx, "record", &a.call, func(ctx context.Context) (err error) {
		id, err = a.gateway.auditor.Decide(ctx, record)
		return err
	})
	if err != nil {
		return nil, &Refusal{Tool: a.call.Tool, Code: CodeAuditUnavailable, Approval: a.answer.ApprovalID, Cause: err}
	}
	return &Pass{
		gateway: a.gateway, request: a.request, record: id, admission: ctx,
		bound:    bind(a.request, a.request.Digest, a.snapshot.Revision()),
		asks:     a.via == viaClient,
		listed:   a.via == viaAllowlist,
		deadline: time.Now().Add(a.gateway.passLife),
	}, nil
}

// Refuse records a refusal that a face had to make itself, such as one for a forged resume token, and returns it.
// The call has not been decided; a face can refuse by itself, never allow.
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

func missingReasons(have, more []Reason) []Reason {
	var out []Reason
	for _, r := range more {
		if !slices.Contains(have, r) {
			out = append(out, r)
		}
	}
	return out
}

func (a *admission) record(verdict Verdict, code Code) *DecisionRecord {
	r := &DecisionRecord{
		Time: time.Now(), Call: a.call, Tool: a.call.Tool, Judgment: a.judged, First: a.first.Verdict,
		Hooks: a.hookRuns, Verdict: verdict, Code: code, Via: a.via, Answer: a.answer, Shadow: a.shadow(),
	}
	if a.snapshot != nil {
		r.Revision = a.snapshot.Revision()
	}
	if a.weighed != nil && a.weighed == a.request {
		r.Policy = &a.policy
	}
	if form := a.call.Form; form != nil {
		r.Plugin, r.OwnerOnly = form.Plugin, form.OwnerOnly
	}
	if a.request != nil {
		r.Plugin, r.OwnerOnly = a.request.Tool.Plugin, a.request.Tool.OwnerOnly
		r.Digest, r.Params, r.Facts = a.request.Digest, a.request.Params, a.request.Facts
		r.Level, r.Inputs = a.request.Level, a.request.Inputs
		if a.original != a.request.Digest {
			r.DigestOriginal = a.original
		}
	}
	return r
}
