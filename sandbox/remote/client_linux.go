package remote

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/toolward/toolward/sandbox"
)

// Options say whom a Client calls.
type Options struct {
	// Address is the path of the server's socket.
	Address string
	// Trusts says whether the process that began to listen there may make sandboxes. Required: without it nobody may.
	Trusts func(*unix.Ucred) error
	// Terms are what its engines must know.
	Terms Terms
}

// Client calls the engines of a server. It connects when it is used first, and again when the server was started anew.
type Client struct {
	options Options

	mu      sync.Mutex
	closed  bool
	current *session
}

// New returns a client. Nothing is connected yet.
func New(o Options) *Client { return &Client{options: o} }

// session is what ends with the connection that it was begun on: the sandboxes of one gateway.
type session struct {
	client *Client
	key    []byte
	life   *net.UnixConn
	gone   chan struct{} // closed when the server is
}

// Close ends the sandboxes that do not outlive their gateway.
func (c *Client) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	if c.current == nil {
		return nil
	}
	return c.current.life.Close()
}

// session is the one that lives, or a new one.
func (c *Client) session(ctx context.Context) (*session, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, sandbox.Errorf(sandbox.CodeUnavailable, "the gateway ends")
	}
	if c.current != nil && !isClosed(c.current.gone) {
		return c.current, nil
	}
	c.current = nil
	s := &session{client: c, gone: make(chan struct{})}
	conn, err := c.call(ctx, nil, callBegin, c.options.Terms, nil)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	b, _, err := answer[begun](conn)
	if !stop() && err == nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		_ = conn.Close() // it is not used
		return nil, unreachable(ctx, err)
	}
	s.key, s.life, c.current = b.Session, conn, s
	go s.watch()
	return s, nil
}

// watch waits for the end of the server: nothing else comes over this connection.
func (s *session) watch() {
	_, _ = s.life.Read(make([]byte, 1)) // whatever it was, it is the end
	_ = s.life.Close()                  // nothing is written to it
	close(s.gone)
}

// call connects and sends a request. The caller reads what comes back and closes the connection.
func (c *Client) call(ctx context.Context, session []byte, method string, args any, files []*os.File) (*net.UnixConn, error) {
	raw, err := encoding.Marshal(args)
	if err != nil {
		return nil, err
	}
	dialed, err := new(net.Dialer).DialContext(ctx, "unix", c.options.Address)
	if err != nil {
		return nil, unreachable(ctx, err)
	}
	conn := dialed.(*net.UnixConn)
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	// Before a byte is sent: what is sent are commands, secrets in their environment and the rights to directories, and what comes
	// back is believed.
	peer, err := peerOf(conn)
	if err == nil {
		if c.options.Trusts == nil {
			err = errors.New("nobody said whom to trust")
		} else {
			err = c.options.Trusts(peer)
		}
	}
	if err == nil {
		err = send(conn, &request{Protocol: Protocol, Session: session, Method: method, Args: raw}, files)
	}
	if !stop() && err == nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		_ = conn.Close() // it is not used
		return nil, unreachable(ctx, err)
	}
	return conn, nil
}

// answer reads how a call ended, and the files that came with it.
func answer[R any](conn *net.UnixConn) (value R, files []*os.File, err error) {
	var r reply
	files, err = receive(conn, &r)
	switch {
	case err != nil:
	case r.Fault != nil:
		err = &told{r.Fault.err()}
	default:
		err = decoding.Unmarshal(r.Value, &value)
	}
	if err != nil {
		closeAll(files)
		return value, nil, err
	}
	return value, files, nil
}

// told is what the engine itself said, and not the way to it.
type told struct{ error }

func (t *told) Unwrap() error { return t.error }

// open makes a call of a session whose connection stays open, for what is there as long as it.
func open[R any](ctx context.Context, s *session, method string, args any, files ...*os.File) (value R, came []*os.File, conn *net.UnixConn, err error) {
	conn, err = s.client.call(ctx, s.key, method, args, files)
	if err != nil {
		return value, nil, nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	value, came, err = answer[R](conn)
	if !stop() && err == nil {
		closeAll(came)
		err = context.Cause(ctx)
	}
	if err != nil {
		_ = conn.Close() // the server ends what it was doing
		return value, nil, nil, unreachable(ctx, err)
	}
	return value, came, conn, nil
}

// ask makes a call of a session that ends with its answer.
func ask[R any](ctx context.Context, s *session, method string, args any, files ...*os.File) (R, error) {
	value, came, conn, err := open[R](ctx, s, method, args, files...)
	if err == nil {
		closeAll(came)
		_ = conn.Close() // nothing more comes
	}
	return value, err
}

// askEngine makes a call in the session that lives.
func askEngine[R any](ctx context.Context, c *Client, method string, args any, files ...*os.File) (value R, s *session, err error) {
	if s, err = c.session(ctx); err != nil {
		return value, nil, err
	}
	value, err = ask[R](ctx, s, method, args, files...)
	return value, s, err
}

// unreachable says why nobody answered; what an engine answered is passed on.
func unreachable(ctx context.Context, err error) error {
	if t, ok := errors.AsType[*told](err); ok {
		return t.error
	}
	if e, ok := errors.AsType[*sandbox.Error](err); ok {
		return e
	}
	if ctx.Err() != nil {
		return canceled(ctx)
	}
	failed := sandbox.Errorf(sandbox.CodeUnavailable, "the process that makes sandboxes with your rights cannot be used: %v", err)
	failed.Fix = "the administrator starts it: systemctl start toolward-hands"
	return failed
}

func canceled(ctx context.Context) error {
	code := sandbox.CodeFailed
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		code = sandbox.CodeTimeout
	}
	return sandbox.Errorf(code, "it was given up: %v", context.Cause(ctx))
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// Trusted is what Options.Trusts is where root has made the socket and nobody else could have: the kernel names the user who began to
// listen.
func Trusted(uid uint32) func(*unix.Ucred) error {
	return func(peer *unix.Ucred) error {
		if peer.Uid != uid {
			return fmt.Errorf("user %d listens there, where only user %d may", peer.Uid, uid)
		}
		return nil
	}
}
