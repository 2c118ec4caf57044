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

const threeDays = 72 * time.Hour

// lasting is an ordinary question that a rule lets wait.
func lasting(wait time.Duration) *toolward.Question {
	return question(func(_ *toolward.Request, j *toolward.Judgment) { j.Wait = wait })
}

// sentAway asks, waits as long as a call does, and returns the id of the approval that is pending.
func sentAway(t *testing.T, m *Manager, q *toolward.Question) string {
	t.Helper()
	start := time.Now()
	a, err := m.Ask(t.Context(), q)
	var p *toolward.Pending
	if !errors.As(err, &p) || a.Decision.Allows() {
		t.Fatalf("%+v, %v; want a pending approval", a, err)
	}
	if waited := time.Since(start); waited > time.Minute {
		t.Errorf("the call stayed for %s; clients give up after a minute", waited)
	}
	return p.ID
}

// What a rule lets wait for three days ends after three days, and not before.
func TestWaitOfARule(t *testing.T) {
	for name, c := range map[string]struct{ wait, life time.Duration }{
		"three days":            {threeDays, threeDays},
		"a week":                {7 * 24 * time.Hour, 7 * 24 * time.Hour},
		"more than a week":      {30 * 24 * time.Hour, 7 * 24 * time.Hour},
		"less than the default": {5 * time.Second, 5 * time.Second},
		"none":                  {0, 2 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := open(t, newMemory(), nil)
				attach(t, m, alice)
				q := lasting(c.wait)
				q.Request.Call.Detach = true
				id := detached(t, m, q)
				record, err := m.Get(t.Context(), alice, id)
				if err != nil || record.ExpiresMs-record.CreatedMs != c.life.Milliseconds() {
					t.Fatalf("%+v, %v: want a life of %s", record, err, c.life)
				}
				time.Sleep(c.life - time.Millisecond)
				if m.Count() != 1 {
					t.Error("it ended too early")
				}
				time.Sleep(2 * time.Millisecond)
				if m.Count() != 0 {
					t.Error("it waits for longer than it may")
				}
				if d, err := m.Wait(t.Context(), id); d != toolward.NoDecision || err != nil {
					t.Errorf("at the deadline: %s, %v", d, err)
				}
			})
		})
	}
}

// A call whose approval may wait for days is sent away, and gets the answer when it is made again: once.
func TestLastingAnswerIsFetched(t *testing.T) {
	for name, c := range map[string]struct {
		decision string
		pause    time.Duration // between the answer and the call that fetches it
		want     toolward.Decision
	}{
		"allowed":              {"allow-once", 0, toolward.AllowOnce},
		"allowed, a day later": {"allow-once", 24 * time.Hour, toolward.AllowOnce},
		"denied, hours later":  {"deny", 5 * time.Hour, toolward.DenyCall},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := open(t, newMemory(), nil)
				attach(t, m, alice)
				id := sentAway(t, m, lasting(threeDays))
				if again := sentAway(t, m, lasting(threeDays)); again != id {
					t.Fatalf("asked again as %s", again)
				}
				time.Sleep(12 * time.Hour)
				if _, err := answer(m, alice, id, c.decision); err != nil {
					t.Fatal(err)
				}
				time.Sleep(c.pause)
				q := lasting(threeDays)
				a, err := m.Ask(t.Context(), q)
				if err != nil || a.Decision != c.want || a.ApprovalID != id {
					t.Fatalf("%+v, %v; want %s by %s", a, err, c.want, id)
				}
				if c.want.Allows() {
					if err := m.Consume(t.Context(), id, q.Binding); err != nil {
						t.Error(err)
					}
					if err := m.Consume(t.Context(), id, q.Binding); err == nil {
						t.Error("one answer let two calls run")
					}
				}
				time.Sleep(time.Minute)
				nothingLeft(t, m)
			})
		})
	}
}

// A yes that is kept for its caller is for that caller and that call, and for no other.
func TestLastingAnswerIsForItsCallerOnly(t *testing.T) {
	for name, change := range map[string]func(*toolward.Request, *toolward.Judgment){
		"another device":    func(r *toolward.Request, _ *toolward.Judgment) { r.Call.Caller.Device = "token-2" },
		"another session":   func(r *toolward.Request, _ *toolward.Judgment) { r.Call.Session = "agent:coder:x" },
		"another target":    func(r *toolward.Request, _ *toolward.Judgment) { r.Facts.Targets[0].Real = "/etc/passwd" },
		"another directory": func(r *toolward.Request, _ *toolward.Judgment) { r.Call.WorkDir = "/tmp/evil" },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := open(t, newMemory(), nil)
				attach(t, m, alice)
				id := sentAway(t, m, lasting(threeDays))
				if _, err := answer(m, alice, id, "allow-once"); err != nil {
					t.Fatal(err)
				}
				other := question(change)
				other.Judgment.Wait = threeDays
				if asked := sentAway(t, m, other); asked == id {
					t.Error("another call was given the answer")
				}
				if a, err := m.Ask(t.Context(), lasting(threeDays)); err != nil || a.ApprovalID != id {
					t.Errorf("the answer is gone for its own caller: %+v, %v", a, err)
				}
			})
		})
	}
}

// Two calls that come back at once for one yes: one of them gets it, the other needs its own.
func TestLastingAnswerLetsOneCallRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := open(t, newMemory(), nil)
		attach(t, m, alice)
		id := sentAway(t, m, lasting(threeDays))
		if _, err := answer(m, alice, id, "allow-once"); err != nil {
			t.Fatal(err)
		}
		first, second := <-ask(t.Context(), m, lasting(threeDays)), <-ask(t.Context(), m, lasting(threeDays))
		var p *toolward.Pending
		if first.answer.ApprovalID != id || !first.answer.Decision.Allows() || !errors.As(second.err, &p) || p.ID == id {
			t.Errorf("first %+v, second %+v", first, second)
		}
	})
}

// Its caller may go, as clients do that end a request after a minute; it takes the question back only if it says so.
func TestLastingOutlivesItsCaller(t *testing.T) {
	for name, c := range map[string]struct {
		cause error
		left  int
		by    string
	}{
		"went away":     {context.DeadlineExceeded, 1, ""},
		"took it back":  {ErrCanceled, 0, ByCanceled},
		"was cancelled": {context.Canceled, 1, ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := open(t, newMemory(), nil)
				attach(t, m, alice)
				ctx, cancel := context.WithCancelCause(t.Context())
				result := ask(ctx, m, lasting(threeDays))
				synctest.Wait()
				id := only(t, m).ID
				cancel(c.cause)
				if a := <-result; a.answer.Decision.Allows() {
					t.Errorf("%+v", a)
				}
				if m.Count() != c.left {
					t.Errorf("%d wait, want %d", m.Count(), c.left)
				}
				if err := m.Withdraw(t.Context(), id, c.cause); err != nil || m.Count() != c.left {
					t.Errorf("withdrawn: %v, %d wait", err, m.Count())
				}
				if record, err := m.Get(t.Context(), alice, id); err != nil || record.ResolvedBy != c.by {
					t.Errorf("%+v, %v", record, err)
				}
			})
		})
	}
}

// Nobody answers: whoever waits is refused at the deadline, and whoever comes back within a day is told so, once.
func TestLastingExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := open(t, newMemory(), nil)
		attach(t, m, alice)
		id := sentAway(t, m, lasting(time.Hour))
		time.Sleep(time.Hour - time.Minute) // the call that waits at the deadline hears of it
		if a, err := m.Ask(t.Context(), lasting(time.Hour)); err != nil || a.Decision != toolward.NoDecision || a.ApprovalID != id {
			t.Fatalf("at the deadline: %+v, %v", a, err)
		}
		second := sentAway(t, m, lasting(time.Hour))
		time.Sleep(5 * time.Hour)
		if a, err := m.Ask(t.Context(), lasting(time.Hour)); err != nil || a.Decision != toolward.NoDecision || a.ApprovalID != second {
			t.Fatalf("hours after it: %+v, %v", a, err)
		}
		if third := sentAway(t, m, lasting(time.Hour)); third == second {
			t.Error("it was not asked anew")
		}
	})
}

// A restart keeps what is left of the time, and the caller need not come back within seconds.
func TestLastingSurvivesARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newMemory()
		m := open(t, store, nil)
		attach(t, m, alice)
		id := sentAway(t, m, lasting(threeDays))
		expires := only(t, m).ExpiresMs
		time.Sleep(24 * time.Hour)
		m.Close()

		time.Sleep(time.Hour)
		m = open(t, store, nil)
		attach(t, m, alice)
		time.Sleep(2 * reattach)
		record := only(t, m)
		if record.ID != id || record.ExpiresMs != expires {
			t.Fatalf("after the restart: %+v, want %s until %d", record, id, expires)
		}
		time.Sleep(time.Until(time.UnixMilli(expires)) - time.Hour)
		if _, err := answer(m, alice, id, "allow-once"); err != nil {
			t.Fatal(err)
		}
		q := lasting(threeDays)
		if a, err := m.Ask(t.Context(), q); err != nil || a.ApprovalID != id || m.Consume(t.Context(), id, q.Binding) != nil {
			t.Errorf("%+v, %v", a, err)
		}

		id = sentAway(t, m, lasting(time.Hour))
		left := time.Until(time.UnixMilli(only(t, m).ExpiresMs))
		m.Close()
		time.Sleep(30 * time.Minute)
		m = open(t, store, nil)
		time.Sleep(left - 30*time.Minute - time.Millisecond)
		if m.Count() != 1 {
			t.Error("the restart shortened the wait")
		}
		time.Sleep(2 * time.Second)
		if m.Count() != 0 {
			t.Errorf("the restart prolonged the wait of %s", id)
		}
	})
}

// What is kept for callers that never come back ends by itself, and there is a limit to it.
func TestUntoldAnswersEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := open(t, newMemory(), func(o *Options) { o.Settings.PerSession, o.Settings.Total, o.Settings.PerConn = 5000, 5000, 5000 })
		attach(t, m, alice)
		for i := range maxUntold + 10 {
			q := lasting(threeDays)
			q.Binding += string(rune('A' + i))
			detached(t, m, q)
		}
		list, err := m.Pending(t.Context(), alice)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range list {
			m.mu.Lock()
			e := m.entries[r.ID]
			m.mu.Unlock()
			if _, err := m.write(t.Context(), e, answerOf{decision: toolward.AllowOnce, by: "alice"}); err != nil {
				t.Fatal(err)
			}
		}
		m.mu.Lock()
		kept := len(m.untold)
		m.mu.Unlock()
		if kept != maxUntold {
			t.Errorf("%d answers are kept, want %d", kept, maxUntold)
		}
		time.Sleep(threeDays + time.Minute)
		nothingLeft(t, m)
	})
}

func nothingLeft(t *testing.T, m *Manager) {
	t.Helper()
	synctest.Wait()
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.entries) != 0 || len(m.untold) != 0 || len(m.schedule) != 0 {
		t.Errorf("%d entries, %d untold, %d scheduled are left", len(m.entries), len(m.untold), len(m.schedule))
	}
}

// TestLastingLeaveRoom: callers leave and their questions stay, for days. One agent that names ever new sessions must not take
// the places of other agents, and all together must not take those of ordinary calls.
func TestLastingLeaveRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newMemory()
		m := open(t, store, nil)
		attach(t, m, alice)
		n := 0
		pose := func(agent string, wait time.Duration) error {
			n++
			session, err := toolward.NewSessionKey(agent, "http", fmt.Sprint(n))
			if err != nil {
				t.Fatal(err)
			}
			_, err = m.Ask(t.Context(), question(func(r *toolward.Request, j *toolward.Judgment) {
				r.Call.Caller.Agent, r.Call.Caller.Connection, r.Call.Session, r.Call.Detach, j.Wait = agent, fmt.Sprint(n), session, true, wait
			}))
			if p := (*toolward.Pending)(nil); errors.As(err, &p) {
				return nil
			}
			return err
		}
		fill := func(agent string) (posed int) {
			for ; posed <= 500; posed++ {
				if err := pose(agent, threeDays); err != nil {
					if !errors.Is(err, ErrTooMany) {
						t.Fatal(err)
					}
					return posed
				}
			}
			return posed
		}
		if got := fill("greedy"); got != 125 {
			t.Errorf("one agent has %d of 500 places for days, want 125", got)
		}
		m.Close()
		m = open(t, store, nil) // the count outlives a restart
		attach(t, m, alice)
		if got := fill("greedy"); got != 0 {
			t.Errorf("and %d more after a restart", got)
		}
		if second, third := fill("second"), fill("third"); second != 125 || third != 0 {
			t.Errorf("the others have %d and %d, want 125 and 0", second, third)
		}
		if err := pose("third", 0); err != nil {
			t.Errorf("an ordinary call: %v", err)
		}
		time.Sleep(threeDays + time.Minute)
		if got := fill("greedy"); got != 125 {
			t.Errorf("when the others were over: %d", got)
		}
	})
}
