//go:build linux

package serve

import (
	"bytes"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/toolward/toolward/sandbox/disk/usage"
	"github.com/toolward/toolward/sandbox/inside/wire"
)

// How often what nobody else limits is looked at while there is no gateway. They are those of the gateway.
const (
	memoryInterval = 250 * time.Millisecond
	diskInterval   = 2 * time.Second
	diskShare      = 20 // of the time, at most one part is spent looking
)

// watchAlone does while there is no gateway what the gateway does otherwise: it ends the largest process when memory is used
// up that the kernel does not limit, and closes breached when the disk is. Otherwise whoever can have the gateway ended
// could use up the machine.
func watchAlone(terms *wire.Detach, mounts []wire.Mount, over <-chan struct{}) (breached <-chan struct{}) {
	if terms.Memory > 0 {
		go watchMemory(terms.Memory, over)
	}
	broken := make(chan struct{})
	var places []string
	for _, m := range mounts {
		if m.Writable {
			places = append(places, m.Target)
		}
	}
	if terms.Disk > 0 && len(places) > 0 {
		go watchDisk(terms.Disk, places, over, broken)
	}
	return broken
}

func watchDisk(limit int64, places []string, over <-chan struct{}, broken chan<- struct{}) {
	before, full := written(places), false
	for wait := diskInterval; ; {
		select {
		case <-over:
			return
		case <-time.After(wait):
		}
		start := time.Now()
		now := written(places) - before
		for _, place := range places {
			full = full || now > usage.Noise && usage.Full(place)
		}
		if now > limit || full {
			close(broken)
			return
		}
		wait = max(diskInterval, diskShare*time.Since(start))
	}
}

func written(places []string) (total int64) {
	for _, place := range places {
		total += usage.Of(place)
	}
	return total
}

func watchMemory(limit int64, over <-chan struct{}) {
	ticker := time.NewTicker(memoryInterval)
	defer ticker.Stop()
	for {
		select {
		case <-over:
			return
		case <-ticker.C:
		}
		var total, most int64
		largest := 0
		for p := range processes() {
			size := resident(p.pid)
			total += size
			if size > most && p.pid != os.Getpid() {
				most, largest = size, p.pid
			}
		}
		if total > limit && largest > 1 {
			_ = unix.Kill(largest, unix.SIGKILL) // it may have ended
		}
	}
}

// resident is the memory that is a process's own or shared with others on purpose; not that of the files it runs.
func resident(pid int) int64 {
	text, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	var kib int64
	for _, name := range []string{"RssAnon:", "RssShmem:"} {
		for line := range bytes.Lines(text) {
			if rest, ok := bytes.CutPrefix(line, []byte(name)); ok {
				n, _ := strconv.ParseInt(string(bytes.TrimSpace(bytes.TrimSuffix(bytes.TrimSpace(rest), []byte("kB")))), 10, 64)
				kib += n
			}
		}
	}
	return kib << 10
}
