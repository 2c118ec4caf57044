package anomaly_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/audit/anomaly"
)

func TestALoopIsBlockedBeforeHooks(t *testing.T) {
	for name, c := range map[string]anomaly.Config{
		"with its detector":             {Detectors: only(map[anomaly.Detector]anomaly.Override{anomaly.Loop: {}}), Loops: loops(2, 3, 4)},
		"without":                       {Detectors: only(nil), Loops: loops(2, 3, 4)},
		"though only an alert follows":  {Detectors: only(map[anomaly.Detector]anomaly.Override{anomaly.Loop: {Escalate: anomaly.Escalation{Set: true}}}), Loops: loops(2, 3, 4)},
		"of one agent, by its settings": {Detectors: only(nil), Agents: map[string]anomaly.LoopConfig{"coder": loops(2, 3, 4)}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, c, nil)
			for i := range 4 {
				if code := w.call(callIn(here, "write", 7)); code != "" {
					t.Fatalf("call %d: %s", i, code)
				}
			}
			seen := w.hooks.before
			if code := w.call(callIn(here, "write", 7)); code != toolward.CodeLoop {
				t.Errorf("the fifth: %q", code)
			}
			if w.hooks.before != seen {
				t.Error("plug-ins saw a call that was blocked")
			}
			if code := w.call(callIn(here, "write", 8)); code != "" {
				t.Errorf("another call: %s", code)
			}
			if code := w.call(callIn("agent:writer:here", "write", 7)); code != "" {
				t.Errorf("another agent: %s", code)
			}
		})
	}
}

// A plug-in that rewrites every call does not hide that the agent makes the same one again and again.
func TestARewrittenLoopIsALoop(t *testing.T) {
	w := newWorld(t, anomaly.Config{Detectors: only(nil), Loops: loops(2, 3, 4)}, nil)
	w.hooks.rewrite = json.RawMessage(`{"n":99}`)
	var codes []toolward.Code
	for range 5 {
		codes = append(codes, w.call(callIn(here, "write", 7)))
	}
	if want := []toolward.Code{"", "", "", "", toolward.CodeLoop}; !slices.Equal(codes, want) {
		t.Errorf("%q, want %q", codes, want)
	}
}

func TestABurstRaisesTheFloor(t *testing.T) {
	w := newWorld(t, anomaly.Config{Detectors: only(map[anomaly.Detector]anomaly.Override{anomaly.Burst: at(3, anomaly.Elevate)})}, nil)
	for n := range 4 {
		if code := w.call(callIn(here, "write", n)); code != "" {
			t.Fatal(code)
		}
	}
	want := []toolward.Level{toolward.Normal, toolward.Normal, toolward.Elevated, toolward.Elevated}
	judged := slices.Compact(slices.Clone(w.levels))
	if w.level(here) != toolward.Elevated || !slices.Equal(judged, slices.Compact(want)) {
		t.Errorf("levels %v, want %v", w.levels, want)
	}
	if got := w.fired(); !slices.Equal(got, []string{"burst 3 elevate"}) {
		t.Errorf("fired %q", got)
	}
	if n := w.notices[0]; n.Session != here || n.Tool != "write" || n.Run != "run-1" || n.Text != "3 calls in a row without a message of a user" {
		t.Errorf("%+v", n)
	}
}

// A run that has not been seen begins with a message of a user, which ends a burst; one that comes back does not.
func TestANewRunEndsABurst(t *testing.T) {
	w := newWorld(t, anomaly.Config{Detectors: only(map[anomaly.Detector]anomaly.Override{anomaly.Burst: at(3, anomaly.Elevate)})}, nil)
	for _, run := range []string{"a", "a", "b", "a"} {
		c := callIn(here, "write", 1)
		c.Run = run
		w.call(c)
		if run == "b" && len(w.notices) > 0 {
			t.Fatal("the burst went on through another run")
		}
	}
	if w.call(callIn(here, "exec", 1)); w.level(here) != toolward.Normal {
		t.Error("a fresh run inherits the burst")
	}
	again := callIn(here, "write", 2)
	again.Run = "a"
	w.call(again)
	if w.call(again); w.level(here) != toolward.Elevated {
		t.Errorf("runs that take turns hide a burst: %q", w.fired())
	}
}

func TestRefusalsLeadToLockdown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, anomaly.Config{}, nil)
		w.policy.Verdict = toolward.Deny
		for n := range 6 {
			want := []toolward.Level{toolward.Normal, toolward.Normal, toolward.Normal, toolward.Elevated, toolward.Elevated, toolward.Elevated}[n]
			if got := w.level(here); got != want {
				t.Errorf("before refusal %d: %v, want %v", n+1, got, want)
			}
			w.call(callIn(here, "write", n))
		}
		w.policy.Verdict = toolward.Allow
		w.call(callIn(here, "write", 7))
		if last := w.levels[len(w.levels)-1]; last != toolward.Lockdown {
			t.Errorf("after six refusals a call is judged at %v", last)
		}
		if got := w.fired(); !slices.Equal(got, []string{"denied 3 elevate", "denied 6 lockdown"}) {
			t.Errorf("fired %q", got)
		}
		time.Sleep(61 * time.Minute) // the bubble's clock
		next := callIn(here, "write", 8)
		next.Run = "run-2"
		w.call(next)
		if last := w.levels[len(w.levels)-1]; last != toolward.Normal {
			t.Errorf("an hour later: %v", last)
		}
	})
}

// Refusals of arguments count as probing, not as refusals; a full disk counts as neither.
func TestWhichRefusalsCount(t *testing.T) {
	w := newWorld(t, anomaly.Config{Detectors: only(map[anomaly.Detector]anomaly.Override{
		anomaly.Denied: at(1, anomaly.Alert), anomaly.Invalid: at(1, anomaly.Alert),
	})}, nil)
	w.watcher.Refused(t.Context(), &toolward.Request{Call: callIn(here, "write", 1)}, toolward.CodeAuditUnavailable)
	w.watcher.Refused(t.Context(), &toolward.Request{Call: callIn(here, "write", 1)}, toolward.CodeNoSandbox)
	if len(w.notices) > 0 {
		t.Errorf("a full disk: %q", w.fired())
	}
	c := callIn(here, "write", 1)
	c.Arguments = json.RawMessage(`[`)
	w.call(c)
	w.call(callIn(here, "no_such_tool", 1))
	if got := w.fired(); !slices.Equal(got, []string{"invalid 1 alert", "denied 1 alert"}) {
		t.Errorf("fired %q", got)
	}
}

func TestNoGrantAnswersAnAlarm(t *testing.T) {
	w := newWorld(t, anomaly.Config{Detectors: only(map[anomaly.Detector]anomaly.Override{anomaly.Writes: at(2, anomaly.Ask)})}, nil)
	w.policy.Verdict, w.approver.Grant, w.approver.Decision = toolward.Ask, "g1", toolward.AllowOnce
	w.facts.Mutates = true
	for n := range 2 {
		if code := w.call(callIn(here, "write", n)); code != "" {
			t.Fatal(code)
		}
	}
	asked := w.approver.Asked()
	if len(asked) != 1 {
		t.Fatalf("people were asked %d times, want once, about the second call", len(asked))
	}
	if j := asked[0].Judgment; j.AllowAlways || j.GrantOK || !slices.ContainsFunc(j.Reasons, func(r toolward.Reason) bool {
		return r.Rule == "teg.anomaly.writes" && r.Text == "many changes in a short time"
	}) {
		t.Errorf("%+v", j)
	}
	w.policy.Verdict, w.approver.Decision = toolward.Allow, toolward.DenyCall
	if code := w.call(callIn(here, "write", 9)); code != toolward.CodeDeniedByUser {
		t.Errorf("a call that policy allows: %q", code)
	}
}

func TestExplainCountsNothing(t *testing.T) {
	w := newWorld(t, anomaly.Config{Detectors: only(map[anomaly.Detector]anomaly.Override{
		anomaly.Burst: at(3, anomaly.Lockdown), anomaly.Denied: at(1, anomaly.Lockdown),
	})}, nil)
	explain := func() toolward.Trace {
		return w.Explain(t.Context(), callIn(here, "write", 5), toolward.ExplainOptions{})
	}
	for range 10 {
		if trace := explain(); trace.Level != toolward.Normal {
			t.Fatalf("%+v", trace)
		}
	}
	w.call(callIn(here, "write", 1))
	w.call(callIn(here, "write", 2))
	for range 10 {
		if trace := explain(); trace.Level != toolward.Lockdown {
			t.Fatalf("the next call is the third, and the explanation says %v", trace.Level)
		}
	}
	if len(w.notices) > 0 || w.level(here) != toolward.Normal {
		t.Errorf("explaining had consequences: %q, %v", w.fired(), w.level(here))
	}
	w.call(callIn(here, "write", 5))
	if last := w.levels[len(w.levels)-1]; last != toolward.Lockdown {
		t.Errorf("the third call was judged at %v", last)
	}
}

func TestSessionsDoNotDisturbEachOther(t *testing.T) {
	w := newWorld(t, anomaly.Config{}, nil)
	w.policy.Verdict = toolward.Deny
	for n := range 20 {
		w.call(callIn("agent:coder:there", "write", n))
	}
	if w.level("agent:coder:there") != toolward.Lockdown || w.level(here) != toolward.Normal {
		t.Errorf("there %v, here %v", w.level("agent:coder:there"), w.level(here))
	}
}

func TestAForgedSessionCountsAgainstNobody(t *testing.T) {
	w := newWorld(t, anomaly.Config{}, nil)
	for n := range 20 {
		c := callIn(here, "write", n)
		c.Caller.Agent = "mallory"
		if code := w.call(c); code != toolward.CodeInternal {
			t.Fatalf("a forged session: %q", code)
		}
	}
	if len(w.notices) > 0 || w.level(here) != toolward.Normal {
		t.Errorf("%q, %v", w.fired(), w.level(here))
	}
}

// A call counts once, however it goes: rewritten, asked about, or come back for its answer.
func TestACallCountsOnce(t *testing.T) {
	w := newWorld(t, anomaly.Config{Detectors: only(map[anomaly.Detector]anomaly.Override{anomaly.Rate: at(3, anomaly.Alert)})}, nil)
	w.hooks.rewrite = json.RawMessage(`{"n":99}`)
	w.policy.Verdict, w.approver.Decision = toolward.Ask, toolward.AllowOnce
	first := callIn(here, "write", 1)
	w.approver.AskFunc = func(context.Context, *toolward.Question) (toolward.Answer, error) {
		return toolward.Answer{}, &toolward.Pending{ID: "a1"}
	}
	first.Detach = true
	if _, err := w.Admit(t.Context(), first); err == nil {
		t.Fatal("a detached call did not wait")
	}
	w.approver.AskFunc = nil
	for range 5 {
		first.Approval = "a1"
		if _, err := w.Admit(t.Context(), first); err != nil && codeOf(t, err) != toolward.CodeTargetChanged {
			t.Fatal(err)
		}
	}
	w.call(callIn(here, "write", 2))
	if len(w.notices) > 0 {
		t.Errorf("two calls: %q", w.fired())
	}
	w.call(callIn(here, "write", 3))
	if len(w.notices) != 1 {
		t.Errorf("three calls: %q", w.fired())
	}
}

func TestAnEndedRunStaysEnded(t *testing.T) {
	w := newWorld(t, anomaly.Config{Detectors: only(map[anomaly.Detector]anomaly.Override{anomaly.Writes: at(2, anomaly.Abort)})}, nil)
	w.facts.Mutates = true
	var codes []toolward.Code
	for n := range 4 {
		codes = append(codes, w.call(callIn(here, "write", n)))
	}
	w.facts.Mutates = false
	codes = append(codes, w.call(callIn(here, "exec", 1)))
	if want := []toolward.Code{"", toolward.CodeAnomaly, toolward.CodeAnomaly, toolward.CodeAnomaly, toolward.CodeAnomaly}; !slices.Equal(codes, want) {
		t.Errorf("%q, want %q", codes, want)
	}
	if got := w.fired(); !slices.Equal(got, []string{"writes 2 abort"}) {
		t.Errorf("fired %q", got)
	}
	next := callIn(here, "exec", 2)
	next.Run = "run-2"
	if code := w.call(next); code != "" {
		t.Errorf("the next run: %s", code)
	}
	w.monitor.Clear(here)
	if code := w.call(callIn(here, "exec", 3)); code != "" {
		t.Errorf("after a person cleared it: %s", code)
	}
}

// Nobody brings an ended run back by opening many sessions.
func TestManySessionsDoNotBringARunBack(t *testing.T) {
	w := newWorld(t, anomaly.Config{Detectors: only(map[anomaly.Detector]anomaly.Override{anomaly.Writes: at(1, anomaly.Abort)})}, nil)
	w.facts.Mutates = true
	w.call(callIn(here, "write", 1))
	w.facts.Mutates = false
	for i := range 3000 {
		w.call(callIn(toolward.SessionKey(fmt.Sprint("agent:coder:", i)), "exec", 1))
	}
	if code := w.call(callIn(here, "exec", 1)); code != toolward.CodeAnomaly {
		t.Errorf("the ended run goes on: %q", code)
	}
}

// brokenFloors cannot raise anything.
type brokenFloors struct{}

func (brokenFloors) RaiseFloor(context.Context, toolward.SessionKey, toolward.Level, time.Duration, string) error {
	return errors.New("disk full")
}

func TestALevelThatCannotBeRaisedIsARefusal(t *testing.T) {
	w := newWorld(t, anomaly.Config{Detectors: only(map[anomaly.Detector]anomaly.Override{anomaly.Burst: at(2, anomaly.Elevate)})}, brokenFloors{})
	codes := []toolward.Code{w.call(callIn(here, "write", 1)), w.call(callIn(here, "write", 2))}
	if want := []toolward.Code{"", toolward.CodeAnomaly}; !slices.Equal(codes, want) {
		t.Errorf("%q, want %q", codes, want)
	}
}

// A reload changes the settings and forgets nothing.
func TestAReloadForgetsNothing(t *testing.T) {
	burst := func(n int) anomaly.Config {
		return anomaly.Config{Detectors: only(map[anomaly.Detector]anomaly.Override{anomaly.Rate: at(n, anomaly.Alert)})}
	}
	w := newWorld(t, burst(512), nil)
	for n := range 100 {
		w.call(callIn(here, "write", n))
	}
	must(t, w.monitor.Configure(burst(10)))
	w.call(callIn(here, "write", 1))
	if got := w.fired(); !slices.Equal(got, []string{"rate 10 alert"}) && !slices.Equal(got, []string{"rate 101 alert"}) {
		t.Errorf("after the reload: %q", got)
	}
	if err := w.monitor.Configure(burst(0)); err == nil {
		t.Error("a threshold of 0 is accepted")
	}
	must(t, w.monitor.Configure(burst(300)))
	for n := range 400 {
		w.call(callIn(here, "write", n))
	}
	if got := w.fired(); len(got) != 2 {
		t.Errorf("after the second reload: %q", got)
	}
}

// TestConcurrentCalls is for the race detector.
func TestConcurrentCalls(t *testing.T) {
	m, err := anomaly.New(anomaly.Config{Loops: loops(10, 20, 30)})
	must(t, err)
	var mu sync.Mutex
	told := 0
	w, err := anomaly.NewWatcher(m, brokenFloors{}, func(anomaly.Notice) { mu.Lock(); told++; mu.Unlock() }, nil)
	must(t, err)
	var group sync.WaitGroup
	for g := range 8 {
		group.Go(func() {
			for n := range 200 {
				r := &toolward.Request{
					Call: toolward.Call{Session: toolward.SessionKey(fmt.Sprint("agent:a:", n%3)), ID: fmt.Sprint(g, n)}, Digest: fmt.Sprint(n),
					Facts: toolward.Facts{Mutates: true, Recipients: []string{fmt.Sprint(n)}},
				}
				w.Before(t.Context(), r, n%7 == 0)
				w.After(t.Context(), r, &toolward.OutcomeRecord{Status: toolward.StatusOK}, nil)
				w.Refused(t.Context(), r, toolward.CodeBlocked)
				if n%50 == 0 {
					_ = m.Configure(anomaly.Config{})
					m.Clear(r.Call.Session)
				}
			}
		})
	}
	group.Wait()
	if told == 0 {
		t.Error("nothing was odd")
	}
}
