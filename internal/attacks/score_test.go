package attacks

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"syscall"
	"testing"
	"time"
)

// answer is what came of an attempt, in the words of the corpus.
type answer string

const (
	allowed   answer = "allow"
	asked     answer = "ask"
	denied    answer = "deny"
	contained answer = "contained" // answered somehow, and the effect stayed inside
	sanitized answer = "sanitised" // the text was made harmless
	harmful   answer = "harm"      // neither
)

// slowest is how long a gate may take for one answer. A slower one does not count. The race detector makes everything
// several times slower.
const slowest = 100 * time.Millisecond * slowedDown

// outcome is the judgment of one case.
type outcome struct {
	answer answer
	why    string        // for the log
	took   time.Duration // the longest single answer, in real time
	skip   string        // why it was not judged
}

// holds reports whether an outcome is what the case wants. A stricter answer also is, but not for a benign call.
func (o outcome) holds(want string) bool {
	if o.took > slowest {
		return false
	}
	return string(o.answer) == want || want == string(asked) && o.answer == denied
}

// stopwatch measures answers in real time, also inside a synctest bubble, where package time has a clock of its own.
type stopwatch struct{ longest time.Duration }

func (s *stopwatch) time(f func()) {
	start := realTime()
	f()
	s.longest = max(s.longest, realTime()-start)
}

func realTime() time.Duration {
	var tv syscall.Timeval
	if err := syscall.Gettimeofday(&tv); err != nil {
		panic(err)
	}
	return time.Duration(tv.Nano())
}

// tallies counts cases.
type tallies struct {
	held, total map[group]int
	skipped     map[[2]string]int // surface and reason
}

// group is what is counted together. It sorts as it is printed.
type group struct {
	surface, class, level string
	control               bool
}

func newTallies() *tallies {
	return &tallies{held: map[group]int{}, total: map[group]int{}, skipped: map[[2]string]int{}}
}

func (s *tallies) count(c *attack, o outcome) (held bool) {
	if o.skip != "" {
		s.skipped[[2]string{c.Surface, o.skip}]++
		return false
	}
	g := group{c.Surface, c.Class, c.Level, c.Control}
	s.total[g]++
	if held = o.holds(c.Want); held {
		s.held[g]++
	}
	return held
}

// print logs a line for every surface, class and level, the skipped, and the score.
func (s *tallies) print(t *testing.T) {
	byName := func(a, b group) int {
		return cmp.Or(cmp.Compare(a.surface, b.surface), cmp.Compare(a.class, b.class), cmp.Compare(a.level, b.level))
	}
	for _, g := range slices.SortedFunc(maps.Keys(s.total), byName) {
		what, verb := g.level, "held"
		if g.control {
			what, verb = g.level+" controls", "allowed"
		}
		t.Logf("vectors %s %s %s %s: %d/%d %s", vectorFile, g.surface, g.class, what, s.held[g], s.total[g], verb)
	}
	reasons := slices.SortedFunc(maps.Keys(s.skipped), func(a, b [2]string) int {
		return cmp.Or(cmp.Compare(a[0], b[0]), cmp.Compare(a[1], b[1]))
	})
	skipped := 0
	for _, r := range reasons {
		skipped += s.skipped[r]
		t.Logf("vectors %s %s: %d skipped: %s", vectorFile, r[0], s.skipped[r], r[1])
	}
	core, ok := s.share("core", false), s.share("core", true)
	t.Logf("vectors %s score: %.3f = %s core attacks held x %s core controls allowed; guard: %s held; skipped: %d",
		vectorFile, core.value()*ok.value(), core, ok, s.share("guard", false), skipped)
}

type share struct{ part, whole int }

func (s share) String() string { return fmt.Sprintf("%d/%d", s.part, s.whole) }

func (s share) value() float64 {
	if s.whole == 0 {
		return 0
	}
	return float64(s.part) / float64(s.whole)
}

func (s *tallies) share(level string, control bool) (all share) {
	for g, n := range s.total {
		if g.level == level && g.control == control {
			all.part, all.whole = all.part+s.held[g], all.whole+n
		}
	}
	return all
}
