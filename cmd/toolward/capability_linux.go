package main

import (
	"errors"
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"
)

// keepLooking keeps the right to look at all paths for this process, and from what it starts: plug-ins have no use for it. It reports
// whether there is that right.
func keepLooking() (bool, error) {
	if _, _, errno := syscall.AllThreadsSyscall6(unix.SYS_PRCTL, unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0, 0); errors.Is(errno, syscall.ENOTSUP) {
		return false, errors.New("this program was built with C libraries, so that its rights cannot be kept from what it starts: build it with CGO_ENABLED=0")
	} else if errno != 0 {
		return false, fmt.Errorf("keep the gateway's rights from what it starts: %w", errno)
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var has [2]unix.CapUserData
	if err := unix.Capget(&header, &has[0]); err != nil {
		return false, fmt.Errorf("find out about the gateway's rights: %w", err)
	}
	return has[0].Effective&(1<<unix.CAP_DAC_READ_SEARCH) != 0, nil
}
