package native

import (
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/toolward/toolward/sandbox"
)

// landlockScopes is the first version of Landlock that keeps processes from signaling those outside. Below it a sandbox
// without namespaces could end the gateway, which has the same user.
const landlockScopes = 6

func (e *Engine) checkLandlock() (sandbox.Check, uint32) {
	check := sandbox.Check{Name: "landlock"}
	abi, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	switch errno {
	case 0:
		check.OK, check.Found = true, fmt.Sprintf("version %d", abi)
		return check, uint32(abi)
	case unix.EOPNOTSUPP:
		check.Found, check.Fix = "the kernel has Landlock, but it is switched off", `add "landlock" to the lsm= list of the kernel's command line`
	default:
		check.Found, check.Fix = "the kernel has no Landlock", "use Linux 5.13 or newer; without it mounts alone confine files"
	}
	return check, 0
}

// landlockABI is the version of Landlock that the kernel has; 0 is none.
func (e *Engine) landlockABI() uint32 {
	_, abi := e.checkLandlock()
	return abi
}

func kernelRelease() string {
	var name unix.Utsname
	if unix.Uname(&name) != nil {
		return "unknown"
	}
	return unix.ByteSliceToString(name.Release[:])
}
