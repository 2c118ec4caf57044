package approval

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/display"
	"github.com/toolward/toolward/redact"
)

var gitReads = toolward.CommandEntry{Pattern: "/usr/bin/git", Effects: []string{"read"}}

// analyzed is a question about a command that was analyzed; entries are what "always" would save.
func analyzed(text string, entries ...toolward.CommandEntry) func(*toolward.Request, *toolward.Judgment) {
	return func(r *toolward.Request, j *toolward.Judgment) {
		r.Tool = &toolward.Tool{Name: "exec"}
		r.Params = toolward.NewParams([]byte(`{"command":"x"}`), map[string]any{"command": text})
		r.Facts = toolward.Facts{Command: text, Analysis: &toolward.CommandAnalysis{Understood: true, Always: entries}}
		j.Class.Grant = toolward.GrantExec
	}
}

// allowlist records what was remembered.
type allowlist struct {
	mu    sync.Mutex
	saved []string
	err   error
}

func (a *allowlist) remember(_ context.Context, agent string, entries []toolward.CommandEntry) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.err != nil {
		return a.err
	}
	for _, e := range entries {
		a.saved = append(a.saved, agent+": "+display.AllowedProgram(e.Pattern, e.Effects, e.Argv))
	}
	return nil
}

func TestAlwaysSavesTheEntriesThatWereShown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		list, store := &allowlist{}, newMemory()
		var events []Event
		m := open(t, store, func(o *Options) {
			o.Remember = list.remember
			o.Observe = func(e Event) { events = append(events, e) }
		})
		attach(t, m, alice)
		exact := toolward.CommandEntry{Pattern: "/usr/bin/rm", Effects: []string{"read", "write"}, Argv: []string{"/usr/bin/rm", "-rf", "a b"}}
		answered := ask(t.Context(), m, question(analyzed("git status; rm -rf 'a b'", gitReads, exact)))
		synctest.Wait()
		r := only(t, m)
		want := []Proposal{{
			Scope: ScopeAgent, Match: Match{Kind: toolward.GrantExec, Entries: []toolward.CommandEntry{gitReads, exact}},
			Text: "for agent coder, run without a question on this machine, in any directory: /usr/bin/git, reading; exactly: /usr/bin/rm -rf 'a b'. " +
				"This has no end date: it holds until somebody removes it (toolward approvals allowlist remove)",
		}}
		if diff := cmp.Diff(want, r.Request.Proposals); diff != "" || !r.Offers(toolward.AllowAlways) {
			t.Fatalf("offers %v: %s", r.Allowed, diff)
		}
		if _, err := answer(m, alice, r.ID, "allow-always"); err != nil {
			t.Fatal(err)
		}
		if got := <-answered; !got.answer.Decision.Allows() || got.err != nil {
			t.Errorf("answer %+v, %v", got.answer, got.err)
		}
		if diff := cmp.Diff([]string{"coder: /usr/bin/git, reading", "coder: exactly: /usr/bin/rm -rf 'a b'"}, list.saved); diff != "" {
			t.Error(diff)
		}
		if len(m.Grants())+len(store.grants) != 0 {
			t.Error("a grant was made, too")
		}
		last := events[len(events)-1].Approval
		if len(last.Saved) != 2 || last.Grant != "" {
			t.Errorf("the event says %+v, grant %q", last.Saved, last.Grant)
		}
		// After its grace it is read from the store.
		time.Sleep(time.Minute)
		got, err := m.Get(t.Context(), alice, r.ID)
		if err != nil || len(got.Saved) != 2 {
			t.Errorf("stored: %+v, %v", got, err)
		}
		recent, err := m.Recent(t.Context(), alice, 5)
		if err != nil || len(recent) != 1 || len(recent[0].Saved) != 2 {
			t.Errorf("recent: %+v, %v", recent, err)
		}
		// The next call is judged by the allowlist; this manager remembers nothing that would cover it.
		if _, ok, _ := m.Granted(t.Context(), question(analyzed("git status", gitReads))); ok {
			t.Error("a grant covers the next call")
		}
	})
}

func TestNoAlwaysForCommands(t *testing.T) {
	remembers := func(o *Options) { o.Remember = (&allowlist{}).remember }
	usual := analyzed("git status", gitReads)
	with := func(change func(*toolward.Request, *toolward.Judgment)) func(*toolward.Request, *toolward.Judgment) {
		return func(r *toolward.Request, j *toolward.Judgment) { usual(r, j); change(r, j) }
	}
	for name, c := range map[string]struct {
		options func(*Options)
		edit    func(*toolward.Request, *toolward.Judgment)
	}{
		"nothing to save":         {remembers, analyzed("python3 x")},
		"nobody remembers":        {nil, usual},
		"no agent":                {remembers, with(func(r *toolward.Request, _ *toolward.Judgment) { r.Call.Caller.Agent = "" })},
		"the name of all agents":  {remembers, with(func(r *toolward.Request, _ *toolward.Judgment) { r.Call.Caller.Agent = "*" })},
		"on another machine":      {remembers, with(func(r *toolward.Request, _ *toolward.Judgment) { r.Call.Host = "node:x" })},
		"in a sandbox":            {remembers, with(func(r *toolward.Request, _ *toolward.Judgment) { r.Call.Host = toolward.HostSandbox })},
		"in lockdown":             {remembers, with(func(r *toolward.Request, _ *toolward.Judgment) { r.Level = toolward.Lockdown })},
		"critical":                {remembers, with(func(_ *toolward.Request, j *toolward.Judgment) { j.Class.Severity = toolward.Critical })},
		"policy says no":          {remembers, with(func(_ *toolward.Request, j *toolward.Judgment) { j.AllowAlways = false })},
		"too much for one screen": {remembers, analyzed("x", toolward.CommandEntry{Pattern: "/" + strings.Repeat("x", 5000)})},
		"a secret": {func(o *Options) { remembers(o); o.Redact = redact.Text }, analyzed("gh x", toolward.CommandEntry{
			Pattern: "/usr/bin/gh", Argv: []string{"/usr/bin/gh", "ghp_0123456789abcdefghijABCDEFGHIJ456789"},
		})},
	} {
		t.Run(name, func(t *testing.T) {
			m := open(t, newMemory(), c.options)
			if d := detailsFor(t, m, question(c.edit)); len(d.Proposals) != 0 {
				t.Errorf("proposes %+v", d.Proposals)
			}
		})
	}
	m := open(t, newMemory(), remembers)
	if d := detailsFor(t, m, question(usual)); len(d.Proposals) != 1 {
		t.Errorf("the usual one proposes %+v", d.Proposals)
	}
}

// "Always" for a command of which nothing can be saved lets it run once; for any other call it is no answer.
func TestAlwaysThatIsNotOffered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		list := &allowlist{}
		m := open(t, newMemory(), func(o *Options) { o.Remember = list.remember })
		attach(t, m, alice)
		answered := ask(t.Context(), m, question(analyzed("python3 x")))
		synctest.Wait()
		got, err := answer(m, alice, only(t, m).ID, "allow-always")
		if err != nil || got.Decision != toolward.AllowOnce || len(list.saved) != 0 || len(m.Grants()) != 0 {
			t.Fatalf("%+v, %v, saved %v", got, err, list.saved)
		}
		if a := <-answered; a.answer.Decision != toolward.AllowOnce {
			t.Errorf("the call got %v", a.answer.Decision)
		}
		_ = ask(t.Context(), m, question(func(_ *toolward.Request, j *toolward.Judgment) { j.AllowAlways = false }))
		synctest.Wait()
		if _, err := answer(m, alice, only(t, m).ID, "allow-always"); !errors.Is(err, ErrNotOffered) {
			t.Errorf("another call: %v", err)
		}
	})
}

func TestAnAllowlistThatCannotBeWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		list := &allowlist{err: errDisk}
		store := newMemory()
		m := open(t, store, func(o *Options) { o.Remember = list.remember })
		attach(t, m, alice)
		answered := ask(t.Context(), m, question(analyzed("git status", gitReads)))
		synctest.Wait()
		id := only(t, m).ID
		if _, err := answer(m, alice, id, "allow-always"); err == nil || !strings.Contains(err.Error(), "allow once instead") {
			t.Fatalf("answered: %v", err)
		}
		if r := only(t, m); r.Decision != toolward.NoDecision || store.rows[r.Key()].State != StatePending {
			t.Fatalf("it does not wait any more: %+v", r)
		}
		// The allowlist is written, the answer is not: it does not count, and the person learns both.
		list.err = nil
		store.failing("resolve", errDisk)
		if _, err := answer(m, alice, id, "allow-always"); err == nil || !strings.Contains(err.Error(), "the allowlist was extended before") {
			t.Fatalf("answered: %v", err)
		}
		store.failing("resolve", nil)
		if _, err := answer(m, alice, id, "allow-once"); err != nil {
			t.Fatal(err)
		}
		if a := <-answered; a.answer.Decision != toolward.AllowOnce {
			t.Errorf("the call got %v", a.answer.Decision)
		}
	})
}

// Of many answers one wins, and what it saves is all that is saved.
func TestOnlyTheWinnerExtendsTheAllowlist(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for round := range 50 {
			list := &allowlist{}
			m := open(t, newMemory(), func(o *Options) { o.Remember = list.remember })
			attach(t, m, alice)
			_ = ask(t.Context(), m, question(analyzed("git status", gitReads)))
			synctest.Wait()
			id := only(t, m).ID
			won := make(chan string, 8)
			var group sync.WaitGroup
			for i := range 8 {
				decision := []string{"allow-always", "deny", "allow-always", "allow-once"}[(i+round)%4]
				group.Go(func() {
					if _, err := answer(m, alice, id, decision); err == nil {
						won <- decision
					}
				})
			}
			group.Wait()
			close(won)
			var winners []string
			for w := range won {
				winners = append(winners, w)
			}
			want := 0
			if slices.Equal(winners, []string{"allow-always"}) {
				want = 1
			}
			if len(winners) != 1 || len(list.saved) != want {
				t.Fatalf("winners %v, saved %v", winners, list.saved)
			}
			m.Close()
		}
	})
}

// outlined is an outline of these texts.
func outlined(texts ...string) func(*Options) {
	return func(o *Options) {
		o.Redact = redact.Text
		o.Outline = func(*toolward.Request) *display.Outline {
			out := &display.Outline{}
			for _, text := range texts {
				out.Add(display.OutlineLine{Kind: display.LineWord, Label: "runs as", Text: text, Note: text})
			}
			return out
		}
	}
}

func TestTheOutlineIsShownRedactedAndKept(t *testing.T) {
	store := newMemory()
	// The secret is one behind its option only, and one by its own look.
	m := open(t, store, outlined("hunter2hunter2", "ghp_0123456789abcdefghijABCDEFGHIJ456789", "plain", strings.Repeat("x ", 1500)))
	attach(t, m, alice)
	q := question(analyzed("mysql --password=hunter2hunter2 shop"))
	q.Request.Call.Detach = true
	if _, err := m.Ask(t.Context(), q); err == nil {
		t.Fatal("answered by itself")
	}
	check := func(m *Manager) {
		t.Helper()
		o := only(t, m).Request.Outline
		text := ""
		for _, row := range o.Rows(80) {
			text += row.Text + "\n"
		}
		if strings.Contains(text, "hunter2") || strings.Contains(text, "ghp_") || !strings.Contains(text, "plain") || strings.Count(text, "[hidden: ") != 4 {
			t.Errorf("outline:\n%s", text)
		}
	}
	check(m)
	for _, e := range m.entries {
		if e.detail != nil {
			t.Error("a long outline stays in memory")
		}
	}
	m.Close()
	check(open(t, store, nil))
}

// What a secret would hide in a word that was expanded is refused as in the text.
func TestTheOutlineCannotHideInASecret(t *testing.T) {
	for text, asked := range map[string]bool{"https://user:hunter2hunter2@example.org": true, "https://user:a;reboot@example.org": false} {
		m := open(t, newMemory(), outlined(text))
		attach(t, m, alice)
		q := question(analyzed(`curl "$URL"`))
		q.Request.Call.Detach = true
		_, err := m.Ask(t.Context(), q)
		if m.Count() == 1 != asked || !asked && code(t, err) != toolward.CodeValidation {
			t.Errorf("%s: %d questions, %v", text, m.Count(), err)
		}
	}
}

func TestVariablesOfACommandAreNamed(t *testing.T) {
	m := open(t, newMemory(), nil)
	d := detailsFor(t, m, question(func(r *toolward.Request, j *toolward.Judgment) {
		analyzed("git log")(r, j)
		r.Params = toolward.NewParams(nil, map[string]any{"command": "git log", "env": map[string]any{"B": "1", "A": "2"}})
	}))
	if diff := cmp.Diff([]string{"A", "B"}, d.Variables); diff != "" {
		t.Error(diff)
	}
}

func TestHiddenPieces(t *testing.T) {
	for _, c := range []struct{ text, redacted string }{
		{"a secret1 b secret2 c", "a [hidden: x] b [hidden: y] c"},
		{"secret1", "[hidden: x]"},
		{"secret1 secret2", "[hidden: x] [hidden: y]"},
		{"no secret", "no secret"},
	} {
		pieces := hiddenPieces(c.text, c.redacted)
		back := c.redacted
		for _, p := range pieces {
			back = strings.Replace(strings.Replace(back, "[hidden: x]", p, 1), "[hidden: y]", p, 1)
		}
		if len(pieces) != strings.Count(c.redacted, "[hidden: ") || pieces != nil && !strings.HasPrefix(pieces[0], "secret") {
			t.Errorf("%q: %q", c.text, pieces)
		}
	}
}

// What nothing can keep now counts once, says why, and is no "always" in the store.
func TestAlwaysThatCannotBeKeptCountsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		list := &allowlist{err: fmt.Errorf("%w: the key is locked", ErrOnlyOnce)}
		m := open(t, newMemory(), func(o *Options) { o.Remember = list.remember })
		attach(t, m, alice)
		answered := ask(t.Context(), m, question(analyzed("git status", gitReads)))
		synctest.Wait()
		got, err := answer(m, alice, only(t, m).ID, "allow-always")
		if err != nil || got.Decision != toolward.AllowOnce || !strings.Contains(got.Reason, "the key is locked") || len(got.Saved) != 0 || len(m.Grants()) != 0 {
			t.Fatalf("%+v, %v", got, err)
		}
		if a := <-answered; a.err != nil || a.answer.Decision != toolward.AllowOnce {
			t.Errorf("the call is told %+v", a)
		}
	})
}
