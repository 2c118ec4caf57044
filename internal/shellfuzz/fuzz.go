//go:build linux

package shellfuzz

import (
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Finding is a text about which analysis and bash do not agree.
type Finding struct {
	Text       string // as short as it could be made
	Found      string // as it was generated
	Difference *Difference
}

func (f Finding) String() string {
	return fmt.Sprintf("%q\n\t%v\n\tfound as %q", f.Text, f.Difference, f.Found)
}

// Figures count what was tried.
type Figures struct {
	Tried    int // commands that were generated
	Run      int // those that analysis understood, and that bash ran
	Executed int // those that our executor ran, too
	Starts   int // programs that bash started
	Refusals map[Refusal]int
	Elapsed  time.Duration
	Findings []Finding

	Unconfirmed []Finding // differences that were not seen again
}

func (f *Figures) String() string {
	var b strings.Builder
	seconds := f.Elapsed.Seconds()
	fmt.Fprintf(&b, "%d commands (%.0f/s), %d of them understood and run by bash (%.1f %%, %.0f/s), %d of them by our executor, %d program starts, %d differences, %d not seen again",
		f.Tried, float64(f.Tried)/seconds, f.Run, 100*float64(f.Run)/float64(max(1, f.Tried)), float64(f.Run)/seconds, f.Executed, f.Starts, len(f.Findings), len(f.Unconfirmed))
	for _, r := range slices.SortedFunc(maps.Keys(f.Refusals), func(a, b Refusal) int { return f.Refusals[b] - f.Refusals[a] }) {
		fmt.Fprintf(&b, "\n\trefused %9d %s", f.Refusals[r], r)
	}
	for _, finding := range f.Unconfirmed {
		fmt.Fprintf(&b, "\n\tnot seen again: %v", finding)
	}
	return b.String()
}

// Add adds the figures of another worker.
func (f *Figures) Add(o *Figures) {
	if f.Refusals == nil {
		f.Refusals = map[Refusal]int{}
	}
	f.Tried, f.Run, f.Executed, f.Starts = f.Tried+o.Tried, f.Run+o.Run, f.Executed+o.Executed, f.Starts+o.Starts
	f.Elapsed = max(f.Elapsed, o.Elapsed)
	f.Findings = append(f.Findings, o.Findings...)
	f.Unconfirmed = append(f.Unconfirmed, o.Unconfirmed...)
	for r, n := range o.Refusals {
		f.Refusals[r] += n
	}
}

// maxAnalysis is how long analysis and expansion of a text of up to slowText bytes may take.
const (
	maxAnalysis = 10 * time.Millisecond
	slowText    = 4 << 10
)

// Attempt is what became of one text.
type Attempt struct {
	Trace      *Trace  // nil if analysis refused the text
	Refusal    Refusal // why
	Executed   bool    // our executor ran it, too
	Difference *Difference
}

// Try compares for one text what analysis says, and what our executor does, with what bash does.
func (b *Bash) Try(text string) (Attempt, error) {
	claim, refusal, slow := b.timed(text)
	if slow != nil || refusal != "" {
		return Attempt{Refusal: refusal, Difference: slow}, nil
	}
	if b.Enforced {
		text = b.analyst.assess(text).Enforced
		words := *b.analyst
		words.foreign = false // every shell must read it as bash does
		if claim, refusal = words.Understand(text); refusal != "" || text == "" {
			return Attempt{Refusal: "not-enforced"}, nil
		}
	}
	trace, err := b.Run(text)
	if err != nil {
		return Attempt{}, err
	}
	if b.as != "" {
		return Attempt{Trace: trace, Difference: b.Exceeds(claim, trace)}, b.Restore(trace)
	}
	a := Attempt{Trace: trace, Difference: b.Compare(claim, trace)}
	if a.Difference != nil {
		return a, b.Restore(trace)
	}
	if b.attempts++; b.attempts%b.executeEvery != 0 {
		return a, b.Restore(trace)
	}
	a.Executed, a.Difference, err = b.executes(text, claim, trace)
	return a, err
}

// Confirm tries a text with a difference again: what is not seen a second time was an accident of this machine, as when
// a process was not given any time for seconds.
func (b *Bash) Confirm(text string, difference *Difference) (*Difference, error) {
	for range confirmations {
		a, err := b.Try(text)
		if err != nil {
			return nil, err
		}
		if a.Difference != nil && a.Difference.Class == difference.Class {
			return a.Difference, nil
		}
	}
	return nil, nil
}

const confirmations = 10

// timed analyzes; a text that takes too much time of the processor three times is a difference, as is a panic.
func (b *Bash) timed(text string) (claim *Claim, refusal Refusal, difference *Difference) {
	defer func() {
		if p := recover(); p != nil {
			difference = &Difference{"panic", fmt.Sprint(p)}
		}
	}()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for range 3 {
		start := threadTime()
		claim, refusal = b.analyst.Understand(text)
		if threadTime()-start < maxAnalysis || len(text) > slowText {
			return claim, refusal, nil
		}
	}
	return nil, "", &Difference{"slow", fmt.Sprintf("analysis of %d bytes took more than %v", len(text), maxAnalysis)}
}

// threadTime is the time of the processor that this thread has used: other processes do not count.
func threadTime() time.Duration {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t) != nil {
		return 0
	}
	return time.Duration(t.Nano())
}

// Limit says when to stop: at whichever comes first; zero is no limit.
type Limit struct {
	Until    time.Time
	Run      int // commands that bash ran
	Findings int
}

func (l Limit) reached(f *Figures) bool {
	return !l.Until.IsZero() && time.Now().After(l.Until) || l.Run > 0 && f.Run >= l.Run || l.Findings > 0 && len(f.Findings) >= l.Findings
}

// Fuzz tries what the generator makes. Of differences whose shortest texts look alike one is kept.
func (b *Bash) Fuzz(g *Generator, limit Limit) (*Figures, error) {
	f := &Figures{Refusals: map[Refusal]int{}}
	start := time.Now()
	shapes, seen := map[string]bool{}, map[string]bool{}
	for !limit.reached(f) {
		text := g.Next()
		f.Tried++
		if len(text) > maxCommand || strings.Contains(text, "\x00") {
			continue
		}
		a, err := b.Try(text)
		if err != nil {
			return f, errors.Join(fmt.Errorf("%q", text), err)
		}
		if a.Refusal != "" {
			f.Refusals[a.Refusal]++
		}
		if a.Executed {
			f.Executed++
		}
		if a.Trace != nil {
			f.Run++
			f.Starts += len(a.Trace.Starts)
			if s := shape(text); !shapes[s] && len(shapes) < 1<<20 {
				shapes[s] = true
				g.Keep(text)
			}
		}
		if a.Difference != nil {
			difference, err := b.Confirm(text, a.Difference)
			if err != nil {
				return f, errors.Join(fmt.Errorf("%q", text), err)
			}
			if difference == nil {
				f.Unconfirmed = append(f.Unconfirmed, Finding{text, text, a.Difference})
				continue
			}
			finding := b.minimize(text, difference)
			if s := difference.Class + shape(finding.Text); !seen[s] {
				seen[s] = true
				f.Findings = append(f.Findings, finding)
			}
		}
	}
	f.Elapsed = time.Since(start)
	return f, nil
}

// shape is a text without its letters: texts of a new shape are worth keeping.
func shape(text string) string {
	var b strings.Builder
	letters := false
	for _, r := range text {
		plain := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
		if !plain || !letters {
			if plain {
				r = 'a'
			}
			b.WriteRune(r)
		}
		letters = plain
	}
	return b.String()
}

// minimize takes parts out of a text as long as the difference stays of its class.
func (b *Bash) minimize(text string, difference *Difference) Finding {
	finding := Finding{Text: text, Found: text, Difference: difference}
	for size := max(1, len(text)/2); size > 0; {
		shorter := false
		for at := 0; at+size <= len(finding.Text); {
			candidate := finding.Text[:at] + finding.Text[at+size:]
			a, err := b.Try(candidate)
			if err == nil && a.Difference != nil && a.Difference.Class == difference.Class {
				finding.Text, finding.Difference, shorter = candidate, a.Difference, true
			} else {
				at++
			}
		}
		if !shorter {
			size /= 2
		}
		size = min(size, max(1, len(finding.Text)))
		if len(finding.Text) == 0 {
			break
		}
	}
	return finding
}
