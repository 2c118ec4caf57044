package builtin

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// keepDescriptors marks every open file beyond the three standard ones as not to be passed on. What the gateway opens
// is marked already; what it was itself started with (a terminal multiplexer's socket, a supervisor's pipe) is not,
// and would be open in every command. A descriptor that cannot be marked is left: it may have been closed meanwhile.
func keepDescriptors() error {
	entries, err := os.ReadDir(openFiles)
	if err != nil {
		return fmt.Errorf("look for inherited open files: %w", err)
	}
	for _, entry := range entries {
		if fd, err := strconv.Atoi(entry.Name()); err == nil && fd > 2 {
			unix.FcntlInt(uintptr(fd), unix.F_SETFD, unix.FD_CLOEXEC) //nolint:errcheck // see above
		}
	}
	return nil
}

// commandSpec is everything that starting a command needs. Nothing in it is looked up again.
type commandSpec struct {
	path    string // program, absolute
	args    []string
	env     []string
	dir     *os.File // open working directory; start does not close it
	stdin   bool     // keep standard input open for later writes
	tty     bool     // run on a terminal if one can be opened
	timeout time.Duration
	grace   time.Duration // between TERM and KILL
	output  *transcript
	onExit  func() // called once after the command has ended; may be nil
}

// drainWait is how long output is still read after a command has ended, from processes that it left behind.
const drainWait = 250 * time.Millisecond

// stuckAfter is how long after KILL nobody waits for a command any more.
const stuckAfter = 3 * time.Second

// ending says why a command was stopped by us.
type ending string

const (
	endedItself   ending = ""
	endedTimeout  ending = "timeout"
	endedByCall   ending = "cancelled" // the call that started it was cancelled
	endedByKill   ending = "killed"    // by the process tool
	endedShutdown ending = "shutdown"  // the gateway stops
)

// exit is how a command ended.
type exit struct {
	code     int // -1 if a signal ended it
	signal   syscall.Signal
	ending   ending
	leftover bool // processes that it left behind kept the output open and were ended
	err      error
	at       time.Time
}

// command is a running or finished command: one process group, and whoever its members start.
type command struct {
	cmd     *exec.Cmd
	spec    commandSpec
	pid     int
	started time.Time
	stdin   *os.File // nil if closed or never open
	tty     bool     // it runs on a terminal, which is also its standard input
	done    chan struct{}
	stuck   chan struct{} // closed when it has not ended a while after KILL

	mu      sync.Mutex
	reaped  bool // the process id may belong to somebody else now: no more signals
	ending  ending
	timers  []*time.Timer
	escaped []*os.Process // descendants that left the process group
	exit    exit          // valid once done is closed
}

// startCommand starts a command in a process group of its own, with standard output and error on one pipe or
// terminal so that their order is kept.
func startCommand(spec commandSpec) (*command, error) {
	c := &command{spec: spec, done: make(chan struct{}), stuck: make(chan struct{})}
	c.cmd = &exec.Cmd{Path: spec.path, Args: spec.args, Env: spec.env, Dir: directoryPath(spec.dir)}
	output, ends, err := c.connect()
	if err != nil {
		return nil, err
	}
	err = c.cmd.Start()
	closeAll(ends) // our copies; the command has its own
	if err != nil {
		closeAll([]*os.File{output})
		c.closeStdin()
		return nil, startError(err)
	}
	c.pid, c.started = c.cmd.Process.Pid, time.Now()
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		if c.tty {
			copyTerminal(spec.output, output)
			return
		}
		io.Copy(spec.output, output) //nolint:errcheck // it ends with the pipe or when we close it
	}()
	if spec.timeout > 0 {
		c.after(spec.timeout, func() { c.stop(endedTimeout) })
	}
	go c.wait(output, drained)
	return c, nil
}

// connect gives the command its standard files. It returns the end that its output is read from, and the command's
// own ends, to be closed once it has started.
func (c *command) connect() (output *os.File, ends []*os.File, err error) {
	if c.spec.tty {
		if ours, theirs, err := openTerminal(); err == nil {
			c.tty, c.stdin = true, ours
			c.cmd.Stdin, c.cmd.Stdout, c.cmd.Stderr = theirs, theirs, theirs
			c.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
			return ours, []*os.File{theirs}, nil
		}
	}
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	output, outputEnd, err := os.Pipe()
	if err != nil {
		return nil, nil, fmt.Errorf("open a pipe for the output: %w", err)
	}
	c.cmd.Stdout, c.cmd.Stderr = outputEnd, outputEnd
	ends = []*os.File{outputEnd}
	if c.spec.stdin {
		stdinEnd, stdin, err := os.Pipe()
		if err != nil {
			closeAll([]*os.File{output, outputEnd})
			return nil, nil, fmt.Errorf("open a pipe for the input: %w", err)
		}
		c.cmd.Stdin, c.stdin = stdinEnd, stdin
		ends = append(ends, stdinEnd)
	}
	return output, ends, nil
}

func closeAll(files []*os.File) {
	for _, f := range files {
		f.Close() //nolint:errcheck // there is nothing to lose
	}
}

// startError explains why a command could not be started.
func startError(err error) error {
	switch {
	case errors.Is(err, syscall.E2BIG):
		return errors.New("the command and its environment are too long for the operating system")
	case errors.Is(err, syscall.EAGAIN):
		return errors.New("too many processes are running on this machine; try again when some have ended")
	}
	return fmt.Errorf("start the command: %w", err)
}

// wait follows the command to its end, ends what it left behind, and collects it.
func (c *command) wait(output *os.File, drained <-chan struct{}) {
	waitErr := awaitExit(c.pid)
	leftover := false
	select {
	case <-drained:
	case <-time.After(drainWait):
		// A process in the background holds the pipe open. Waiting for it would hang the call.
		leftover = true
	}
	// The group is ended while its first process is still a zombie: that keeps the group's id from being given to
	// somebody else, who would be hit instead.
	c.mu.Lock()
	c.signalGroup(syscall.SIGKILL)
	c.reaped = true
	for _, timer := range c.timers {
		timer.Stop()
	}
	escaped := c.escaped
	c.escaped = nil
	c.mu.Unlock()
	for _, process := range escaped {
		process.Kill()    //nolint:errcheck // it may have ended
		process.Release() //nolint:errcheck // nothing depends on it
	}
	if err := c.cmd.Wait(); err != nil && waitErr == nil {
		var status *exec.ExitError
		if !errors.As(err, &status) {
			waitErr = err
		}
	}
	if leftover {
		select {
		case <-drained:
		case <-time.After(drainWait):
		}
	}
	output.Close() //nolint:errcheck // reading is over: this ends the copy even if a stranger holds the pipe
	<-drained
	c.closeStdin()
	c.finish(leftover, waitErr)
}

func (c *command) finish(leftover bool, err error) {
	c.mu.Lock()
	c.exit = exit{code: -1, ending: c.ending, leftover: leftover, err: err, at: time.Now()}
	if state := c.cmd.ProcessState; state != nil {
		c.exit.code = state.ExitCode()
		if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
			c.exit.signal = status.Signal()
		}
	}
	c.mu.Unlock()
	close(c.done)
	if c.spec.onExit != nil {
		c.spec.onExit()
	}
}

// result is how the command ended; valid once done is closed.
func (c *command) result() exit {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.exit
}

// after runs f later unless the command ends before.
func (c *command) after(d time.Duration, f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.reaped {
		c.timers = append(c.timers, time.AfterFunc(d, f))
	}
}

// stop asks the whole group to end, and ends it when the grace is over. The first reason counts. It does not wait.
func (c *command) stop(why ending) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.reaped || c.ending != endedItself {
		return
	}
	c.ending = why
	c.escaped = append(c.escaped, descendants(c.pid)...)
	c.signalGroup(syscall.SIGTERM)
	c.signalGroup(syscall.SIGCONT) // a stopped process could not notice
	for _, process := range c.escaped {
		process.Signal(syscall.SIGTERM) //nolint:errcheck // it may have ended
	}
	c.timers = append(c.timers, time.AfterFunc(c.spec.grace, c.kill))
}

func (c *command) kill() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.reaped {
		return
	}
	c.escaped = append(c.escaped, descendants(c.pid)...)
	c.signalGroup(syscall.SIGKILL)
	for _, process := range c.escaped {
		process.Kill() //nolint:errcheck // it may have ended
	}
	// Only a process that hangs in the kernel, for instance on a dead network disk, survives KILL.
	c.timers = append(c.timers, time.AfterFunc(stuckAfter, func() { close(c.stuck) }))
}

// signalGroup signals every member of the process group. The caller holds mu.
func (c *command) signalGroup(signal syscall.Signal) {
	// 0 and 1 would be our own group and everybody.
	if !c.reaped && c.pid > 1 {
		syscall.Kill(-c.pid, signal) //nolint:errcheck // a group without members is what we want
	}
}

// input writes to the command's standard input, within the given time.
func (c *command) input(data []byte, wait time.Duration) error {
	stdin := c.openStdin()
	if stdin == nil {
		return errors.New("its standard input is closed")
	}
	// A command that does not read would block us for ever once the pipe is full.
	if err := stdin.SetWriteDeadline(time.Now().Add(wait)); err != nil {
		return fmt.Errorf("write to its standard input: %w", err)
	}
	if n, err := stdin.Write(data); err != nil {
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return fmt.Errorf("it does not read its input: %d of %d bytes were written", n, len(data))
		}
		return fmt.Errorf("write to its standard input: %w", err)
	}
	return nil
}

func (c *command) openStdin() *os.File {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stdin
}

func (c *command) closeStdin() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stdin != nil {
		c.stdin.Close() //nolint:errcheck // there is nothing to lose
		c.stdin = nil
	}
}

// endInput tells the command that no more input comes.
func (c *command) endInput(wait time.Duration) error {
	if c.tty {
		return c.input([]byte{endOfInput}, wait)
	}
	c.closeStdin()
	return nil
}

// running reports whether the command has not ended yet.
func (c *command) running() bool {
	select {
	case <-c.done:
		return false
	default:
		return true
	}
}
