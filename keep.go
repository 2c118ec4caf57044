package toolward

import (
	"context"
	"fmt"
	"slices"
)

// Keeper keeps what workspaces are before calls and after them, so that people can take a call back. Package undo/kept
// implements it.
type Keeper interface {
	// Gap says in words for people why nobody could take the call back, "" if somebody could. It is asked about every call whose
	// facts are known, and changes nothing.
	Gap(context.Context, *Request) string
	// Begin keeps the workspace as it is before the call, and returns by which name; "" if the call writes to none, or there is a gap.
	Begin(context.Context, *Request) (id string, err error)
	// End keeps the workspace as it is after a call that has begun. running, if not nil, is closed when what the call left
	// running has ended.
	End(ctx context.Context, id string, running <-chan struct{})
	// Drop forgets a call that has begun and did not run.
	Drop(id string)
}

// findNoUndo is the code of the finding that nobody could take the call back.
const findNoUndo = "no_undo"

// factsOf has the tool say what a call is about. A call that would change what is not kept has a person decide: what it deletes
// by mistake, or because a stranger's text told it to, nobody could bring back.
func (g *Gateway) factsOf(ctx context.Context, r *Request) (Facts, error) {
	if r.Tool.Facts == nil {
		return Facts{}, nil
	}
	facts, err := r.Tool.Facts(ctx, r)
	if err != nil || g.keeper == nil || !facts.Mutates {
		return facts, err
	}
	known := *r
	known.Facts = facts
	if gap := g.keeper.Gap(ctx, &known); gap != "" {
		facts.Findings = append(slices.Clip(facts.Findings), Finding{Code: findNoUndo, Effect: EffectAsk, Detail: gap})
	}
	return facts, nil
}

// keep keeps the workspace before a call that may write to it, as the last thing before the re-check: no snapshot is made for a
// call that is refused, and what changes while a large one is made is seen.
func (a *admission) keep(ctx context.Context) error {
	if a.gateway.keeper == nil || a.dry || !a.request.Facts.Mutates {
		return nil
	}
	id, err := a.gateway.keeper.Begin(ctx, a.request)
	if err != nil {
		// Whoever fills the disk must not make calls final.
		return &Refusal{Tool: a.call.Tool, Code: CodeNotKept, Approval: a.answer.ApprovalID, Cause: fmt.Errorf("keep the workspace: %w", err)}
	}
	a.kept = id
	return nil
}

// dropKept forgets what was kept for a call that is refused after all.
func (a *admission) dropKept() {
	if a.kept == "" {
		return
	}
	defer a.gateway.contain("keeper")
	a.gateway.keeper.Drop(a.kept)
	a.kept = ""
}

// endKept keeps what the workspace is after the call. A pass that nobody redeemed has changed nothing.
func (p *Pass) endKept(ctx context.Context, started bool, result *Result) {
	if p.kept == "" {
		return
	}
	defer p.gateway.contain("keeper")
	if !started {
		p.gateway.keeper.Drop(p.kept)
		return
	}
	var running <-chan struct{}
	if left := p.left.Load(); left != nil {
		running = *left
	}
	if result != nil {
		running = result.Running
	}
	p.gateway.keeper.End(ctx, p.kept, running)
}
