package remote

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/toolward/toolward/sandbox"
)

// start starts a command and says how it has ended. Its streams are pipes whose other ends went with the answer.
func (c *call) start(ctx context.Context) {
	var a starting
	if err := c.args(&a); err != nil {
		_ = fail(c.conn, err) // whoever asked has hung up
		return
	}
	h, err := c.box(a.Box)
	if err != nil {
		_ = fail(c.conn, err) // as above
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // it ends the command, if nobody has been told of it
	p, err := h.Start(ctx, a.Command)
	if err != nil {
		_ = fail(c.conn, err) // as above
		return
	}
	number := c.enlist(p)
	defer c.strike(number)
	s, err := streamsOf(p)
	if err != nil {
		_ = fail(c.conn, err) // as above
		return
	}
	err = succeed(c.conn, started{Process: number, PID: p.PID(), Stdin: p.Stdin() != nil}, s.theirs...)
	closeAll(s.theirs)
	if err != nil {
		s.close()
		return
	}
	status, err := s.carry(ctx, p)
	if err != nil {
		_ = fail(c.conn, err) // as above
		return
	}
	_ = succeed(c.conn, status) // as above
}

func (in *served) enlist(p sandbox.Process) uint64 {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.last++
	in.processes[in.last] = p
	return in.last
}

func (in *served) strike(number uint64) {
	in.mu.Lock()
	defer in.mu.Unlock()
	delete(in.processes, number)
}

// streams are pipes between a command and whoever has started it from another process.
type streams struct {
	stdout, stderr *os.File // are written here
	stdin          *os.File // is read here; nil: there is none
	theirs         []*os.File
}

func streamsOf(p sandbox.Process) (s *streams, err error) {
	s = &streams{}
	for _, ours := range []**os.File{&s.stdout, &s.stderr} {
		r, w, err := os.Pipe()
		if err != nil {
			s.close()
			closeAll(s.theirs)
			return nil, err
		}
		*ours, s.theirs = w, append(s.theirs, r)
	}
	if p.Stdin() == nil {
		return s, nil
	}
	r, w, err := os.Pipe()
	if err != nil {
		s.close()
		closeAll(s.theirs)
		return nil, err
	}
	s.stdin, s.theirs = r, append(s.theirs, w)
	return s, nil
}

func (s *streams) close() {
	for _, f := range []*os.File{s.stdout, s.stderr, s.stdin} {
		if f != nil {
			_ = f.Close() // its other end sees it
		}
	}
}

// carry passes on what is written and read until the command has ended.
func (s *streams) carry(ctx context.Context, p sandbox.Process) (sandbox.ExitStatus, error) {
	defer s.close()
	// Whoever has given up does not read any more, and what is written would wait for ever.
	stop := context.AfterFunc(ctx, s.close)
	defer stop()
	var copying sync.WaitGroup
	for _, way := range []struct {
		to   *os.File
		from io.Reader
	}{{s.stdout, p.Stdout()}, {s.stderr, p.Stderr()}} {
		copying.Go(func() {
			_, _ = io.Copy(way.to, way.from)     // its reader may have gone
			_, _ = io.Copy(io.Discard, way.from) // so that the command goes on without one
			_ = way.to.Close()                   // its reader sees the end
		})
	}
	if s.stdin != nil {
		go func() { // it ends with the pipe
			_, _ = io.Copy(p.Stdin(), s.stdin) // the command may not read it
			_ = p.Stdin().Close()
			_ = s.stdin.Close() // its writer sees that nobody reads
		}()
	}
	status, err := p.Wait(context.WithoutCancel(ctx)) // it ends with the context
	copying.Wait()
	return status, err
}

// connect passes on the bytes of a connection to a program inside, after its answer.
func (c *call) connect(ctx context.Context) {
	var a connecting
	err := c.args(&a)
	var h sandbox.Handle
	if err == nil {
		h, err = c.box(a.Box)
	}
	var inner sandbox.Connection
	if err == nil {
		inner, err = h.Connect(ctx, a.Port)
	}
	if err != nil {
		_ = fail(c.conn, err) // whoever asked has hung up
		return
	}
	defer inner.Close()
	stop := context.AfterFunc(ctx, func() {
		_ = c.conn.Close() // as if both had hung up
		_ = inner.Close()
	})
	defer stop()
	if err := succeed(c.conn, nothing{}); err == nil {
		join(c.conn, inner)
	}
}

// join passes bytes both ways until both sides have said all, or the caller has gone.
func join(caller *net.UnixConn, inner sandbox.Connection) {
	var back sync.WaitGroup
	back.Go(func() {
		_, _ = io.Copy(caller, inner) // the caller may have gone
		_ = caller.CloseWrite()
	})
	_, _ = io.Copy(inner, caller)
	_ = inner.CloseWrite() // the program inside may have gone
	gone := make(chan struct{})
	go func() {
		if hungUp(caller) {
			_ = inner.Close() // nobody reads what still comes
		}
		close(gone)
	}()
	back.Wait()
	_ = caller.Close() // so that nobody waits for its end
	<-gone
}

// hungUp waits until the other side has closed a connection, which is more than having said all; false if it was closed here.
func hungUp(conn *net.UnixConn) bool {
	raw, err := conn.SyscallConn()
	if err != nil {
		return false
	}
	return raw.Read(func(fd uintptr) bool {
		state := []unix.PollFd{{Fd: int32(fd)}}
		n, err := unix.Poll(state, 0)
		return n > 0 && state[0].Revents&unix.POLLHUP != 0 || err != nil && !errors.Is(err, unix.EINTR)
	}) == nil
}
