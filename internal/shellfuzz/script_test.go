//go:build linux

package shellfuzz

import (
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// TestScriptsComeToTheSame: what runs in the place of a text of several commands does what bash does with the text.
func TestScriptsComeToTheSame(t *testing.T) {
	bash := newBash(t)
	seed, until, most := uint64(testedSeed), time.Now().Add(40*time.Second), 1500
	if text := os.Getenv("TOOLWARD_FUZZ_TIME"); text != "" {
		r := longRun(t, text)
		seed, until, most = r.seed, r.limit.Until, 1<<30
	}
	g := NewGenerator(seed, corpus(t), bash.analyst.Accepts)
	tried, compared, found := 0, 0, 0
	for compared < most && found < 20 && time.Now().Before(until) {
		text := g.Script()
		if tried++; strings.Contains(text, "\x00") {
			continue
		}
		ran, difference, err := bash.Comes(text)
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		if ran {
			compared++
		}
		if difference == nil {
			continue
		}
		if _, difference, err = bash.Comes(text); err == nil && difference != nil { // not an accident of this machine
			found++
			t.Errorf("SEED=%d %q comes to %s", seed, text, difference.Detail)
		}
	}
	t.Logf("seed %d: %d texts, %d understood and compared", seed, tried, compared)
	if compared < tried/6 {
		t.Errorf("only %d of %d are understood", compared, tried)
	}
}

// TestDocumentsInQuotes: the text that is put in the place of "$(cat <<'E' …)" is what bash puts there.
func TestDocumentsInQuotes(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip(err)
	}
	a := newAnalystForTest(t)
	for _, body := range []string{"x\n", "a 'b' \"c\" (d) `e` $f \\g\n\n\n", "  lead\n\ttab\n", ")\n(\n", "it's\n", "$(id)\n", "é 日\n", "EO\n F\n"} {
		text := "git commit -m \"$(cat <<'EOF'\n" + body + "EOF\n)\""
		got := a.assess(text)
		if !got.OK || len(got.Segments) != 1 || len(got.Segments[0].Argv) != 4 {
			t.Errorf("%q is not understood: %s", text, got.Detail)
			continue
		}
		out, err := exec.Command(bash, "-c", "git() { printf '%s' \"$3\"; }; "+text).Output()
		if err != nil || string(out) != got.Segments[0].Argv[3] {
			t.Errorf("%q: %q, bash says %q (%v)", text, got.Segments[0].Argv[3], out, err)
		}
	}
}

func newAnalystForTest(t *testing.T) *analyst {
	t.Helper()
	a, err := newAnalyst(t.TempDir(), false)
	if err != nil {
		t.Fatal(err)
	}
	return a
}
