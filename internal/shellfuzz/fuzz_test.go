//go:build linux

package shellfuzz

import (
	_ "embed"
	"encoding/json"
	"errors"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/toolward/toolward/internal/live"
)

//go:embed testdata/cases.txt
var caseText string

func newBash(t testing.TB) *Bash {
	t.Helper()
	bash, err := NewBash(sandboxDir(t))
	if errors.Is(err, ErrNoSandbox) && os.Getenv("TOOLWARD_LIVE") != "all" {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { bash.Close() })
	return bash
}

// sandboxDir is in memory if it can be: commands write a lot of small files.
func sandboxDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "shellfuzz")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// corpus is the commands of every day, those of attacks, and those that a difference was found with.
func corpus(t *testing.T) []string {
	t.Helper()
	everyday, err := os.ReadFile("../../command/testdata/everyday.txt")
	if err != nil {
		t.Fatal(err)
	}
	commands := readSeeds(caseText)
	for _, line := range readSeeds(string(everyday)) {
		if _, command, found := strings.Cut(line, " "); found {
			commands = append(commands, command)
		}
	}
	text, err := os.ReadFile("../attacks/testdata/vectors/attacks.json")
	if err != nil {
		t.Fatal(err)
	}
	var attacks struct {
		Cases []struct {
			Surface string
			Attempt struct{ Command any } // text, with the surface "shell"
		}
	}
	if err := json.Unmarshal(text, &attacks); err != nil {
		t.Fatal(err)
	}
	for _, c := range attacks.Cases {
		if command, ok := c.Attempt.Command.(string); ok && c.Surface == "shell" {
			commands = append(commands, command)
		}
	}
	if len(commands) < 600 {
		t.Fatalf("only %d commands of every day and of attacks", len(commands))
	}
	return commands
}

// TestBashAgrees runs the seeds and every command that a difference was ever found with.
func TestBashAgrees(t *testing.T) {
	bash := newBash(t)
	run := 0
	for _, text := range append(readSeeds(caseText), Seeds...) {
		a, err := bash.Try(text)
		if err == nil && a.Difference != nil {
			a.Difference, err = bash.Confirm(text, a.Difference)
		}
		if err != nil {
			t.Fatal(err)
		}
		if a.Difference != nil {
			t.Errorf("%q: %v", text, a.Difference)
		}
		if a.Trace != nil {
			run++
		}
	}
	if run < len(Seeds)*3/4 {
		t.Errorf("only %d of %d seeds are understood", run, len(Seeds))
	}
}

// run is how long and how much is generated, and from which seed.
type run struct {
	seed    uint64
	limit   Limit
	workers int
	every   int // command until our executor runs one, too
}

// TestBashAgreesAboutGenerated tries the commands of one seed, the same each time; or as many as "make fuzz-shell" says.
func TestBashAgreesAboutGenerated(t *testing.T) {
	r := run{seed: testedSeed, limit: Limit{Run: testedCommands, Until: time.Now().Add(time.Minute)}, workers: 1, every: 2}
	if text := os.Getenv("TOOLWARD_FUZZ_TIME"); text != "" {
		r = longRun(t, text)
	}
	r.compare(t)
}

// TestBashAgreesForAMinute tries the same commands each time, as many as a minute has room for: a change is judged by what
// it does, not by luck. "make fuzz-shell" tries new ones.
func TestBashAgreesForAMinute(t *testing.T) {
	if !live.All() || os.Getenv("TOOLWARD_FUZZ_TIME") != "" {
		t.Log("new commands are tried with TOOLWARD_LIVE=all")
		return
	}
	run{seed: minuteSeed, limit: Limit{Until: time.Now().Add(time.Minute), Run: minuteCommands}, workers: 2, every: 4}.compare(t)
}

// testedSeed and testedCommands are what an ordinary test tries.
const (
	minuteSeed     = 20261122
	minuteCommands = 12_000
	testedSeed     = 1
	testedCommands = 4000
)

func longRun(t *testing.T, length string) run {
	t.Helper()
	d, err := time.ParseDuration(length)
	if err != nil {
		t.Fatal(err)
	}
	r := run{limit: Limit{Until: time.Now().Add(d)}, workers: runtime.NumCPU(), every: 4}
	r.limit.Run, _ = strconv.Atoi(os.Getenv("TOOLWARD_FUZZ_COUNT"))
	if r.seed, err = strconv.ParseUint(os.Getenv("TOOLWARD_FUZZ_SEED"), 10, 64); err != nil {
		r.seed = uint64(time.Now().UnixNano())
	}
	return r
}

// compare tries what generators make, each in a sandbox of its own.
func (r run) compare(t *testing.T) {
	commands := corpus(t)
	r.limit.Findings = 50
	r.limit.Run /= r.workers
	var all Figures
	var mu sync.Mutex
	var group sync.WaitGroup
	for worker := range r.workers {
		bash := newBash(t)
		bash.executeEvery = r.every
		group.Go(func() {
			figures, err := bash.Fuzz(NewGenerator(r.seed+uint64(worker), commands, bash.analyst.Accepts), r.limit)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				t.Error(err)
			}
			all.Add(figures)
		})
	}
	group.Wait()
	t.Logf("seed %d: %v", r.seed, &all)
	for _, finding := range all.Findings {
		t.Errorf("SEED=%d: %v", r.seed, finding)
	}
	if all.Run == 0 || all.Starts == 0 || all.Executed == 0 {
		t.Error("nothing was compared")
	}
}

// TestDifferencesAreSeen gives the comparison claims of other texts than bash ran.
func TestDifferencesAreSeen(t *testing.T) {
	bash := newBash(t)
	bash.patience = 300 * time.Millisecond
	for _, test := range []struct{ claimed, run, class string }{
		{"a b", "a b; c", "start"},
		{"a b", "a c", "argv"},
		{"a", "a; [ -v 'x[$(id)]' ]", "start"},
		{"a && b", "a || b", "missing"},
		{"false && b", "false; b", "start"},
		{"a | b", "b | a", "argv"},
		{"a; b", "a | b", "stream"},
		{"a > new", "a > other", "file"},
		{"a > new", "a >> new", "file"},
		{"a > new", "a 2> new", "stream"},
		{"a 2>&1 > new", "a > new 2>&1", "stream"},
		{"a", "a; : > new", "file"},
		{"a", "a; : < x", "file"},
		{"cat <<E\na\nE", "cat <<E\nb\nE", "body"},
		{"LANG=C a", "LANG=D a", "environment"},
		{"a", "X=2 a", "environment"},
		{"cd sub && a", "a", "directory"},
		{"cd sub && a", "cd link/deep && a", "directory"},
		{"nice a", "nice b", "argv"},
		{"bash -c 'a && b'", "bash -c 'a && b'; c", "start"},
		{"a", "a; while :; do :; done", "endless"},
		{"ls *.go", "ls '*.go'", "argv"},
	} {
		claim, refusal := bash.analyst.Understand(test.claimed)
		if refusal != "" {
			t.Fatalf("%q: %s", test.claimed, refusal)
		}
		trace, err := bash.Run(test.run)
		if err != nil {
			t.Fatal(err)
		}
		if difference := bash.Compare(claim, trace); difference == nil || difference.Class != test.class {
			t.Errorf("claimed %q, run %q: %v, want %s", test.claimed, test.run, difference, test.class)
		}
		if err := bash.Restore(trace); err != nil {
			t.Error(err)
		}
	}
}
