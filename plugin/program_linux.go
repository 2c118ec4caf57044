package plugin

import (
	"errors"

	"golang.org/x/sys/unix"
)

// awaitExit waits until the process has ended and leaves it a zombie, so that its process group keeps its id.
func awaitExit(pid int) {
	for {
		if err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil); !errors.Is(err, unix.EINTR) {
			return
		}
	}
}
