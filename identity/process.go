package identity

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// Process is what the system says about a running process.
type Process struct {
	PID     int
	Parent  int
	Start   uint64 // when it started, in the system's own unit; with PID it names the process for good
	Session int    // session id
	TTY     uint64 // controlling terminal; 0 if it has none
	UID     uint32
	Exe     string   // path of its executable
	Args    []string // command line, the program's name included
}

// Processes inspects processes.
type Processes interface {
	// Process returns what the system says about a process; an error if there is none.
	Process(pid int) (Process, error)
}

// Is reports whether two values mean the same process. A process id alone is not enough: ids are used again.
func (p Process) Is(q Process) bool {
	return p.PID > 0 && p.Start > 0 && p.PID == q.PID && p.Start == q.Start
}

// program is the base name of the executable.
func (p Process) program() string {
	return strings.TrimSuffix(filepath.Base(p.Exe), " (deleted)")
}

// shells are the programs that people type commands into.
var shells = []string{"sh", "bash", "zsh", "fish", "dash", "ksh", "ksh93", "mksh", "ash", "busybox", "tcsh", "csh", "nu", "elvish"}

// isInteractiveShell reports whether a process is a shell that a person types into: it has a terminal, and neither
// a command (-c) nor a script to run. The shells that agents start to run commands are none.
func (p Process) isInteractiveShell() bool {
	if p.TTY == 0 || !slices.Contains(shells, p.program()) {
		return false
	}
	takesValue := []string{"--rcfile", "--init-file", "-o", "-O", "+O", "--init-command", "-C"}
	for i := 1; i < len(p.Args); i++ {
		arg := p.Args[i]
		switch {
		case slices.Contains(takesValue, arg):
			i++
		case strings.HasPrefix(arg, "--command"), arg == "-", !strings.HasPrefix(arg, "-"):
			// A command, or an operand: a script. busybox names its applet first.
			if p.program() != "busybox" || i != 1 {
				return false
			}
		case !strings.HasPrefix(arg, "--") && strings.Contains(arg, "c"):
			return false
		}
	}
	return true
}

// isGoRun reports whether a process is the go tool running a program, as in "go run ./cmd/toolward login". It stands
// between the shell and the program and is looked through.
func (p Process) isGoRun() bool {
	return p.program() == "go" && len(p.Args) >= 2 && (p.Args[1] == "run" || p.Args[1] == "tool")
}

// maxAncestors bounds the walk up the tree of processes.
const maxAncestors = 64

// starter returns the process that started p, looking through one "go run". Every link is checked by start time: a
// parent cannot be younger than its child, else the id was used again.
func starter(list Processes, p Process) (Process, error) {
	parent, err := parentOf(list, p)
	if err != nil {
		return Process{}, err
	}
	if parent.isGoRun() {
		return parentOf(list, parent)
	}
	return parent, nil
}

var errOrphan = errors.New("the process that started it is gone")

func parentOf(list Processes, p Process) (Process, error) {
	if p.Parent <= 1 {
		return Process{}, errOrphan
	}
	parent, err := list.Process(p.Parent)
	if err != nil {
		return Process{}, fmt.Errorf("inspect the process that started %d: %w", p.PID, err)
	}
	if parent.Start == 0 || parent.Start > p.Start {
		return Process{}, errOrphan
	}
	// Look again: between the two readings the child may have been given another parent.
	again, err := list.Process(p.PID)
	if err != nil || !again.Is(p) || again.Parent != p.Parent {
		return Process{}, errOrphan
	}
	return parent, nil
}
