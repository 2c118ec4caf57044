package plugin

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"syscall"
	"time"
)

const (
	maxOpen      = 256      // requests to one program that wait for an answer
	maxErrorLine = 16 << 10 // bytes of a line of a program's standard error that are searched for secrets before the cut
)

// process is one running program: requests go to its standard input, one JSON object a line, answers come from its
// standard output in any order. Whatever is not an answer to an open request ends it: from then on nobody could tell
// which line belongs to what.
type process struct {
	cmd   *exec.Cmd
	stdin *os.File
	lines chan []byte   // requests to write
	done  chan struct{} // closed when it has ended

	mu     sync.Mutex
	last   uint64
	open   map[string]*request
	reaped bool
	why    error // why it was ended
}

// request waits for an answer.
type request struct {
	answer   chan reply // has room for it
	deadline *time.Timer
}

// startProcess starts a program in a process group of its own.
func startProcess(argv, env []string, say func(string)) (*process, error) {
	stdinEnd, stdin, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	stdout, stdoutEnd, err := os.Pipe()
	if err != nil {
		closeFiles(stdinEnd, stdin)
		return nil, err
	}
	stderr, stderrEnd, err := os.Pipe()
	if err != nil {
		closeFiles(stdinEnd, stdin, stdout, stdoutEnd)
		return nil, err
	}
	p := &process{
		cmd: &exec.Cmd{
			Path: argv[0], Args: argv, Env: env, Dir: "/", Stdin: stdinEnd, Stdout: stdoutEnd, Stderr: stderrEnd,
			SysProcAttr: &syscall.SysProcAttr{Setpgid: true},
		},
		stdin: stdin, lines: make(chan []byte, maxOpen), done: make(chan struct{}), open: map[string]*request{},
	}
	err = p.cmd.Start()
	closeFiles(stdinEnd, stdoutEnd, stderrEnd) // our copies; the program has its own
	if err != nil {
		closeFiles(stdin, stdout, stderr)
		return nil, err
	}
	go p.write()
	go p.read(stdout)
	go drainErrors(stderr, say)
	go p.wait(stdout, stderr)
	return p, nil
}

func closeFiles(files ...*os.File) {
	for _, f := range files {
		_ = f.Close() // there is nothing to lose
	}
}

// wait follows the program to its end and ends what it started. The group is ended while its first process is still a
// zombie: that keeps the group's id from being given to somebody else, who would be hit instead.
func (p *process) wait(stdout, stderr *os.File) {
	awaitExit(p.cmd.Process.Pid)
	p.mu.Lock()
	p.signal()
	p.reaped = true
	p.mu.Unlock()
	err := p.cmd.Wait()
	if err == nil {
		err = errors.New("exit status 0")
	}
	p.end(fmt.Errorf("it ended: %w", err))
	// A process that left the group may still hold the other ends: nothing waits for it.
	closeFiles(p.stdin, stdout, stderr)
	close(p.done)
}

// signal kills the group. The caller holds mu.
func (p *process) signal() {
	// 0 and 1 would be our own group and everybody.
	if pid := p.cmd.Process.Pid; !p.reaped && pid > 1 {
		_ = syscall.Kill(-pid, syscall.SIGKILL) // a group without members is what we want
	}
}

// end kills the program with all of its group and fails what waits. The first reason counts.
func (p *process) end(why error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.signal()
	if p.why != nil {
		return
	}
	p.why = why
	for id, r := range p.open {
		delete(p.open, id)
		r.deadline.Stop()
		close(r.answer)
	}
}

func (p *process) reason() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.why
}

// ask sends one event and waits for its answer. A program that does not answer by the deadline of the context is
// ended, even when the caller has gone before: it hangs.
func (p *process) ask(ctx context.Context, hook Name, event, about []byte) (reply, error) {
	id, r, err := p.opened(ctx)
	if err != nil {
		return reply{}, err
	}
	line := make([]byte, 0, len(event)+len(about)+96)
	line = append(line, `{"id":"`...)
	line = append(append(line, id...), `","hook":"`...)
	line = append(append(line, hook...), `","event":`...)
	line = append(append(line, event...), `,"ctx":`...)
	line = append(append(line, about...), "}\n"...)
	select {
	case p.lines <- line:
	default: // there is room for every open request, unless it answers what it has not read
		p.end(errors.New("it does not take its input"))
	}
	select {
	case answer, ok := <-r.answer:
		if deadline, _ := ctx.Deadline(); !ok && !time.Now().Before(deadline) {
			return reply{}, errTimeout
		}
		if !ok {
			return reply{}, fmt.Errorf("its program was ended: %v", p.reason())
		}
		return answer, nil
	case <-ctx.Done():
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			p.end(errTimeout)
		}
		return reply{}, ctx.Err()
	}
}

// opened makes a request.
func (p *process) opened(ctx context.Context) (string, *request, error) {
	deadline, ok := ctx.Deadline()
	if !ok {
		return "", nil, errors.New("a program is asked without a time-out")
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.why != nil:
		return "", nil, p.why
	case len(p.open) >= maxOpen:
		return "", nil, fmt.Errorf("%d requests wait for its answer", len(p.open))
	}
	p.last++
	r := &request{answer: make(chan reply, 1)}
	// For a request whose caller goes away before the deadline.
	r.deadline = time.AfterFunc(time.Until(deadline)+time.Millisecond, func() { p.end(errTimeout) })
	id := strconv.FormatUint(p.last, 10)
	p.open[id] = r
	return id, r, nil
}

// write sends the requests. A program that does not read makes it wait; the deadline of its requests ends that.
func (p *process) write() {
	for {
		select {
		case line := <-p.lines:
			if _, err := p.stdin.Write(line); err != nil {
				p.end(fmt.Errorf("it does not take its input: %w", err))
				return
			}
		case <-p.done:
			return
		}
	}
}

// read takes the answers.
func (p *process) read(stdout *os.File) {
	lines := bufio.NewScanner(stdout)
	lines.Buffer(make([]byte, 0, 4096), maxAnswer)
	for lines.Scan() {
		answer, err := readReply(lines.Bytes())
		if err != nil {
			p.end(fmt.Errorf("its output is not an answer: %w", err))
			return
		}
		if !p.deliver(answer) {
			p.end(errors.New("it answered what nobody had asked"))
			return
		}
	}
	switch err := lines.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		p.end(fmt.Errorf("it wrote a line of more than %d bytes", maxAnswer))
	default:
		select { // its end says more
		case <-p.done:
		case <-time.After(100 * time.Millisecond):
			p.end(errors.New("it closed its output"))
		}
	}
}

// deliver hands an answer to the request with its id, which must be open.
func (p *process) deliver(answer reply) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := p.open[answer.ID]
	if r == nil {
		return false
	}
	delete(p.open, answer.ID)
	r.deadline.Stop()
	r.answer <- answer
	return true
}

// drainErrors passes on what a program says, up to some lines at a time, and reads on: a full pipe would stop the
// program.
func drainErrors(stderr *os.File, say func(string)) {
	const burst = 20
	reader := bufio.NewReaderSize(stderr, maxErrorLine)
	said, since := 0, time.Now()
	for {
		line, more, err := reader.ReadLine()
		if err != nil {
			return
		}
		if time.Since(since) > time.Second {
			said, since = 0, time.Now()
		}
		if said++; said <= burst {
			say(string(line))
		} else if said == burst+1 {
			say("… and more, which is not logged")
		}
		for more && err == nil {
			_, more, err = reader.ReadLine()
		}
	}
}
