package approval

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/toolward/toolward"
)

// TestResolvedApprovalNeverChanges is a law: whatever happens after an approval was resolved, in whatever order and
// across restarts, its decision, resolver and time stay, and it lets at most one call run.
func TestResolvedApprovalNeverChanges(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) { neverChanges(t, rt) })
}

// FuzzApprovalMachine looks for a sequence of operations that breaks the same law.
func FuzzApprovalMachine(f *testing.F) {
	for seed := range byte(4) { // long enough for every draw: too little data would skip the seed
		data := make([]byte, 8<<10)
		_, _ = rand.NewChaCha8([32]byte{seed}).Read(data)
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		rapid.MakeFuzz(func(rt *rapid.T) { neverChanges(t, rt) })(t, data)
	})
}

func neverChanges(t *testing.T, rt *rapid.T) {
	ops := rapid.SliceOfN(rapid.SampledFrom([]string{
		"allow-once", "allow-always", "deny", "expire", "wait", "grace", "consume", "restart", "register", "consume elsewhere",
	}), 1, 14).Draw(rt, "ops")
	synctest.Test(t, func(t *testing.T) {
		store := newMemory()
		m := open(t, store, nil)
		vectorOp(t, m, "register", "a", "", time.Minute)
		key := m.entries["a"].record.Key()
		var first *Record
		uses := 0
		for _, op := range ops {
			switch op {
			case "expire":
				m.Expire("a", "cancelled")
			case "wait":
				time.Sleep(10 * time.Second)
			case "grace":
				time.Sleep(grace)
			case "restart":
				m.Close()
				m = open(t, store, nil)
			case "consume":
				newest, _ := store.Approval(t.Context(), "a")
				if m.Consume(t.Context(), "a", "b") == nil && newest.Key() == key {
					if uses++; uses > 1 {
						rt.Fatal("used twice")
					}
				}
			case "consume elsewhere":
				if m.Consume(t.Context(), "a", "other") == nil {
					rt.Fatal("used for another call")
				}
			case "register": // only works once the id is free
				vectorOp(t, m, "register", "a", "", time.Minute)
			default:
				vectorOp(t, m, "resolve", "a", op, 0)
			}
			synctest.Wait()
			row, err := store.ApprovalByKey(t.Context(), key)
			if err != nil || row == nil {
				rt.Fatalf("row %v %v", row, err)
			}
			if first == nil && row.State != StatePending {
				first = row
			}
			if first != nil && (row.Decision != first.Decision || row.ResolvedBy != first.ResolvedBy || row.ResolvedMs != first.ResolvedMs || row.State == StatePending) {
				rt.Fatalf("after %s: %+v became %+v", op, first, row)
			}
		}
	})
}

// TestNothingIsLeftBehind runs ten thousand approvals through their life.
func TestNothingIsLeftBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := open(t, newMemory(), func(o *Options) { o.Settings.Total, o.Settings.PerSession = 10_000, 10_000 })
		attach(t, m, alice)
		before := runtime.NumGoroutine()
		for i := range 10_000 {
			id := fmt.Sprintf("approval-%d", i)
			registerID(t, m, id)
			switch i % 4 {
			case 0:
				vectorOp(t, m, "resolve", id, "allow-once", 0)
				vectorOp(t, m, "consume", id, "", 0)
			case 1:
				vectorOp(t, m, "resolve", id, "deny", 0)
			case 2:
				m.Expire(id, ByCanceled)
			}
		}
		if n := runtime.NumGoroutine(); n > before+2 {
			t.Errorf("%d goroutines for 2,500 pending approvals, %d before", n, before)
		}
		time.Sleep(2*time.Minute + grace + time.Second)
		synctest.Wait()
		m.mu.Lock()
		defer m.mu.Unlock()
		if n := len(m.entries) + len(m.byBinding) + len(m.bySlug) + len(m.bySession) + len(m.byConn) + len(m.schedule) + m.pending + len(m.unwritten); n != 0 {
			t.Errorf("left: %d entries, %d bindings, %d sessions, %d connections, %d scheduled, %d counted, %d unwritten",
				len(m.entries), len(m.byBinding), len(m.bySession), len(m.byConn), len(m.schedule), m.pending, len(m.unwritten))
		}
	})
}

func TestEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var observed []EventType
		m := open(t, newMemory(), func(o *Options) { o.Observe = func(e Event) { observed = append(observed, e.Type) } })
		attach(t, m, alice)
		if _, err := m.Subscribe(nil, 1); !errors.Is(err, ErrNotAllowed) {
			t.Errorf("anybody: %v", err)
		}
		if _, err := m.Subscribe(&person{name: "eve", err: errors.New("no")}, 1); err == nil {
			t.Error("somebody who may not answer")
		}
		fast, err := m.Subscribe(alice, 16)
		if err != nil {
			t.Fatal(err)
		}
		slow, _ := m.Subscribe(alice, 1)
		leaving := &person{name: "carol"}
		gone, _ := m.Subscribe(leaving, 16)

		result := ask(t.Context(), m, question(nil))
		synctest.Wait()
		e := <-fast.C
		if e.Type != EventRequested || e.Approval.Request == nil || e.Approval.Request.Title != "write: src/a.go" {
			t.Errorf("%+v", e)
		}
		leaving.err = errors.New("signed out")
		if _, err := answer(m, alice, e.Approval.ID, "deny"); err != nil {
			t.Fatal(err)
		}
		<-result
		if e := <-fast.C; e.Type != EventResolved || e.Approval.Decision != toolward.DenyCall || e.Approval.ResolvedBy != "alice" || e.Missed {
			t.Errorf("%+v", e)
		}
		<-gone.C // before the sign-in ended
		if _, open := <-gone.C; open {
			t.Error("events after the sign-in ended")
		}
		<-slow.C
		ctx, cancel := context.WithCancel(t.Context())
		second := ask(ctx, m, question(func(r *toolward.Request, _ *toolward.Judgment) { r.Call.Run = "2" }))
		synctest.Wait()
		if e := <-slow.C; !e.Missed || e.Type != EventRequested {
			t.Errorf("a slow subscriber was not told that it missed something: %+v", e)
		}
		cancel()
		<-second
		slow.Close()
		slow.Close()
		if len(observed) != 4 {
			t.Errorf("observed %v", observed)
		}
		m.Close()
		for range fast.C { // ends, because closing the manager closes it
		}
	})
}

func TestLongRequestsAreReadFromTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := open(t, newMemory(), nil)
		attach(t, m, alice)
		q := question(nil)
		q.Diff = string(make([]byte, maxDiff+1))
		result := ask(t.Context(), m, q)
		synctest.Wait()
		r := only(t, m)
		if len(r.Request.Diff) != maxDiff || m.entries[r.ID].detail != nil {
			t.Errorf("diff %d bytes, %d bytes in memory", len(r.Request.Diff), len(m.entries[r.ID].detail))
		}
		if _, err := answer(m, alice, r.ID, "allow-always"); err != nil {
			t.Fatal(err)
		}
		if got := <-result; got.answer.Decision != toolward.AllowAlways || len(m.Grants()) != 1 {
			t.Errorf("%+v", got)
		}
	})
}

func TestSecretsAreHidden(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hide := func(s string) string { return strings.ReplaceAll(s, "hunter2", "•••") }
		m := open(t, newMemory(), func(o *Options) { o.Redact = hide })
		attach(t, m, alice)
		q := question(func(r *toolward.Request, _ *toolward.Judgment) {
			r.Params = toolward.NewParams([]byte(`{}`), map[string]any{"a": []any{map[string]any{"b": "hunter2"}}})
			r.Facts.Command = "echo hunter2"
		})
		result := ask(t.Context(), m, q)
		synctest.Wait()
		r := only(t, m)
		if string(r.Request.Preview) != `{"a":[{"b":"•••"}]}` || r.Request.Command != "echo •••" || r.Request.Title != "write: echo •••" {
			t.Errorf("%s / %s / %s", r.Request.Preview, r.Request.Command, r.Request.Title)
		}
		m.Expire(r.ID, ByCanceled)
		<-result
	})
}

func TestSettings(t *testing.T) {
	for name, s := range map[string]Settings{
		"negative timeout": {Timeout: -1}, "absent": {Absent: "maybe"}, "negative limit": {PerSession: -1}, "negative grant": {AgentGrant: -1},
	} {
		if _, err := s.withDefaults(); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	s, err := Settings{MaxTimeout: 365 * 24 * time.Hour, Timeout: 30 * 24 * time.Hour, AgentGrant: 1000 * 24 * time.Hour}.withDefaults()
	if err != nil || s.MaxTimeout != maxLife || s.Timeout != maxLife || s.AgentGrant != maxGrantLife {
		t.Errorf("%+v %v", s, err)
	}
}
