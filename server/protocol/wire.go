package protocol

import (
	"bufio"
	"encoding/binary"
	"net"
	"net/http"
	"slices"
	"syscall"
)

// wire is the connection below a WebSocket. The library does the handshake, reads, and writes control frames; data frames
// are written here, because for a thousand consoles the way through the library and a goroutine for each is longer than
// the one through the kernel. Whatever is written, frames never mix: what is left of one comes before all else.
type wire struct {
	net.Conn
	raw     syscall.RawConn // nil: there is no writing without waiting
	attempt func(fd uintptr) bool

	turn   chan struct{} // has room for whoever writes
	now    []byte        // what attempt writes, and how much it wrote
	wrote  int
	rest   []byte // of a frame that the kernel took in part
	framed bool   // what the library writes are whole control frames: the handshake is over
	closed bool   // a close frame was written, after which there must be no other
}

func newWire() *wire { return &wire{turn: make(chan struct{}, 1)} }

// pass ends a turn.
func (w *wire) pass() { <-w.turn }

// upgrader gives the library a wire in the place of the connection.
type upgrader struct {
	http.ResponseWriter
	wire *wire
}

// Hijack takes the connection over from the HTTP server.
func (u *upgrader) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, both, err := http.NewResponseController(u.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, err
	}
	u.wire.adopt(conn)
	return u.wire, bufio.NewReadWriter(both.Reader, bufio.NewWriter(u.wire)), nil
}

// adopt makes a connection the one below.
func (w *wire) adopt(conn net.Conn) {
	w.Conn = conn
	under, ok := conn.(syscall.Conn) // not TLS, whose records must be made in order
	if !ok {
		return
	}
	if raw, err := under.SyscallConn(); err == nil {
		w.raw = raw
		w.attempt = func(fd uintptr) bool {
			w.wrote = writeNow(fd, w.now)
			return true // whatever it took: this must not wait
		}
	}
}

// beginFrames says that the library writes nothing but whole control frames from now on.
func (w *wire) beginFrames() {
	w.turn <- struct{}{}
	defer w.pass()
	w.framed = true
}

// Write is the library's.
func (w *wire) Write(b []byte) (int, error) {
	w.turn <- struct{}{}
	defer w.pass()
	if err := w.finish(); err != nil {
		return 0, err
	}
	if w.framed && len(b) > 0 && b[0]&0x0f == opClose {
		w.closed = true
	}
	return w.Conn.Write(b)
}

// send writes a data frame, or with nil what is left of one, and waits until the client takes it.
func (w *wire) send(frame []byte) error {
	w.turn <- struct{}{}
	defer w.pass()
	if w.closed {
		return net.ErrClosed
	}
	if err := w.finish(); err != nil || frame == nil {
		return err
	}
	_, err := w.Conn.Write(frame)
	return err
}

// try writes a data frame if that needs no waiting. left is what of it is still to be sent: then somebody must call send.
func (w *wire) try(frame []byte) (taken bool, left int) {
	if w.raw == nil {
		return false, 0
	}
	select {
	case w.turn <- struct{}{}:
		defer w.pass()
	default:
		return false, 0
	}
	if w.closed || !w.framed || w.rest != nil {
		return false, 0
	}
	w.now, w.wrote = frame, 0
	err := w.raw.Write(w.attempt)
	w.now = nil
	if err != nil || w.wrote <= 0 {
		return false, 0
	}
	if left = len(frame) - w.wrote; left > 0 {
		w.rest = slices.Clone(frame[w.wrote:])
	}
	return true, left
}

// finish writes what is left of a frame. The caller holds the lock.
func (w *wire) finish() error {
	if w.rest == nil {
		return nil
	}
	_, err := w.Conn.Write(w.rest)
	w.rest = nil // on an error the connection is over
	return err
}

// Frames of the WebSocket protocol, RFC 6455 section 5.2, as a server writes them: not masked, whole, not compressed.
const (
	opClose   = 0x8
	finalText = 0x81
	maxHeader = 10
)

// putHeader writes the header of a text frame so that it ends where b ends, and returns where it begins.
func putHeader(b []byte, payload int) (begin int) {
	switch {
	case payload <= 125:
		begin = len(b) - 2
		b[begin+1] = byte(payload)
	case payload <= 0xffff:
		begin = len(b) - 4
		b[begin+1] = 126
		binary.BigEndian.PutUint16(b[begin+2:], uint16(payload))
	default:
		begin = len(b) - 10
		b[begin+1] = 127
		binary.BigEndian.PutUint64(b[begin+2:], uint64(payload))
	}
	b[begin] = finalText
	return begin
}
