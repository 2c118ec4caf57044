//go:build unix && !linux

package builtin

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// openFiles lists the open files of a process.
const openFiles = "/dev/fd"

// directoryPath names the directory that a command starts in. This system cannot name an open directory for a
// child; the caller has just compared the path with what was checked.
func directoryPath(dir *os.File) string {
	if dir == nil {
		return ""
	}
	return dir.Name()
}

// awaitExit waits until the process has ended and leaves it a zombie, so that its process group keeps its id. The
// system's waitid also returns for stopped processes, so the state is asked for: a zombie cannot be signalled as
// anything but a member of its group, and getpgid fails for it.
func awaitExit(pid int) error {
	for pause := time.Millisecond; ; pause = min(2*pause, 50*time.Millisecond) {
		if _, err := unix.Getpgid(pid); err != nil {
			return nil
		}
		time.Sleep(pause)
	}
}

// descendants cannot be listed without /proc.
func descendants(int) []*os.Process { return nil }
