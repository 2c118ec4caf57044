package toolward_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/internal/gatetest"
)

// notebook is a keeper that writes down what it is asked.
type notebook struct {
	gap  string
	fail error
	said []string

	meanwhile func() // happens while a snapshot is made
}

func (n *notebook) Gap(context.Context, *toolward.Request) string { return n.gap }

func (n *notebook) Begin(context.Context, *toolward.Request) (string, error) {
	n.said = append(n.said, "begin")
	if n.meanwhile != nil {
		n.meanwhile()
	}
	return "kept-1", n.fail
}

func (n *notebook) End(_ context.Context, id string, running <-chan struct{}) {
	n.said = append(n.said, "end "+id)
	if running != nil {
		n.said = append(n.said, "running")
	}
}

func (n *notebook) Drop(id string) { n.said = append(n.said, "drop "+id) }

// keeping is a gate with a keeper and one tool that changes something, unless it only reads.
func keeping(t *testing.T, n *notebook, mutates bool) (*gatetest.Harness, *toolward.Gateway) {
	t.Helper()
	left := make(chan struct{})
	tool := &toolward.Tool{
		Name: "write",
		Facts: func(context.Context, *toolward.Request) (toolward.Facts, error) {
			return toolward.Facts{Mutates: mutates}, nil
		},
		Run: func(context.Context, *toolward.Request) (toolward.Result, error) {
			n.said = append(n.said, "run")
			return toolward.Result{Running: left}, nil
		},
	}
	h := gatetest.New(t, toolward.Allow, tool)
	return h, h.With(t, func(c *toolward.Config) { c.Keeper = n })
}

func TestTheWorkspaceIsKeptAroundACallThatChangesIt(t *testing.T) {
	n := &notebook{}
	h, g := keeping(t, n, true)
	if _, err := g.Call(t.Context(), call("write", `{}`)); err != nil {
		t.Fatal(err)
	}
	if want := []string{"begin", "run", "end kept-1", "running"}; !slices.Equal(n.said, want) {
		t.Errorf("%v, want %v", n.said, want)
	}
	if d := h.Auditor.Decisions(); len(d) != 1 || d[0].Undo != "kept-1" {
		t.Errorf("the record does not name what was kept: %+v", d)
	}
}

func TestNothingIsKeptOfACallThatReadsOrIsOnlyExplained(t *testing.T) {
	n := &notebook{gap: "never"}
	_, g := keeping(t, n, false)
	if _, err := g.Call(t.Context(), call("write", `{}`)); err != nil {
		t.Fatal(err)
	}
	g.Explain(t.Context(), call("write", `{}`), toolward.ExplainOptions{})
	if want := []string{"run"}; !slices.Equal(n.said, want) {
		t.Errorf("%v, want %v", n.said, want)
	}
}

func TestACallThatCannotBeKeptIsRefused(t *testing.T) {
	n := &notebook{fail: errors.New("no space left on device")}
	_, g := keeping(t, n, true)
	_, err := g.Call(t.Context(), call("write", `{}`))
	refusal, ok := errors.AsType[*toolward.Refusal](err)
	if !ok || refusal.Code != toolward.CodeNotKept || !slices.Equal(n.said, []string{"begin"}) {
		t.Errorf("%v after %v", err, n.said)
	}
}

func TestWhatIsRefusedAfterItWasKeptIsDropped(t *testing.T) {
	for name, spoil := range map[string]func(*gatetest.Harness){
		"the record fails": func(h *gatetest.Harness) { h.Auditor.Err = errors.New("disk full") },
		"the policy changes while a snapshot is made": func(h *gatetest.Harness) { h.Policy.Verdict = toolward.Deny },
	} {
		t.Run(name, func(t *testing.T) {
			n := &notebook{}
			h, g := keeping(t, n, true)
			n.meanwhile = func() { spoil(h) }
			if _, err := g.Call(t.Context(), call("write", `{}`)); err == nil {
				t.Error("it ran")
			}
			if want := []string{"begin", "drop kept-1"}; !slices.Equal(n.said, want) {
				t.Errorf("%v, want %v", n.said, want)
			}
		})
	}
}

func TestAPassThatIsNotUsedIsDropped(t *testing.T) {
	n := &notebook{}
	_, g := keeping(t, n, true)
	pass, err := g.Admit(t.Context(), call("write", `{}`))
	if err != nil {
		t.Fatal(err)
	}
	if err := pass.Close(t.Context(), toolward.OutcomeRecord{Status: toolward.StatusUnused}); err != nil {
		t.Fatal(err)
	}
	if want := []string{"begin", "drop kept-1"}; !slices.Equal(n.said, want) {
		t.Errorf("%v, want %v", n.said, want)
	}
}

// A client reports the outcome of a command in the background while it runs.
func TestWhatAClientsCallLeavesRunningIsPassedOn(t *testing.T) {
	n := &notebook{}
	_, g := keeping(t, n, true)
	pass, err := g.Admit(t.Context(), call("write", `{}`))
	if err != nil {
		t.Fatal(err)
	}
	if err := pass.Start(); err != nil {
		t.Fatal(err)
	}
	pass.Leaves(make(chan struct{}))
	if err := pass.Close(t.Context(), toolward.OutcomeRecord{Status: toolward.StatusOK}); err != nil {
		t.Fatal(err)
	}
	if want := []string{"begin", "end kept-1", "running"}; !slices.Equal(n.said, want) {
		t.Errorf("%v, want %v", n.said, want)
	}
}

func TestWhatNobodyCouldTakeBackIsAFindingThatAsks(t *testing.T) {
	n := &notebook{gap: "the workspace is too large"}
	h, g := keeping(t, n, true)
	var found []toolward.Finding
	h.Policy.JudgeFunc = func(r *toolward.Request) toolward.Judgment {
		found = r.Facts.Findings
		return toolward.Judgment{Verdict: toolward.Deny}
	}
	if _, err := g.Call(t.Context(), call("write", `{}`)); err == nil {
		t.Error("it ran")
	}
	want := []toolward.Finding{{Code: "no_undo", Effect: toolward.EffectAsk, Detail: n.gap}}
	if !slices.Equal(found, want) || len(n.said) != 0 {
		t.Errorf("judged with %+v, and kept %v", found, n.said)
	}
}
