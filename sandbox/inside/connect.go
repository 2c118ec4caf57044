package inside

import (
	"context"
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/toolward/toolward/sandbox"
	"github.com/toolward/toolward/sandbox/inside/wire"
)

// Ports are those on which programs inside listen.
func (c *Client) Ports(ctx context.Context) (ports []sandbox.Port, more bool, err error) {
	done, err := c.do(ctx, &wire.Call{Op: wire.OpPorts}, nil)
	if err != nil {
		return nil, false, err
	}
	if ports, more, err = wire.DecodePorts(done.answer); err != nil {
		return nil, false, c.broken(err)
	}
	return ports, more, nil
}

// Connect connects to a port inside. Sixty-four connections can be open at the same time.
func (c *Client) Connect(ctx context.Context, port uint16) (sandbox.Connection, error) {
	if port == 0 {
		return nil, sandbox.Errorf(sandbox.CodeNotFound, "there is no port 0")
	}
	if ctx.Err() != nil {
		return nil, canceled(ctx)
	}
	if err := c.dial(); err != nil {
		return nil, err
	}
	conn := &connection{client: c, connected: make(chan struct{}), ended: make(chan struct{})}
	conn.in = wire.NewInbox(func(n int) {
		_ = c.sender.send(context.Background(), wire.Credit, conn.id, wire.EncodeCredit(wire.Stdout, n)) // it ends the connection into the sandbox
	})
	conn.out = newInput(c, &conn.id)
	request := wire.Call{Op: wire.OpConnect, Port: port}
	if sent, err := c.request(ctx, conn, request.Encode()); err != nil {
		if !sent { // otherwise it was told of the end, and has left
			c.hangUp()
		}
		return nil, err
	}
	select {
	case <-conn.connected:
		return conn, nil
	case <-conn.ended:
		return nil, conn.err
	case <-ctx.Done():
		_ = conn.Close() // nobody has it
		return nil, canceled(ctx)
	}
}

// dial takes a place for a connection. Whoever is on the other side of a forward must not take those of commands.
func (c *Client) dial() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return c.err
	}
	if c.dialed >= maxConnections {
		return &sandbox.Error{
			Code: sandbox.CodeFailed, Text: fmt.Sprintf("%d connections into this sandbox are open already", maxConnections), Fix: "close some",
		}
	}
	c.dialed++
	return nil
}

func (c *Client) hangUp() {
	c.mu.Lock()
	c.dialed--
	c.mu.Unlock()
}

// connection is a connection to a program inside.
type connection struct {
	client *Client
	id     uint32
	in     *wire.Inbox
	out    *input

	open   bool // it was made; only the receiver looks
	silent bool // the program inside says nothing more; only the receiver looks

	connected chan struct{}
	once      sync.Once
	err       error
	ended     chan struct{} // closed with err
}

func (n *connection) numbered(id uint32) { n.id = id }

func (n *connection) receive(h wire.Header, r *wire.Reader) (final bool, err error) {
	if h.Type == wire.Stdout {
		if !n.open || n.silent {
			return false, wire.Violation("a connection says something before it is made, or after its end")
		}
		return false, n.in.Receive(r, h.Size)
	}
	payload, err := r.Payload()
	if err != nil {
		return false, err
	}
	if h.Type == wire.Error {
		failure, broken := wire.DecodeError(payload)
		if broken != nil {
			return false, broken
		}
		n.finish(failure)
		return true, nil
	}
	return n.told(h.Type, payload)
}

// told takes what a connection that was made is told.
func (n *connection) told(t wire.Type, payload []byte) (final bool, err error) {
	switch {
	case t == wire.Response && !n.open:
		n.open = true
		close(n.connected)
	case t == wire.EOF && n.open && !n.silent:
		n.silent = true
		n.in.Close(io.EOF)
	case t == wire.Exit && n.open && n.silent:
		n.finish(nil)
		final = true
	case t == wire.Credit && n.open:
		of, count, err := wire.DecodeCredit(payload)
		if err == nil && (of != wire.Stdin || !n.out.allowed.Allow(count)) {
			err = wire.Violation("credit that was not due")
		}
		return false, err
	default:
		return false, wire.Violation("a frame that does not belong to a connection")
	}
	return final, wire.NewDecoder(payload).End()
}

func (n *connection) finish(err error) {
	n.once.Do(func() {
		n.err = err
		if err == nil {
			err = io.EOF
		}
		n.in.Close(err)
		_ = n.out.allowed.Close(os.ErrClosed) // whoever was first
		close(n.ended)
	})
}

func (n *connection) lost(err error) {
	n.finish(err)
	n.answered()
}

func (n *connection) answered() { n.client.hangUp() }

func (n *connection) Read(p []byte) (int, error)  { return n.in.Read(p) }
func (n *connection) Write(p []byte) (int, error) { return n.out.Write(p) }
func (n *connection) CloseWrite() error           { return n.out.Close() }

// Close ends both ways. What was not read is lost.
func (n *connection) Close() error {
	n.in.Close(os.ErrClosed)
	_ = n.out.allowed.Close(os.ErrClosed) // whoever was first
	if isClosed(n.ended) {
		return nil
	}
	go n.client.giveUp(n.ended, stallTime)
	return n.client.sender.send(context.Background(), wire.Signal, n.id, []byte{0})
}
