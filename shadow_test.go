package toolward_test

import (
	"context"
	"encoding/json"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/internal/gatetest"
)

// beside makes the gateway of a harness anew, with a shadow policy.
func beside(t *testing.T, h *gatetest.Harness, shadow toolward.Policy, observe bool) {
	t.Helper()
	g, err := toolward.New(toolward.Config{
		Policy: h.Policy, Approver: h.Approver, Auditor: h.Auditor, Sessions: h.Sessions, Shadow: shadow, ObserveOnly: observe,
	})
	if err != nil {
		t.Fatal(err)
	}
	h.Gateway = g
}

func judges(row string, j toolward.Judgment) func(*toolward.Request) toolward.Judgment {
	j.Row = row
	return func(*toolward.Request) toolward.Judgment { return j }
}

func TestShadowKeepsOnlyDifferences(t *testing.T) {
	allow, ask := toolward.Judgment{Verdict: toolward.Allow}, toolward.Judgment{Verdict: toolward.Ask, GrantOK: true, AllowAlways: true}
	once := toolward.Judgment{Verdict: toolward.Ask}
	blocked, invalid := toolward.Judgment{Code: toolward.CodeBlocked}, toolward.Judgment{Code: toolward.CodeValidation}
	for _, c := range []struct {
		name            string
		force, shadow   toolward.Judgment
		forceRow, atRow string
		want            toolward.Change
	}{
		{"the same", ask, ask, "r", "r", ""},
		{"the same in other words", ask, withReason(ask), "r", "r", ""},
		{"asks where it ran", allow, ask, "r", "r", toolward.ChangeStricter},
		{"runs where it asked", ask, allow, "r", "r", toolward.ChangeLooser},
		{"refuses", ask, blocked, "r", "r", toolward.ChangeStricter},
		{"no grant any more", ask, once, "r", "r", toolward.ChangeStricter},
		{"a grant counts", once, ask, "r", "r", toolward.ChangeLooser},
		{"refuses for another reason", blocked, invalid, "r", "r", toolward.ChangeOther},
		{"another row", ask, ask, "r", "s", toolward.ChangeOther},
	} {
		t.Run(c.name, func(t *testing.T) {
			var ran counter
			h := gatetest.New(t, toolward.Allow, ran.tool("x"))
			h.Approver.Decision = toolward.AllowOnce
			h.Policy.JudgeFunc = judges(c.forceRow, c.force)
			beside(t, h, &gatetest.Policy{Rev: "2", All: h.Policy.All, JudgeFunc: judges(c.atRow, c.shadow)}, false)
			_, _ = h.Call(t.Context(), call("x", `{}`)) // whether it ran is another test's
			got := h.Auditor.Decisions()[0].Shadow
			switch {
			case c.want == "" && got != nil:
				t.Errorf("recorded %+v", got)
			case c.want != "" && (got == nil || got.Change != c.want || got.Verdict != c.shadow.Verdict || got.Row != c.atRow || got.Revision != "2"):
				t.Errorf("recorded %+v, want %s", got, c.want)
			}
		})
	}
}

func withReason(j toolward.Judgment) toolward.Judgment {
	j.Reasons = []toolward.Reason{{Text: "another text"}}
	return j
}

// What the policy in force refuses before it judges is compared as far as it was looked at.
func TestShadowOfCallsThatWereNotJudged(t *testing.T) {
	var ran counter
	x := ran.tool("x")
	refuses := func(json.RawMessage) (toolward.Params, error) {
		return toolward.Params{}, &toolward.InvalidArgs{Field: "a"}
	}
	for _, c := range []struct {
		name          string
		force, shadow []*toolward.Tool
		want          *toolward.ShadowJudgment
	}{
		{"hidden by both", nil, nil, nil},
		{"hidden, and shown by the shadow", nil, []*toolward.Tool{x}, &toolward.ShadowJudgment{Partial: true, Change: toolward.ChangeLooser}},
		{"hidden by the shadow", []*toolward.Tool{x}, nil, &toolward.ShadowJudgment{Change: toolward.ChangeStricter, Code: toolward.CodeUnknownTool}},
		{"wrong arguments for both", []*toolward.Tool{{Name: "x", Decode: refuses}}, []*toolward.Tool{x}, nil},
		{"wrong arguments, hidden by the shadow", []*toolward.Tool{{Name: "x", Decode: refuses}}, nil, &toolward.ShadowJudgment{Change: toolward.ChangeOther, Code: toolward.CodeUnknownTool}},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := gatetest.New(t, toolward.Allow, c.force...)
			looked := false
			shadow := &gatetest.Policy{Rev: "2", All: c.shadow, JudgeFunc: func(*toolward.Request) toolward.Judgment {
				looked = true
				return toolward.Judgment{Verdict: toolward.Allow}
			}}
			beside(t, h, shadow, false)
			_, _ = h.Call(t.Context(), call("x", `{}`))
			got := h.Auditor.Decisions()[0].Shadow
			if (got == nil) != (c.want == nil) || got != nil && (got.Partial != c.want.Partial || got.Change != c.want.Change || got.Code != c.want.Code) {
				t.Errorf("recorded %+v, want %+v", got, c.want)
			}
			if looked {
				t.Error("the shadow judged a call whose arguments were never accepted")
			}
		})
	}
}

// A call that belongs to nobody is not a matter of policy.
func TestShadowIsNotAskedAboutMixedUpSessions(t *testing.T) {
	var ran counter
	h := gatetest.New(t, toolward.Allow)
	beside(t, h, &gatetest.Policy{All: []*toolward.Tool{ran.tool("x")}, Verdict: toolward.Allow}, false)
	c := call("x", `{}`)
	c.Session = "agent:other:main"
	_, _ = h.Call(t.Context(), c)
	if got := h.Auditor.Decisions()[0].Shadow; got != nil {
		t.Errorf("recorded %+v", got)
	}
}

// brokenShadow fails wherever it is asked.
type brokenShadow struct {
	gatetest.Policy
	snapshot func() toolward.Snapshot
}

func (b *brokenShadow) Snapshot() toolward.Snapshot { return b.snapshot() }

func TestShadowChangesNoOutcome(t *testing.T) {
	var ran counter
	x := ran.tool("x")
	hang := func(*toolward.Request) toolward.Judgment { time.Sleep(time.Hour); return toolward.Judgment{} }
	crash := func(*toolward.Request) toolward.Judgment { panic("shadow") }
	shadows := map[string]toolward.Policy{
		"none":        nil,
		"allows":      &gatetest.Policy{All: []*toolward.Tool{x}, Verdict: toolward.Allow},
		"denies":      &gatetest.Policy{All: []*toolward.Tool{x}, Verdict: toolward.Deny},
		"hides":       &gatetest.Policy{},
		"hangs":       &gatetest.Policy{All: []*toolward.Tool{x}, JudgeFunc: hang},
		"panics":      &gatetest.Policy{All: []*toolward.Tool{x}, JudgeFunc: crash},
		"no snapshot": &brokenShadow{snapshot: func() toolward.Snapshot { return nil }},
		"no policy":   &brokenShadow{snapshot: func() toolward.Snapshot { panic("shadow") }},
	}
	for name, shadow := range shadows {
		for _, verdict := range []toolward.Verdict{toolward.Allow, toolward.Ask, toolward.Deny} {
			for _, decision := range []toolward.Decision{toolward.AllowOnce, toolward.DenyCall} {
				t.Run(name+", "+verdict.String()+", "+decision.String(), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						before := ran.runs.Load()
						h := gatetest.New(t, verdict, x)
						h.Approver.Decision = decision
						beside(t, h, shadow, false)
						_, err := h.Call(t.Context(), call("x", `{}`))
						runs := verdict == toolward.Allow || verdict == toolward.Ask && decision == toolward.AllowOnce
						if got := ran.runs.Load() > before; got != runs || (err == nil) != runs {
							t.Errorf("ran %v (%v), want %v", got, err, runs)
						}
						if len(h.Auditor.Decisions()) != 1 {
							t.Errorf("%d records", len(h.Auditor.Decisions()))
						}
					})
				})
			}
		}
	}
}

// The shadow looks at what the policy in force judged, also after the level rose while people thought.
func TestShadowJudgesTheSameFacts(t *testing.T) {
	var ran counter
	h := gatetest.New(t, toolward.Ask, ran.tool("x"))
	byLevel := func(r *toolward.Request) toolward.Judgment {
		return toolward.Judgment{Verdict: toolward.Ask, GrantOK: r.Level == toolward.Normal}
	}
	h.Policy.JudgeFunc = byLevel
	h.Approver.AskFunc = func(context.Context, *toolward.Question) (toolward.Answer, error) {
		h.Sessions.Current = toolward.Elevated
		return toolward.Answer{ApprovalID: "1", Decision: toolward.AllowOnce}, nil
	}
	beside(t, h, &gatetest.Policy{All: h.Policy.All, JudgeFunc: byLevel}, false)
	if _, err := h.Call(t.Context(), call("x", `{}`)); err != nil {
		t.Fatal(err)
	}
	d := h.Auditor.Decisions()[0]
	if d.Shadow != nil {
		t.Errorf("the same policy differs: %+v", d.Shadow)
	}
	if d.Level != toolward.Elevated || d.Policy == nil || d.Policy.GrantOK {
		t.Errorf("the record is of level %s, its judgement of another one: %+v", d.Level, d.Policy)
	}
}

func TestObserveOnlyRunsWhatWouldAsk(t *testing.T) {
	for _, c := range []struct {
		verdict toolward.Verdict
		runs    bool
		via     string
	}{{toolward.Allow, true, "class"}, {toolward.Ask, true, "shadow"}, {toolward.Deny, false, "denied"}} {
		t.Run(c.verdict.String(), func(t *testing.T) {
			var ran counter
			h := gatetest.New(t, c.verdict, ran.tool("x"))
			h.Approver.AskFunc = func(context.Context, *toolward.Question) (toolward.Answer, error) {
				t.Error("people were asked")
				return toolward.Answer{}, nil
			}
			beside(t, h, nil, true)
			trace := h.Explain(t.Context(), call("x", `{}`), toolward.ExplainOptions{})
			_, err := h.Call(t.Context(), call("x", `{}`))
			d := h.Auditor.Decisions()[0]
			if (ran.runs.Load() == 1) != c.runs || (err == nil) != c.runs || d.Via != c.via || d.Judgment.Verdict != c.verdict {
				t.Errorf("ran %d times, %v, via %q, judged %s", ran.runs.Load(), err, d.Via, d.Judgment.Verdict)
			}
			if (trace.Verdict == toolward.Allow) != c.runs || c.runs && trace.Via != c.via {
				t.Errorf("explained as %s via %q", trace.Verdict, trace.Via)
			}
		})
	}
}

// A refusal that comes after the judgment, here a target that has moved, stays one while the gateway only observes.
func TestObserveOnlyStillRefuses(t *testing.T) {
	var ran counter
	tool := ran.tool("x")
	tool.Facts = func(context.Context, *toolward.Request) (toolward.Facts, error) {
		return toolward.Facts{}, &toolward.InvalidArgs{Field: "path"}
	}
	h := gatetest.New(t, toolward.Ask, tool)
	beside(t, h, nil, true)
	if _, err := h.Call(t.Context(), call("x", `{}`)); err == nil || ran.runs.Load() != 0 {
		t.Error("ran")
	}
}
