//go:build unix

package job

import (
	"os"
	"slices"
	"syscall"
)

// Elsewhere is a place of its own in which programs of a job are started, with its own view of files and processes. All
// that runs there is the job's.
type Elsewhere interface {
	// Start starts a program and does not wait for it. What the system says when it cannot is a [syscall.Errno].
	Start(Launch) (Started, error)
	// Signal reaches everything that was started there, and what it has started.
	Signal(syscall.Signal)
	// End ends whatever is left there. Nothing is started there any more.
	End()
}

// Launch is a program that was opened and compared. The files in it stay the job's.
type Launch struct {
	Path    string // as it was judged
	Program int    // descriptor of the program; -1: it is executed by its path, as an interpreter or a wrapper opens it
	Argv    []string
	Env     []string
	Dir     *os.File // where it starts
	DirPath string   // the directory's path: it has to be found there, as the same directory
	Files   [3]*os.File

	Session  bool // it leads a session of its own
	Terminal int  // the stream that becomes its controlling terminal; -1: none
}

// Started is a program that runs elsewhere.
type Started interface {
	Process() int // its process id for this machine
	// Wait waits until it has ended.
	Wait() syscall.WaitStatus
}

// startElsewhere has a program started in its own place. The caller holds mu.
func (j *Job) startElsewhere(m *member, argv []string) error {
	p := m.programs[0]
	launch := Launch{
		Path: p.Path, Program: p.fd, Argv: argv, Env: j.environment(m.Env), Dir: j.dir, DirPath: j.path, Files: m.streams,
		Session: j.streams.Terminal, Terminal: -1,
	}
	if p.byName {
		launch.Program = -1
	}
	if j.streams.Terminal {
		launch.Terminal = j.terminal(m)
	}
	if !slices.Contains(j.places, m.Elsewhere) {
		j.places = append(j.places, m.Elsewhere)
	}
	started, err := m.Elsewhere.Start(launch)
	if err != nil {
		return err
	}
	m.away = started
	if j.first == 0 {
		j.first = started.Process()
	}
	return m.compare() // see startProgram
}

func endOf(end syscall.WaitStatus) status {
	if end.Signaled() {
		return signaled(end.Signal())
	}
	return exited(end.ExitStatus())
}
