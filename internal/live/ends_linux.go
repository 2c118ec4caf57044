package live

import (
	"os/exec"
	"syscall"
)

// endsWithUs has the system kill a program when this test program dies, however that happens: a test that runs out
// of time must not leave a daemon behind.
func endsWithUs(command *exec.Cmd) {
	command.SysProcAttr.Pdeathsig = syscall.SIGKILL
}
