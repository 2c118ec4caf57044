package approval

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolward/toolward"
)

// posed is a manager with one pending approval.
func posed(t *testing.T, change func(*Options), edit func(*toolward.Request, *toolward.Judgment)) (*Manager, *Record, <-chan asked) {
	t.Helper()
	m := open(t, newMemory(), change)
	attach(t, m, alice)
	result := ask(t.Context(), m, question(edit))
	synctest.Wait()
	return m, only(t, m), result
}

func TestWhoMayAnswerHow(t *testing.T) {
	signedOut := &person{name: "eve", err: errors.New("the sign-in has expired")}
	ok := func(m *Manager, r *Record) Response {
		return Response{ID: r.ID, Decision: "allow-once", By: alice, Shown: m.MarkShown(r, alice), Connection: "console"}
	}
	with := func(change func(*Response, *Manager, *Record)) func(*Manager, *Record) Response {
		return func(m *Manager, r *Record) Response {
			out := ok(m, r)
			change(&out, m, r)
			return out
		}
	}
	tests := map[string]struct {
		response func(*Manager, *Record) Response
		wait     time.Duration
		want     error // nil: any error; errNone: it counts
	}{
		"plain":                  {ok, 500 * time.Millisecond, errNone},
		"too soon":               {ok, 499 * time.Millisecond, ErrTooSoon},
		"nobody":                 {with(func(r *Response, _ *Manager, _ *Record) { r.By = nil }), time.Second, ErrNotAllowed},
		"signed out":             {with(func(r *Response, _ *Manager, _ *Record) { r.By = signedOut }), time.Second, signedOut.err},
		"the requester":          {with(func(r *Response, _ *Manager, _ *Record) { r.Connection = "agent-conn" }), time.Second, ErrSelfApproval},
		"the requester's device": {with(func(r *Response, _ *Manager, _ *Record) { r.Device = "token-1" }), time.Second, ErrSelfApproval},
		"never shown":            {with(func(r *Response, _ *Manager, _ *Record) { r.Shown = "" }), time.Second, ErrNotShown},
		"forged stamp":           {with(func(r *Response, _ *Manager, _ *Record) { r.Shown = strings.Repeat("A", 96) }), time.Second, ErrNotShown},
		"another's stamp":        {with(func(r *Response, m *Manager, a *Record) { r.Shown = m.MarkShown(a, bob) }), time.Second, ErrNotShown},
		"stamp of another": {with(func(r *Response, m *Manager, a *Record) {
			r.Shown = m.MarkShown(changed(a, func(o *Record) { o.ID = "other" }), alice)
		}), time.Second, ErrNotShown},
		"of another question": {with(func(r *Response, m *Manager, a *Record) {
			r.Shown = m.MarkShown(changed(a, func(o *Record) { o.Binding = "other" }), alice)
		}), time.Second, ErrChanged},
		"of an earlier asking": {with(func(r *Response, m *Manager, a *Record) {
			r.Shown = m.MarkShown(changed(a, func(o *Record) { o.CreatedMs-- }), alice)
		}), time.Second, ErrChanged},
		"typed id":           {with(func(r *Response, _ *Manager, _ *Record) { r.Shown, r.Typed = "", true }), 500 * time.Millisecond, errNone},
		"typed at once":      {with(func(r *Response, _ *Manager, _ *Record) { r.Shown, r.Typed = "", true }), time.Millisecond, ErrTooSoon},
		"unique prefix":      {with(func(r *Response, _ *Manager, a *Record) { r.ID, r.Typed = a.Slug(), true }), time.Second, errNone},
		"the shown digest":   {with(func(r *Response, _ *Manager, a *Record) { r.Binding = a.Binding }), time.Second, errNone},
		"another digest":     {with(func(r *Response, _ *Manager, a *Record) { r.Binding = strings.Repeat("0", len(a.Binding)) }), time.Second, ErrChanged},
		"short prefix":       {with(func(r *Response, _ *Manager, a *Record) { r.ID, r.Typed = a.ID[:7], true }), time.Second, ErrUnknown},
		"unknown id":         {with(func(r *Response, _ *Manager, _ *Record) { r.ID = "00000000-0000" }), time.Second, ErrUnknown},
		"empty id":           {with(func(r *Response, _ *Manager, _ *Record) { r.ID = "" }), time.Second, ErrUnknown},
		"underscore":         {with(func(r *Response, _ *Manager, _ *Record) { r.Decision = "allow_once" }), time.Second, nil},
		"capital":            {with(func(r *Response, _ *Manager, _ *Record) { r.Decision = "Allow-once" }), time.Second, nil},
		"allow":              {with(func(r *Response, _ *Manager, _ *Record) { r.Decision = "allow" }), time.Second, nil},
		"space":              {with(func(r *Response, _ *Manager, _ *Record) { r.Decision = "allow-once " }), time.Second, nil},
		"look-alike":         {with(func(r *Response, _ *Manager, _ *Record) { r.Decision = "аllow-once" }), time.Second, nil},
		"no decision":        {with(func(r *Response, _ *Manager, _ *Record) { r.Decision = "" }), time.Second, nil},
		"longest reason":     {with(func(r *Response, _ *Manager, _ *Record) { r.Decision, r.Reason = "deny", strings.Repeat("ä", 500) }), time.Second, errNone},
		"reason too long":    {with(func(r *Response, _ *Manager, _ *Record) { r.Decision, r.Reason = "deny", strings.Repeat("ä", 501) }), time.Second, nil},
		"reason with escape": {with(func(r *Response, _ *Manager, _ *Record) { r.Decision, r.Reason = "deny", "\x1b[2J" }), time.Second, nil},
		"no such proposal":   {with(func(r *Response, _ *Manager, _ *Record) { r.Decision, r.Proposal = "allow-always", 99 }), time.Second, ErrNotOffered},
		"at the deadline":    {ok, 2 * time.Minute, ErrResolved},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m, r, result := posed(t, nil, nil)
				response := tt.response(m, r)
				time.Sleep(tt.wait)
				got, err := m.Resolve(t.Context(), response)
				if tt.want == errNone {
					if a := <-result; err != nil || a.answer.Decision == toolward.NoDecision || got.Decision != a.answer.Decision {
						t.Errorf("%v, answer %+v", err, a)
					}
					return
				}
				if err == nil || tt.want != nil && !errors.Is(err, tt.want) {
					t.Errorf("error = %v, want %v", err, tt.want)
				}
				// Whatever was wrong with it, the answer changed nothing: the deadline decides.
				if a := <-result; a.err != nil || a.answer.Decision != toolward.NoDecision {
					t.Errorf("answer %+v", a)
				}
			})
		})
	}
}

var errNone = errors.New("no error")

func TestAmbiguousPrefixAnswersNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := open(t, newMemory(), nil)
		for _, id := range []string{"12345678-a", "12345678-b", "12345678"} {
			registerID(t, m, id)
		}
		time.Sleep(time.Second)
		typed := func(id string) error {
			_, err := m.Resolve(t.Context(), Response{ID: id, Decision: "allow-once", By: alice, Typed: true})
			return err
		}
		if err := typed("12345678-"); !errors.Is(err, ErrUnknown) {
			t.Errorf("ambiguous: %v", err)
		}
		if err := typed("12345678"); err != nil {
			t.Errorf("a whole id beats prefixes: %v", err)
		}
		if m.Count() != 2 {
			t.Errorf("%d pending, want 2", m.Count())
		}
	})
}

func registerID(t *testing.T, m *Manager, id string) {
	t.Helper()
	_, err := m.Register(t.Context(), Record{
		ID: id, Binding: id, Request: &Details{Tool: "exec", Session: toolward.SessionKey("agent:main:" + id)},
		Allowed: []toolward.Decision{toolward.AllowOnce, toolward.DenyCall},
	}, 0)
	if err != nil {
		t.Fatal(err)
	}
}

func TestRegisterByID(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := open(t, newMemory(), nil)
		record := func(id, binding string) Record {
			return Record{ID: id, Binding: binding, Request: &Details{Tool: "exec"}, Allowed: []toolward.Decision{toolward.DenyCall}}
		}
		if _, err := m.Register(t.Context(), record("r1", "deploy"), 0); err != nil {
			t.Fatal(err)
		}
		if joined, err := m.Register(t.Context(), record("r1", "deploy"), 0); err != nil || !joined {
			t.Errorf("same content: %v %v", joined, err)
		}
		if _, err := m.Register(t.Context(), record("r1", "touch PWNED"), 0); !errors.Is(err, ErrIDPending) {
			t.Errorf("other content under a pending id: %v", err)
		}
		if _, err := m.Register(t.Context(), record("01", "a"), 0); err != nil {
			t.Fatal(err)
		}
		if _, err := m.Register(t.Context(), record("1", "b"), 0); err != nil {
			t.Errorf("ids are opaque: %v", err)
		}
		for name, r := range map[string]Record{
			"no id": record("", "b"), "bad id": record("a b", "b"), "long id": record(strings.Repeat("a", 129), "b"),
			"no binding": record("x", ""), "no request": {ID: "y", Binding: "b"},
		} {
			if _, err := m.Register(t.Context(), r, 0); err == nil {
				t.Errorf("%s: registered", name)
			}
		}
		// Longer than allowed is cut.
		if _, err := m.Register(t.Context(), record("long", "c"), time.Hour); err != nil {
			t.Fatal(err)
		}
		r, err := m.Get(t.Context(), alice, "long")
		if err != nil || r.ExpiresMs-r.CreatedMs != (10*time.Minute).Milliseconds() {
			t.Errorf("life = %d ms, %v", r.ExpiresMs-r.CreatedMs, err)
		}
		if err := m.Cancel("long", "c", "d"); !errors.Is(err, ErrUnknown) {
			t.Errorf("cancelled by a stranger: %v", err)
		}
	})
}

func TestStoreFailures(t *testing.T) {
	t.Run("registration", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			store := newMemory()
			store.failing("add", errDisk)
			m := open(t, store, nil)
			attach(t, m, alice)
			events, _ := m.Subscribe(alice, 8)
			if _, err := m.Ask(t.Context(), question(nil)); code(t, err) != toolward.CodeNoApprovalChannel || !errors.Is(err, errDisk) {
				t.Errorf("%v", err)
			}
			if m.Count() != 0 || len(events.C) != 0 {
				t.Errorf("%d pending, %d events: something was shown that is not a row", m.Count(), len(events.C))
			}
		})
	})
	t.Run("allow", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			m, r, result := posed(t, nil, nil)
			store := m.store.(*memory)
			store.failing("resolve", errDisk)
			if _, err := answer(m, alice, r.ID, "allow-once"); !errors.Is(err, errDisk) {
				t.Fatalf("%v", err)
			}
			if m.Count() != 1 {
				t.Fatal("an answer that was not recorded counted")
			}
			store.failing("resolve", nil)
			if _, err := answer(m, alice, r.ID, "allow-once"); err != nil {
				t.Fatal(err)
			}
			if got := <-result; got.answer.Decision != toolward.AllowOnce {
				t.Errorf("%+v", got)
			}
		})
	})
	t.Run("allow, never recovers", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			m, r, result := posed(t, nil, nil)
			m.store.(*memory).failing("resolve", errDisk)
			_, _ = answer(m, alice, r.ID, "allow-always")
			if got := <-result; got.answer.Decision != toolward.NoDecision || len(m.Grants()) != 0 {
				t.Errorf("%+v, %d grants", got, len(m.Grants()))
			}
		})
	})
	t.Run("deny", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			m, r, result := posed(t, nil, nil)
			m.store.(*memory).failing("resolve", errDisk)
			if _, err := answer(m, alice, r.ID, "deny"); !errors.Is(err, errDisk) {
				t.Errorf("%v", err)
			}
			if got := <-result; got.answer.Decision != toolward.DenyCall {
				t.Errorf("a no was lost: %+v", got)
			}
		})
	})
	t.Run("consume", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			m, r, result := posed(t, nil, nil)
			if _, err := answer(m, alice, r.ID, "allow-once"); err != nil {
				t.Fatal(err)
			}
			<-result
			store := m.store.(*memory)
			store.failing("consume", errDisk)
			if err := m.Consume(t.Context(), r.ID, r.Binding); !errors.Is(err, errDisk) {
				t.Errorf("%v", err)
			}
			store.failing("consume", nil)
			if err := m.Consume(t.Context(), r.ID, r.Binding); err == nil {
				t.Error("an approval whose use could not be recorded was used later")
			}
		})
	})
	t.Run("expiry is written later", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			m, r, result := posed(t, nil, nil)
			store := m.store.(*memory)
			store.failing("expire", errDisk)
			<-result
			time.Sleep(time.Minute)
			store.failing("expire", nil)
			time.Sleep(time.Minute)
			if row, _ := store.Approval(t.Context(), r.ID); row.State != StateResolved {
				t.Errorf("row = %+v", row)
			}
		})
	})
}

// changed is a record like r, but for what change does to it.
func changed(r *Record, change func(*Record)) *Record {
	other := *r
	change(&other)
	return &other
}

func TestFirstAnswerWins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, r, result := posed(t, nil, nil)
		m.store.(*memory).slow(10 * time.Millisecond)
		stamps := map[*person]string{alice: m.MarkShown(r, alice), bob: m.MarkShown(r, bob)}
		time.Sleep(time.Second)
		var wins atomic.Int32
		var won atomic.Value
		var wg sync.WaitGroup
		for p, decision := range map[*person]string{alice: "allow-once", bob: "deny"} {
			wg.Go(func() {
				got, err := m.Resolve(t.Context(), Response{ID: r.ID, Decision: decision, By: p, Shown: stamps[p]})
				if err == nil {
					wins.Add(1)
					won.Store(got.Decision)
				} else if !errors.Is(err, ErrResolved) {
					t.Errorf("loser: %v", err)
				}
			})
		}
		wg.Wait()
		if got := <-result; wins.Load() != 1 || got.answer.Decision != won.Load() {
			t.Errorf("%d answers counted, the call got %s", wins.Load(), got.answer.Decision)
		}
	})
}

func TestConcurrentUse(t *testing.T) {
	for _, decision := range []string{"allow-once", "allow-always"} {
		synctest.Test(t, func(t *testing.T) {
			m, r, result := posed(t, nil, nil)
			if _, err := answer(m, alice, r.ID, decision); err != nil {
				t.Fatal(err)
			}
			<-result
			var used atomic.Int32
			var wg sync.WaitGroup
			for range 32 {
				wg.Go(func() {
					if m.Consume(context.Background(), r.ID, r.Binding) == nil {
						used.Add(1)
					}
				})
			}
			wg.Wait()
			if used.Load() != 1 {
				t.Errorf("%s started %d runs", decision, used.Load())
			}
		})
	}
}

func TestAnswerDuringTheDeadlineCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, r, result := posed(t, nil, nil)
		stamp := m.MarkShown(r, alice)
		m.store.(*memory).slow(time.Second)
		time.Sleep(2*time.Minute - 100*time.Millisecond)
		if _, err := m.Resolve(t.Context(), Response{ID: r.ID, Decision: "allow-once", By: alice, Shown: stamp}); err != nil {
			t.Fatal(err)
		}
		if got := <-result; got.answer.Decision != toolward.AllowOnce {
			t.Errorf("%+v", got)
		}
		if err := m.Consume(t.Context(), r.ID, r.Binding); !errors.Is(err, ErrNotUsable) {
			t.Errorf("used after its deadline: %v", err)
		}
	})
}

// Whoever answers is told what they have answered, without another look.
func TestAnswerTellsWhatItWasAbout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := open(t, newMemory(), nil)
		attach(t, m, alice)
		ask(t.Context(), m, question(nil))
		synctest.Wait()
		r := only(t, m)
		time.Sleep(time.Second)
		settled, err := m.Resolve(t.Context(), Response{ID: r.ID, Decision: "deny", By: alice, Typed: true})
		if err != nil || settled.Request == nil || settled.Request.Title != r.Request.Title || settled.State != StateResolved {
			t.Errorf("%+v, %v", settled, err)
		}
	})
}
