//go:build linux

package serve

import (
	"errors"
	"os/exec"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// What a command has left behind does not keep the next one from being started.
func TestWhatHasEndedIsCollectedBeforeTheNextStart(t *testing.T) {
	program, err := exec.LookPath("true")
	if err != nil {
		t.Fatal(err)
	}
	c := &children{own: map[int]bool{}}
	var left []int
	for range 3 {
		pid, err := syscall.ForkExec(program, []string{"true"}, &syscall.ProcAttr{})
		if err != nil {
			t.Fatal(err)
		}
		left = append(left, pid)
		for { // until it has ended, and nobody has waited for it
			if err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil); !errors.Is(err, unix.EINTR) {
				break
			}
		}
	}
	own := left[1]
	c.own[own] = true
	if _, err := c.start(func() (int, error) { return 0, unix.EAGAIN }); !errors.Is(err, unix.EAGAIN) {
		t.Fatal(err)
	}
	for _, pid := range left {
		got, err := unix.Wait4(pid, nil, unix.WNOHANG, nil)
		if pid == own && got != pid {
			t.Errorf("the process that somebody waits for was taken from them: %v", err)
		}
		if pid != own && !errors.Is(err, unix.ECHILD) {
			t.Errorf("process %d was not collected: %v", pid, err)
		}
	}
}
