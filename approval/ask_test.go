package approval

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolward/toolward"
)

func TestAskOnceRunsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newMemory()
		m := open(t, store, nil)
		attach(t, m, alice)
		q := question(nil)
		result := ask(t.Context(), m, q)
		synctest.Wait()
		r := only(t, m)
		if row, _ := store.Approval(t.Context(), r.ID); row == nil || row.State != StatePending {
			t.Fatalf("shown before it was a row: %+v", row)
		}
		if r.Request.Title != "write: src/a.go" || r.Binding != q.Binding || len(r.Allowed) != 3 {
			t.Errorf("record = %+v, details %+v", r, r.Request)
		}
		if _, err := answer(m, alice, r.ID, "allow-once"); err != nil {
			t.Fatal(err)
		}
		got := <-result
		if got.err != nil || got.answer.Decision != toolward.AllowOnce || got.answer.By != "alice" || got.answer.ApprovalID != r.ID || got.answer.Path != "push" {
			t.Fatalf("answer = %+v, %v", got.answer, got.err)
		}
		if err := m.Consume(t.Context(), r.ID, "other binding"); !errors.Is(err, ErrNotUsable) {
			t.Errorf("consumed for another call: %v", err)
		}
		if err := m.Consume(t.Context(), r.ID, q.Binding); err != nil {
			t.Fatal(err)
		}
		if err := m.Consume(t.Context(), r.ID, q.Binding); !errors.Is(err, ErrNotUsable) {
			t.Errorf("second use: %v", err)
		}
	})
}

func TestIdenticalCallsShareAPromptButNotTheAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := open(t, newMemory(), nil)
		attach(t, m, alice)
		q := question(nil)
		results := make(chan asked, 3)
		for range 3 {
			go func() {
				a, err := m.Ask(t.Context(), q)
				results <- asked{a, err}
			}()
		}
		seen := map[string]bool{}
		for i := range 3 {
			synctest.Wait()
			r := only(t, m) // one prompt, whatever waits
			if seen[r.ID] {
				t.Fatalf("round %d asks under the used id %s", i, r.ID)
			}
			seen[r.ID] = true
			if _, err := answer(m, alice, r.ID, "allow-once"); err != nil {
				t.Fatal(err)
			}
			got := <-results
			if got.err != nil || got.answer.ApprovalID != r.ID || !got.answer.Decision.Allows() {
				t.Fatalf("round %d: %+v, %v", i, got.answer, got.err)
			}
			if err := m.Consume(t.Context(), r.ID, q.Binding); err != nil {
				t.Fatal(err)
			}
		}
		if n := m.Count(); n != 0 {
			t.Errorf("%d still pending", n)
		}
	})
}

func TestAlwaysCoversTheCallsThatWaitedWithIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := open(t, newMemory(), nil)
		attach(t, m, alice)
		q := question(nil)
		first, second := ask(t.Context(), m, q), ask(t.Context(), m, q)
		synctest.Wait()
		if _, err := answer(m, alice, only(t, m).ID, "allow-always"); err != nil {
			t.Fatal(err)
		}
		a, b := <-first, <-second
		if a.err != nil || b.err != nil || a.answer.ApprovalID == b.answer.ApprovalID {
			t.Fatalf("%+v %+v: each run needs an approval of its own", a, b)
		}
		for _, id := range []string{a.answer.ApprovalID, b.answer.ApprovalID} {
			if err := m.Consume(t.Context(), id, q.Binding); err != nil {
				t.Error(err)
			}
			if err := m.Consume(t.Context(), id, q.Binding); err == nil {
				t.Errorf("%s used twice", id)
			}
		}
		if id, ok, err := m.Granted(t.Context(), q); !ok || err != nil || len(m.Grants()) != 1 || m.Grants()[0].ID != id {
			t.Errorf("granted = %q %v %v", id, ok, err)
		}
	})
}

func TestDenialHoldsForTheRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newMemory()
		m := open(t, store, nil)
		attach(t, m, alice)
		q := question(nil)
		result := ask(t.Context(), m, q)
		synctest.Wait()
		r := only(t, m)
		id, stamp := r.ID, m.MarkShown(r, alice)
		time.Sleep(time.Second)
		if _, err := m.Resolve(t.Context(), Response{ID: id, Decision: "deny", Reason: "use the other file", By: alice, Shown: stamp}); err != nil {
			t.Fatal(err)
		}
		if got := <-result; got.err != nil || got.answer.Decision != toolward.DenyCall || got.answer.Reason != "use the other file" {
			t.Fatalf("%+v", got)
		}
		if _, err := m.Ask(t.Context(), q); code(t, err) != toolward.CodeDeniedBefore {
			t.Errorf("same run: %v", err)
		}
		m.Close()
		m = open(t, store, nil) // a restart is not a way round a no
		attach(t, m, alice)
		if _, err := m.Ask(t.Context(), q); code(t, err) != toolward.CodeDeniedBefore {
			t.Errorf("after a restart: %v", err)
		}
		other := ask(t.Context(), m, question(func(r *toolward.Request, _ *toolward.Judgment) { r.Call.Run = "run-2" }))
		synctest.Wait()
		only(t, m)
		m.Close()
		if got := <-other; code(t, got.err) != toolward.CodeNoApprovalChannel {
			t.Errorf("closing manager: %+v", got)
		}
	})
}

func TestNobodyAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := open(t, newMemory(), nil)
		presence := attach(t, m, alice)
		path := 0
		fresh := func() *toolward.Question {
			path++
			return question(func(r *toolward.Request, _ *toolward.Judgment) { r.Facts.Bound = []string{fmt.Sprint(path)} })
		}
		for range silentTimeouts {
			start := time.Now()
			a, err := m.Ask(t.Context(), fresh())
			if err != nil || a.Decision != toolward.NoDecision || time.Since(start) != 2*time.Minute || a.Waited != 2*time.Minute {
				t.Fatalf("timed out with %+v, %v after %s", a, err, time.Since(start))
			}
		}
		if _, err := m.Ask(t.Context(), fresh()); code(t, err) != toolward.CodeApproverAway {
			t.Errorf("after three time-outs: %v", err)
		}
		elsewhere := question(func(r *toolward.Request, _ *toolward.Judgment) { r.Call.Session = "agent:coder:other" })
		if a, err := m.Ask(t.Context(), elsewhere); err != nil || a.Decision != toolward.NoDecision {
			t.Errorf("another session is asked about: %+v %v", a, err)
		}
		time.Sleep(silentFor)
		if _, err := m.Ask(t.Context(), fresh()); err != nil {
			t.Errorf("after the pause: %v", err)
		}
		_, _ = m.Ask(t.Context(), fresh())
		_, _ = m.Ask(t.Context(), fresh())
		if _, err := m.Ask(t.Context(), fresh()); code(t, err) != toolward.CodeApproverAway {
			t.Errorf("away again: %v", err)
		}
		presence.Active()
		if _, err := m.Ask(t.Context(), fresh()); err != nil {
			t.Errorf("after a sign of life: %v", err)
		}
	})
}

func TestRequesterGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newMemory()
		m := open(t, store, nil)
		attach(t, m, alice)
		ctx1, leave1 := context.WithCancel(t.Context())
		ctx2, leave2 := context.WithCancelCause(t.Context())
		first, second := ask(ctx1, m, question(nil)), ask(ctx2, m, question(nil))
		synctest.Wait()
		id := only(t, m).ID
		leave1()
		if got := <-first; got.err != nil || got.answer.Decision != toolward.NoDecision {
			t.Errorf("first: %+v", got)
		}
		if m.Count() != 1 {
			t.Fatal("withdrawn although another call waits for it")
		}
		leave2(ErrCanceled)
		<-second
		synctest.Wait()
		if r, err := m.Get(t.Context(), alice, id); err != nil || r.State != StateResolved || r.ResolvedBy != ByCanceled {
			t.Errorf("record = %+v, %v", r, err)
		}
		if row, _ := store.Approval(t.Context(), id); row.ResolvedBy != ByCanceled || row.Decision.Allows() {
			t.Errorf("row = %+v", row)
		}
		if _, err := answer(m, alice, id, "allow-once"); !errors.Is(err, ErrResolved) {
			t.Errorf("answered after withdrawal: %v", err)
		}
		if err := m.Consume(t.Context(), id, question(nil).Binding); err == nil {
			t.Error("a withdrawn approval was used")
		}
	})
}

func TestQuestionsThatCannotBeAsked(t *testing.T) {
	m := open(t, newMemory(), nil)
	unbound := question(nil)
	unbound.Binding = ""
	for name, q := range map[string]*toolward.Question{"nil": nil, "empty": {}, "no binding": unbound} {
		if a, err := m.Ask(t.Context(), q); err == nil || a.Decision.Allows() {
			t.Errorf("%s: %+v, %v", name, a, err)
		}
		if _, ok, _ := m.Granted(t.Context(), q); ok {
			t.Errorf("%s: granted", name)
		}
	}
	if _, err := Open(t.Context(), Options{}); err == nil {
		t.Error("a manager without a store was opened")
	}
}

// TestWhatTheSocketMayAnswerOfPrograms: a question of a program of the gateway protocol reaches the approval socket where one
// of the gateway's own would, and nowhere else.
func TestWhatTheSocketMayAnswerOfPrograms(t *testing.T) {
	for name, tt := range map[string]struct {
		severity toolward.Severity
		level    toolward.Level
		on       bool
		allowed  bool
	}{
		"an ordinary command": {toolward.Warning, toolward.Normal, true, true},
		"not switched on":     {toolward.Warning, toolward.Normal, false, false},
		"a critical command":  {toolward.Critical, toolward.Normal, true, false},
		"in lockdown":         {toolward.Warning, toolward.Lockdown, true, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			m := open(t, newMemory(), func(o *Options) { o.Socket, o.Settings.Socket = socketOf{true, "allow-once"}, tt.on })
			details := Details{Tool: "exec", Title: "exec", Command: "make", Severity: tt.severity, Level: tt.level}
			r, err := m.Submit(t.Context(), Submission{Kind: KindExec, Details: details, Binding: "b", Connection: "c"})
			if err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			decision, err := m.Wait(t.Context(), r.ID)
			if err != nil || decision.Allows() != tt.allowed {
				t.Errorf("%s: %v, %v", name, decision, err)
			}
		})
	}
}

func TestACallIsToldBeforeItWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := open(t, newMemory(), nil)
		attach(t, m, alice)
		told := make(chan toolward.Pending, 2)
		q := question(nil)
		q.OnPending = func(p toolward.Pending) { told <- p }
		result := ask(t.Context(), m, q)
		p := <-told
		r := only(t, m)
		if p.ID != r.ID || p.ExpiresAt.UnixMilli() != r.ExpiresMs {
			t.Errorf("told %+v of %+v", p, r)
		}
		if _, err := answer(m, alice, r.ID, "allow-once"); err != nil {
			t.Fatal(err)
		}
		if got := <-result; got.err != nil || got.answer.ApprovalID != p.ID {
			t.Errorf("answer = %+v, %v", got.answer, got.err)
		}
		if len(told) != 0 {
			t.Errorf("told again: %+v", <-told)
		}
	})
}
