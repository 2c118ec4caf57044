package soak

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/approval"
	"github.com/toolward/toolward/store"
)

// How the tests are run.
const (
	homeOfChild = "TOOLWARD_TEST_SOAK_HOME" // names the home for a child of TestSoak
	drainChild  = "TOOLWARD_TEST_SOAK_DRAIN"
	beganChild  = "TOOLWARD_TEST_SOAK_BEGAN" // when the parent started the child, in Unix milliseconds
	length      = "TOOLWARD_SOAK"            // how long, such as 30m; "make soak" sets it
	pace        = "TOOLWARD_SOAK_RATE"       // approvals a second; default 200
)

const usualRate = 200

// plan is what a run is asked for.
type plan struct {
	total  time.Duration
	rate   int  // approvals a second
	strict bool // rate and memory are asserted; otherwise they are printed, for a machine that has other work
}

// planOf reads the plan: two minutes where every live part is tested, ten seconds elsewhere, and whatever "make soak"
// wants, of which a minute or more must keep the rate.
func planOf(t *testing.T) plan {
	p := plan{total: 10 * time.Second, rate: rateOf(t)}
	if os.Getenv("TOOLWARD_LIVE") == "all" {
		p.total = 2 * time.Minute
	}
	if text := os.Getenv(length); text != "" {
		d, err := time.ParseDuration(text)
		if err != nil || d < time.Second {
			t.Fatalf("%s=%q: want a time such as 30m", length, text)
		}
		p.total, p.strict = d, d >= time.Minute
	}
	return p
}

func rateOf(t *testing.T) int {
	text := os.Getenv(pace)
	if text == "" {
		return usualRate
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > 1000 {
		t.Fatalf("%s=%q: want a number of approvals a second, from 1 to 1000", pace, text)
	}
	return n
}

// TestSoak lets child processes work on one home, one after the other. All but the last are killed at a random moment.
// What they said they had done must be in the database; nothing may have been done twice; nothing may wait for ever.
func TestSoak(t *testing.T) {
	if home := os.Getenv(homeOfChild); home != "" {
		work(t, home, os.Getenv(drainChild) != "")
		return
	}
	if testing.Short() {
		t.Skip("-short")
	}
	p := planOf(t)
	total := p.total
	kills := max(2, int(total/(20*time.Second)))
	if total > 10*time.Minute {
		kills = int(total / time.Minute)
	}
	home := filepath.Join(t.TempDir(), "home")
	told := &account{answered: map[approval.Key]toolward.Decision{}, ran: map[string]int{}, used: map[string]int{}}
	// The last one runs longest, so that its memory has time to grow if it does.
	last := total / 3
	each := (total - last) / time.Duration(kills)
	for round := range kills {
		life := each/2 + time.Duration(rand.Int64N(int64(each)))
		told.child(t, home, life, false)
		told.check(t, home, false)
		if t.Failed() {
			t.Fatalf("after kill %d", round+1)
		}
	}
	told.child(t, home, last, true)
	told.check(t, home, true)
	t.Logf("%s, %d kills, %d restarts: %d calls, %d approvals, %d answered, %d ran, %d by %d grants, %d ended otherwise", total, kills, told.restarts,
		told.asked, told.posed, told.found, len(told.ran), sum(told.used), len(told.used), told.ended)
	told.checkRate(t, p)
	told.checkMemory(t, p)
	t.Logf("goroutines at the end of the last process: %d more than at its start", told.left)
}

// account is what the children have said.
type account struct {
	asked, ended, restarts, left int
	posed                        int           // approvals
	lived                        time.Duration // of all processes
	found                        int           // answers, compared with their rows
	answered                     map[approval.Key]toolward.Decision
	ran, used                    map[string]int // by approval; by grant
	unchecked                    []string       // of ran
	heaps, resident              []float64      // MiB of the last process, every two seconds
	done                         bool
}

// child runs one process until its time is over, and then kills it, or lets it end what it has begun.
func (a *account) child(t *testing.T, home string, life time.Duration, drain bool) {
	t.Helper()
	child := exec.Command(os.Args[0], "-test.run=^TestSoak$", "-test.timeout=0")
	child.Env = append(os.Environ(), homeOfChild+"="+home, fmt.Sprintf("%s=%d", beganChild, time.Now().UnixMilli()))
	if drain {
		child.Env = append(child.Env, drainChild+"="+life.String())
	}
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var problems strings.Builder
	child.Stderr = &problems
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	if !drain {
		defer time.AfterFunc(life, func() { _ = child.Process.Kill() }).Stop()
	}
	a.heaps, a.resident, a.done = nil, nil, false
	a.lived += life
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		a.hear(t, lines.Text())
	}
	err = child.Wait()
	if drain && (err != nil || !a.done) {
		t.Errorf("the last process did not come to its end: %v\n%s", err, problems.String())
	}
}

// hear notes one line of a child. A line that the kill has cut short has no full stop and says nothing.
func (a *account) hear(t *testing.T, line string) {
	line, whole := strings.CutSuffix(line, " .")
	if !whole {
		return
	}
	word, rest, _ := strings.Cut(line, " ")
	switch word {
	case "asked":
		a.asked++
	case "ended":
		a.ended++
	case "posed":
		n := 0
		_, _ = fmt.Sscan(rest, &n)
		a.posed += n
	case "restart":
		a.restarts++
	case "answered":
		var key approval.Key
		var said string
		var d toolward.Decision
		if _, err := fmt.Sscan(rest, &key.ID, &key.CreatedMs, &said); err != nil || d.UnmarshalText([]byte(said)) != nil {
			t.Errorf("not understood: %s", line)
		}
		if _, twice := a.answered[key]; twice {
			t.Errorf("approval %s was answered twice", key.ID)
		}
		a.answered[key] = d
	case "ran":
		if a.ran[rest]++; a.ran[rest] > 1 {
			t.Errorf("approval %s let two calls run", rest)
		}
		a.unchecked = append(a.unchecked, rest)
	case "used":
		if a.used[rest]++; a.used[rest] > usesOfGrant {
			t.Errorf("a grant for %d calls let %d run", usesOfGrant, a.used[rest])
		}
	case "heap":
		var heap, resident float64
		if _, err := fmt.Sscan(rest, &heap, &resident); err == nil {
			a.heaps, a.resident = append(a.heaps, heap), append(a.resident, resident)
		}
	case "left":
		_, _ = fmt.Sscan(rest, &a.left)
	case "done":
		a.done = true
	case "wrong":
		t.Error(rest)
	}
}

// check compares what was said with the rows.
func (a *account) check(t *testing.T, home string, atEnd bool) {
	t.Helper()
	db, err := store.Open(context.Background(), home, store.Options{})
	if err != nil {
		t.Fatalf("open the state after a kill: %v", err)
	}
	defer db.Close()
	s := store.NewApprovals(db)
	for key, d := range a.answered {
		r, err := s.ApprovalByKey(context.Background(), key)
		switch {
		case err != nil || r == nil:
			t.Errorf("answered approval %s is lost: %v", key.ID, err)
		case r.State == approval.StatePending || r.Decision != d:
			t.Errorf("approval %s was answered %s and is %s, %s", key.ID, d, r.State, r.Decision)
		}
	}
	for _, id := range a.unchecked {
		r, err := s.Approval(context.Background(), id)
		if err != nil || r == nil || r.State != approval.StateConsumed || !r.Decision.Allows() {
			t.Errorf("a call ran on approval %s, whose row says otherwise: %+v %v", id, r, err)
		}
	}
	// These were found; the next rounds bring their own.
	a.found += len(a.answered)
	clear(a.answered)
	a.unchecked = nil
	if !atEnd {
		return
	}
	waiting, err := s.PendingApprovals(context.Background())
	if err != nil || len(waiting) != 0 {
		t.Errorf("%d approvals are stuck, %v", len(waiting), err)
	}
	if a.left > 0 {
		t.Errorf("%d goroutines are left", a.left)
	}
}

// checkRate compares what was asked with what should have been. What is told every tenth of a second is lost by a kill
// for the last of them.
func (a *account) checkRate(t *testing.T, p plan) {
	rate := float64(a.posed) / a.lived.Seconds()
	t.Logf("%.1f approvals a second, of %d", rate, p.rate)
	if p.strict && rate < 0.98*float64(p.rate) {
		t.Errorf("%.1f approvals a second, and %d were wanted: this machine (%d processors) cannot keep that up with what else it does. "+
			"Nothing was lost for that, but the run shows less than it should: repeat it where nothing else runs, or with RATE=%d",
			rate, p.rate, runtime.NumCPU(), max(1, int(rate*0.9)))
	}
}

// checkMemory compares the thirds of the last process's life: what it has in use once garbage is collected, and what the
// system has given it, of which the database has a part.
func (a *account) checkMemory(t *testing.T, p plan) {
	n := len(a.heaps)
	if n < 6 {
		t.Logf("too short a run to tell whether memory grows: %.1f MiB", a.heaps)
		return
	}
	for _, of := range []struct {
		what         string
		samples      []float64
		times, above float64 // how much more the last third may be than the first
	}{{"heap in use", a.heaps, 1.15, 1}, {"resident memory", a.resident, 1.25, 8}} {
		first, middle, last := median(of.samples[:n/3]), median(of.samples[n/3:2*n/3]), median(of.samples[2*n/3:])
		t.Logf("%s in the thirds of the last process: %.1f, %.1f, %.1f MiB", of.what, first, middle, last)
		if !p.strict { // what waits behind other work is in memory, too
			of.times, of.above = 2, 32
		}
		if last > first*of.times+of.above {
			t.Errorf("%s grows: %.1f MiB in the first third, %.1f in the last: %.1f", of.what, first, last, of.samples)
		}
	}
}

func median[T cmp.Ordered](list []T) T {
	sorted := slices.Sorted(slices.Values(list))
	return sorted[len(sorted)/2]
}

func sum(counts map[string]int) (n int) {
	for _, c := range counts {
		n += c
	}
	return n
}
