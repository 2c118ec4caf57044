package native

import (
	"bytes"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/toolward/toolward/sandbox"
)

// memoryInterval is how often memory is looked at where no control group limits it.
const memoryInterval = 250 * time.Millisecond

// oomKills is how many processes were ended for lack of memory, by the kernel or by watchMemory.
func (b *box) oomKills() int64 { return b.group.oomKills() + b.ended.Load() }

// watchMemory ends the largest process of a sandbox that takes more memory than it may. It is for machines without
// control groups and no hard limit: what is taken faster than anybody looks is taken.
func (b *box) watchMemory(limit int64) {
	if b.group != nil || limit <= 0 {
		return
	}
	b.engine.live.Go(func() {
		ticker := time.NewTicker(memoryInterval)
		defer ticker.Stop()
		for {
			select {
			case <-b.done:
				return
			case <-ticker.C:
			}
			total, largest := memoryOf(b.helper.pid)
			if total > limit && largest != 0 {
				b.ended.Add(1)
				_ = syscall.Kill(largest, syscall.SIGKILL) // it may have ended
			}
		}
	})
}

// memoryOf is the memory of a process and all that it has started, and the largest of those.
func memoryOf(first int) (total int64, largest int) {
	var most int64
	for _, pid := range descendants(first) {
		size := resident(pid)
		total += size
		if size > most {
			most, largest = size, pid
		}
	}
	return total + resident(first), largest
}

// resident is the memory that is a process's own or shared with others on purpose; not that of the files it runs.
func resident(pid int) int64 {
	data, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	var kib int64
	for line := range strings.Lines(string(data)) {
		name, value, _ := strings.Cut(line, ":")
		if name == "RssAnon" || name == "RssShmem" {
			n, _ := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
			kib += n
		}
	}
	return kib << 10
}

// usage is what a sandbox without a control group uses, as far as can be seen from outside.
func (b *box) usage() sandbox.Stats {
	total, _ := memoryOf(b.helper.pid)
	all := append(descendants(b.helper.pid), b.helper.pid)
	s := sandbox.Stats{Memory: total, Pids: int64(len(all)), OOMKills: b.oomKills(), Processors: runtime.NumCPU()}
	for _, pid := range all {
		s.CPU += processorTime(pid)
	}
	return s
}

// clockTick is the unit of processor time in /proc, the same on every architecture.
const clockTick = 10 * time.Millisecond

// processorTime is what a process has used, with what those of its children had used that it has waited for: the sum over
// all that live never loses what has ended.
func processorTime(pid int) time.Duration {
	data, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	// The name of the program, in parentheses, is the process's own choice and may hold anything.
	end := bytes.LastIndexByte(data, ')')
	if end < 0 {
		return 0
	}
	fields := strings.Fields(string(data[end+1:])) // from the third one on
	var ticks int64
	for at := 11; at < 15 && at < len(fields); at++ { // utime, stime, cutime, cstime
		n, _ := strconv.ParseInt(fields[at], 10, 64)
		ticks += n
	}
	return time.Duration(ticks) * clockTick
}
