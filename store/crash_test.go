package store

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/audit"
)

// crashHome names the home for the child of TestKill.
const crashHome = "TOOLWARD_TEST_CRASH_HOME"

// TestKill kills a process under load at random moments. Whatever the process
// said it had recorded must be there afterwards, the chain must hold, and
// every outcome must have its decision. TOOLWARD_KILLS raises the number of
// rounds.
func TestKill(t *testing.T) {
	if home := os.Getenv(crashHome); home != "" {
		crashLoad(t, home)
		return
	}
	rounds := 20
	if text := os.Getenv("TOOLWARD_KILLS"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			t.Fatalf("TOOLWARD_KILLS=%q: want a number of rounds", text)
		}
		rounds = n
	}
	home := filepath.Join(t.TempDir(), "home")
	told := map[int64]bool{}
	for round := range rounds {
		killed(t, home, told)
		db, err := Open(t.Context(), home, Options{})
		if err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		log := startLog(t, db, audit.Options{OnUnavailable: func(err error) { t.Errorf("round %d: %v", round, err) }, OnBroken: func(err error) { t.Errorf("round %d: %v", round, err) }})
		report, err := log.Verify(t.Context())
		if err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		checkPairs(t, db, told)
		log.Close()
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		if t.Failed() {
			t.Fatalf("round %d: %d records", round, report.Records)
		}
	}
	t.Logf("%d kills, %d decisions told and found", rounds, len(told))
}

// killed runs a child until a random moment and collects the decisions that it
// said it had recorded.
func killed(t *testing.T, home string, told map[int64]bool) {
	t.Helper()
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestKill$", "-test.count=1")
	child.Env = append(os.Environ(), crashHome+"="+home)
	child.Stderr = os.Stderr
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() && lines.Text() != "ready" {
	}
	timer := time.AfterFunc(time.Duration(rand.IntN(60))*time.Millisecond, func() { _ = child.Process.Kill() })
	defer timer.Stop()
	for lines.Scan() {
		// A line cut short by the kill has no full stop.
		if text, whole := strings.CutSuffix(lines.Text(), "."); whole {
			seq, err := strconv.ParseInt(text, 10, 64)
			if err != nil {
				t.Fatalf("the child said %q", text)
			}
			told[seq] = true
		}
	}
	_ = child.Wait() // it was killed
}

// checkPairs compares decisions and outcomes of the whole log.
func checkPairs(t *testing.T, db *DB, told map[int64]bool) {
	t.Helper()
	decisions, outcomes := map[int64]string{}, map[int64]int{}
	err := NewAuditReader(db.Reader()).Scan(t.Context(), 0, func(r *audit.Record) error {
		switch r.Type {
		case audit.TypeDecision:
			decisions[r.Seq] = r.Verdict
		case audit.TypeOutcome:
			outcomes[r.Ref]++
			if decisions[r.Ref] == "" {
				t.Errorf("outcome %d comes before its decision %d", r.Seq, r.Ref)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for seq, verdict := range decisions {
		if n := outcomes[seq]; n > 1 || (verdict == "allow" && n != 1) {
			t.Errorf("decision %d (%s) has %d outcomes", seq, verdict, n)
		}
	}
	for seq := range told {
		if decisions[seq] == "" {
			t.Errorf("decision %d was told to the caller and is gone", seq)
		}
	}
}

// crashLoad is the child: it says each decision that it was told is recorded.
func crashLoad(t *testing.T, home string) {
	db, err := Open(t.Context(), home, Options{})
	if err != nil {
		t.Fatal(err)
	}
	log := startLog(t, db, audit.Options{CheckpointEvery: 100, SealDelay: 5 * time.Millisecond})
	fmt.Println("ready")
	var out sync.Mutex
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			d := typical(toolward.Allow)
			d.Facts.Mutates = i%2 == 0
			for n := 0; ; n++ {
				if n%5 == 4 {
					d.Verdict = toolward.Deny
				} else {
					d.Verdict = toolward.Allow
				}
				id, err := log.Decide(context.Background(), d)
				if err != nil {
					panic(err)
				}
				out.Lock()
				fmt.Printf("%d.\n", id)
				out.Unlock()
				if n%3 != 0 {
					if err := log.Conclude(context.Background(), id, &toolward.OutcomeRecord{Status: toolward.StatusOK}); err != nil {
						panic(err)
					}
				}
			}
		})
	}
	wg.Wait()
}
