package approval

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolward/toolward"
)

// detached asks without waiting and returns the id of the pending approval.
func detached(t *testing.T, m *Manager, q *toolward.Question) string {
	t.Helper()
	q.Request.Call.Detach = true
	_, err := m.Ask(t.Context(), q)
	var p *toolward.Pending
	if !errors.As(err, &p) {
		t.Fatalf("detached ask: %v, want a pending approval", err)
	}
	if time.Until(p.ExpiresAt) <= 0 {
		t.Errorf("expires at %s", p.ExpiresAt)
	}
	return p.ID
}

// again is the same call coming back for its answer.
func again(id string, edit func(*toolward.Request)) *toolward.Question {
	return question(func(r *toolward.Request, _ *toolward.Judgment) {
		r.Call.Approval, r.Call.Detach = id, true
		if edit != nil {
			edit(r)
		}
	})
}

func TestResume(t *testing.T) {
	tests := map[string]struct {
		decision string        // "": nobody answers
		wait     time.Duration // after the answer
		edit     func(*toolward.Request)
		want     toolward.Decision
		refused  bool // with target_changed
	}{
		"at once":                {"allow-once", 0, nil, toolward.AllowOnce, false},
		"within the grace":       {"allow-once", 14 * time.Second, nil, toolward.AllowOnce, false},
		"after the grace":        {"allow-once", 60 * time.Second, nil, toolward.AllowOnce, false},
		"denied":                 {"deny", 0, nil, toolward.DenyCall, false},
		"denied, later":          {"deny", 60 * time.Second, nil, toolward.DenyCall, false},
		"nobody answered":        {"", 121 * time.Second, nil, toolward.NoDecision, false},
		"nobody answered, later": {"", 200 * time.Second, nil, toolward.NoDecision, false},
		"another session":        {"allow-once", 0, func(r *toolward.Request) { r.Call.Session = "agent:coder:x" }, 0, true},
		"another session, later": {"allow-once", 60 * time.Second, func(r *toolward.Request) { r.Call.Session = "agent:coder:x" }, 0, true},
		"another device":         {"allow-once", 0, func(r *toolward.Request) { r.Call.Caller.Device = "token-2" }, 0, true},
		"another device, later":  {"allow-once", 60 * time.Second, func(r *toolward.Request) { r.Call.Caller.Device = "token-2" }, 0, true},
		"another target":         {"allow-once", 0, func(r *toolward.Request) { r.Facts.Targets[0].Real = "/etc/passwd" }, 0, true},
		"another directory":      {"allow-once", 0, func(r *toolward.Request) { r.Call.WorkDir = "/tmp/evil" }, 0, true},
		"another environment":    {"allow-once", 0, func(r *toolward.Request) { r.Facts.Bound = []string{"env"} }, 0, true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := open(t, newMemory(), nil)
				attach(t, m, alice)
				id := detached(t, m, question(nil))
				if tt.decision != "" {
					if _, err := answer(m, alice, id, tt.decision); err != nil {
						t.Fatal(err)
					}
				}
				time.Sleep(tt.wait)
				q := again(id, tt.edit)
				a, err := m.Ask(t.Context(), q)
				if tt.refused {
					if code(t, err) != toolward.CodeTargetChanged || a.Decision.Allows() {
						t.Errorf("%+v, %v", a, err)
					}
					return
				}
				if err != nil || a.Decision != tt.want || a.ApprovalID != id {
					t.Fatalf("%+v, %v", a, err)
				}
				if tt.want.Allows() {
					if err := m.Consume(t.Context(), id, q.Binding); err != nil {
						t.Error(err)
					}
					if err := m.Consume(t.Context(), id, q.Binding); err == nil {
						t.Error("used twice")
					}
				}
			})
		})
	}
}

func TestResumeOfAUsedApprovalAsksAgain(t *testing.T) {
	for _, wait := range []time.Duration{0, time.Minute} { // in memory, and from the row
		synctest.Test(t, func(t *testing.T) {
			m := open(t, newMemory(), nil)
			attach(t, m, alice)
			id := detached(t, m, question(nil))
			if _, err := answer(m, alice, id, "allow-once"); err != nil {
				t.Fatal(err)
			}
			q := again(id, nil)
			if a, err := m.Ask(t.Context(), q); err != nil || !a.Decision.Allows() {
				t.Fatalf("%+v %v", a, err)
			}
			if err := m.Consume(t.Context(), id, q.Binding); err != nil {
				t.Fatal(err)
			}
			time.Sleep(wait)
			_, err := m.Ask(t.Context(), again(id, nil))
			var p *toolward.Pending
			if !errors.As(err, &p) || p.ID == id {
				t.Errorf("after %s: %v, want a new question", wait, err)
			}
		})
	}
}

func TestResumeOfNonsense(t *testing.T) {
	m := open(t, newMemory(), nil)
	attach(t, m, alice)
	if a, err := m.Ask(t.Context(), again("no-such-approval", nil)); err != nil || a.Decision != toolward.NoDecision {
		t.Errorf("unknown id: %+v %v", a, err)
	}
	if a, err := m.Ask(t.Context(), again("../../etc", nil)); code(t, err) != toolward.CodeTargetChanged {
		t.Errorf("malformed id: %+v %v", a, err)
	}
}

func TestWaitingResumeDoesNotWithdraw(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := open(t, newMemory(), nil)
		attach(t, m, alice)
		id := detached(t, m, question(nil))
		q := again(id, nil)
		q.Request.Call.Detach = false
		ctx, leave := context.WithTimeout(t.Context(), time.Second)
		defer leave()
		if a, err := m.Ask(ctx, q); err != nil || a.Decision != toolward.NoDecision {
			t.Errorf("%+v %v", a, err)
		}
		if m.Count() != 1 {
			t.Error("a detached approval was withdrawn because one look at it ended")
		}
	})
}

func TestRestart(t *testing.T) {
	// Every case starts with a pending approval of a fresh manager that then goes away without a word.
	tests := map[string]struct {
		decision string        // before the restart
		away     time.Duration // how long nothing runs
		back     time.Duration // when the caller comes back after the start
		after    string        // decision after the caller came back
		want     toolward.Decision
		anew     bool // people are asked again
	}{
		"pending, caller comes back":          {"", time.Second, 20 * time.Second, "allow-once", toolward.AllowOnce, false},
		"pending, nobody answers":             {"", time.Second, 20 * time.Second, "", toolward.NoDecision, false},
		"pending, caller comes back too late": {"", time.Second, 31 * time.Second, "", toolward.NoDecision, false},
		"pending, deadline passed meanwhile":  {"", 3 * time.Minute, time.Second, "", toolward.NoDecision, false},
		"answered, not used":                  {"allow-once", time.Second, time.Second, "", 0, true},
		"denied":                              {"deny", time.Second, time.Second, "", toolward.DenyCall, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := newMemory()
				m := open(t, store, nil)
				attach(t, m, alice)
				id := detached(t, m, question(nil))
				before := only(t, m)
				if tt.decision != "" {
					if _, err := answer(m, alice, id, tt.decision); err != nil {
						t.Fatal(err)
					}
				}
				m.Close()
				time.Sleep(tt.away)
				m = open(t, store, nil)
				attach(t, m, alice)
				if tt.decision == "" && tt.away < time.Minute {
					if r := only(t, m); r.ID != id || r.ExpiresMs != before.ExpiresMs || r.Request.Title != before.Request.Title {
						t.Errorf("restored %+v, was %+v", r, before)
					}
				}
				time.Sleep(tt.back)
				q := again(id, nil)
				q.Request.Call.Detach = tt.anew
				result := ask(t.Context(), m, q)
				synctest.Wait()
				if tt.after != "" {
					if _, err := answer(m, alice, id, tt.after); err != nil {
						t.Fatal(err)
					}
				}
				got := <-result
				if tt.anew {
					var p *toolward.Pending
					if !errors.As(got.err, &p) || p.ID == id {
						t.Errorf("%+v, want a new question", got)
					}
					if err := m.Consume(t.Context(), id, q.Binding); err == nil {
						t.Error("an answer from before the restart was used")
					}
					return
				}
				if got.err != nil || got.answer.Decision != tt.want {
					t.Fatalf("%+v", got)
				}
				if tt.want.Allows() {
					if err := m.Consume(t.Context(), id, q.Binding); err != nil {
						t.Error(err)
					}
					m.Close()
					m = open(t, store, nil)
					if err := m.Consume(t.Context(), id, q.Binding); err == nil {
						t.Error("used twice, with a restart in between")
					}
				}
				if tt.want == toolward.NoDecision && tt.back > reattach {
					if row, _ := store.Approval(t.Context(), id); row.ResolvedBy != ByRequesterGone {
						t.Errorf("row ended by %q", row.ResolvedBy)
					}
				}
			})
		})
	}
}

func TestClockSetBackGivesNoMoreTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newMemory()
		now := time.Now().UnixMilli()
		r := &Record{
			ID: "r", Binding: "b", State: StatePending, Request: &Details{Tool: "exec"}, Allowed: []toolward.Decision{toolward.DenyCall},
			CreatedMs: now + time.Hour.Milliseconds(), ExpiresMs: now + (time.Hour + 2*time.Minute).Milliseconds(),
		}
		store.rows[r.Key()] = r
		m := open(t, store, nil)
		e := m.entries["r"]
		if left := time.Until(e.end); left != 2*time.Minute {
			t.Errorf("%s left", left)
		}
	})
}
