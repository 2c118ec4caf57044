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

// connectTime is how long a program inside may take to accept a connection.
const connectTime = 5 * time.Second

// localhost is where connections lead: nowhere but to this sandbox itself, whatever its network is.
func localhost(port uint16) []unix.Sockaddr {
	return []unix.Sockaddr{
		&unix.SockaddrInet4{Port: int(port), Addr: [4]byte{127, 0, 0, 1}},
		&unix.SockaddrInet6{Port: int(port), Addr: [16]byte{15: 1}}, // some servers listen only there when they are told "localhost"
	}
}

// connection is a connection to a program inside.
type connection struct {
	stream *stream
	socket *os.File
	once   sync.Once
}

// connect carries the bytes of a connection, and returns the last frame.
func (st *stream) connect(port uint16) (wire.Type, []byte) {
	socket, err := dialLocal(port)
	if err != nil {
		return wire.Error, wire.EncodeError(err)
	}
	c := &connection{stream: st, socket: socket}
	defer c.stop()
	st.runs(c)
	if err := st.server.out.send(wire.Response, st.id); err != nil {
		return wire.Error, wire.EncodeError(err)
	}
	said := make(chan struct{})
	go func() {
		defer close(said)
		c.say()
	}()
	if err := c.hear(); err != nil {
		return wire.Error, wire.EncodeError(task.Errorf(task.CodeFailed, "the connection broke: %v", err))
	}
	if err := st.server.out.send(wire.EOF, st.id); err != nil {
		return wire.Error, wire.EncodeError(err)
	}
	<-said
	return wire.Exit, nil
}

// dialLocal connects to a program in this sandbox. Toolward's own ports are refused: behind them is the gateway's proxy, and whoever came in
// through a forward would have this sandbox's ways out.
func dialLocal(port uint16) (*os.File, error) {
	if ownPorts()[port] {
		return nil, task.Errorf(task.CodeDenied, "port %d is Toolward's own in this sandbox, and leads out of it", port)
	}
	var last error
	for _, address := range localhost(port) {
		socket, err := dial(address)
		if err == nil {
			return socket, nil
		}
		if last == nil || errors.Is(last, unix.ECONNREFUSED) && !errors.Is(err, unix.EADDRNOTAVAIL) && !errors.Is(err, unix.EAFNOSUPPORT) {
			last = err
		}
	}
	if errors.Is(last, unix.ECONNREFUSED) {
		return nil, task.Errorf(task.CodeNotFound, "nothing listens at port %d in the sandbox", port)
	}
	return nil, task.Errorf(task.CodeFailed, "port %d in the sandbox: %v", port, last)
}

func dial(address unix.Sockaddr) (*os.File, error) {
	family := unix.AF_INET
	if _, six := address.(*unix.SockaddrInet6); six {
		family = unix.AF_INET6
	}
	fd, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	socket := os.NewFile(uintptr(fd), "connection")
	if err := connected(socket, address); err != nil {
		_ = socket.Close() // nothing was written
		return nil, err
	}
	return socket, nil
}

// connected waits until a socket is connected. Asked again, the kernel says how far it is.
func connected(socket *os.File, address unix.Sockaddr) error {
	raw, err := socket.SyscallConn()
	if err != nil {
		return err
	}
	if err := socket.SetWriteDeadline(time.Now().Add(connectTime)); err != nil {
		return err
	}
	var result error
	err = raw.Write(func(fd uintptr) bool {
		result = unix.Connect(int(fd), address)
		return result != unix.EINPROGRESS && result != unix.EALREADY && result != unix.EINTR
	})
	switch {
	case err != nil:
		return err
	case result != nil && result != unix.EISCONN:
		return result
	}
	return socket.SetWriteDeadline(time.Time{})
}

// say hands the program what the gateway sends, and its end.
func (c *connection) say() {
	if _, err := c.stream.input.WriteTo(c.socket); err != nil {
		_, _ = c.stream.input.WriteTo(io.Discard) // nobody reads it: the gateway need not wait
		return
	}
	c.shut(unix.SHUT_WR)
}

// hear sends the gateway what the program says, as far as there is room for it, up to its end.
func (c *connection) hear() error {
	taken := buffers.Get().(*[]byte)
	defer buffers.Put(taken)
	frame, st := *taken, c.stream
	for {
		allowed, err := st.stdout.Take(len(frame) - wire.HeaderSize)
		if err != nil {
			return err
		}
		n, err := c.socket.Read(frame[wire.HeaderSize : wire.HeaderSize+allowed])
		st.stdout.Return(allowed - max(n, 0))
		if n > 0 {
			if err := st.server.out.sendFrame(wire.Stdout, st.id, frame[:wire.HeaderSize+n]); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// stop ends both ways.
func (c *connection) stop() {
	c.once.Do(func() {
		_ = c.stream.stdout.Close(errStopped) // whoever was first
		c.stream.input.Close(errStopped)
		c.shut(unix.SHUT_RDWR)
		_ = c.socket.Close() // what was written is on its way
	})
}

func (c *connection) shut(how int) {
	if raw, err := c.socket.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { _ = unix.Shutdown(int(fd), how) }) // the other side may be gone
	}
}

func (*connection) signal(int)            {}
func (*connection) resize(uint16, uint16) {}
