//go:build unix && !linux

package place

import "golang.org/x/sys/unix"

// fastResolve has no portable form: the walk answers.
func fastResolve(string) (Resolved, bool) { return Resolved{}, false }

// openDirectory opens a real directory for use with the *at calls.
func openDirectory(real string) (int, error) { return walkDirectory(real, unix.O_RDONLY) }
