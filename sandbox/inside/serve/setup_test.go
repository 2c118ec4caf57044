//go:build linux

package serve

import (
	"syscall"
	"testing"

	"github.com/toolward/toolward/sandbox/inside/wire"
)

// A limit above what the machine allows is the machine's: it must not keep a sandbox from starting.
func TestLimitsAboveTheMachines(t *testing.T) {
	var before syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &before); err != nil {
		t.Fatal(err)
	}
	s := &server{hello: &wire.Hello{Workdir: "/", OpenFiles: 1 << 40}}
	if err := s.setUp(); err != nil {
		t.Fatal(err)
	}
	var after syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &after); err != nil || after.Max != before.Max {
		t.Errorf("%+v, before %+v: %v", after, before, err)
	}
}
