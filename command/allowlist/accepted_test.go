package allowlist

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/toolward/toolward/internal/gatetest"
	"github.com/toolward/toolward/modes"
)

func openSigned(t *testing.T) (*Store, *gatetest.Ledger) {
	t.Helper()
	ledger := &gatetest.Ledger{}
	a := Open(filepath.Join(t.TempDir(), "state"), Options{Ledger: ledger})
	t.Cleanup(a.Close)
	return a, ledger
}

// acceptAll accepts what waits, as a person who has seen it.
func acceptAll(t *testing.T, a *Store) {
	t.Helper()
	waiting, err := a.Waiting()
	if err != nil || waiting == nil {
		t.Fatalf("nothing waits: %v", err)
	}
	if err := a.Accept(t.Context(), waiting.Revision); err != nil {
		t.Fatal(err)
	}
}

// TestWrittenByAnother: what a program writes into the file that no person accepted lets nothing run (C3 of the security review), in
// whichever way it tries, and what becomes stricter counts at once.
func TestWrittenByAnother(t *testing.T) {
	const before = `{"version":1,"defaults":{"security":"allowlist"},"agents":{"*":{"ask":"always","allowlist":[{"pattern":"/b/jq","effects":["read"]}]},
		"main":{"allowlist":[{"pattern":"/b/make","argv":["/b/make","test"]}]}}}`
	for name, c := range map[string]struct {
		after   string
		listed  string // of main
		ask     modes.Ask
		waiting bool
	}{
		"nothing changed": {before, "/b/jq /b/make", "always", false},
		"any program":     {`{"version":1,"agents":{"*":{"ask":"always","allowlist":["*"]}}}`, "", "always", true},
		"another agent's": {`{"version":1,"agents":{"*":{"ask":"always"},"main":{"allowlist":["/b/sh"]}}}`, "", "always", true},
		"wider effects": {
			strings.Replace(before, `,"effects":["read"]`, `,"effects":["read","write"]`, 1),
			"/b/make", "always", true,
		},
		"all effects":       {strings.Replace(before, `,"effects":["read"]`, ``, 1), "/b/make", "always", true},
		"any argv":          {strings.Replace(before, `,"argv":["/b/make","test"]`, ``, 1), "/b/jq", "always", true},
		"beyond the preset": {strings.Replace(before, `"argv":["/b/make","test"]`, `"argv":["/b/make","test"],"effects":["read","write","network"]`, 1), "/b/jq", "always", true},
		"on the machine":    {strings.Replace(before, `"effects":["read"]`, `"effects":["read"],"host":"gateway"`, 1), "/b/make", "always", true},
		"a mode for all":    {strings.Replace(before, `"ask":"always"`, `"ask":"off"`, 1), "/b/jq /b/make", "always", true},
		"an agent's own":    {strings.Replace(before, `"main":{`, `"main":{"ask":"off",`, 1), "/b/jq /b/make", "always", true},
		"of everybody":      {strings.Replace(strings.Replace(before, `"main"`, `"other"`, 1), `"*"`, `"main"`, 1), "/b/jq", "always", true},
		"unanswered":        {strings.Replace(before, `"security":"allowlist"`, `"askFallback":"allowlist"`, 1), "/b/jq /b/make", "always", true},
		"fewer effects":     {strings.Replace(before, `["read"]`, `[]`, 1), "/b/jq /b/make", "always", false},
		"an entry less":     {`{"version":1,"defaults":{"security":"allowlist"},"agents":{"*":{"ask":"always"},"main":{"allowlist":[{"pattern":"/b/make","argv":["/b/make","test"]}]}}}`, "/b/make", "always", false},
		"denied altogether": {strings.Replace(before, `"security":"allowlist"`, `"security":"deny"`, 1), "/b/jq /b/make", "always", false},
	} {
		t.Run(name, func(t *testing.T) {
			a, _ := openSigned(t)
			put(t, a, before)
			acceptAll(t, a)
			put(t, a, c.after)
			s := a.Current()
			if got := strings.Join(patterns(s), " "); got != c.listed {
				t.Errorf("may run %q, want %q", got, c.listed)
			}
			if got := s.Settings("main"); got.Ask != c.ask || got.AskFallback == modes.FallbackAllowlist {
				t.Errorf("%+v", got)
			}
			if waiting, err := a.Waiting(); err != nil || (waiting != nil) != c.waiting {
				t.Errorf("waits: %+v %v", waiting, err)
			}
			if c.waiting {
				acceptAll(t, a)
				if waiting, err := a.Waiting(); waiting != nil || err != nil {
					t.Errorf("waits after it was accepted: %+v %v", waiting, err)
				}
			}
		})
	}
}

// TestRemovedStaysRemoved: an entry that was taken away does not come back by itself, nor does one that was put back by another
// program.
func TestRemovedStaysRemoved(t *testing.T) {
	a, ledger := openSigned(t)
	const both, one = `{"version":1,"agents":{"main":{"allowlist":["/b/jq","/b/sh"]}}}`, `{"version":1,"agents":{"main":{"allowlist":["/b/jq"]}}}`
	put(t, a, both)
	acceptAll(t, a)
	ledger.Locked = errors.New("locked")
	put(t, a, one)
	if got := patterns(a.Current()); !slices.Equal(got, []string{"/b/jq"}) {
		t.Fatal(got)
	}
	put(t, a, both)
	if got := patterns(a.Current()); !slices.Equal(got, []string{"/b/jq"}) {
		t.Errorf("an old copy of the file brings back %q", got)
	}
	put(t, a, "not whole")
	put(t, a, one)
	if got := patterns(a.Current()); !slices.Equal(got, []string{"/b/jq"}) {
		t.Errorf("a file that was read half-written takes away what was accepted: %q", got)
	}
}

// TestPermitAcceptsNoMore: what a person allows counts, and with it nothing that another program has put into the file.
func TestPermitAcceptsNoMore(t *testing.T) {
	a, ledger := openSigned(t)
	put(t, a, `{"version":1,"agents":{"main":{"allowlist":["/b/sh","/b/jq"]}}}`)
	var recorded []string
	add := func(pattern string) func(*File) bool {
		return func(f *File) bool { return f.Allow("main", Entry{Pattern: pattern}, 1) }
	}
	record := func(changes []string) error { recorded = append(recorded, changes...); return nil }
	for _, pattern := range []string{"/b/git", "/b/jq"} { // the second is in the file, and counts for nothing yet
		if changed, err := a.Permit(t.Context(), add(pattern), record); err != nil || !changed {
			t.Fatal(changed, err)
		}
	}
	if got := patterns(a.Current()); !slices.Equal(got, []string{"/b/jq", "/b/git"}) {
		t.Errorf("may run %q", got)
	}
	if len(recorded) != 2 || !strings.Contains(recorded[0], "/b/git") || !strings.Contains(recorded[1], "/b/jq") {
		t.Errorf("%q", recorded)
	}
	ledger.Locked = errors.New("locked")
	before := a.Current().Hash
	if _, err := a.Permit(t.Context(), add("/b/awk"), record); !errors.Is(err, ledger.Locked) || a.Current().Hash != before || len(recorded) != 2 {
		t.Errorf("while nobody can sign: %v, %q", err, recorded)
	}
	if changed, err := a.Permit(t.Context(), func(f *File) bool { return f.Remove("main", "/b/git") }, nil); err != nil || !changed {
		t.Errorf("to take away needs no key: %v", err)
	}
	if got := patterns(a.Current()); !slices.Equal(got, []string{"/b/jq"}) {
		t.Errorf("may run %q", got)
	}
}

// TestAcceptWhatWasShown: what is accepted is what was shown, and nothing that was written since.
func TestAcceptWhatWasShown(t *testing.T) {
	a, _ := openSigned(t)
	put(t, a, `{"version":1,"agents":{"main":{"allowlist":["/b/jq"]}}}`)
	waiting, err := a.Waiting()
	if err != nil || waiting == nil || !slices.Equal(waiting.Changes, []string{`agent main may run "/b/jq"`}) || !strings.Contains(waiting.Diff, "/b/jq") {
		t.Fatalf("%+v %v", waiting, err)
	}
	put(t, a, `{"version":1,"agents":{"main":{"allowlist":["/b/sh"]}}}`)
	if err := a.Accept(t.Context(), waiting.Revision); !errors.Is(err, ErrNotWaiting) {
		t.Errorf("got %v", err)
	}
	if got := patterns(a.Current()); len(got) != 0 {
		t.Errorf("may run %q", got)
	}
	put(t, a, `{"version":1,"agents":{"main":{"allowlist":["/`+strings.Repeat("x", 70<<10)+`"]}}}`)
	if waiting, err = a.Waiting(); err != nil || waiting == nil {
		t.Fatal(err)
	}
	if err := a.Accept(t.Context(), waiting.Revision); err == nil {
		t.Error("a difference that nobody has seen whole was accepted")
	}
}

// TestManyEntries: whoever may write the file could otherwise stop the gateway with what takes hours to compare.
func TestManyEntries(t *testing.T) {
	a, _ := openSigned(t)
	put(t, a, `{"version":1,"agents":{"main":{"allowlist":["/x"]}}}`)
	acceptAll(t, a)
	var entries, agents []string
	for i := range 15000 {
		entries = append(entries, fmt.Sprintf(`"/p%d"`, i))
		agents = append(agents, fmt.Sprintf(`"a%d":{"ask":"always"}`, i))
	}
	put(t, a, `{"version":1,"agents":{"*":{"allowlist":[`+strings.Join(entries, ",")+`]},`+strings.Join(agents, ",")+`}}`)
	waiting, err := a.Waiting()
	if s := a.Current(); s.Corrupt != nil || err != nil || waiting == nil || len(waiting.Changes) < 15000 || len(s.Allowlist("main")) > 0 {
		t.Errorf("%v %v", s.Corrupt, err)
	}
}
