package light_test

import (
	"slices"
	"testing"
	"time"

	"github.com/toolward/toolward/job"
)

// A command that does nothing, as it is and confined, by turns: both meet the same machine. What a confinement adds is in
// added-ms.
func BenchmarkConfined(b *testing.B) {
	m := newMachine(b)
	once := func(confined bool) float64 {
		plan, scene := m.plan(b, "true")
		start := time.Now()
		if confined {
			if err := m.light.Confine(&plan, scene); err != nil {
				b.Fatal(err)
			}
		}
		running, err := job.Start(plan, job.Streams{})
		if err != nil {
			b.Fatal(err)
		}
		<-running.Done()
		took := time.Since(start)
		if r := running.Result(); r.Err != nil || r.Code != 0 {
			b.Fatalf("%+v", r)
		}
		running.Release()
		return float64(took.Microseconds()) / 1000
	}
	once(true) // the next is made meanwhile, as it is between commands of an agent
	var plain, confined []float64
	for b.Loop() {
		plain = append(plain, once(false))
		time.Sleep(5 * time.Millisecond) // an agent thinks between its commands
		confined = append(confined, once(true))
	}
	slices.Sort(plain)
	slices.Sort(confined)
	p, c := plain[len(plain)/2], confined[len(confined)/2]
	b.ReportMetric(p, "plain-ms")
	b.ReportMetric(c, "confined-ms")
	b.ReportMetric(c-p, "added-ms")
}
