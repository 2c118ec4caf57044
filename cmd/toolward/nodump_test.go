package main

import (
	"syscall"
	"testing"
)

// A crash of the gateway leaves no file with its memory, and what it starts may still want one.
func TestNoDumpIsLeft(t *testing.T) {
	var before, after syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_CORE, &before); err != nil {
		t.Fatal(err)
	}
	raised := syscall.Rlimit{Cur: before.Max, Max: before.Max}
	if err := syscall.Setrlimit(syscall.RLIMIT_CORE, &raised); err != nil {
		t.Fatal(err)
	}
	defer syscall.Setrlimit(syscall.RLIMIT_CORE, &before) // as it was for other tests
	if err := leaveNoDump(); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Getrlimit(syscall.RLIMIT_CORE, &after); err != nil || after.Cur != 0 || after.Max != before.Max {
		t.Errorf("%+v after %+v, %v", after, before, err)
	}
}
