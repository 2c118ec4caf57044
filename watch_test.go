package toolward_test

import (
	"context"
	"testing"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/internal/gatetest"
)

// guard is a watcher that says the same about every call that it is shown.
type guard struct {
	alarm toolward.Alarm
	calls int
}

func (g *guard) Before(context.Context, *toolward.Request, bool) toolward.Alarm {
	g.calls++
	return g.alarm
}

func (*guard) Refused(context.Context, *toolward.Request, toolward.Code) {}

func (*guard) After(context.Context, *toolward.Request, *toolward.OutcomeRecord, *toolward.Result) {}

// A call that comes back for its answer was watched when it was asked about. One that comes back with an approval that
// is used up already is another call: it must not run on a grant with nobody watching, again and again.
func TestWhoComesBackWithAUsedApprovalIsWatched(t *testing.T) {
	alarm := toolward.Alarm{Reasons: []toolward.Reason{{Layer: "anomaly", Text: "odd"}}}
	loop, ask := alarm, alarm
	loop.Code, ask.Ask = toolward.CodeLoop, true
	for _, test := range []struct {
		name    string
		alarm   toolward.Alarm
		answer  toolward.Answer
		watched int
		code    toolward.Code // "" if it runs
	}{
		{"its own answer", loop, toolward.Answer{ApprovalID: "a1", Decision: toolward.AllowOnce}, 0, ""},
		{"a grant, nothing odd", toolward.Alarm{}, toolward.Answer{ApprovalID: "a2", Decision: toolward.AllowOnce, Grant: "g1"}, 1, ""},
		{"a grant, a loop", loop, toolward.Answer{ApprovalID: "a2", Decision: toolward.AllowOnce, Grant: "g1"}, 1, toolward.CodeLoop},
		{"a grant, people must decide", ask, toolward.Answer{ApprovalID: "a2", Decision: toolward.AllowOnce, Grant: "g1"}, 1, toolward.CodeTargetChanged},
		{"a new answer, people must decide", ask, toolward.Answer{ApprovalID: "a2", Decision: toolward.AllowOnce}, 1, ""},
		{"a new answer, a loop", loop, toolward.Answer{ApprovalID: "a2", Decision: toolward.AllowOnce}, 1, toolward.CodeLoop},
	} {
		t.Run(test.name, func(t *testing.T) {
			var ran counter
			h := gatetest.New(t, toolward.Ask, ran.tool("x"))
			h.Approver.AskFunc = func(context.Context, *toolward.Question) (toolward.Answer, error) { return test.answer, nil }
			h.Approver.Grant = "g1"
			watcher := &guard{alarm: test.alarm}
			gateway, err := toolward.New(toolward.Config{
				Policy: h.Policy, Approver: h.Approver, Auditor: h.Auditor, Sessions: h.Sessions, Watcher: watcher,
			})
			if err != nil {
				t.Fatal(err)
			}
			back := call("x", `{}`)
			back.Approval = "a1"
			_, err = gateway.Call(t.Context(), back)
			if watcher.calls != test.watched {
				t.Errorf("watched %d times, want %d", watcher.calls, test.watched)
			}
			if test.code != "" {
				checkCode(t, err, test.code)
			}
			if (err == nil) != (test.code == "") || (ran.runs.Load() == 1) != (test.code == "") {
				t.Errorf("error %v, ran %d times", err, ran.runs.Load())
			}
		})
	}
}
