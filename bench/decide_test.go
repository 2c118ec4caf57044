package bench

import (
	"testing"
	"time"
)

// TestTheEnginesAgree: figures of engines that decide otherwise would mean nothing.
func TestTheEnginesAgree(t *testing.T) {
	for _, n := range []int{100, 1000} {
		calls := someCalls(n)
		for _, e := range engines(t, someRules(n), calls) {
			for i, c := range calls {
				if got := e.decide(i); got != c.want {
					t.Errorf("%d rules: %s decides %+v as %v", n, e.name, c, got)
				}
			}
		}
	}
}

// rounds is how often every call is decided before the next engine's turn: enough that the garbage and the caches of the
// one before do not count against it.
const rounds = 64

// BenchmarkDecide is the time of one decision in every engine, with 100 and with 1,000 rules. All of them take turns, so
// that the ratios are of one moment.
func BenchmarkDecide(b *testing.B) {
	sizes := []int{100, 1000}
	var sets [][]engine
	var calls [][]call
	for _, n := range sizes {
		calls = append(calls, someCalls(n))
		sets = append(sets, engines(b, someRules(n), calls[len(calls)-1]))
	}
	took := make([][]time.Duration, len(sizes))
	for i := range sizes {
		took[i] = make([]time.Duration, len(sets[i]))
	}
	for b.Loop() {
		for i, set := range sets {
			for k := range set {
				start := time.Now()
				for range rounds {
					for c := range calls[i] {
						set[k].decide(c)
					}
				}
				took[i][k] += time.Since(start)
			}
		}
	}
	b.ReportMetric(0, "ns/op")
	n := float64(b.N * rounds * len(calls[0]))
	for k, e := range sets[0] {
		few, many := took[0][k], took[1][k]
		b.ReportMetric(float64(few.Nanoseconds())/n, "ns-"+e.name+"-100")
		b.ReportMetric(float64(many.Nanoseconds())/n, "ns-"+e.name+"-1000")
		if k > 0 {
			b.ReportMetric(float64(few)/float64(took[0][0]), "x-"+e.name+"-100")
			b.ReportMetric(float64(many)/float64(took[1][0]), "x-"+e.name+"-1000")
		} else {
			b.ReportMetric(float64(many)/float64(few), "x-1000-of-100")
		}
		allocs := testing.AllocsPerRun(20, func() {
			for c := range calls[0] {
				e.decide(c)
			}
		})
		b.ReportMetric(allocs/float64(len(calls[0])), "allocs-"+e.name)
	}
}
