package toolward_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/internal/gatetest"
)

// follower notes the steps that it was shown, each under the one that it belongs to.
type follower struct{ steps []string }

type stepKey struct{}

func (f *follower) Step(ctx context.Context, name string, _ *toolward.Call) (context.Context, func(error)) {
	path := name
	if parent, ok := ctx.Value(stepKey{}).(string); ok {
		path = parent + "/" + name
	}
	at := len(f.steps)
	f.steps = append(f.steps, path)
	return context.WithValue(ctx, stepKey{}, path), func(err error) {
		if err != nil {
			f.steps[at] += ": " + strings.SplitN(err.Error(), ":", 2)[0]
		}
	}
}

func observedGateway(t *testing.T, f *follower, verdict toolward.Verdict, tools ...*toolward.Tool) *toolward.Gateway {
	t.Helper()
	h := gatetest.New(t, verdict, tools...)
	g, err := toolward.New(toolward.Config{
		Policy: h.Policy, Approver: h.Approver, Auditor: h.Auditor, Sessions: h.Sessions, Observer: f,
	})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestAnObserverSeesEveryStepOnceAndTheRunWithinItsCall(t *testing.T) {
	var inTool any
	tool := &toolward.Tool{Name: "read", Run: func(ctx context.Context, _ *toolward.Request) (toolward.Result, error) {
		inTool = ctx.Value(stepKey{})
		return toolward.TextResult("done"), nil
	}}
	f := &follower{}
	if _, err := observedGateway(t, f, toolward.Allow, tool).Call(t.Context(), call("read", `{}`)); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"call", "call/find", "call/decode", "call/level", "call/look", "call/watch", "call/judge", "call/hooks", "call/ask", "call/keep",
		"call/re-check", "call/record", "call/run",
	}
	if !slices.Equal(f.steps, want) {
		t.Errorf("steps\n%v\nwant\n%v", f.steps, want)
	}
	if inTool != "call/run" {
		t.Errorf("the tool ran in step %v", inTool)
	}
}

func TestARunEndsWithItsOwnCallerAlthoughItIsSeenInItsCall(t *testing.T) {
	var ended error
	tool := &toolward.Tool{Name: "read", Run: func(ctx context.Context, _ *toolward.Request) (toolward.Result, error) {
		ended = ctx.Err()
		return toolward.Result{}, ctx.Err()
	}}
	admitted, canceled := context.WithCancel(t.Context())
	pass, err := observedGateway(t, &follower{}, toolward.Allow, tool).Admit(admitted, call("read", `{}`))
	if err != nil {
		t.Fatal(err)
	}
	canceled() // the end of the admission's context must not end the run
	if _, err := pass.Run(t.Context()); err != nil || ended != nil {
		t.Errorf("the run ended with the admission's context: %v, %v", err, ended)
	}
}

func TestAnObserverSeesWhereACallWasRefused(t *testing.T) {
	f := &follower{}
	g := observedGateway(t, f, toolward.Deny, &toolward.Tool{Name: "read"})
	if _, err := g.Admit(t.Context(), call("read", `{}`)); err == nil {
		t.Fatal("it was not refused")
	}
	if last := f.steps[len(f.steps)-1]; !strings.HasPrefix(last, "call/judge: ") {
		t.Errorf("the last step is %q", last)
	}
	if !strings.HasPrefix(f.steps[0], "call: ") {
		t.Errorf("the call ended as %q", f.steps[0])
	}
}
