package gatetest_test

import (
	gocmp "cmp"
	"errors"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/approval"
	"github.com/toolward/toolward/session"
)

// How many calls are explained and admitted: so many configurations with so many calls each.
const (
	lawConfigs = 100
	lawCalls   = 100
)

// TestExplainEqualsAdmitForRandomCalls compares explanation and decision of 10,000 random calls through the real policy,
// the real approval manager with grants that people gave on the way, and the real levels of sessions that are exposed,
// compacted and raised on the way. Only disk and record are plain.
func TestExplainEqualsAdmitForRandomCalls(t *testing.T) {
	seen := map[string]int{}
	for n := range uint64(lawConfigs) {
		synctest.Test(t, func(t *testing.T) {
			w := newLawWorld(t, rand.New(rand.NewPCG(n, 2026)), nil)
			defer w.approver.Close()
			for range lawCalls {
				w.step(t, seen)
				if t.Failed() {
					t.Fatalf("with configuration %d: %s", n, jsonOf(w.config))
				}
			}
		})
	}
	t.Logf("%d calls: %v", lawConfigs*lawCalls, seen)
	for _, way := range []string{"allow class", "allow grant", "ask", "deny unknown_tool", "deny invalid_args", "deny blocked", "deny validation", "deny blocked_in_lockdown"} {
		if seen[way] < 5 {
			t.Errorf("only %d calls ended with %q: the calls are not random enough to mean something", seen[way], way)
		}
	}
}

// TestARaisedLevelNeverAllowsMore explains random calls before and after their session gets tenser, with the grants that
// people gave on the way.
func TestARaisedLevelNeverAllowsMore(t *testing.T) {
	changed := 0
	for n := range uint64(lawConfigs / 4) {
		synctest.Test(t, func(t *testing.T) {
			w := newLawWorld(t, rand.New(rand.NewPCG(n, 5)), nil)
			defer w.approver.Close()
			for range lawCalls {
				w.step(t, map[string]int{})
				call := w.call()
				if k := len(w.granted); k > 0 && w.IntN(2) == 0 {
					call = w.granted[w.IntN(k)]
				}
				calm := w.gateway.Explain(t.Context(), call, toolward.ExplainOptions{})
				if err := w.sessions.RaiseFloor(t.Context(), call.Session, pick(w, toolward.Elevated, toolward.Lockdown), time.Minute, "alarm"); err != nil {
					t.Fatal(err)
				}
				tense := w.gateway.Explain(t.Context(), call, toolward.ExplainOptions{})
				if tense.Level > calm.Level || tense.Verdict > calm.Verdict {
					t.Fatalf("%s\n%s: %s became %s: %s with %s", jsonOf(call), calm.Level, calm.Verdict, tense.Level, tense.Verdict, jsonOf(w.config))
				}
				if tense.Verdict < calm.Verdict {
					changed++
				}
				time.Sleep(2 * time.Minute)
			}
		})
	}
	if changed < 50 {
		t.Errorf("the level made a difference to %d calls only", changed)
	}
}

// step changes the world a little, then explains and admits one call, and says how that ended.
func (w *lawWorld) step(t *testing.T, seen map[string]int) toolward.Trace {
	call := w.call()
	if n := len(w.granted); n > 0 && w.IntN(4) == 0 {
		call = w.granted[w.IntN(n)]
		call.Detach = false
	}
	if w.IntN(10) == 0 {
		w.disturb(t, call.Session)
	}
	if w.IntN(25) == 0 {
		w.configure(t)
	}
	uses := w.uses()
	records := len(w.auditor.Decisions())
	trace := w.gateway.Explain(t.Context(), call, toolward.ExplainOptions{})
	if diff := cmp.Diff(uses, w.uses()); diff != "" || len(w.auditor.Decisions()) != records || w.approver.Count() != 0 {
		t.Errorf("explaining %s left a trace: %d records, %d questions\n%s", jsonOf(call), len(w.auditor.Decisions())-records, w.approver.Count(), diff)
	}
	call.Detach = true
	pass, err := w.gateway.Admit(t.Context(), call)
	var pending *toolward.Pending
	var refusal *toolward.Refusal
	got := toolward.Trace{Verdict: toolward.Allow}
	switch {
	case err == nil:
		got.Via = w.auditor.Decisions()[records].Via
		seen["allow "+got.Via[:5]]++
	case errors.As(err, &pending):
		got.Verdict = toolward.Ask
		seen["ask"]++
		if w.answer(t, pending.ID) {
			w.granted = append(w.granted, call)
		}
	case errors.As(err, &refusal):
		got.Verdict, got.Code = toolward.Deny, refusal.Code
		seen["deny "+string(refusal.Code)]++
	default:
		t.Fatalf("%v", err)
	}
	if got.Verdict != trace.Verdict || got.Code != trace.Code || got.Via != trace.Via {
		t.Errorf("%s\nexplained as %v %s %s\nadmitted as  %v %s %s (%v)", jsonOf(call), trace.Verdict, trace.Code, trace.Via, got.Verdict, got.Code, got.Via, err)
	}
	if (pass != nil) != (got.Verdict == toolward.Allow) {
		t.Errorf("%s: pass %v with verdict %v", jsonOf(call), pass != nil, got.Verdict)
	}
	if pending == nil {
		w.compareRecord(t, &trace, &w.auditor.Decisions()[records])
	}
	got.Tool, got.Level, got.Row, got.Digest, got.Findings, got.Reasons = trace.Tool, trace.Level, trace.Row, trace.Digest, trace.Findings, trace.Reasons
	return got
}

// compareRecord compares an explanation with the record of the decision.
func (w *lawWorld) compareRecord(t *testing.T, trace *toolward.Trace, d *toolward.DecisionRecord) {
	want := toolward.Trace{
		Tool: d.Tool, Verdict: d.Verdict, Code: d.Code, Level: d.Level, Row: d.Judgment.Row, Class: d.Judgment.Class.Class,
		Severity: d.Judgment.Class.Severity, Digest: d.Digest, Findings: d.Judgment.Findings, Reasons: d.Judgment.Reasons,
	}
	if d.Facts.Command != "" {
		want.Host, want.HostWhy = gocmp.Or(d.Facts.Host, d.Call.Host), d.Facts.HostWhy
	}
	got := *trace
	got.Steps, got.Via, got.Question = nil, "", nil
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the explanation differs from the record (-record +explanation):\n%s", diff)
	}
}

// disturb lets something happen to a conversation.
func (w *lawWorld) disturb(t *testing.T, key toolward.SessionKey) {
	var err error
	switch ctx := t.Context(); w.IntN(7) {
	case 0:
		err = w.sessions.Expose(ctx, key, toolward.Exposure{External: []string{"https://example.org"}})
	case 1:
		err = w.sessions.Compacted(ctx, key)
	case 2:
		err = w.sessions.Usage(ctx, key, int64(w.IntN(220_000))-1, 200_000)
	case 3:
		err = w.sessions.RaiseFloor(ctx, key, pick(w, toolward.Elevated, toolward.Lockdown), time.Minute, "alarm")
	case 4:
		var o session.Overview
		if o, err = w.sessions.Overview(ctx, key); err == nil {
			err = w.sessions.Clear(ctx, key, o.SourcesStamp(), "owner")
		}
	case 5:
		err = w.sessions.Reset(ctx, key)
	default:
		time.Sleep(time.Duration(w.IntN(30)) * time.Hour) // the bubble's clock: grants expire, floors end
	}
	if err != nil {
		t.Fatal(err)
	}
}

// answer sometimes lets a person say "always", which leaves a grant, and otherwise takes the question back.
func (w *lawWorld) answer(t *testing.T, id string) (always bool) {
	record, err := w.approver.Get(t.Context(), everybody{}, id)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(record.Request.Proposals); n > 0 && w.IntN(2) == 0 {
		time.Sleep(time.Second) // long enough to have read it
		if _, err := w.approver.Resolve(t.Context(), approval.Response{
			ID: id, Decision: "allow-always", Proposal: w.IntN(n), By: everybody{}, Typed: true,
		}); err != nil {
			t.Fatal(err)
		}
		return true
	}
	if err := w.approver.Withdraw(t.Context(), id, approval.ErrCanceled); err != nil {
		t.Fatal(err)
	}
	return false
}

func (w *lawWorld) uses() map[string]int64 {
	uses := map[string]int64{}
	for _, g := range w.approver.Grants() {
		uses[g.ID] = g.Uses
	}
	return uses
}
