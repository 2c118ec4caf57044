//go:build !linux

package runclient

import (
	"os/signal"
	"syscall"
	"time"
)

// dieBy ends this program by a signal, so that the shell sees what the command died of. Of others Go's own handlers would write a
// report of a crash, or take no notice: they are told by the exit status alone.
func dieBy(number syscall.Signal) {
	switch number {
	case syscall.SIGHUP, syscall.SIGINT, syscall.SIGTERM, syscall.SIGKILL:
		signal.Reset()
		_ = syscall.Kill(syscall.Getpid(), number)
		time.Sleep(time.Second) // it is on its way
	}
}
