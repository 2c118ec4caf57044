package netguard

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"time"
)

// Permit decides whether a host may be connected to. It may wait for people. The host is in its one form, and what is
// permitted is what is dialled. An error refuses.
type Permit func(ctx context.Context, host string, port uint16) error

// Proxy is the only way out of a sandbox: HTTP (CONNECT, and plain requests) and SOCKS5 on one listener. Names are looked
// up here, never inside. The zero value refuses everything.
type Proxy struct {
	Guard  *Guard
	Permit Permit
	// Ended is told of every connection that was asked for, when it is over; may be nil.
	Ended func(Connection)
}

// Connection is what came of one connection through a [Proxy].
type Connection struct {
	Host     string
	Port     uint16
	Err      error // why it was refused or failed; nil if it was made
	Sent     int64 // bytes that left the sandbox
	Received int64
	Took     time.Duration
}

// Bounds of a proxy.
const (
	maxConnections = 128
	handshakeTime  = 15 * time.Second
	maxHead        = 64 << 10
	// lingerTime is how long one direction may go on after the other has ended.
	lingerTime = time.Minute
)

// Serve accepts connections until the context ends or the listener is closed, and returns when all are over.
func (p *Proxy) Serve(ctx context.Context, l net.Listener) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { _ = l.Close() })
	defer stop()
	var serving sync.WaitGroup
	defer serving.Wait()
	defer cancel()
	slots := make(chan struct{}, maxConnections)
	for {
		conn, err := l.Accept()
		if err != nil {
			if ctx.Err() != nil || errors.Is(err, net.ErrClosed) {
				return nil
			}
			return err
		}
		select {
		case slots <- struct{}{}:
		default:
			_ = conn.Close() // a program that opens more waits for its own
			continue
		}
		serving.Go(func() {
			defer func() { <-slots }()
			p.serve(ctx, conn)
		})
	}
}

// client is one connection from inside, with what it asks for.
type client struct {
	net.Conn
	in    *bufio.Reader
	host  string // as written
	port  uint16
	first []byte // goes to the host before everything else: a plain HTTP request
	// accept and refuse answer in the protocol that the client speaks.
	accept func() error
	refuse func(*Error)
}

func (p *Proxy) serve(ctx context.Context, conn net.Conn) {
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	_ = conn.SetDeadline(time.Now().Add(handshakeTime))
	c := &client{Conn: conn, in: bufio.NewReaderSize(io.LimitReader(conn, maxHead), 4096)}
	first, err := c.in.Peek(1)
	if err != nil {
		return
	}
	if first[0] == socksVersion {
		err = c.readSOCKS()
	} else {
		err = c.readHTTP()
	}
	if err != nil {
		return // it was answered as far as the protocol has an answer
	}
	_ = conn.SetDeadline(time.Time{})
	began := time.Now()
	result := Connection{Host: shown(c.host), Port: c.port}
	result.Err = p.connect(ctx, c, &result)
	result.Took = time.Since(began)
	if p.Ended != nil {
		p.Ended(result)
	}
}

func (p *Proxy) connect(ctx context.Context, c *client, result *Connection) error {
	there, err := p.dial(ctx, c, result)
	if err != nil {
		refused, ok := errors.AsType[*Error](err)
		if !ok {
			refused = &Error{Code: CodeNotPermitted, Host: result.Host}
		}
		c.refuse(refused)
		return err
	}
	defer there.Close()
	stop := context.AfterFunc(ctx, func() { _ = there.Close() })
	defer stop()
	if err := c.accept(); err != nil {
		return err
	}
	if len(c.first) > 0 {
		if _, err := there.Write(c.first); err != nil {
			return &Error{Code: CodeConnect, Host: result.Host}
		}
		result.Sent += int64(len(c.first))
	}
	c.join(there, result)
	return nil
}

// dial checks before anybody is asked: people are not to be bothered with what may not be reached whatever they say.
func (p *Proxy) dial(ctx context.Context, c *client, result *Connection) (net.Conn, error) {
	if p.Guard == nil || p.Permit == nil {
		return nil, &Error{Code: CodeNotPermitted, Host: result.Host}
	}
	if refused := p.Guard.policy.port(c.port); refused != nil {
		return nil, refused
	}
	h, refused := p.Guard.policy.host(c.host)
	if refused != nil {
		return nil, refused
	}
	result.Host = h.text
	// Whoever hangs up while people are asked withdraws the question.
	asking, cancel := context.WithCancel(ctx)
	defer cancel()
	gone := c.watch(cancel)
	err := p.Permit(asking, h.text, c.port)
	gone()
	if err != nil {
		return nil, err
	}
	return p.Guard.Dial(ctx, bracketed(h.text), c.port)
}

// watch calls hungUp when the client closes its side before it has been answered. The function that it returns ends the
// watch; what the client has sent meanwhile is kept.
func (c *client) watch(hungUp func()) (end func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		if _, err := c.in.Peek(1); err != nil && !isTimeout(err) {
			hungUp()
		}
	}()
	return func() {
		_ = c.SetReadDeadline(time.Unix(1, 0))
		<-done
		_ = c.SetReadDeadline(time.Time{})
		// A reader that has met the deadline says so again; what it holds is not lost.
		held, _ := c.in.Peek(c.in.Buffered())
		c.in = bufio.NewReader(io.MultiReader(newHeld(held), c.Conn))
	}
}

func isTimeout(err error) bool {
	var t net.Error
	return errors.As(err, &t) && t.Timeout()
}

// newHeld is a reader of a copy.
func newHeld(b []byte) io.Reader { return &heldReader{append([]byte(nil), b...)} }

type heldReader struct{ rest []byte }

func (h *heldReader) Read(p []byte) (int, error) {
	if len(h.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(p, h.rest)
	h.rest = h.rest[n:]
	return n, nil
}

// join copies in both directions until both have ended.
func (c *client) join(there net.Conn, result *Connection) {
	var out sync.WaitGroup
	out.Go(func() {
		n, _ := io.Copy(there, c.in)
		result.Sent += n
		closeWrite(there)
		_ = there.SetReadDeadline(time.Now().Add(lingerTime))
	})
	n, _ := io.Copy(c.Conn, there)
	result.Received += n
	closeWrite(c.Conn)
	if len(c.first) > 0 {
		_ = c.Close() // one request, one answer
	}
	_ = c.SetReadDeadline(time.Now().Add(lingerTime))
	out.Wait()
}

func closeWrite(conn net.Conn) {
	if half, ok := conn.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
		return
	}
	_ = conn.Close()
}
