package mcp

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// "toolward mcp" hands its standard input and output to the daemon where they are pipes: the daemon then reads what the client
// wrote without anybody between them, which saves every message two copies and a change of processes. The connection of the
// local socket stays: it says who is at its end, and its own end is that of the stream.
//
// Standard streams of other kinds are copied (join): a daemon that made a terminal non-blocking would change it for the shell.

// descriptorsHeader offers descriptors in the hello, and takes the offer in the answer.
const descriptorsHeader = "Toolward-Descriptors"

// What the daemon says over the connection whose descriptors were offered.
const (
	saysTaken        byte = 't'
	saysCopy         byte = 'c' // it could not take them: they are to be copied
	saysInputEnded   byte = 'i'
	saysOutputBroken byte = 'o'
)

// handable reports whether a descriptor may be handed over: a pipe, or a socket pair, which is what Node.js makes for pipes.
// A socket with a name at either end is none: its peer could ask the kernel who writes, and take the words of whoever handed
// it over for the daemon's.
func handable(f *os.File) bool {
	info, err := f.Stat()
	if err != nil {
		return false
	}
	switch info.Mode().Type() {
	case fs.ModeNamedPipe:
		return true
	case fs.ModeSocket:
		return withFD(f, isSocketPair)
	}
	return false
}

func isSocketPair(fd int) bool {
	kind, err := syscall.GetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_TYPE)
	return err == nil && kind == syscall.SOCK_STREAM && unnamed(syscall.Getsockname(fd)) && unnamed(syscall.Getpeername(fd))
}

func unnamed(address syscall.Sockaddr, err error) bool {
	local, ok := address.(*syscall.SockaddrUnix)
	return err == nil && ok && (local.Name == "" || local.Name == "@") // "@" is how Go writes no name on Linux
}

// withFD calls do with the file's descriptor, and leaves the file as it is, unlike [os.File.Fd].
func withFD(f *os.File, do func(fd int) bool) (ok bool) {
	raw, err := f.SyscallConn()
	if err != nil {
		return false
	}
	err = raw.Control(func(fd uintptr) { ok = do(int(fd)) })
	return ok && err == nil
}

// descriptors are the standard streams of "toolward mcp", as files.
type descriptors struct{ in, out *os.File }

// descriptorsOf finds the files of two streams; false if the streams must be copied.
func descriptorsOf(stdin io.Reader, stdout io.Writer) (d descriptors, ok bool) {
	in, isFile := stdin.(*os.File)
	out, areFiles := stdout.(*os.File)
	if !isFile || !areFiles || !handable(in) || !handable(out) {
		return descriptors{}, false
	}
	return descriptors{in, out}, true
}

// handOver sends the descriptors to the daemon. It returns false if they must be copied after all.
func (d descriptors) handOver(conn *net.UnixConn, answers *bufio.Reader) (taken bool, err error) {
	_ = conn.SetDeadline(time.Now().Add(helloTimeout))
	defer conn.SetDeadline(time.Time{})
	sent := withFD(d.in, func(in int) bool {
		return withFD(d.out, func(out int) bool {
			_, _, err = conn.WriteMsgUnix([]byte{0}, syscall.UnixRights(in, out), nil)
			return err == nil
		})
	})
	if !sent {
		return false, fmt.Errorf("hand standard input and output to the daemon: %w", err)
	}
	answer, err := answers.ReadByte()
	if err != nil {
		return false, fmt.Errorf("hand standard input and output to the daemon: %w", err)
	}
	return answer == saysTaken, nil
}

// attend waits until the daemon is done with what was handed over.
func attend(ctx context.Context, conn *net.UnixConn, answers *bufio.Reader) error {
	inputEnded := false
	for {
		said, err := answers.ReadByte()
		switch {
		case err != nil && inputEnded:
			return ctx.Err()
		case errors.Is(err, io.EOF):
			return ended(ctx, nil)
		case err != nil:
			return ended(ctx, err)
		case said == saysOutputBroken:
			return ended(ctx, syscall.EPIPE)
		case said == saysInputEnded:
			inputEnded = true
			_ = conn.SetReadDeadline(time.Now().Add(drainTimeout))
		}
	}
}

// handed is the daemon's side: a stream that reads and writes the descriptors of "toolward mcp".
type handed struct {
	descriptors
	control *net.UnixConn
	ended   sync.Once
}

// takeDescriptors receives the descriptors that the hello offered, and answers.
func takeDescriptors(conn *net.UnixConn) (io.ReadWriteCloser, error) {
	d, err := receiveDescriptors(conn)
	if err != nil {
		return nil, err
	}
	answer := saysTaken
	if d == (descriptors{}) {
		answer = saysCopy
	}
	if _, err := conn.Write([]byte{answer}); err != nil {
		d.close()
		return nil, err
	}
	if d == (descriptors{}) {
		return conn, nil
	}
	h := &handed{descriptors: d, control: conn}
	go h.attend()
	return h, nil
}

// receiveDescriptors returns no files if what came is not two of the kinds that are taken.
func receiveDescriptors(conn *net.UnixConn) (descriptors, error) {
	_ = conn.SetReadDeadline(time.Now().Add(helloTimeout))
	defer conn.SetReadDeadline(time.Time{})
	var data [1]byte
	oob := make([]byte, syscall.CmsgSpace(2*4)) // the kernel drops what does not fit, so nobody fills our table of files
	_, n, _, _, err := conn.ReadMsgUnix(data[:], oob)
	if err != nil {
		return descriptors{}, fmt.Errorf("receive descriptors: %w", err)
	}
	var files []*os.File
	messages, err := syscall.ParseSocketControlMessage(oob[:n])
	for i := range messages {
		fds, _ := syscall.ParseUnixRights(&messages[i]) // no rights: no descriptors
		for _, fd := range fds {
			_ = syscall.SetNonblock(fd, true) // one that cannot is refused by handable, or blocks only its own stream
			files = append(files, os.NewFile(uintptr(fd), "descriptor of toolward mcp"))
		}
	}
	if err == nil && len(files) == 2 && handable(files[0]) && handable(files[1]) {
		return descriptors{files[0], files[1]}, nil
	}
	for _, f := range files {
		_ = f.Close()
	}
	return descriptors{}, nil
}

func (d descriptors) close() {
	_ = d.in.Close()
	_ = d.out.Close()
}

// attend ends the stream with the program that handed it over: whoever reads its output later gets nothing of ours.
func (h *handed) attend() {
	_, _ = h.control.Read(make([]byte, 1)) // it says nothing more, so this is its end
	_ = h.in.SetReadDeadline(time.Unix(1, 0))
	_ = h.out.Close()
}

// tell tells the program at the other end how its stream has ended, once.
func (h *handed) tell(said byte) {
	h.ended.Do(func() {
		_ = h.control.SetWriteDeadline(time.Now().Add(writeTimeout))
		_, _ = h.control.Write([]byte{said}) // a program that has gone does not need to know
	})
}

// Read reads what the client wrote.
func (h *handed) Read(p []byte) (int, error) {
	n, err := h.in.Read(p)
	switch {
	case errors.Is(err, io.EOF):
		h.tell(saysInputEnded)
	case errors.Is(err, os.ErrDeadlineExceeded): // see attend
		err = io.EOF
	case errors.Is(err, os.ErrClosed):
		err = net.ErrClosed
	}
	return n, err
}

// Write writes to the client.
func (h *handed) Write(p []byte) (int, error) {
	n, err := h.out.Write(p)
	if err != nil && !errors.Is(err, os.ErrClosed) {
		h.tell(saysOutputBroken)
	}
	return n, err
}

// SetWriteDeadline bounds how long a client may take to read.
func (h *handed) SetWriteDeadline(t time.Time) error { return h.out.SetWriteDeadline(t) }

// Close closes the descriptors and then the connection, whose end tells the program to go.
func (h *handed) Close() error {
	h.descriptors.close()
	return h.control.Close()
}
