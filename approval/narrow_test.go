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
	"github.com/toolward/toolward/internal/gatetest"
)

// alwaysNarrow answers the one pending question with "always", less than what the proposal says.
func alwaysNarrow(t *testing.T, m *Manager, q *toolward.Question, proposal int, n Narrow) error {
	t.Helper()
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(ErrCanceled)
	result := ask(ctx, m, q)
	synctest.Wait()
	r := only(t, m)
	stamp := m.MarkShown(r, alice)
	time.Sleep(time.Second)
	_, err := m.Resolve(t.Context(), Response{ID: r.ID, Decision: "allow-always", Proposal: proposal, Narrow: n, By: alice, Shown: stamp})
	if err != nil {
		cancel(ErrCanceled)
	}
	<-result
	return err
}

func TestNarrowIsNeverMore(t *testing.T) {
	plain := Proposal{Scope: ScopeSession, LifeMs: time.Hour.Milliseconds(), Text: "x"}
	entries := Proposal{Match: Match{Entries: []toolward.CommandEntry{{Pattern: "/p"}}}}
	for name, tt := range map[string]struct {
		p    Proposal
		n    Narrow
		ok   bool
		text string
	}{
		"nothing":            {plain, Narrow{}, true, "x"},
		"shorter":            {plain, Narrow{Life: 10 * time.Minute}, true, "x; shortened to 10 minutes"},
		"counted":            {plain, Narrow{Uses: 3}, true, "x; for 3 more calls at most"},
		"the same time":      {plain, Narrow{Life: time.Hour}, true, "x; shortened to 60 minutes"},
		"longer":             {plain, Narrow{Life: time.Hour + time.Millisecond}, false, ""},
		"no time":            {plain, Narrow{Life: time.Millisecond}, false, ""},
		"negative time":      {plain, Narrow{Life: -time.Minute}, false, ""},
		"negative count":     {plain, Narrow{Uses: -1}, false, ""},
		"too large a count":  {plain, Narrow{Uses: maxUses + 1}, false, ""},
		"the allowlist":      {entries, Narrow{}, true, ""},
		"allowlist, shorter": {entries, Narrow{Life: time.Minute}, false, ""},
		"allowlist, counted": {entries, Narrow{Uses: 1}, false, ""},
	} {
		got, err := tt.n.of(tt.p)
		if (err == nil) != tt.ok || !tt.ok && !errors.Is(err, ErrNotOffered) || tt.ok && got.Text != tt.text || got.LifeMs > tt.p.LifeMs {
			t.Errorf("%s: %+v %v", name, got, err)
		}
	}
}

func TestGrantForANumberOfCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newMemory()
		m := open(t, store, nil)
		attach(t, m, alice)
		if err := alwaysNarrow(t, m, question(nil), 0, Narrow{Uses: 4, Life: 10 * time.Minute}); err != nil {
			t.Fatal(err)
		}
		g := m.Grants()[0]
		if g.MaxUses != 4 || g.ExpiresMs-g.CreatedMs != (10*time.Minute).Milliseconds() || !strings.HasSuffix(g.Text, "; shortened to 10 minutes; for 4 more calls at most") {
			t.Fatalf("%+v", g)
		}
		use := func(m *Manager) bool {
			_, ok, err := m.Granted(t.Context(), question(nil))
			return ok && err == nil
		}
		if !use(m) {
			t.Fatal("first")
		}
		m.Close() // a restart in between: what was used stays used
		m = open(t, store, nil)
		var used atomic.Int64
		var all sync.WaitGroup
		for range 50 {
			all.Go(func() {
				if use(m) {
					used.Add(1)
				}
			})
		}
		all.Wait()
		if used.Load() != 3 || len(m.Grants()) != 0 {
			t.Errorf("%d more calls ran, grants left: %v", used.Load(), m.Grants())
		}
		m.Close()
		if m = open(t, store, nil); use(m) || len(m.Grants()) != 0 {
			t.Error("a restart made it good again")
		}
	})
}

func TestAUseThatCannotBeRecordedAllowsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newMemory()
		m := open(t, store, nil)
		attach(t, m, alice)
		if err := alwaysNarrow(t, m, question(nil), 0, Narrow{Uses: 2}); err != nil {
			t.Fatal(err)
		}
		store.failing("spend", errDisk)
		if _, ok, err := m.Granted(t.Context(), question(nil)); ok || !errors.Is(err, errDisk) {
			t.Errorf("%v %v", ok, err)
		}
		store.failing("spend", nil)
		if _, ok, _ := m.Granted(t.Context(), question(nil)); !ok {
			t.Error("the second use")
		}
		if _, ok, _ := m.Granted(t.Context(), question(nil)); ok {
			t.Error("a third use of two")
		}
	})
}

func TestALongerTimeThanProposedIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := open(t, newMemory(), nil)
		attach(t, m, alice)
		if err := alwaysNarrow(t, m, question(nil), 0, Narrow{Life: 48 * time.Hour}); !errors.Is(err, ErrNotOffered) || len(m.Grants()) != 0 {
			t.Errorf("%v, %v", err, m.Grants())
		}
	})
}

// TestRepeatExactly is a command that may be repeated for ten minutes: the same one, in this session.
func TestRepeatExactly(t *testing.T) {
	bound := func(change func(*toolward.Request)) *toolward.Question {
		return question(func(r *toolward.Request, j *toolward.Judgment) {
			analyzed("git status", gitReads)(r, j)
			r.Facts.Bound = []string{"workdir /ws", "environment e", "command d1"}
			if change != nil {
				change(r)
			}
		})
	}
	synctest.Test(t, func(t *testing.T) {
		list := &allowlist{}
		m := open(t, newMemory(), func(o *Options) { o.Remember = list.remember })
		attach(t, m, alice)
		if d := detailsFor(t, m, question(analyzed("git status", gitReads))); len(d.Proposals) != 1 {
			t.Errorf("a command that is bound to no files: %+v", d.Proposals)
		}
		d := detailsFor(t, m, bound(nil))
		want := `run exactly this command again in "/ws", with the same environment, on gateway, in this session only, for 10 minutes`
		if len(d.Proposals) != 2 || len(d.Proposals[0].Match.Entries) == 0 || !strings.HasPrefix(d.Proposals[1].Text, want) {
			t.Fatalf("%+v", d.Proposals)
		}
		if err := alwaysNarrow(t, m, bound(nil), 1, Narrow{}); err != nil {
			t.Fatal(err)
		}
		if len(list.saved) != 0 || len(m.Grants()) != 1 {
			t.Fatalf("saved %v, grants %v", list.saved, m.Grants())
		}
		recent, err := m.Recent(t.Context(), alice, 1)
		if err != nil || len(recent) != 1 || len(recent[0].Saved) != 0 {
			t.Errorf("history says that the allowlist grew: %+v %v", recent, err)
		}
		for name, tt := range map[string]struct {
			change  func(*toolward.Request)
			covered bool
		}{
			"the same":                    {nil, true},
			"a changed program or script": {func(r *toolward.Request) { r.Facts.Bound[2] = "command d2" }, false},
			"another environment":         {func(r *toolward.Request) { r.Facts.Bound[1] = "environment f" }, false},
			"another directory":           {func(r *toolward.Request) { r.Call.WorkDir = "/ws/sub" }, false},
			"another session":             {func(r *toolward.Request) { r.Call.Session = "agent:coder:other" }, false},
			"elevated":                    {func(r *toolward.Request) { r.Level = toolward.Elevated }, false},
		} {
			if _, ok, _ := m.Covered(t.Context(), bound(tt.change)); ok != tt.covered {
				t.Errorf("%s: covered %v", name, ok)
			}
		}
		time.Sleep(repeatFor)
		if _, ok, _ := m.Covered(t.Context(), bound(nil)); ok {
			t.Error("after ten minutes it still counts")
		}
	})
}

// plugIn runs with every call and changes nothing: time passes, so that everything is checked again.
type plugIn struct{}

func (plugIn) Before(context.Context, *toolward.Request) toolward.HookAnswer {
	return toolward.HookAnswer{Runs: []toolward.HookRun{{Plugin: "log"}}}
}

func (plugIn) Result(_ context.Context, _ *toolward.Request, r toolward.Result) (toolward.Result, error) {
	return r, nil
}

func (plugIn) After(context.Context, *toolward.Request, *toolward.OutcomeRecord, *toolward.Result) {}

// TestTheLastUseHoldsUntilItsCallRuns: a call that has taken the last use of a grant is checked once more before it runs, and
// what it has taken must not be missing then.
func TestTheLastUseHoldsUntilItsCallRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := open(t, newMemory(), nil)
		attach(t, m, alice)
		ran := 0
		tool := &toolward.Tool{Name: "exec", Run: func(context.Context, *toolward.Request) (toolward.Result, error) {
			ran++
			return toolward.TextResult("ran"), nil
		}}
		h := gatetest.New(t, toolward.Ask, tool)
		gateway := h.With(t, func(c *toolward.Config) { c.Approver, c.Hooks = m, plugIn{} })
		call := func() error {
			_, err := gateway.Call(t.Context(), command("make", func(c *toolward.Call) { c.Detach = true }))
			return err
		}
		var pending *toolward.Pending
		if err := call(); !errors.As(err, &pending) {
			t.Fatal(err)
		}
		stamp := m.MarkShown(looked(m, alice, pending.ID), alice)
		time.Sleep(time.Second)
		_, err := m.Resolve(t.Context(), Response{
			ID: pending.ID, Decision: "allow-always", Narrow: Narrow{Uses: 2}, By: alice, Shown: stamp,
		})
		if err != nil {
			t.Fatal(err)
		}
		for n := range 2 {
			if err := call(); err != nil || ran != n+1 {
				t.Fatalf("use %d: ran %d, %v", n+1, ran, err)
			}
		}
		if err := call(); !errors.As(err, &pending) || ran != 2 {
			t.Errorf("a third: ran %d, %v", ran, err)
		}
	})
}

// TestALastUseEndsWithItsGrant: ending grants, because a session was reset or the policy tightened, counts for the call that
// has taken the last use of one and has not run yet.
func TestALastUseEndsWithItsGrant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := open(t, newMemory(), nil)
		attach(t, m, alice)
		if err := alwaysNarrow(t, m, question(nil), 0, Narrow{Uses: 1}); err != nil {
			t.Fatal(err)
		}
		q := question(nil)
		id, ok, err := m.Granted(t.Context(), q)
		if !ok || err != nil {
			t.Fatal(err)
		}
		covered := func(q *toolward.Question) bool {
			_, ok, err := m.Covered(t.Context(), q)
			return ok && err == nil
		}
		if covered(q) {
			t.Error("a call that has taken no use is covered")
		}
		q.Grant = id
		other := question(func(r *toolward.Request, _ *toolward.Judgment) { r.Call.Session = "agent:main:another" })
		other.Grant = id
		if !covered(q) || covered(other) {
			t.Errorf("covers its call: %v, one of another session: %v", covered(q), covered(other))
		}
		if _, err := m.DropGrants(t.Context(), "session reset", func(g *Grant) bool { return g.ID == id }); err != nil {
			t.Fatal(err)
		}
		if covered(q) {
			t.Error("it outlives its grant")
		}
	})
}
