package docker

import (
	"context"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/toolward/toolward/sandbox"
	"github.com/toolward/toolward/sandbox/inside"
)

// findProgram finds the program inside, where a container can start it. There is no second way, such as the container
// engine's own commands for each call: it would need tools in the image, and every check of paths and rights twice.
func (e *Engine) findProgram(ctx context.Context) (*inside.Program, error) {
	if e.options.program != nil {
		return checkProgram(e.options.program)
	}
	program, err := inside.FindProgram(ctx)
	if err != nil {
		return nil, err
	}
	return checkProgram(program)
}

func checkProgram(program *inside.Program) (*inside.Program, error) {
	if !noexec(program.Path) {
		return program, nil
	}
	return nil, &sandbox.Error{
		Code: sandbox.CodeUnavailable,
		Text: "the program inside lies in " + filepath.Dir(program.Path) + ", on a file system that is mounted without the right to run programs (noexec), and so it would be in the container",
		Fix:  "put toolward-inside beside toolward, or set XDG_CACHE_HOME to a directory where programs can be run",
	}
}

// notStarted names why the program inside could not be started, as far as what the container engine says of it tells.
func notStarted(err error, program *inside.Program, image string) error {
	if err == nil || !strings.Contains(err.Error(), agentTarget) {
		return err
	}
	refusal := &sandbox.Error{Code: sandbox.CodeUnavailable, Cause: err}
	switch said := err.Error(); {
	case strings.Contains(said, "permission denied"):
		refusal.Text = "whoever runs inside may not run " + program.Path
		refusal.Fix = "let everybody read and run that file, on a file system without noexec; with SELinux, give it the type container_file_t"
	case strings.Contains(said, "exec format error"):
		refusal.Text = program.Path + " is no program for " + runtime.GOARCH + ", as the container engine's machine needs it"
		refusal.Fix = "build or install toolward for that machine"
	case strings.Contains(said, "no such file or directory"):
		refusal.Text = program.Path + " needs libraries that the image " + image + " does not have"
		refusal.Fix = "install the static toolward-inside beside toolward, or build with CGO_ENABLED=0"
	default:
		return err
	}
	refusal.Text += fmt.Sprintf(" (%v)", err)
	return refusal
}
