//go:build linux

package serve

import (
	"errors"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/toolward/toolward/sandbox/inside/wire"
	"github.com/toolward/toolward/sandbox/task"
)

// lingerTime is how long the ends of the output are waited for once all processes of a command are gone. Only one that left
// the command's group can still hold them.
const lingerTime = 200 * time.Millisecond

// pumps move what a command reads and writes.
type pumps struct {
	stream    *stream
	terminal  *os.File
	stdin     *os.File // nil without
	outputs   []outputEnd
	running   sync.WaitGroup
	done      chan struct{} // closed when all output has been sent
	once      sync.Once
	abandoned chan struct{} // closed when the gateway wants no more
}

// outputEnd is where output of a command comes from.
type outputEnd struct {
	kind    wire.Type
	file    *os.File
	fd      int
	allowed *wire.Allowance
}

// open makes the streams of a command. child is what the program gets; the caller closes it.
func (st *stream) open(command *task.Command) (p *pumps, child [3]uintptr, err error) {
	p = &pumps{stream: st, done: make(chan struct{}), abandoned: make(chan struct{})}
	if command.Terminal != nil {
		child, err = p.openTerminal(command.Terminal)
		return p, child, err
	}
	child = [3]uintptr{uintptr(st.server.null)}
	if command.Stdin {
		var write int
		if child[0], write, err = pipeTo(); err != nil {
			return nil, child, err
		}
		p.stdin = os.NewFile(uintptr(write), "stdin")
	}
	for i, kind := range []wire.Type{wire.Stdout, wire.Stderr} {
		if command.Merged && kind == wire.Stderr {
			child[2] = child[1] // one pipe keeps the order
			break
		}
		var read int
		if read, child[i+1], err = pipeFrom(); err != nil {
			p.close()
			st.server.closeChild(child)
			return nil, child, err
		}
		allowed := st.stdout
		if kind == wire.Stderr {
			allowed = st.stderr
		}
		p.outputs = append(p.outputs, outputEnd{kind, os.NewFile(uintptr(read), "output"), read, allowed})
	}
	return p, child, nil
}

// closeChild closes what a program was given.
func (s *server) closeChild(child [3]uintptr) {
	for i, fd := range child {
		if fd == 0 || int(fd) == s.null || i > 0 && fd == child[i-1] { // never opened, shared, or a terminal's
			continue
		}
		_ = unix.Close(int(fd)) // the program has its own
	}
}

func pipe() (read, write int, err error) {
	var ends [2]int
	if err := unix.Pipe2(ends[:], unix.O_CLOEXEC); err != nil {
		return -1, -1, task.Errorf(task.CodeFailed, "open a pipe: %v", err)
	}
	return ends[0], ends[1], nil
}

// pipeTo is a pipe that the program reads: its end waits, ours does not.
func pipeTo() (child uintptr, write int, err error) {
	read, write, err := pipe()
	if err == nil {
		_ = unix.SetNonblock(write, true) // it then waits, which is slower
	}
	return uintptr(read), write, err
}

func pipeFrom() (read int, child uintptr, err error) {
	read, write, err := pipe()
	if err == nil {
		_ = unix.SetNonblock(read, true) // see above
	}
	return read, uintptr(write), err
}

// begin starts moving.
func (p *pumps) begin() {
	for i := range p.outputs {
		p.running.Add(1)
		go p.pump(&p.outputs[i])
	}
	if p.stdin != nil {
		go p.copyInput()
	}
	go func() {
		p.running.Wait()
		close(p.done)
	}()
}

// pump sends output as far as the gateway has room for it.
func (p *pumps) pump(from *outputEnd) {
	defer p.running.Done()
	taken := buffers.Get().(*[]byte)
	defer buffers.Put(taken)
	frame := *taken
	read := from.file.Read
	for {
		allowed, err := from.allowed.Take(len(frame) - wire.HeaderSize)
		if err != nil {
			return
		}
		n, err := read(frame[wire.HeaderSize : wire.HeaderSize+allowed])
		from.allowed.Return(allowed - max(n, 0))
		if n > 0 && p.stream.server.out.sendFrame(from.kind, p.stream.id, frame[:wire.HeaderSize+n]) != nil {
			return
		}
		if n == len(frame)-wire.HeaderSize && err == nil && !p.spliceAll(from) {
			return
		}
		switch {
		case err == nil:
		case errors.Is(err, os.ErrDeadlineExceeded): // take what is there and wait no more
			read = func(b []byte) (int, error) { return readNow(from.fd, b) }
		default:
			return
		}
	}
}

const (
	// spliceLeast is how much must be ready to be moved without being copied.
	spliceLeast = 16 << 10
	// floodPipe is the pipe of a command that writes much: the larger it is, the less often one waits for the other. It is
	// the most that the kernel gives to those without rights.
	floodPipe = 1 << 20
)

// spliceAll moves output from the pipe to the gateway without copying it, as long as there is much of it. false: the
// gateway cannot be reached.
func (p *pumps) spliceAll(from *outputEnd) bool {
	out := &p.stream.server.out
	if out.raw == nil || p.terminal != nil {
		return true
	}
	_, _ = unix.FcntlInt(uintptr(from.fd), unix.F_SETPIPE_SZ, floodPipe) // it is only faster
	for {
		ready, err := unix.IoctlGetInt(from.fd, unix.TIOCINQ)
		if err != nil || ready < spliceLeast {
			return true
		}
		n, err := from.allowed.Take(min(ready, wire.MaxPayload))
		if err != nil {
			return true // whoever closed it is noticed by the next
		}
		if out.splice(from.kind, p.stream.id, from.fd, n) != nil {
			return false
		}
	}
}

// copyInput hands over what the gateway sends.
func (p *pumps) copyInput() {
	input := p.stream.input
	_, err := input.WriteTo(p.stdin)
	switch {
	case err != nil: // the command reads no more: the gateway need not wait for it
		_, _ = input.WriteTo(io.Discard) // nobody reads it
	case p.terminal != nil:
		_, _ = p.stdin.Write([]byte{4}) // ^D; a terminal has no other end of input
	default:
		_ = p.stdin.Close() // all was written
	}
}

// finish waits for the rest of the output. The processes that could still write are gone, but for those that left the
// command's group; they are not waited for. Whoever does not read is, unless the gateway has given the command up.
//
// keep: what the command left behind goes on. Its output goes nowhere from now on, and is still read: a server that was
// started in the background must not die of its next line.
func (p *pumps) finish(keep bool) {
	if keep {
		defer func() { go p.drain() }()
	} else {
		defer p.close()
	}
	select {
	case <-p.done:
		return
	default:
	}
	timer := time.NewTimer(lingerTime)
	defer timer.Stop()
	select {
	case <-p.done:
		return
	case <-timer.C:
	}
	for i := range p.outputs {
		_ = p.outputs[i].file.SetReadDeadline(time.Now()) // a file that cannot be waited for needs none
	}
	select {
	case <-p.done:
		return
	case <-p.abandoned:
	}
	timer.Reset(lingerTime)
	select {
	case <-p.done:
		return
	case <-timer.C:
	}
	for i := range p.outputs {
		_ = p.outputs[i].allowed.Close(errStopped) // whoever was first
	}
	<-p.done
}

// drain reads what is written by processes that go on, until the last of them has ended.
func (p *pumps) drain() {
	for i := range p.outputs {
		if p.outputs[i].file != p.terminal && p.outputs[i].file.SetReadDeadline(time.Time{}) == nil {
			_, _ = io.Copy(io.Discard, p.outputs[i].file) // it ends with the pipe
		}
	}
	p.close()
}

// abandon says that nobody may read the output any more.
func (p *pumps) abandon() { p.once.Do(func() { close(p.abandoned) }) }

func (p *pumps) close() {
	for i := range p.outputs {
		_ = p.outputs[i].file.Close() // it was only read
	}
	if p.stdin != nil && p.stdin != p.terminal {
		_ = p.stdin.Close() // nobody reads it
	}
}
