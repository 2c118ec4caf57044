//go:build unix && !linux

package place

import "golang.org/x/sys/unix"

// fastResolve has no portable form: the walk answers.
func fastResolve(string) (Resolved, bool) { return Resolved{}, false }

// lookIn, openWithoutLinks and closeDirectory have none either.
func lookIn(int, string) (Resolved, bool) { return Resolved{}, false }
func openWithoutLinks(string) (int, bool) { return -1, false }
func closeDirectory(int)                  {}

// openDirectory opens a real directory for use with the *at calls.
func openDirectory(real string) (int, error) { return walkDirectory(real, unix.O_RDONLY) }
