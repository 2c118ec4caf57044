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
	Starts   int // programs that bash started
	Refusals map[Refusal]int
	Elapsed  time.Duration
	Findings []Finding
}

func (f *Figures) String() string {
	var b strings.Builder
	seconds := f.Elapsed.Seconds()
	fmt.Fprintf(&b, "%d commands (%.0f/s), %d of them understood and run by bash (%.1f %%, %.0f/s), %d program starts, %d differences",
		f.Tried, float64(f.Tried)/seconds, f.Run, 100*float64(f.Run)/float64(max(1, f.Tried)), float64(f.Run)/seconds, f.Starts, len(f.Findings))
	for _, r := range slices.SortedFunc(maps.Keys(f.Refusals), func(a, b Refusal) int { return f.Refusals[b] - f.Refusals[a] }) {
		fmt.Fprintf(&b, "\n\trefused %9d %s", f.Refusals[r], r)
	}
	return b.String()
}

// Add adds the figures of another worker.
func (f *Figures) Add(o *Figures) {
	if f.Refusals == nil {
		f.Refusals = map[Refusal]int{}
	}
	f.Tried, f.Run, f.Starts = f.Tried+o.Tried, f.Run+o.Run, f.Starts+o.Starts
	f.Elapsed = max(f.Elapsed, o.Elapsed)
	f.Findings = append(f.Findings, o.Findings...)
	for r, n := range o.Refusals {
		f.Refusals[r] += n
	}
}

// maxAnalysis is how long analysis and expansion of a text of up to slowText bytes may take.
const (
	maxAnalysis = 10 * time.Millisecond
	slowText    = 4 << 10
)

// Try compares analysis with bash for one text. claimed is false if analysis refused it.
func (b *Bash) Try(text string) (trace *Trace, refusal Refusal, difference *Difference, err error) {
	claim, refusal, slow := b.timed(text)
	switch {
	case slow != nil:
		return nil, refusal, slow, nil
	case refusal != "":
		return nil, refusal, nil, nil
	}
	if trace, err = b.Run(text); err != nil {
		return nil, "", nil, err
	}
	difference = b.Compare(claim, trace)
	err = b.Restore(trace)
	return trace, "", difference, err
}

// timed analyses; a text that takes too much time of the processor three times is a difference, as is a panic.
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
		trace, refusal, difference, err := b.Try(text)
		if err != nil {
			return f, errors.Join(fmt.Errorf("%q", text), err)
		}
		if refusal != "" {
			f.Refusals[refusal]++
		}
		if trace != nil {
			f.Run++
			f.Starts += len(trace.Starts)
			if s := shape(text); !shapes[s] && len(shapes) < 1<<20 {
				shapes[s] = true
				g.Keep(text)
			}
		}
		if difference != nil {
			finding := b.minimise(text, difference)
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

// minimise takes parts out of a text as long as the difference stays of its class.
func (b *Bash) minimise(text string, difference *Difference) Finding {
	finding := Finding{Text: text, Found: text, Difference: difference}
	for size := max(1, len(text)/2); size > 0; {
		shorter := false
		for at := 0; at+size <= len(finding.Text); {
			candidate := finding.Text[:at] + finding.Text[at+size:]
			_, _, d, err := b.Try(candidate)
			if err == nil && d != nil && d.Class == difference.Class {
				finding.Text, finding.Difference, shorter = candidate, d, true
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
