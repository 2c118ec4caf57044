package anomaly_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/audit/anomaly"
	"github.com/toolward/toolward/internal/gatetest"
	"github.com/toolward/toolward/session"
)

// world is a gateway with detectors and real levels.
type world struct {
	*toolward.Gateway
	t        *testing.T
	policy   *gatetest.Policy
	approver *gatetest.Approver
	hooks    *hooks
	sessions *session.Tracker
	monitor  *anomaly.Monitor
	watcher  *anomaly.Watcher
	notices  []anomaly.Notice
	levels   []toolward.Level // of every judgment
	facts    toolward.Facts
	result   string
}

func newWorld(t *testing.T, c anomaly.Config, floors anomaly.Floors) *world {
	t.Helper()
	w := &world{t: t, approver: &gatetest.Approver{}, hooks: &hooks{}, result: "same"}
	tool := &toolward.Tool{
		Name:  "write",
		Facts: func(context.Context, *toolward.Request) (toolward.Facts, error) { return w.facts, nil },
		Run: func(context.Context, *toolward.Request) (toolward.Result, error) {
			return toolward.TextResult(w.result), nil
		},
	}
	other := *tool
	other.Name = "exec"
	w.policy = &gatetest.Policy{Rev: "1", All: []*toolward.Tool{tool, &other}, Verdict: toolward.Allow}
	w.policy.JudgeFunc = func(r *toolward.Request) toolward.Judgment {
		w.levels = append(w.levels, r.Level)
		return toolward.Judgment{Verdict: w.policy.Verdict, GrantOK: true, AllowAlways: true, Code: toolward.CodeBlocked}
	}
	var err error
	w.sessions, err = session.New(session.Options{Store: states{}, Settings: session.Settings{DefaultLevel: toolward.Normal}})
	must(t, err)
	if floors == nil {
		floors = w.sessions
	}
	w.monitor, err = anomaly.New(c)
	must(t, err)
	w.watcher, err = anomaly.NewWatcher(w.monitor, floors, func(n anomaly.Notice) { w.notices = append(w.notices, n) }, nil)
	must(t, err)
	w.Gateway, err = toolward.New(toolward.Config{
		Policy: w.policy, Approver: w.approver, Auditor: &gatetest.Auditor{}, Sessions: w.sessions, Hooks: w.hooks, Watcher: w.watcher,
	})
	must(t, err)
	return w
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

const here = toolward.SessionKey("agent:coder:here")

var serial int

func callIn(key toolward.SessionKey, tool string, n int) toolward.Call {
	serial++
	return toolward.Call{
		ID: fmt.Sprint("c", serial), Run: "run-1", Tool: tool, Arguments: json.RawMessage(fmt.Sprintf(`{"n":%d}`, n)), Session: key,
		Caller: toolward.Caller{Agent: key.Agent()},
	}
}

// call makes a call and returns the code of its refusal, "" if it ran.
func (w *world) call(c toolward.Call) toolward.Code {
	w.t.Helper()
	_, err := w.Call(w.t.Context(), c)
	return codeOf(w.t, err)
}

func codeOf(t *testing.T, err error) toolward.Code {
	t.Helper()
	if err == nil {
		return ""
	}
	refusal, ok := errors.AsType[*toolward.Refusal](err)
	if !ok {
		t.Fatalf("%v is no refusal", err)
	}
	return refusal.Code
}

func (w *world) level(key toolward.SessionKey) toolward.Level {
	w.t.Helper()
	o, err := w.sessions.Overview(w.t.Context(), key)
	must(w.t, err)
	return o.Level
}

// fired lists the detectors of all notices.
func (w *world) fired() (names []string) {
	for _, n := range w.notices {
		names = append(names, fmt.Sprint(n.Detector, " ", n.Count, " ", n.Action))
	}
	return names
}

// hooks counts the calls that plug-ins see, and may rewrite each to the same arguments.
type hooks struct {
	before  int
	rewrite json.RawMessage
}

func (h *hooks) Before(context.Context, *toolward.Request) toolward.HookAnswer {
	h.before++
	return toolward.HookAnswer{Params: h.rewrite}
}

func (*hooks) Result(_ context.Context, _ *toolward.Request, r toolward.Result) (toolward.Result, error) {
	return r, nil
}

func (*hooks) After(context.Context, *toolward.Request, *toolward.OutcomeRecord, *toolward.Result) {}

// states is a session store in memory.
type states map[toolward.SessionKey]session.State

func (s states) LoadSession(_ context.Context, key toolward.SessionKey) (session.State, bool, error) {
	state, ok := s[key]
	return state, ok, nil
}

func (s states) SaveSession(_ context.Context, state session.State) error {
	s[state.Key] = state
	return nil
}

func (states) RecentSessions(context.Context, int) ([]session.State, error) { return nil, nil }

// only switches all detectors off but those that are given.
func only(on map[anomaly.Detector]anomaly.Override) map[anomaly.Detector]anomaly.Override {
	no := false
	all := map[anomaly.Detector]anomaly.Override{}
	for d := anomaly.Burst; d <= anomaly.NewTarget; d++ {
		all[d] = anomaly.Override{Enabled: &no}
	}
	for d, o := range on {
		all[d] = o
	}
	return all
}

func at(threshold int, action anomaly.Action) anomaly.Override {
	return anomaly.Override{Threshold: &threshold, Action: &action, Escalate: anomaly.Escalation{Set: true}}
}

func loops(warning, critical, breaker float64) anomaly.LoopConfig {
	yes := true
	return anomaly.LoopConfig{Enabled: &yes, Warning: &warning, Critical: &critical, GlobalCircuitBreak: &breaker}
}
