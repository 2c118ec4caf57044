package fleet

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolward/toolward/sandbox"
)

func running(names ...string) []Info {
	var infos []Info
	for _, name := range names {
		infos = append(infos, Info{Name: name, EngineID: "1", Engine: "native", Running: true, Limits: ShownLimits{CPUs: 1.5}})
	}
	return infos
}

func TestUsageIsReadWhenSomebodyLooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, reads := time.Now(), 0
		m := newMeter(func(context.Context, string) (*sandbox.Stats, error) {
			reads++
			return &sandbox.Stats{CPU: time.Since(began) * 3 / 4, Processors: 4, Memory: 100, Cache: 7, Pids: 3}, nil
		})
		first := m.usage(t.Context(), running("a"))["a"]
		if first.Busy == nil || *first.Busy < 0.7 || *first.Busy > 0.8 || first.Processors != 1.5 || first.Memory != 100 || first.Pids != 3 {
			t.Errorf("the first look: %+v", first)
		}
		// Many who look within a moment share one reading, also if somebody looks all the time.
		for range 100 {
			m.usage(t.Context(), running("a"))
			time.Sleep(50 * time.Millisecond)
		}
		if reads > 8 {
			t.Errorf("%d readings in five seconds", reads)
		}
		if last := m.usage(t.Context(), running("a"))["a"]; time.Since(last.At) > readingFresh || last.Busy == nil {
			t.Errorf("the last look: %+v", last)
		}
		before := reads
		if got := m.usage(t.Context(), []Info{{Name: "b", EngineID: "1"}}); len(got) != 0 || reads != before {
			t.Errorf("one that does not run was read: %v", got)
		}
		time.Sleep(2 * readingKept)
		m.usage(t.Context(), nil)
		if len(m.last) != 0 {
			t.Errorf("%d are remembered that nobody asks about", len(m.last))
		}
	})
}

// A counter that begins anew says nothing about the time before.
func TestUsageOfASandboxThatWasMadeAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cpu := 10 * time.Second
		m := newMeter(func(context.Context, string) (*sandbox.Stats, error) {
			cpu += readingGap / 2
			return &sandbox.Stats{CPU: cpu}, nil
		})
		m.usage(t.Context(), running("a"))
		time.Sleep(2 * readingFresh)
		cpu = 0
		for _, id := range []string{"1", "2"} {
			infos := running("a")
			infos[0].EngineID = id
			got := m.usage(t.Context(), infos)["a"]
			if got.Busy == nil || *got.Busy != 0.5 {
				t.Errorf("as %s: %+v", id, got)
			}
			time.Sleep(2 * readingFresh)
			cpu = 0
		}
	})
}

// A sandbox that does not answer holds nobody up, and one goroutine however many look; the others are read.
func TestUsageOfAStuckSandbox(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int32
		release := make(chan struct{})
		m := newMeter(func(_ context.Context, name string) (*sandbox.Stats, error) {
			switch name {
			case "stuck":
				asked.Add(1)
				<-release
			case "broken":
				return nil, errors.New("no such container")
			case "other":
				return nil, nil
			}
			return &sandbox.Stats{Memory: 1}, nil
		})
		for range 5 {
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			before := time.Now()
			got := m.usage(ctx, running("stuck", "well", "broken", "other"))
			if took := time.Since(before); took > 2*time.Second {
				t.Errorf("it took %v", took)
			}
			if got["well"].Memory != 1 || got["stuck"].Problem != "no answer" || got["broken"].Problem != "no such container" || got["other"].Problem == "" {
				t.Errorf("%+v", got)
			}
			cancel()
		}
		if asked.Load() != 1 {
			t.Errorf("it was asked %d times", asked.Load())
		}
		close(release)
		synctest.Wait()
		time.Sleep(2 * readingFresh)
		if got := m.usage(t.Context(), running("stuck")); got["stuck"].Memory != 1 {
			t.Errorf("once it answers: %+v", got)
		}
	})
}

// A stuck engine does not hold up another one.
func TestUsageOfAStuckEngine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMeter(func(ctx context.Context, name string) (*sandbox.Stats, error) {
			if name != "well" {
				<-ctx.Done()
				return nil, ctx.Err()
			}
			return &sandbox.Stats{Memory: 1}, nil
		})
		var infos []Info
		for i := range 3 * readingsAtOnce {
			infos = append(infos, Info{Name: fmt.Sprint(i), Engine: "docker", EngineID: "1", Running: true})
		}
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		got := m.usage(ctx, append(infos, running("well")...))
		if got["well"].Memory != 1 || got["well"].Problem != "" || got["0"].Problem != "no answer" {
			t.Errorf("%+v", got)
		}
		time.Sleep(2 * readingTime)
	})
}
