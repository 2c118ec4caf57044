//go:build linux

package serve

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/toolward/toolward/sandbox/inside/wire"
	"github.com/toolward/toolward/sandbox/task"
)

const (
	notFound      = "command not found"
	notExecutable = "it cannot be executed"
	// stopDelay is how long a command has between being asked and being made to end.
	stopDelay = 2 * time.Second
)

// prepend gives the wanted PATH to a login shell, which begins with one of its own. The value is in a variable and never
// part of the text.
const prepend = `PATH="$TOOLWARD_PREPEND_PATH:$PATH"; export PATH; unset TOOLWARD_PREPEND_PATH; `

// program is one program to be started.
type program struct {
	file string // "" if it cannot be
	argv []string
	env  environment
	dir  string
}

// run carries out a command and returns the last frame.
func (st *stream) run(command *task.Command) (wire.Type, []byte) {
	s := st.server
	dir, warning := s.directory(command.Dir)
	env := s.env.with(command.Env)
	if len(command.Segments) > 0 && !single(command) {
		return st.runJob(command, env, dir, warning)
	}
	p := program{argv: command.Argv, env: env, dir: dir}
	switch {
	case len(command.Segments) > 0:
		p.argv, p.env = command.Segments[0].Argv, env.with(command.Segments[0].Env)
	case command.Shell != "":
		text := command.Shell
		if env.pathSet {
			p.env = env.with([]string{"TOOLWARD_PREPEND_PATH=" + env.path})
			text = prepend + text
		}
		p.argv = []string{"/bin/sh", "-lc", text}
	}
	file, status := p.env.find(p.argv[0], dir)
	if status != 0 {
		return st.notStarted(command, p.argv[0], status, warning)
	}
	if command.Shell != "" {
		p.argv[0] = "sh"
	}
	p.file = file
	return st.runProgram(&p, command, warning)
}

// single reports whether understood programs are one program without anything that a shell would do for it.
func single(c *task.Command) bool {
	first := &c.Segments[0]
	return len(c.Segments) == 1 && len(first.Redirects) == 0 && len(first.Argv) > 0 && first.Argv[0] != "cd"
}

// directory is where a command runs: the working directory if what was asked for is not there.
func (s *server) directory(wanted string) (dir, warning string) {
	if wanted == "" || wanted == s.hello.Workdir {
		return s.hello.Workdir, ""
	}
	var st unix.Stat_t
	if err := unix.Stat(wanted, &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFDIR {
		return s.hello.Workdir, fmt.Sprintf("there is no directory %.200q: the command ran in %.200q", wanted, s.hello.Workdir)
	}
	return wanted, ""
}

// notStarted answers for a program that is not there or cannot be executed, as a shell does: where standard error goes.
func (st *stream) notStarted(command *task.Command, name string, status int, warning string) (wire.Type, []byte) {
	text := notExecutable
	if status == statusNotFound {
		text = notFound
	}
	where := wire.Stderr
	if command.Merged || command.Terminal != nil {
		where = wire.Stdout
	}
	started := wire.Started{Warning: warning}
	_ = st.server.out.send(wire.Response, st.id, started.Encode())                                // the receiver notices
	_ = st.server.out.send(where, st.id, fmt.Appendf(nil, "toolward: %.1000s: %s\n", name, text)) // the receiver notices
	return wire.Exit, wire.EncodeExit(task.ExitStatus{Code: status})
}

// process is a running program of its own session.
type process struct {
	pid      int
	terminal *os.File

	mu    sync.Mutex
	ended bool // its id may be somebody else's
	timer *time.Timer
	away  []int // handles of processes that left its group, once it was told to end
	stdio *pumps

	keeps   bool // what it leaves behind goes on
	stopped bool // the gateway gave it up, or ended it
}

// runProgram starts a program and follows it to its end.
func (st *stream) runProgram(p *program, command *task.Command, warning string) (wire.Type, []byte) {
	s := st.server
	streams, child, err := st.open(command)
	if err != nil {
		return wire.Error, wire.EncodeError(err)
	}
	says, files, err := st.reports(command, child[:])
	if err != nil {
		s.closeChild(child)
		streams.close()
		return wire.Error, wire.EncodeError(err)
	}
	defer says.close()
	kills := s.oom.count()
	handle := -1
	attributes := syscall.ProcAttr{
		Dir: p.dir, Env: p.env.list, Files: files,
		Sys: &syscall.SysProcAttr{Setsid: true, Setctty: streams.terminal != nil, PidFD: &handle},
	}
	pid, err := s.kids.start(func() (int, error) { return syscall.ForkExec(p.file, p.argv, &attributes) })
	s.closeChild(child)
	says.started()
	if err != nil {
		streams.close()
		return st.startFailed(command, p, err, warning)
	}
	running := &process{pid: pid, terminal: streams.terminal, stdio: streams, keeps: command.Keeps}
	started := wire.Started{PID: uint32(pid), Warning: warning}
	_ = s.out.send(wire.Response, st.id, started.Encode()) // the receiver notices
	streams.begin()
	st.runs(running)
	status := await(pid, handle)
	leftover := running.over()
	s.kids.waited(pid)
	streams.finish(command.Keeps && !running.wasStopped())
	running.release()
	result := exitStatus(status)
	result.Leftover, result.Dir = leftover, says.directory()
	result.OOM = result.Code != 0 && s.oom.count() > kills
	return wire.Exit, wire.EncodeExit(result)
}

func (st *stream) startFailed(command *task.Command, p *program, err error, warning string) (wire.Type, []byte) {
	switch {
	case errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.ENOMEM) || errors.Is(err, unix.EMFILE) || errors.Is(err, unix.ENFILE):
		return wire.Error, wire.EncodeError(task.Errorf(task.CodeFailed, "start %.200q: %v", p.argv[0], err))
	case errors.Is(err, unix.ENOENT):
		return st.notStarted(command, p.argv[0], statusNotFound, warning)
	}
	return st.notStarted(command, p.argv[0], statusNotExecutable, warning)
}

func exitStatus(status unix.WaitStatus) task.ExitStatus {
	if status.Signaled() {
		return task.ExitStatus{Code: -1, Signal: status.Signal()}
	}
	return task.ExitStatus{Code: status.ExitStatus() & 0xff}
}

// await waits for a child by its handle, or by its id where the system has no handles.
func await(pid, handle int) (status unix.WaitStatus) {
	if handle >= 0 && unix.SetNonblock(handle, true) == nil {
		f := os.NewFile(uintptr(handle), "process")
		defer f.Close()
		if raw, err := f.SyscallConn(); err == nil {
			err = raw.Read(func(uintptr) bool {
				got, err := unix.Wait4(pid, &status, unix.WNOHANG, nil)
				return got == pid || err != nil && err != unix.EINTR
			})
			if err == nil {
				return status
			}
		}
	}
	for {
		if _, err := unix.Wait4(pid, &status, 0, nil); err != unix.EINTR {
			return status
		}
	}
}

// over is called when the program has ended: it ends what the program left behind in its process group, unless that is to go
// on. What was stopped leaves nothing.
func (p *process) over() (leftover bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended = true
	for _, handle := range p.away {
		_ = unix.PidfdSendSignal(handle, unix.SIGKILL, nil, 0) // it may have ended
		_ = unix.Close(handle)                                 // nothing was written
	}
	if p.keeps && !p.stopped {
		return false
	}
	// A group that still has members keeps its id; one without cannot be signaled.
	if unix.Kill(-p.pid, 0) != nil {
		return false
	}
	leftover = groupLives(p.pid)
	_ = unix.Kill(-p.pid, unix.SIGKILL) // that they are gone is what we want
	return leftover
}

func (p *process) release() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.timer != nil {
		p.timer.Stop()
	}
}

// signal reaches the process group, and the one that has the terminal.
func (p *process) signal(number int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		return
	}
	if number == int(unix.SIGKILL) { // first: children of what was killed can no longer be found
		p.stopped = true
		killDescendants(p.pid, p.pid)
	}
	_ = unix.Kill(-p.pid, syscall.Signal(number)) // it may have ended
	if p.terminal != nil {
		if group, err := foreground(p.terminal); err == nil && group > 1 && group != p.pid {
			_ = unix.Kill(-group, syscall.Signal(number)) // it may have ended
		}
	}
	if number == int(unix.SIGTERM) || number == int(unix.SIGHUP) || number == int(unix.SIGINT) {
		_ = unix.Kill(-p.pid, unix.SIGCONT) // a stopped process could not notice
	}
}

// stop asks the command to end, and makes it.
func (p *process) stop() {
	p.mu.Lock()
	p.stopped = true
	if !p.ended && p.away == nil {
		p.away = escaped(p.pid)
		for _, handle := range p.away {
			_ = unix.PidfdSendSignal(handle, unix.SIGTERM, nil, 0) // it may have ended
		}
	}
	p.mu.Unlock()
	p.signal(int(unix.SIGTERM))
	p.stdio.abandon()
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.ended && p.timer == nil {
		p.timer = time.AfterFunc(stopDelay, func() { p.signal(int(unix.SIGKILL)) })
	}
}

// wasStopped reports whether the gateway gave the command up.
func (p *process) wasStopped() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stopped
}

func (p *process) resize(cols, rows uint16) {
	if p.terminal != nil {
		setSize(p.terminal, cols, rows)
	}
}
