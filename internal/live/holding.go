package live

import (
	"fmt"
	"os"
	"runtime"
	"testing"
	"time"
)

// Holding is what this process holds of the machine.
type Holding struct {
	Goroutines, Files, Processes int
	Heap                         uint64 // bytes, after a collection
}

// Hold looks at it.
func Hold() Holding {
	runtime.GC()
	runtime.GC() // what finalizers let go of
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	files, _ := os.ReadDir("/proc/self/fd")
	h := Holding{Goroutines: runtime.NumGoroutine(), Files: len(files), Heap: memory.HeapAlloc}
	tasks, _ := os.ReadDir("/proc/self/task")
	for _, task := range tasks {
		children, _ := os.ReadFile("/proc/self/task/" + task.Name() + "/children")
		for _, b := range children {
			if b == ' ' {
				h.Processes++
			}
		}
	}
	return h
}

func (h Holding) String() string {
	return fmt.Sprintf("%d goroutines, %d files, %d processes, %.1f MiB", h.Goroutines, h.Files, h.Processes, float64(h.Heap)/(1<<20))
}

// What a load may leave: what the runtime and connections keep for the next one.
const (
	slackGoroutines = 4
	slackFiles      = 4
	slackHeap       = 8 << 20
)

// MustLetGo fails if this process holds more than before a load, once what ends by itself has ended.
func (h Holding) MustLetGo(t testing.TB) {
	t.Helper()
	for end := time.Now().Add(dockerPatience); ; time.Sleep(50 * time.Millisecond) {
		now := Hold()
		if now.Goroutines <= h.Goroutines+slackGoroutines && now.Files <= h.Files+slackFiles && now.Processes <= h.Processes && now.Heap <= h.Heap+slackHeap {
			t.Logf("before: %v; after: %v", h, now)
			return
		}
		if time.Now().After(end) {
			t.Errorf("before: %v; and after: %v", h, now)
			return
		}
	}
}
