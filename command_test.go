package toolward_test

import (
	"context"
	"slices"
	"testing"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/internal/gatetest"
)

// judging makes a harness whose policy says the same about every call.
func judging(t *testing.T, j toolward.Judgment, tool *toolward.Tool) *gatetest.Harness {
	h := gatetest.New(t, toolward.Ask, tool)
	h.Policy.JudgeFunc = func(*toolward.Request) toolward.Judgment { return j }
	return h
}

func TestCoveredCommandsRunUnansweredOnlyWhereTheOperatorWantsIt(t *testing.T) {
	refused := func(code toolward.Code) func(context.Context, *toolward.Question) (toolward.Answer, error) {
		return func(context.Context, *toolward.Question) (toolward.Answer, error) {
			return toolward.Answer{}, &toolward.Refusal{Code: code}
		}
	}
	answered := func(d toolward.Decision) func(context.Context, *toolward.Question) (toolward.Answer, error) {
		return func(context.Context, *toolward.Question) (toolward.Answer, error) {
			return toolward.Answer{ApprovalID: "1", Decision: d, Unanswered: true}, nil
		}
	}
	undecided := func(context.Context, *toolward.Question) (toolward.Answer, error) {
		return toolward.Answer{ApprovalID: "1"}, nil
	}
	for _, c := range []struct {
		name       string
		unanswered bool
		ask        func(context.Context, *toolward.Question) (toolward.Answer, error)
		alarm      bool
		runs       bool
	}{
		{"nobody answered", true, answered(toolward.NoDecision), false, true},
		{"nobody is there", true, refused(toolward.CodeNoApprovalChannel), false, true},
		{"they are away", true, refused(toolward.CodeApproverAway), false, true},
		{"not wanted", false, answered(toolward.NoDecision), false, false},
		{"denied", true, answered(toolward.DenyCall), false, false},
		{"denied before", true, refused(toolward.CodeDeniedBefore), false, false},
		{"taken back", true, undecided, false, false},
		{"answered, for its twin", true, firstAgain(toolward.DenyCall), false, false},
		{"an unknown word", true, answered(toolward.Decision(9)), false, false},
		{"a watcher wants people", true, answered(toolward.NoDecision), true, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			var ran counter
			h := judging(t, toolward.Judgment{Verdict: toolward.Ask, Unanswered: c.unanswered}, ran.tool("x"))
			h.Approver.AskFunc = c.ask
			config := toolward.Config{Policy: h.Policy, Approver: h.Approver, Auditor: h.Auditor, Sessions: h.Sessions}
			if c.alarm {
				config.Watcher = &guard{alarm: toolward.Alarm{Ask: true}}
			}
			gateway, err := toolward.New(config)
			if err != nil {
				t.Fatal(err)
			}
			if _, err = gateway.Call(t.Context(), call("x", `{}`)); (err == nil) != c.runs || (ran.runs.Load() == 1) != c.runs {
				t.Errorf("ran %d times, %v", ran.runs.Load(), err)
			}
		})
	}
}

// firstAgain sends the first question back to be judged again, and answers the next.
func firstAgain(d toolward.Decision) func(context.Context, *toolward.Question) (toolward.Answer, error) {
	asked := 0
	return func(context.Context, *toolward.Question) (toolward.Answer, error) {
		if asked++; asked == 1 {
			return toolward.Answer{JudgeAgain: true}, nil
		}
		return toolward.Answer{ApprovalID: "1", Decision: d}, nil
	}
}

func TestTheRecordSaysThatTheAllowlistLetACallThrough(t *testing.T) {
	var ran counter
	h := judging(t, toolward.Judgment{Verdict: toolward.Allow, Listed: true}, ran.tool("x"))
	if _, err := h.Call(t.Context(), call("x", `{}`)); err != nil {
		t.Fatal(err)
	}
	if via := h.Auditor.Decisions()[0].Via; via != "exec-allowlist" {
		t.Errorf("via %q", via)
	}
}

// What an allowlist covers depends on the level. When the watcher raises it, facts of the calmer level must not decide.
func TestFactsAreFoundAgainWhenTheLevelRises(t *testing.T) {
	var levels []toolward.Level
	tool := &toolward.Tool{
		Name: "x",
		Facts: func(_ context.Context, r *toolward.Request) (toolward.Facts, error) {
			levels = append(levels, r.Level)
			return toolward.Facts{Scope: r.Level.String()}, nil
		},
		Run: func(context.Context, *toolward.Request) (toolward.Result, error) { return toolward.TextResult(""), nil },
	}
	h := gatetest.New(t, toolward.Allow, tool)
	var judged string
	h.Policy.JudgeFunc = func(r *toolward.Request) toolward.Judgment {
		judged = r.Facts.Scope
		return toolward.Judgment{Verdict: toolward.Allow}
	}
	gateway, err := toolward.New(toolward.Config{
		Policy: h.Policy, Approver: h.Approver, Auditor: h.Auditor, Sessions: h.Sessions,
		Watcher: &guard{alarm: toolward.Alarm{Raised: true, Level: toolward.Elevated}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := gateway.Call(t.Context(), call("x", `{}`)); err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(levels, toolward.Elevated) || judged != toolward.Elevated.String() {
		t.Errorf("facts at %v, judged those of %s", levels, judged)
	}
}

// Content that strangers wrote marks the session of whoever ran the call, here or in the client, and of nobody else.
func TestCallsThatBringStrangersContentMarkTheSession(t *testing.T) {
	tool := func(run bool) *toolward.Tool {
		t := &toolward.Tool{Name: "x", Facts: func(context.Context, *toolward.Request) (toolward.Facts, error) {
			return toolward.Facts{External: []string{"command curl"}}, nil
		}}
		if run {
			t.Run = func(context.Context, *toolward.Request) (toolward.Result, error) { return toolward.TextResult(""), nil }
		}
		return t
	}
	for _, c := range []struct {
		status toolward.Status
		marks  bool
	}{{toolward.StatusOK, true}, {toolward.StatusUnknown, true}, {toolward.StatusError, true}, {toolward.StatusUnused, false}} {
		h := gatetest.New(t, toolward.Allow, tool(false))
		byClient := call("x", `{}`)
		byClient.ByClient = true
		pass, err := h.Admit(t.Context(), byClient)
		if err != nil {
			t.Fatal(err)
		}
		if err := pass.Close(t.Context(), toolward.OutcomeRecord{Status: c.status}); err != nil {
			t.Fatal(err)
		}
		if got := h.Sessions.Exposed("agent:main:main"); (len(got) == 1) != c.marks {
			t.Errorf("%s: exposed to %q", c.status, got)
		}
	}
	h := gatetest.New(t, toolward.Allow, tool(true))
	if _, err := h.Call(t.Context(), call("x", `{}`)); err != nil {
		t.Fatal(err)
	}
	if got := h.Sessions.Exposed("agent:main:main"); len(got) != 1 {
		t.Errorf("exposed to %q", got)
	}
}
