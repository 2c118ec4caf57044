package mcp

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/approval"
)

// progressEvery is how often a client hears that its call still waits. Clients restart their time-outs with it.
const progressEvery = 10 * time.Second

// humanTime is the shortest time in which a person can have read something and answered. Clients without a person
// in front of them decline every question at once; that is not a person's word and does not end the wait.
const humanTime = 500 * time.Millisecond

// errDeclined is a cancellation: the client's user took the call back in the client.
var errDeclined = fmt.Errorf("%w: declined in the client", approval.ErrCanceled)

// wait puts the call to the gateway, to stay until people have answered, and meanwhile keeps the client informed.
func (x *exchange) wait(ctx context.Context) (*sdk.CallToolResult, error) {
	waiting, giveUp := context.WithCancelCause(ctx)
	informer := informer{exchange: x, giveUp: giveUp}
	call := x.call
	call.OnPending = func(p toolward.Pending) { informer.tell(waiting, p.ID) }
	pass, err := x.server.config.Gateway.Admit(waiting, call)
	gaveUp := context.Cause(waiting)
	giveUp(nil)
	informer.hush() // nothing may follow the result
	if err == nil {
		return finish(pass.Run(ctx))
	}
	if gaveUp != nil && call.Approval != "" {
		x.withdraw(ctx, call.Approval, gaveUp) // an earlier round left it pending, so the end of this one does not end it
	}
	var pending *toolward.Pending
	switch {
	case errors.As(err, &pending) && x.manyRounds() && x.showsLinks():
		return x.inputRequired(ctx, pending) // the client carries the question into another round
	case errors.Is(gaveUp, errDeclined):
		err = &toolward.Refusal{Tool: x.call.Tool, Code: toolward.CodeDeniedByUser, Approval: informer.approval, Cause: err}
	}
	return finish(toolward.Result{}, err)
}

// informer tells the client of one call what it waits for.
type informer struct {
	exchange *exchange
	giveUp   context.CancelCauseFunc // ends the call's wait
	approval string                  // what the client was told last
	told     int                     // progress notifications so far
	stop     context.CancelFunc      // of those that tell about approval
	telling  sync.WaitGroup
}

// tell begins to inform the client about an approval, in place of an earlier one.
func (i *informer) tell(ctx context.Context, approval string) {
	i.hush()
	i.approval = approval
	ctx, i.stop = context.WithCancel(ctx)
	if i.exchange.request.Params.GetProgressToken() != nil {
		i.telling.Go(func() { i.reportProgress(ctx, approval) })
	}
	if i.exchange.showsLinks() && !i.exchange.manyRounds() {
		i.telling.Go(func() { i.elicit(ctx, approval) })
	}
}

// hush returns when the client is told nothing more.
func (i *informer) hush() {
	if i.stop != nil {
		i.stop()
	}
	i.telling.Wait()
}

// withdraw takes the question back, so that nobody answers for a call that no longer exists.
func (x *exchange) withdraw(ctx context.Context, id string, cause error) {
	withdraw := x.server.config.Withdraw
	if withdraw == nil {
		return
	}
	if err := withdraw(context.WithoutCancel(ctx), id, cause); err != nil {
		x.server.log.Warn("a question could not be withdrawn", "approval", id, "err", err)
	}
}

// reportProgress tells the client at once, and then regularly, what its call waits for.
func (i *informer) reportProgress(ctx context.Context, id string) {
	x := i.exchange
	text := fmt.Sprintf("Waiting for a person to answer approval %s.", id)
	if x.server.config.ApprovalURL != nil {
		text = fmt.Sprintf("Waiting for a person to answer approval %s: %s", id, x.server.config.ApprovalURL(id))
	}
	tick := time.NewTicker(progressEvery)
	defer tick.Stop()
	for {
		i.told++
		err := x.request.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{
			ProgressToken: x.request.Params.GetProgressToken(), Progress: float64(i.told), Message: text,
		})
		if err != nil {
			return // the client has gone or does not listen; the wait itself goes on
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// elicit asks the client to show its user the link. Whatever the client answers, it cannot allow the call: whoever
// controls the client could answer so. A person's "decline" takes the question back, as canceling the call would.
func (i *informer) elicit(ctx context.Context, id string) {
	x := i.exchange
	asked := time.Now()
	answer, err := x.request.Session.Elicit(ctx, x.linkTo(id))
	switch {
	case err != nil:
		return // the client cannot show it, or the wait is over
	case declined(answer, asked):
		i.giveUp(errDeclined)
		return
	case x.request.ProtocolVersion() < version20251125:
		return // knows no end of an elicitation
	}
	<-ctx.Done() // answered in the console, or given up: the link has done its work
	done := context.WithoutCancel(ctx)
	_ = x.request.Session.NotifyElicitationComplete(done, &sdk.ElicitationCompleteParams{ElicitationID: id})
}

func (x *exchange) linkTo(id string) *sdk.ElicitParams {
	return &sdk.ElicitParams{
		Mode:          "url",
		Message:       fmt.Sprintf("The tool %s needs a person's approval. Open the page and answer there; opening it approves nothing.", x.call.Tool),
		URL:           x.server.config.ApprovalURL(id),
		ElicitationID: id,
	}
}

func declined(answer *sdk.ElicitResult, asked time.Time) bool {
	return answer != nil && answer.Action == "decline" && time.Since(asked) >= humanTime
}

// linkRequest is the key of the link in inputRequests and inputResponses.
const linkRequest = "approval"

// inputRequired ends this round: the client gets the link and comes back with the call and its requestState.
func (x *exchange) inputRequired(ctx context.Context, pending *toolward.Pending) (*sdk.CallToolResult, error) {
	now := time.Now()
	tool, digest := x.digest(x.call.Session)
	state, err := x.server.sealer.seal(waiting{
		Approval: pending.ID, Tool: tool, Digest: digest,
		Principal: x.identity.principal(), Session: x.call.Session,
		Revision: x.server.config.Policy.Snapshot().Revision(), Call: x.call.ID,
		AskedAt: now.UnixMilli(), ExpiresAt: pending.ExpiresAt.UnixMilli(),
	})
	if err == nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		x.withdraw(ctx, pending.ID, err)
		return finish(toolward.Result{}, err)
	}
	return &sdk.CallToolResult{
		InputRequests: sdk.InputRequestMap{linkRequest: x.linkTo(pending.ID)},
		RequestState:  state,
	}, nil
}

// resume goes on with a call that waited in an earlier round.
func (x *exchange) resume(ctx context.Context) (*sdk.CallToolResult, error) {
	snapshot := x.server.config.Policy.Snapshot()
	w, err := x.server.sealer.open(x.request.Params.RequestState)
	if err == nil {
		tool, digest := x.digest(w.Session)
		err = w.covers(x.identity, tool, digest, snapshot.Revision(), time.Now())
	}
	if err != nil {
		if errors.Is(err, errStatePolicy) {
			x.withdraw(ctx, w.Approval, err)
		}
		return x.refuse(ctx, stateRefusal(err))
	}
	x.call.Session, x.call.ID = w.Session, w.Call
	answer, _ := x.request.Params.InputResponses[linkRequest].(*sdk.ElicitResult)
	if declined(answer, time.UnixMilli(w.AskedAt)) {
		x.withdraw(ctx, w.Approval, errDeclined)
		return x.refuse(ctx, &toolward.Refusal{Code: toolward.CodeDeniedByUser, Approval: w.Approval, Cause: errDeclined})
	}
	x.call.Approval = w.Approval
	return x.wait(ctx)
}

// refuse records and answers a refusal of this adapter's own.
func (x *exchange) refuse(ctx context.Context, refusal *toolward.Refusal) (*sdk.CallToolResult, error) {
	refusal.Tool = x.call.Tool
	return finish(toolward.Result{}, x.server.config.Gateway.Refuse(ctx, x.call, refusal))
}

func stateRefusal(err error) *toolward.Refusal {
	code := toolward.CodeInvalidArgs
	switch {
	case errors.Is(err, errStateStale):
		code = toolward.CodeApprovalTimeout
	case errors.Is(err, errStatePolicy):
		code = toolward.CodeTargetChanged
	}
	return &toolward.Refusal{Code: code, Detail: "requestState: " + err.Error(), Cause: err}
}

// digest names the call by what the gateway makes of it: the tool's own name and the digest of the canonical
// arguments, as the call of the given session. Both are empty if the call is none that could run.
func (x *exchange) digest(session toolward.SessionKey) (tool, digest string) {
	snapshot := x.server.config.Policy.Snapshot()
	found, _ := snapshot.Find(x.call.Caller, x.call.Tool)
	if found == nil {
		return "", ""
	}
	params, err := snapshot.Decode(found, x.call.Arguments)
	if err != nil {
		return "", ""
	}
	return found.Name, params.Digest(found.Name, x.identity.Agent, session)
}
