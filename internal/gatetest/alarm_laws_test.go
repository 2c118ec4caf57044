package gatetest_test

import (
	"math/rand/v2"
	"testing"
	"testing/synctest"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/audit/anomaly"
)

// TestExplainEqualsAdmitUnderAlarms is TestExplainEqualsAdmitForRandomCalls with every detector on, so that levels rise,
// grants stop counting, loops are cut and runs end while the calls are made: what an explanation says beforehand is
// what the call then meets, though the explanation counts nothing.
func TestExplainEqualsAdmitUnderAlarms(t *testing.T) {
	seen := map[string]int{}
	fired := map[anomaly.Detector]int{}
	for n := range uint64(lawConfigs / 2) {
		synctest.Test(t, func(t *testing.T) {
			w := newLawWorld(t, rand.New(rand.NewPCG(n, 11)), nil)
			defer w.approver.Close()
			w.watch(t, fired)
			for range lawCalls {
				w.step(t, seen)
				if t.Failed() {
					t.Fatalf("with configuration %d: %s", n, jsonOf(w.config))
				}
			}
		})
	}
	t.Logf("%v, fired %v", seen, fired)
	for _, way := range []string{"allow class", "ask", "deny blocked", "deny anomaly"} {
		if seen[way] < 5 {
			t.Errorf("only %d calls ended with %q", seen[way], way)
		}
	}
	if len(fired) < 5 {
		t.Errorf("only %d detectors fired", len(fired))
	}
}

// watch puts detectors before the gateway, with actions by chance.
func (w *lawWorld) watch(t *testing.T, fired map[anomaly.Detector]int) {
	yes, few, enough, many := true, 3.0, 5.0, 8.0
	c := anomaly.Config{
		Loops:     anomaly.LoopConfig{Enabled: &yes, Warning: &few, Critical: &enough, GlobalCircuitBreak: &many},
		Detectors: map[anomaly.Detector]anomaly.Override{},
	}
	for d := anomaly.Burst; d <= anomaly.NewTarget; d++ {
		if w.IntN(3) > 0 {
			continue
		}
		threshold, action := 1+w.IntN(10), pick(w, anomaly.Block, anomaly.Lockdown, anomaly.Elevate, anomaly.Ask, anomaly.Alert)
		c.Detectors[d] = anomaly.Override{Threshold: &threshold, Action: &action}
	}
	monitor, err := anomaly.New(c)
	if err != nil {
		t.Fatal(err)
	}
	watcher, err := anomaly.NewWatcher(monitor, w.sessions, func(n anomaly.Notice) { fired[n.Detector]++ }, nil)
	if err != nil {
		t.Fatal(err)
	}
	w.gateway = w.with(t, func(c *toolward.Config) { c.Watcher = watcher })
}
