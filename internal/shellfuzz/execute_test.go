//go:build linux

package shellfuzz

import (
	"fmt"
	"math"
	"os"
	"testing"
	"time"
)

func TestMain(m *testing.M) {
	if root := os.Getenv(ExecutorRole); root != "" {
		if err := Serve(root); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// TestExecutorAgrees compares what our executor does with what bash does, for seeds and generated commands.
func TestExecutorAgrees(t *testing.T) {
	bash := newBash(t)
	compared, found := 0, 0
	try := func(text string) {
		did, difference, err := bash.TryExecutor(text)
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		if difference != nil {
			found++
			t.Errorf("%q: %v", text, difference)
		}
		if did {
			compared++
		}
	}
	for _, text := range append(readSeeds(caseText), Seeds...) {
		try(text)
	}
	seed, most := uint64(testedSeed), testedExecuted
	if os.Getenv("TOOLWARD_FUZZ_TIME") != "" {
		seed, most = uint64(time.Now().UnixNano()), math.MaxInt
	}
	g := NewGenerator(seed)
	start := time.Now()
	for time.Since(start) < testTime(t) && found < 20 && compared < most {
		try(g.Next())
	}
	t.Logf("%d commands compared, %.0f/s", compared, float64(compared)/time.Since(start).Seconds())
	if compared < len(Seeds)/2 {
		t.Error("too few commands were compared")
	}
}
