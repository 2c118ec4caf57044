//go:build linux

package serve

import (
	"io"
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/toolward/toolward/sandbox/inside/wire"
)

// bufferSize is how much is read and sent at once.
const bufferSize = wire.HeaderSize + 64<<10

var buffers = sync.Pool{New: func() any { b := make([]byte, bufferSize); return &b }}

// output writes frames to the gateway.
type output struct {
	mu    sync.Mutex
	to    *os.File
	raw   syscall.RawConn // nil if nothing can be moved there without copying
	frame []byte
	err   error
}

func (o *output) open(to *os.File) {
	o.to = to
	if raw, err := to.SyscallConn(); err == nil {
		o.raw = raw
	}
}

// send writes a frame.
func (o *output) send(t wire.Type, stream uint32, payload ...[]byte) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.frame = wire.AppendFrame(o.frame[:0], t, stream, payload...)
	err := o.write(o.frame)
	if cap(o.frame) > bufferSize {
		o.frame = nil
	}
	return err
}

// sendFrame writes a frame of which the payload is in place.
func (o *output) sendFrame(t wire.Type, stream uint32, frame []byte) error {
	wire.PutHeader(frame, t, stream)
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.write(frame)
}

func (o *output) write(b []byte) error {
	if o.err == nil { // after half a frame nothing more can be said
		_, o.err = o.to.Write(b)
	}
	return o.err
}

// splice writes a frame of which the payload is the next size bytes of a pipe, which has them.
func (o *output) splice(t wire.Type, stream uint32, pipe, size int) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	header := wire.AppendHeader(o.frame[:0], t, stream, size)
	if o.write(header) != nil {
		return o.err
	}
	for size > 0 && o.err == nil {
		var n int64
		var err error
		waited := o.raw.Write(func(to uintptr) bool {
			n, err = unix.Splice(pipe, nil, int(to), nil, size, unix.SPLICE_F_MOVE|unix.SPLICE_F_NONBLOCK)
			return err != unix.EAGAIN
		})
		switch {
		case waited != nil:
			o.err = waited
		case err == unix.EINTR:
		case err != nil || n <= 0: // there is no moving between these two
			o.copy(pipe, size)
			return o.err
		default:
			size -= int(n)
		}
	}
	return o.err
}

// copy writes the next size bytes of a pipe, which has them.
func (o *output) copy(pipe, size int) {
	taken := buffers.Get().(*[]byte)
	defer buffers.Put(taken)
	for size > 0 && o.err == nil {
		n, err := readNow(pipe, (*taken)[:min(size, len(*taken))])
		if err != nil {
			o.err = err
			return
		}
		_ = o.write((*taken)[:n]) // it is kept
		size -= n
	}
}

// readNow reads what is there.
func readNow(fd int, b []byte) (int, error) {
	for {
		n, err := unix.Read(fd, b)
		if err == unix.EINTR {
			continue
		}
		if n == 0 && err == nil {
			err = io.EOF
		}
		return max(n, 0), err
	}
}
