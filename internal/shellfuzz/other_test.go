//go:build linux

package shellfuzz

import (
	"errors"
	"os"
	"testing"
	"time"

	"github.com/toolward/toolward/internal/live"
)

func newOther(t testing.TB, shell string) *Bash {
	t.Helper()
	other, err := NewOther(shell, sandboxDir(t))
	if errors.Is(err, ErrNoSandbox) && !live.All() {
		t.Skip(err) // it is not here, or nothing that confines it
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { other.Close() })
	return other
}

// TestOthersDoNoMore: what analysis says of a text that a client's own shell runs holds if that shell is none but bash.
func TestOthersDoNoMore(t *testing.T) {
	eachOther(t, doesNoMore)
}

// eachOther tries each of the other shells: with texts as they are written, and with those that stand for them.
func eachOther(t *testing.T, try func(*testing.T, *Bash)) {
	for _, shell := range Others {
		t.Run(shell, func(t *testing.T) { try(t, newOther(t, shell)) })
		t.Run(shell+" enforced", func(t *testing.T) {
			other := newOther(t, shell)
			other.Enforced, other.analyst.enforced = true, true
			try(t, other)
		})
	}
}

func doesNoMore(t *testing.T, other *Bash) {
	run, starts := 0, 0
	for _, text := range append(readSeeds(caseText), Seeds...) {
		a, err := other.Try(text)
		if err == nil && a.Difference != nil {
			a.Difference, err = other.Confirm(text, a.Difference)
		}
		if err != nil {
			t.Fatal(err)
		}
		if a.Difference != nil {
			t.Errorf("%q: %v", text, a.Difference)
		}
		if a.Trace != nil {
			run++
			starts += len(a.Trace.Starts)
		}
	}
	if run < len(Seeds)/3 || starts < run/2 {
		t.Errorf("only %d of %d seeds are understood, %d programs started", run, len(Seeds), starts)
	}
}

// TestOthersDoNoMoreOfGenerated tries the commands of one seed, as many as there is time for.
func TestOthersDoNoMoreOfGenerated(t *testing.T) {
	eachOther(t, doesNoMoreOfGenerated)
}

func doesNoMoreOfGenerated(t *testing.T, other *Bash) {
	limit := Limit{Run: 1500, Until: time.Now().Add(10 * time.Second), Findings: 30}
	seed := uint64(testedSeed)
	if text := os.Getenv("TOOLWARD_FUZZ_TIME"); text != "" {
		r := longRun(t, text)
		limit.Run, limit.Until, seed = 0, r.limit.Until, r.seed
	}
	figures, err := other.Fuzz(NewGenerator(seed, corpus(t), other.analyst.Accepts), limit)
	if err != nil {
		t.Error(err)
	}
	t.Logf("seed %d: %v", seed, figures)
	for _, finding := range figures.Findings {
		t.Errorf("SEED=%d: %v", seed, finding)
	}
	if figures.Run == 0 || figures.Starts == 0 {
		t.Error("nothing was compared")
	}
}

// moreIsSeen gives the comparison claims and a text that does something else, as class says.
type moreIsSeen struct{ claimed, run, class string }

// TestWhatOthersDoMoreIsSeen gives the comparison what no shell may do beyond a claim.
func TestWhatOthersDoMoreIsSeen(t *testing.T) {
	for _, shell := range Others {
		t.Run(shell, func(t *testing.T) {
			seesMore(t, shell, []moreIsSeen{
				{"a b", "a b", ""},
				{"a b", "a b; c", "start"},
				{"a b", "a c", "start"},
				{"a b", "eval 'a c'", "start"},
				{"cd sub && a", "a", "start"},
				{"a", "a; : > new", "file"},
				{"a < ./c.go", "a < ./go.mod", "file"},
			})
		})
	}
}

// TestWhatZshDoesMoreIsSeen gives the comparison claims that bash keeps and zsh does not.
func TestWhatZshDoesMoreIsSeen(t *testing.T) {
	seesMore(t, "zsh", []moreIsSeen{
		{"a > new", "a >! other", "file"},
		{"printf %d LANG", "LANG='path[$(id)]' printf %d LANG", "start"},
		{"cat $PWD", "cat $PWD:h", "start"},
		{"cat ./sub/c.go", "cat ./**/c.go", ""},
		{"cat ./sub/e.go", "cat ./**/e.go", "start"},
		{"cat =x", "cat =id", "start"},
	})
}

func seesMore(t *testing.T, shell string, tests []moreIsSeen) {
	other := newOther(t, shell)
	other.patience = 2 * time.Second
	for _, test := range tests {
		claim, refusal := other.analyst.Understand(test.claimed)
		if refusal != "" && test.claimed[:3] != "cat" {
			t.Fatalf("%q: %s", test.claimed, refusal)
		}
		if refusal != "" {
			claim = &Claim{}
		}
		trace, err := other.Run(test.run)
		if err != nil {
			t.Fatal(err)
		}
		difference := other.Exceeds(claim, trace)
		if (difference == nil) != (test.class == "") || difference != nil && difference.Class != test.class {
			t.Errorf("claimed %q, run %q: %v, want %s", test.claimed, test.run, difference, test.class)
		}
		if err := other.Restore(trace); err != nil {
			t.Error(err)
		}
	}
}
