package gatetest_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/policy"
)

// How many calls are made twice, with a shadow policy and without.
const (
	shadowConfigs = 30
	shadowCalls   = 60
)

// TestShadowNeverChangesAnOutcome makes the same random calls in two equal worlds, one of which has a shadow policy: a
// random one, or one that fails in every way that a policy can. Every call must end alike.
func TestShadowNeverChangesAnOutcome(t *testing.T) {
	differences, ended := 0, map[string]int{}
	for n := range uint64(shadowConfigs) {
		var alone, shadowed []toolward.Trace
		synctest.Test(t, func(t *testing.T) { alone, _ = liveThrough(t, n, nil) })
		synctest.Test(t, func(t *testing.T) {
			var differed int
			shadowed, differed = liveThrough(t, n, anyShadow(t, n))
			differences += differed
		})
		if diff := cmp.Diff(alone, shadowed); diff != "" {
			t.Fatalf("world %d (-alone +with a shadow)\n%s", n, diff)
		}
		for _, trace := range alone {
			ended[trace.Verdict.String()]++
		}
	}
	t.Logf("%v; the shadow differed in %d", ended, differences)
	if differences < 50 || ended["allow"] < 50 || ended["ask"] < 50 || ended["deny"] < 50 {
		t.Error("the calls are not random enough to mean something")
	}
}

// liveThrough makes the calls of world n, and counts those about which the shadow policy said something else.
func liveThrough(t *testing.T, n uint64, shadow toolward.Policy) (traces []toolward.Trace, differed int) {
	w := newLawWorld(t, rand.New(rand.NewPCG(n, 3)), shadow)
	defer w.approver.Close()
	seen := map[string]int{}
	for range shadowCalls {
		trace := w.step(t, seen)
		if strings.HasPrefix(trace.Via, "grant ") {
			trace.Via = "grant" // ids are drawn anew in each world
		}
		traces = append(traces, trace)
	}
	for _, d := range w.auditor.Decisions() {
		if d.Shadow != nil {
			differed++
		}
	}
	return traces, differed
}

// anyShadow is a shadow policy of its own chance; one in three fails somewhere.
func anyShadow(t *testing.T, n uint64) toolward.Policy {
	w := &lawWorld{Rand: rand.New(rand.NewPCG(n, 4)), tools: lawTools()}
	snapshot, _, err := policy.Compile(w.anyConfig(), w.tools)
	if err != nil {
		t.Fatal(err)
	}
	if n%3 > 0 {
		return policy.NewLive(snapshot)
	}
	return failing{real: snapshot, at: []string{"", "Snapshot", "Revision", "Find", "Judge"}[n/3%5]}
}

// failing is a policy that panics in one of its methods, or has no snapshot, and that writes into what it is shown.
type failing struct {
	real *policy.Snapshot
	at   string
}

type failingSnapshot struct {
	toolward.Snapshot
	failing failing
}

func (f failing) Snapshot() toolward.Snapshot {
	if f.at == "" {
		return nil
	}
	f.reach("Snapshot")
	return failingSnapshot{f.real, f}
}

func (f failing) reach(method string) {
	if f.at == method {
		panic(fmt.Sprintf("the shadow fails in %s", method))
	}
}

func (f failingSnapshot) Revision() string { f.failing.reach("Revision"); return "shadow" }

func (f failingSnapshot) Find(c toolward.Caller, name string) (*toolward.Tool, toolward.Reason) {
	f.failing.reach("Find")
	return f.failing.real.Find(c, name)
}

func (f failingSnapshot) Judge(r *toolward.Request) toolward.Judgment {
	r.Call.Session, r.Params, r.Digest, r.Facts = "agent:evil:x", toolward.Params{}, "", toolward.Facts{}
	f.failing.reach("Judge")
	return toolward.Judgment{Verdict: toolward.Allow, Row: "shadow"}
}
