//go:build !linux

package setup

import "errors"

// Argument is what makes toolward-inside the helper.
const Argument = "native"

// EgressDir is where the directory of the gateway's proxy is inside, and EgressSocket its socket.
const (
	EgressDir    = "/run/toolward"
	EgressSocket = EgressDir + "/egress.sock"
)

// Main: there are no namespaces on this system.
func Main([]string) int { return 1 }

// Forward: there are no namespaces on this system.
func Forward([]string) error { return errors.ErrUnsupported }
