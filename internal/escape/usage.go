package escape

import (
	"strings"
	"testing"
	"time"

	"github.com/toolward/toolward/sandbox"
)

const mebibyte = 1 << 20

// Usage compares what an engine says that a sandbox uses with what its processes know themselves: processor time, and
// memory with and without page cache.
func Usage(t *testing.T, handle sandbox.Handle) {
	t.Helper()
	read := func() sandbox.Stats {
		t.Helper()
		stats, err := handle.Stats(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return stats
	}
	before := read()
	if before.Processors < 1 {
		t.Errorf("it runs on %d processors", before.Processors)
	}
	used := Loop(t, handle)
	after := read()
	if got := after.CPU - before.CPU; got < used || got > used+used/2+time.Second {
		t.Errorf("a loop that used %v was counted as %v", used, got)
	}
	run(t, handle, "sh", "-c", "head -c 67108864 /dev/zero > /workspace/cached && cat /workspace/cached > /dev/null && head -c 33554432 /dev/zero > /tmp/kept")
	full := read()
	if grown := full.Memory - after.Memory; grown < 32*mebibyte || grown > 60*mebibyte {
		t.Errorf("32 MiB in a memory file system are %d MiB of memory, where 64 MiB of page cache were written too: %+v", grown/mebibyte, full)
	}
	if full.Cache < 48*mebibyte || full.MemoryPeak < full.Memory {
		t.Errorf("64 MiB of page cache: %+v", full)
	}
}

// Loop keeps one processor busy in a sandbox, and returns how long by its own account.
func Loop(t *testing.T, handle sandbox.Handle) time.Duration {
	t.Helper()
	said, _ := run(t, handle, "sh", "-c", "i=0; while [ $i -lt 1500000 ]; do i=$((i+1)); done; times")
	var used time.Duration
	first, _, _ := strings.Cut(said, "\n")
	for field := range strings.FieldsSeq(first) {
		d, err := time.ParseDuration(field)
		if err != nil {
			t.Fatalf("times says %q", said)
		}
		used += d
	}
	if used <= 0 {
		t.Fatalf("the loop used nothing: %q", said)
	}
	return used
}
