//go:build linux

package shellfuzz

import (
	"errors"
	"os"
	"testing"
	"time"

	"github.com/toolward/toolward/internal/live"
)

func newZsh(t testing.TB) *Bash {
	t.Helper()
	zsh, err := NewZsh(sandboxDir(t))
	if errors.Is(err, ErrNoSandbox) && !live.All() {
		t.Skip(err) // no zsh, or nothing that confines it
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { zsh.Close() })
	return zsh
}

// TestZshDoesNoMore: what analysis says of a text that a client's own shell runs holds if that shell is zsh.
func TestZshDoesNoMore(t *testing.T) {
	zsh := newZsh(t)
	run, starts := 0, 0
	for _, text := range append(readSeeds(caseText), Seeds...) {
		a, err := zsh.Try(text)
		if err == nil && a.Difference != nil {
			a.Difference, err = zsh.Confirm(text, a.Difference)
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

// TestZshDoesNoMoreOfGenerated tries the commands of one seed, as many as there is time for.
func TestZshDoesNoMoreOfGenerated(t *testing.T) {
	zsh := newZsh(t)
	limit := Limit{Run: 1500, Until: time.Now().Add(30 * time.Second), Findings: 30}
	seed := uint64(testedSeed)
	if text := os.Getenv("TOOLWARD_FUZZ_TIME"); text != "" {
		r := longRun(t, text)
		limit.Run, limit.Until, seed = 0, r.limit.Until, r.seed
	}
	figures, err := zsh.Fuzz(NewGenerator(seed, corpus(t), zsh.analyst.Accepts), limit)
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

// TestWhatZshDoesMoreIsSeen gives the comparison claims that bash keeps and zsh does not.
func TestWhatZshDoesMoreIsSeen(t *testing.T) {
	zsh := newZsh(t)
	zsh.patience = 300 * time.Millisecond
	for _, test := range []struct{ claimed, run, class string }{
		{"a b", "a b; c", "start"},
		{"a b", "a c", "start"},
		{"a > new", "a >! other", "file"},
		{"printf %d LANG", "LANG='path[$(id)]' printf %d LANG", "start"},
		{"cat $PWD", "cat $PWD:h", "start"},
		{"cat ./sub/c.go", "cat ./**/c.go", ""},
		{"cat ./sub/e.go", "cat ./**/e.go", "start"},
		{"cd sub && a", "a", "start"},
		{"a", "a; : > new", "file"},
		{"cat =x", "cat =id", "start"},
	} {
		claim, refusal := zsh.analyst.Understand(test.claimed)
		if refusal != "" && test.claimed[:3] != "cat" {
			t.Fatalf("%q: %s", test.claimed, refusal)
		}
		if refusal != "" {
			claim = &Claim{}
		}
		trace, err := zsh.Run(test.run)
		if err != nil {
			t.Fatal(err)
		}
		difference := zsh.Exceeds(claim, trace)
		if (difference == nil) != (test.class == "") || difference != nil && difference.Class != test.class {
			t.Errorf("claimed %q, run %q: %v, want %s", test.claimed, test.run, difference, test.class)
		}
		if err := zsh.Restore(trace); err != nil {
			t.Error(err)
		}
	}
}
