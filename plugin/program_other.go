//go:build unix && !linux

package plugin

import (
	"time"

	"golang.org/x/sys/unix"
)

// awaitExit waits until the process has ended and leaves it a zombie, so that its process group keeps its id. The
// system's waitid also returns for stopped processes, so the group is asked for, which a zombie no longer has.
func awaitExit(pid int) {
	for pause := time.Millisecond; ; pause = min(2*pause, 50*time.Millisecond) {
		if _, err := unix.Getpgid(pid); err != nil {
			return
		}
		time.Sleep(pause)
	}
}
