package inside

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/toolward/toolward/sandbox"
	"github.com/toolward/toolward/sandbox/inside/wire"
)

// Bounds on this side.
const (
	maxCommands    = 48 // at the same time
	maxConnections = 64
	maxCalls       = wire.MaxStreams - maxCommands - maxConnections // file operations
	// stallTime is how long the program inside may leave a frame unread, and how long it may take to give up something
	// after it was told to: one that does neither is dead or hostile.
	stallTime = 15 * time.Second
	// stopTime is what it needs to end a command that does not want to: SIGTERM, two seconds, SIGKILL.
	stopTime = 3 * time.Second
)

// Client is the connection to the program inside one sandbox. Its methods are those of [sandbox.Handle], with the same
// contract, and can be called from many goroutines.
type Client struct {
	conn   io.ReadWriteCloser
	setup  Setup
	sender sender
	calls  chan struct{} // a place for each file operation

	mu       sync.Mutex
	streams  map[uint32]stream
	last     uint32 // stream
	commands int
	dialed   int // connections that have not ended
	err      error
	done     chan struct{} // closed with err
}

// stream is one request that is not answered yet. Only the receiver calls it.
type stream interface {
	// numbered tells the number of the stream, before anything else.
	numbered(id uint32)
	// receive takes the frame whose header was read. final: it was the last one. An error ends the connection.
	receive(h wire.Header, r *wire.Reader) (final bool, err error)
	// lost tells that the connection has ended.
	lost(err error)
	// answered is called after the final frame, when the stream has been forgotten.
	answered()
}

// Connect greets the program inside and sends it its set-up. The client takes the stream over, also when it fails.
func Connect(ctx context.Context, conn io.ReadWriteCloser, setup Setup) (*Client, error) {
	c := &Client{
		conn: conn, setup: setup, calls: make(chan struct{}, maxCalls), streams: map[uint32]stream{}, done: make(chan struct{}),
	}
	c.sender = sender{turn: make(chan struct{}, 1), client: c}
	reader := wire.NewReader(conn)
	// Closing the stream is the only way to end a read that somebody else made wait.
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() }) // the read fails then
	err := c.greet(reader)
	if !stop() && err == nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		c.fail(fmt.Errorf("greet it: %w", err))
		return nil, c.Err()
	}
	go c.receive(reader)
	return c, nil
}

func (c *Client) greet(reader *wire.Reader) error {
	hello := wire.Hello{
		Version: wire.Version, Workdir: c.setup.Workdir, Env: c.setup.Env, Protected: c.setup.Protected,
		Hardlinks: c.setup.Hardlinks, OpenFiles: c.setup.Limits.OpenFiles, FileSize: c.setup.Limits.FileSize,
		Detach: c.setup.Detach,
	}
	for _, m := range c.setup.Mounts {
		hello.Mounts = append(hello.Mounts, wire.Mount{Target: m.Target, Writable: m.Writable})
	}
	rand.Read(hello.Nonce[:]) // it never fails
	payload := hello.Encode()
	if len(payload) > wire.MaxPayload {
		return errors.New("mounts and environment are too large")
	}
	if _, err := c.conn.Write(wire.AppendFrame(nil, wire.Request, 0, payload)); err != nil {
		return err
	}
	h, err := reader.Next()
	if err != nil {
		return err
	}
	answer, err := reader.Payload()
	switch {
	case err != nil:
		return err
	case h.Stream == 0 && h.Type == wire.Error:
		refusal, broken := wire.DecodeError(answer)
		if broken != nil {
			return broken
		}
		return refusal
	case h.Stream != 0 || h.Type != wire.Response:
		return wire.Violation("the first frame is no greeting")
	}
	welcome, err := wire.DecodeWelcome(answer)
	switch {
	case err != nil:
		return err
	case welcome.Version != wire.Version:
		return fmt.Errorf("it speaks version %d of the protocol, not %d", welcome.Version, wire.Version)
	case welcome.Nonce != hello.Nonce: // what an earlier connection left in the stream must not be taken for an answer
		return wire.Violation("the greeting answers somebody else")
	}
	return nil
}

// receive hands every frame to its stream until the connection ends.
func (c *Client) receive(reader *wire.Reader) {
	for {
		h, err := reader.Next()
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = errors.New("it ended")
			}
			c.fail(err)
			return
		}
		c.mu.Lock()
		s := c.streams[h.Stream]
		c.mu.Unlock()
		if s == nil {
			c.fail(wire.Violation("a frame for no request"))
			return
		}
		final, err := s.receive(h, reader)
		if err != nil {
			c.fail(err)
			return
		}
		if final && c.forget(h.Stream) { // otherwise the connection ended at the same time, and fail has told it
			s.answered()
		}
	}
}

// open gives a stream its number.
func (c *Client) open(s stream) (uint32, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return 0, c.err
	}
	c.last++
	if c.last == 0 { // four thousand million requests: numbers would come back
		return 0, sandbox.Errorf(sandbox.CodeUnavailable, "the connection into the sandbox is used up")
	}
	s.numbered(c.last)
	c.streams[c.last] = s
	return c.last, nil
}

// forget takes a stream out of the list. false: somebody else has, who tells it of the end.
func (c *Client) forget(id uint32) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, there := c.streams[id]
	delete(c.streams, id)
	return there
}

// fail ends the connection. The first reason counts.
func (c *Client) fail(reason error) {
	c.mu.Lock()
	if c.err != nil {
		c.mu.Unlock()
		return
	}
	c.err = sandbox.Errorf(sandbox.CodeUnavailable, "the connection to the program inside the sandbox ended: %v", reason)
	waiting := make([]stream, 0, len(c.streams))
	for _, s := range c.streams {
		waiting = append(waiting, s)
	}
	clear(c.streams)
	close(c.done)
	c.mu.Unlock()
	_ = c.conn.Close() // it is over
	for _, s := range waiting {
		s.lost(c.err)
	}
}

// End ends the connection for a reason that everything is told that waits: what the sandbox is about to be ended for.
func (c *Client) End(reason string) { c.fail(errors.New(reason)) }

// giveUp ends the connection unless what was told to end has done so in time.
func (c *Client) giveUp(answered <-chan struct{}, after time.Duration) {
	timer := time.NewTimer(after)
	defer timer.Stop()
	select {
	case <-answered:
	case <-c.done:
	case <-timer.C:
		c.fail(errors.New("it does not answer"))
	}
}

// Done is closed when the connection has ended.
func (c *Client) Done() <-chan struct{} { return c.done }

// Err says why the connection has ended; nil while it has not.
func (c *Client) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// Close ends the connection, and with it everything that the program inside runs.
func (c *Client) Close() error {
	c.fail(errors.New("it was closed"))
	return nil
}

// sender writes frames, one after the other.
type sender struct {
	turn   chan struct{} // full while somebody writes
	client *Client
	frame  []byte
	stall  *time.Timer
}

// send writes a frame.
func (s *sender) send(ctx context.Context, t wire.Type, stream uint32, payload ...[]byte) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.leave()
	return s.write(t, stream, payload...)
}

// request opens a stream and writes its first frame. sent is false if the stream was not opened, or taken back.
func (c *Client) request(ctx context.Context, st stream, payload []byte) (sent bool, err error) {
	if err := c.sender.enter(ctx); err != nil {
		return false, err
	}
	defer c.sender.leave() // numbers are given in the order of sending
	id, err := c.open(st)
	if err != nil {
		return false, err
	}
	if err := c.sender.write(wire.Request, id, payload); err != nil {
		return !c.forget(id), err
	}
	return true, nil
}

// enter waits for the turn to write.
func (s *sender) enter(ctx context.Context) error {
	select {
	case s.turn <- struct{}{}:
		return nil
	default:
	}
	select {
	case s.turn <- struct{}{}:
		return nil
	case <-s.client.done:
		return s.client.Err()
	case <-ctx.Done():
		return canceled(ctx)
	}
}

func (s *sender) leave() { <-s.turn }

// write writes a frame. A peer that does not read it in time ends the connection: nobody else could send either.
func (s *sender) write(t wire.Type, stream uint32, payload ...[]byte) error {
	s.frame = wire.AppendFrame(s.frame[:0], t, stream, payload...)
	if s.stall == nil {
		s.stall = time.AfterFunc(stallTime, func() { s.client.fail(errors.New("it does not read")) })
	} else {
		s.stall.Reset(stallTime)
	}
	_, err := s.client.conn.Write(s.frame)
	s.stall.Stop()
	if cap(s.frame) > wire.Window {
		s.frame = nil
	}
	if err != nil {
		s.client.fail(err)
		return s.client.Err()
	}
	return nil
}

func canceled(ctx context.Context) error {
	code := sandbox.CodeFailed
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		code = sandbox.CodeTimeout
	}
	return sandbox.Errorf(code, "it was given up: %v", context.Cause(ctx))
}

// reaches reports whether a path that the program inside told lies in a mount. What lies elsewhere cannot have been
// read or written for us.
func (s *Setup) reaches(path string) bool {
	for i := range s.Mounts {
		root := strings.TrimSuffix(s.Mounts[i].Target, "/")
		if rest, ok := strings.CutPrefix(path, root); ok && (rest == "" || rest[0] == '/') {
			return true
		}
	}
	return false
}
