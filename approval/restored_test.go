package approval

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolward/toolward"
)

// TestForgedQuestion: while no gateway runs a process of the same user changes what the row of a question shows, and leaves what it
// is bound to. Whatever people answer, the call is asked about as it is.
func TestForgedQuestion(t *testing.T) {
	forgeries := map[string]func(*Record){
		"nothing":   func(*Record) {},
		"title":     func(r *Record) { r.Request.Title = "read: README.md" },
		"severity":  func(r *Record) { r.Request.Severity = toolward.Critical },
		"reasons":   func(r *Record) { r.Request.Reasons = []string{"it is harmless"} },
		"preview":   func(r *Record) { r.Request.Preview = []byte(`{"path":"README.md"}`) },
		"proposals": func(r *Record) { r.Request.Proposals[0].Match = Match{Kind: toolward.GrantPath, Prefix: "/"} },
	}
	for what, forge := range forgeries {
		for _, first := range []string{"person", "call"} {
			t.Run(what+", first the "+first, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					store := newMemory()
					m := open(t, store, nil)
					attach(t, m, alice)
					id := sentAway(t, m, lasting(threeDays))
					m.Close()
					for _, r := range store.rows {
						forge(r)
					}
					m = open(t, store, nil)
					attach(t, m, alice)
					time.Sleep(time.Minute)
					if first == "person" {
						if _, err := answer(m, alice, id, "allow-once"); err != nil {
							t.Fatal(err)
						}
					}
					q := lasting(threeDays)
					if what != "nothing" {
						if other := sentAway(t, m, q); other == id {
							t.Error("the call took the forged question for its own")
						}
						if err := m.Consume(t.Context(), id, q.Binding); !errors.Is(err, ErrNotUsable) {
							t.Errorf("the answer to it counts: %v", err)
						}
						return
					}
					if first == "call" {
						if again := sentAway(t, m, q); again != id {
							t.Fatalf("%s, want %s", again, id)
						}
						if _, err := answer(m, alice, id, "allow-once"); err != nil {
							t.Fatal(err)
						}
					}
					if a, err := m.Ask(t.Context(), q); err != nil || a.ApprovalID != id || m.Consume(t.Context(), id, q.Binding) != nil {
						t.Errorf("%+v, %v", a, err)
					}
				})
			})
		}
	}
}

// TestForgedProposals: an "always" to a question from before a restart keeps nothing before its call has come again.
func TestForgedProposals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newMemory()
		m := open(t, store, nil)
		attach(t, m, alice)
		id := sentAway(t, m, lasting(threeDays))
		m.Close()
		m = open(t, store, nil)
		attach(t, m, alice)
		time.Sleep(time.Minute)
		r, err := answer(m, alice, id, "allow-always")
		if err != nil || r.Decision != toolward.AllowOnce || len(m.Grants()) > 0 {
			t.Errorf("%+v, %v, %d grants", r, err, len(m.Grants()))
		}
	})
}

// TestForgedProgramQuestion: a program that asks by itself gets no answer from a row that it did not write.
func TestForgedProgramQuestion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newMemory()
		m := open(t, store, nil)
		attach(t, m, alice)
		asked := Record{
			ID: "0123456789abcdef", Kind: KindExec, Binding: "b", Request: &Details{Tool: "exec", Title: "exec: id", Command: "id"},
			Allowed: []toolward.Decision{toolward.AllowOnce, toolward.DenyCall}, Connection: "c9",
		}
		if _, err := m.Register(t.Context(), asked, time.Minute); err != nil {
			t.Fatal(err)
		}
		m.Close()
		for _, r := range store.rows {
			r.Request.Command, r.Request.Title = "ls", "exec: ls"
		}
		m = open(t, store, nil)
		attach(t, m, alice)
		time.Sleep(time.Second)
		if joined, err := m.Register(t.Context(), asked, time.Minute); joined || !errors.Is(err, ErrIDPending) {
			t.Errorf("joined %v, %v", joined, err)
		}
		if _, err := answer(m, alice, asked.ID, "allow-once"); err != nil {
			t.Fatal(err)
		}
		if d, err := m.Wait(t.Context(), asked.ID); !errors.Is(err, ErrRestored) {
			t.Errorf("%v, %v", d, err)
		}
	})
}
