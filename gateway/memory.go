package gateway

import (
	"context"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

const (
	// garbage is how much of it may pile up before it is collected, in bytes, when little else is in memory. A call
	// over MCP leaves some 200 KiB, most of it in the SDK, so with Go's usual measure — as much as is in use, which is
	// little here — a busy gateway would collect every few calls and spend a third of their time on it.
	garbage = 16 << 20
	// lookEvery is how often memory is looked at.
	lookEvery = 10 * time.Second
	// quiet is how much an idle gateway allocates between two looks at most, in bytes.
	quiet = 1 << 20
)

// TendMemory lets garbage pile up while the gateway works, and gives memory back once it is idle. It returns when ctx
// ends.
func TendMemory(ctx context.Context) {
	samples := []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/gc/heap/allocs:bytes"}}
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	percent, seen, busy := 100, uint64(0), true
	for {
		metrics.Read(samples)
		live, allocated := samples[0].Value.Uint64(), samples[1].Value.Uint64()
		if p := collectAt(live); p != percent && os.Getenv("GOGC") == "" {
			debug.SetGCPercent(p)
			percent = p
		}
		switch worked := allocated-seen > quiet; {
		case !worked && busy:
			debug.FreeOSMemory()
			busy = false
		case worked:
			busy = true
		}
		seen = allocated
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// collectAt is how many per cent of what is in use may become garbage.
func collectAt(live uint64) int {
	return int(min(max(garbage*100/max(live, 1), 100), 400)) / 50 * 50 // in steps, because a change stops the world
}
