//go:build !linux

package live

import "os/exec"

// endsWithUs leaves it to the tests' own clean-up to end a program: this system cannot promise it.
func endsWithUs(*exec.Cmd) {}
