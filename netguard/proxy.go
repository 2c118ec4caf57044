package netguard

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"sync"
	"syscall"
	"time"
)

// Permit decides whether a host may be connected to. It may wait for people. The host is in its one form, and what is
// permitted is what is dialed. An error refuses; an *Error may say why in words.
type Permit func(ctx context.Context, host string, port uint16) (Leave, error)

// Leave is the permission to make one connection.
type Leave interface {
	// Guard is what dials this connection, where it is not the proxy's own; nil: it is.
	Guard() *Guard
	// Spend is asked before n bytes leave. An error keeps them back and ends the connection.
	Spend(n int) error
	// End is told once how the connection ended, or that it could not be made.
	End(Connection)
}

// Proxy is the only way out of a sandbox: HTTP (CONNECT, and plain requests) and SOCKS5 on one listener. Names are looked
// up here, never inside. The zero value refuses everything.
type Proxy struct {
	Guard  *Guard
	Permit Permit
	// Known reports whether Permit decides about a host whatever the policy of Guard says of its name and port, because it has a
	// guard of its own for it; may be nil.
	Known func(host string, port uint16) bool
	// Refused is told of what nobody was asked about because it is never reached; may be nil.
	Refused func(host string, port uint16, why *Error)
}

// Connection is what came of one connection through a [Proxy].
type Connection struct {
	Host     string
	Port     uint16
	Err      error // why it was not made, or was cut; nil if it was made and ended by itself
	Sent     int64 // bytes that left the sandbox
	Received int64
	Took     time.Duration
}

// Bounds of a proxy.
const (
	maxConnections = 256
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
		// A program that opens more waits for its own, in the queue of the socket, where it costs the gateway nothing.
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
			return nil
		}
		conn, err := l.Accept()
		if err != nil {
			<-slots
			switch {
			case ctx.Err() != nil || errors.Is(err, net.ErrClosed):
				return nil
			case isShort(err):
				// A program that makes the gateway run out of descriptors must not end the proxy for good.
				select {
				case <-ctx.Done():
				case <-time.After(acceptAgain):
				}
				continue
			}
			return err
		}
		serving.Go(func() {
			defer func() { <-slots }()
			p.serve(ctx, conn)
		})
	}
}

// acceptAgain is how long the proxy waits where the system is short of something.
const acceptAgain = 100 * time.Millisecond

// isShort reports whether a connection could not be accepted for want of something that others will give back.
func isShort(err error) bool {
	return slices.ContainsFunc([]error{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM, syscall.ECONNABORTED}, func(short error) bool {
		return errors.Is(err, short)
	})
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
	p.connect(ctx, c)
}

// connect asks for leave, and makes the connection with it.
func (p *Proxy) connect(ctx context.Context, c *client) {
	name, leave, err := p.ask(ctx, c)
	if err != nil {
		refused, ok := errors.AsType[*Error](err)
		if !ok {
			refused = &Error{Code: CodeNotPermitted, Host: shown(c.host)}
		}
		c.answerRefused(refused)
		return
	}
	began := time.Now()
	result := Connection{Host: name, Port: c.port}
	there, refused := p.dial(ctx, c, leave, name)
	if refused != nil {
		// Before the client knows, so that whoever waits for its end can say why.
		result.Err, result.Took = refused, time.Since(began)
		leave.End(result)
		c.answerRefused(refused)
		return
	}
	result.Err = p.pass(ctx, c, there, leave, &result)
	result.Took = time.Since(began)
	leave.End(result)
}

// dial makes the connection that was permitted.
func (p *Proxy) dial(ctx context.Context, c *client, leave Leave, name string) (net.Conn, *Error) {
	there, err := cmp.Or(leave.Guard(), p.Guard).Dial(ctx, bracketed(name), c.port)
	if err == nil {
		return there, nil
	}
	if refused, ok := errors.AsType[*Error](err); ok {
		return nil, refused
	}
	return nil, &Error{Code: CodeConnect, Host: name}
}

// ask checks before anybody is asked: people are not to be bothered with what may not be reached whatever they say.
func (p *Proxy) ask(ctx context.Context, c *client) (name string, leave Leave, err error) {
	if p.Guard == nil || p.Permit == nil {
		return "", nil, &Error{Code: CodeNotPermitted, Host: shown(c.host)}
	}
	h, refused := p.host(c)
	if refused != nil {
		if p.Refused != nil {
			p.Refused(shown(c.host), c.port, refused)
		}
		return "", nil, refused
	}
	// Whoever hangs up while people are asked withdraws the question.
	asking, cancel := context.WithCancel(ctx)
	defer cancel()
	gone := c.watch(cancel)
	leave, err = p.Permit(asking, h.text, c.port)
	gone()
	if err == nil && leave == nil {
		err = &Error{Code: CodeNotPermitted, Host: h.text}
	}
	return h.text, leave, err
}

// host is the one form of the host that a client asks for, if it may be asked about.
func (p *Proxy) host(c *client) (host, *Error) {
	if h, refused := normalize(c.host); refused == nil && p.Known != nil && p.Known(h.text, c.port) {
		return h, nil
	}
	h, refused := p.Guard.policy.host(c.host)
	if bad := p.Guard.policy.port(c.port); refused == nil && bad != nil {
		refused = &Error{Code: bad.Code, Host: h.text}
	}
	return h, refused
}

// pass passes bytes until the connection ends.
func (p *Proxy) pass(ctx context.Context, c *client, there net.Conn, leave Leave, result *Connection) error {
	defer there.Close()
	stop := context.AfterFunc(ctx, func() { _ = there.Close() })
	defer stop()
	c.bound()
	if err := c.accept(); err != nil {
		return &Error{Code: CodeClientGone, Host: result.Host}
	}
	_ = c.SetDeadline(time.Time{})
	return c.join(there, leave, result)
}

// bound gives a client that does not read a moment to take an answer: it must not hold its place for ever.
func (c *client) bound() { _ = c.SetWriteDeadline(time.Now().Add(handshakeTime)) }

func (c *client) answerRefused(e *Error) {
	c.bound()
	c.refuse(e)
}

// watch calls hungUp when the client closes its side before it has been answered. The function that it returns ends the
// watch; what the client has sent meanwhile is kept.
func (c *client) watch(hungUp func()) (end func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		// One that sends something first and hangs up then is gone, too.
		for err := error(nil); err == nil && c.in.Buffered() < c.in.Size(); {
			if _, err = c.in.Peek(c.in.Buffered() + 1); err != nil && !isTimeout(err) {
				hungUp()
			}
		}
	}()
	return func() {
		_ = c.SetReadDeadline(time.Unix(1, 0))
		<-done
		_ = c.SetReadDeadline(time.Time{})
		// A reader that has met the deadline says so again; what it holds is not lost.
		c.in = bufio.NewReader(io.MultiReader(bytes.NewReader(bytes.Clone(c.buffered())), c.Conn))
	}
}

func isTimeout(err error) bool {
	var t net.Error
	return errors.As(err, &t) && t.Timeout()
}

// join copies in both directions until both have ended.
func (c *client) join(there net.Conn, leave Leave, result *Connection) (err error) {
	out := &metered{to: there, spend: leave.Spend}
	var leaving sync.WaitGroup
	leaving.Go(func() {
		if len(c.first) > 0 {
			// One request, one answer: what a client sends behind it, as to another host, goes nowhere.
			_, err = out.Write(c.first)
		} else if _, err = io.Copy(out, c.in); err == nil {
			closeWrite(there)
			_ = there.SetReadDeadline(time.Now().Add(lingerTime))
		}
		if err != nil {
			_ = there.Close()
		}
	})
	n, _ := io.Copy(c.Conn, there)
	result.Received += n
	closeWrite(c.Conn)
	if len(c.first) > 0 {
		_ = c.Close()
	}
	_ = c.SetReadDeadline(time.Now().Add(lingerTime))
	leaving.Wait()
	result.Sent = out.sent
	if refused, ok := errors.AsType[*Error](err); ok {
		return refused
	}
	return nil // that one side ends a connection is no failure
}

// metered counts what leaves, and asks first.
type metered struct {
	to    io.Writer
	spend func(int) error
	sent  int64
}

func (m *metered) Write(p []byte) (int, error) {
	if err := m.spend(len(p)); err != nil {
		return 0, err
	}
	n, err := m.to.Write(p)
	m.sent += int64(n)
	return n, err
}

func closeWrite(conn net.Conn) {
	if half, ok := conn.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
		return
	}
	_ = conn.Close()
}
