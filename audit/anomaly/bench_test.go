package anomaly

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/toolward/toolward"
)

func BenchmarkHasEncoded(b *testing.B) {
	words := strings.Repeat("the quick brown fox jumps over the lazy dog ", 1<<20/44)
	b.SetBytes(int64(len(words)))
	for b.Loop() {
		if hasEncoded(words) {
			b.Fatal("words")
		}
	}
}

// BenchmarkWatch is what the detectors add to a call: before it is decided, and after it has run. All of them are on;
// thresholds are out of reach, because a benchmark is a burst.
func BenchmarkWatch(b *testing.B) {
	high, most := maxBurst, maxEvents
	m := monitor(b, Config{Detectors: map[Detector]Override{
		Burst: {Threshold: &high, Escalate: Escalation{Set: true}}, Rate: {Threshold: &most, Escalate: Escalation{Set: true}},
	}})
	r := request(b, "read", params{"path": "src/server/handlers/list.go", "limit": json.Number("200")}, toolward.Facts{
		Targets: []toolward.Target{{Real: "/home/u/p/src/server/handlers/list.go", Op: toolward.OpRead, Zone: "workspace"}},
	})
	r.Call.ID, r.Call.Run, r.Digest = "call-1", "run-7", strings.Repeat("0123456789abcdef", 4)
	w, err := NewWatcher(m, nowhere{}, func(Notice) {}, nil)
	if err != nil {
		b.Fatal(err)
	}
	outcome := toolward.OutcomeRecord{Status: toolward.StatusOK, ResultDigest: r.Digest}
	b.Run("before", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			w.Before(b.Context(), r, false)
		}
	})
	b.Run("before and after", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			w.Before(b.Context(), r, false)
			w.After(b.Context(), r, &outcome, nil)
		}
	})
}
