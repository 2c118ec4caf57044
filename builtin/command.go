package builtin

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/toolward/toolward/job"
)

// commandSpec is everything that starting a command needs. Nothing in it is looked up again.
type commandSpec struct {
	start   func(job.Streams) (running, error)
	dir     string // its working directory, for people
	stdin   bool   // keep standard input open for later writes
	tty     bool   // run on a terminal if one can be opened
	timeout time.Duration
	grace   time.Duration // between TERM and KILL
	output  *transcript
	onExit  func()                     // called once after the command has ended; may be nil
	hint    func(output string) string // what may explain why it failed; may be nil
	slow    string                     // what may explain why it took too long; may be ""
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
	endedByCall   ending = "cancelled" // the call that started it was canceled
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

// command is a running or finished command.
type execution struct {
	job     running
	spec    commandSpec
	pid     int // of its first program; 0 if none was started
	started time.Time
	stdin   *os.File // nil if closed or never open
	tty     bool     // it runs on a terminal, which is also its standard input
	done    chan struct{}
	stuck   chan struct{} // closed when it has not ended a while after KILL

	mu     sync.Mutex
	ended  bool // no more timers
	ending ending
	timers []*time.Timer
	exit   exit // valid once done is closed
}

// startCommand starts a command with standard output and error on one pipe or terminal, so that their order is kept.
func startCommand(spec commandSpec) (*execution, error) {
	c := &execution{spec: spec, done: make(chan struct{}), stuck: make(chan struct{})}
	output, streams, err := c.connect()
	if err != nil {
		return nil, err
	}
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		if c.tty {
			copyTerminal(spec.output, output)
			return
		}
		_, _ = io.Copy(spec.output, output) // it ends with the pipe or when we close it
	}()
	c.started = time.Now()
	if c.job, err = spec.start(streams); err != nil {
		_ = output.Close() // nobody has written
		<-drained
		c.closeStdin()
		return nil, startError(err)
	}
	c.pid = c.job.Process()
	if spec.timeout > 0 {
		c.after(spec.timeout, func() { c.stop(endedTimeout) })
	}
	go c.wait(output, drained)
	return c, nil
}

// connect makes the command's standard files. It returns the end that its output is read from, and the command's own.
func (c *execution) connect() (output *os.File, streams job.Streams, err error) {
	if c.spec.tty {
		if ours, theirs, err := openTerminal(); err == nil {
			c.tty, c.stdin = true, ours
			return ours, job.Streams{In: theirs, Out: theirs, Err: theirs, Terminal: true}, nil
		}
	}
	output, end, err := os.Pipe()
	if err != nil {
		return nil, streams, fmt.Errorf("open a pipe for the output: %w", err)
	}
	streams.Out, streams.Err = end, end
	if c.spec.stdin {
		if streams.In, c.stdin, err = os.Pipe(); err != nil {
			_ = output.Close() // nothing was written
			_ = end.Close()    // nothing was written
			return nil, streams, fmt.Errorf("open a pipe for the input: %w", err)
		}
	}
	return output, streams, nil
}

// startError explains why a command could not be started.
func startError(err error) error {
	switch {
	case errors.Is(err, syscall.E2BIG):
		return errors.New("the command and its environment are too long for the operating system")
	case errors.Is(err, syscall.EAGAIN):
		return errors.New("too many processes are running on this machine; try again when some have ended")
	}
	return err
}

// wait follows the command to its end, ends what it left behind, and collects it.
func (c *execution) wait(output *os.File, drained <-chan struct{}) {
	<-c.job.Done()
	leftover := false
	select {
	case <-drained:
	case <-time.After(drainWait):
		// A process in the background holds the pipe open. Waiting for it would hang the call.
		leftover = true
	}
	c.mu.Lock()
	c.ended = true
	for _, timer := range c.timers {
		timer.Stop()
	}
	c.mu.Unlock()
	c.job.Release()
	if leftover {
		select {
		case <-drained:
		case <-time.After(drainWait):
		}
	}
	_ = output.Close() // reading is over: this ends the copy even if a stranger holds the pipe
	<-drained
	c.closeStdin()
	c.finish(leftover)
}

func (c *execution) finish(leftover bool) {
	end := c.job.Result()
	c.mu.Lock()
	c.exit = exit{code: end.Code, signal: end.Signal, ending: c.ending, leftover: leftover, at: time.Now()}
	if end.Signal != 0 {
		c.exit.code = -1
	}
	if !errors.Is(end.Err, job.ErrStopped) {
		c.exit.err = end.Err
	}
	c.mu.Unlock()
	close(c.done)
	if c.spec.onExit != nil {
		c.spec.onExit()
	}
}

// result is how the command ended; valid once done is closed.
func (c *execution) result() exit {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.exit
}

// after runs f later unless the command ends before.
func (c *execution) after(d time.Duration, f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.ended {
		c.timers = append(c.timers, time.AfterFunc(d, f))
	}
}

// stop asks all of the command to end, and ends it when the grace is over. The first reason counts. It does not wait.
func (c *execution) stop(why ending) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended || c.ending != endedItself {
		return
	}
	c.ending = why
	c.job.Stop(syscall.SIGTERM)
	c.timers = append(c.timers, time.AfterFunc(c.spec.grace, c.kill))
}

func (c *execution) kill() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return
	}
	c.job.Stop(syscall.SIGKILL)
	// Only a process that hangs in the kernel, for instance on a dead network disk, survives KILL.
	c.timers = append(c.timers, time.AfterFunc(stuckAfter, func() { close(c.stuck) }))
}

// input writes to the command's standard input, within the given time.
func (c *execution) input(data []byte, wait time.Duration) error {
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

func (c *execution) openStdin() *os.File {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stdin
}

func (c *execution) closeStdin() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stdin != nil {
		_ = c.stdin.Close() // there is nothing to lose
		c.stdin = nil
	}
}

// endInput tells the command that no more input comes.
func (c *execution) endInput(wait time.Duration) error {
	if c.tty {
		return c.input([]byte{endOfInput}, wait)
	}
	c.closeStdin()
	return nil
}

// running reports whether the command has not ended yet.
func (c *execution) running() bool {
	select {
	case <-c.done:
		return false
	default:
		return true
	}
}
