package remote

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"

	"github.com/fxamacker/cbor/v2"
	"golang.org/x/sys/unix"

	"github.com/toolward/toolward/sandbox"
)

// largest bounds a message: what a file tool reads or writes at once, and room for the rest.
const largest = 64<<20 + 1<<20

// mostFiles is how many descriptors the kernel lets one message carry.
const mostFiles = 253

// Strings of commands and paths are bytes that the kernel takes as they are: if they had to be UTF-8, what is not would be another path on
// the other side than the one that was decided about.
var (
	encoding = must(cbor.EncOptions{Time: cbor.TimeRFC3339Nano}.EncMode())
	decoding = must(cbor.DecOptions{
		UTF8: cbor.UTF8DecodeInvalid, DupMapKey: cbor.DupMapKeyEnforcedAPF, ExtraReturnErrors: cbor.ExtraDecErrorUnknownField, MaxArrayElements: 1 << 20,
	}.DecMode())
)

func must[M any](mode M, err error) M {
	if err != nil {
		panic(err) // the options above are constant
	}
	return mode
}

// request is what a call begins with.
type request struct {
	Protocol int
	Session  []byte // nil: it begins one
	Method   string
	Args     cbor.RawMessage
}

// reply is how a call ends, or goes on.
type reply struct {
	Fault *fault
	Value cbor.RawMessage
}

// fault is an error on its way.
type fault struct {
	Code sandbox.Code // "" is an error without one
	Text string
	Fix  string
}

func faultOf(err error) *fault {
	if e, ok := errors.AsType[*sandbox.Error](err); ok {
		return &fault{Code: e.Code, Text: e.Text, Fix: e.Fix}
	}
	return &fault{Text: err.Error()}
}

func (f *fault) err() error {
	if f.Code == "" {
		return errors.New(f.Text)
	}
	return &sandbox.Error{Code: f.Code, Text: f.Text, Fix: f.Fix}
}

// send sends one message and the files that it speaks of, which stay the sender's.
func send(conn *net.UnixConn, message any, files []*os.File) error {
	body, err := encoding.Marshal(message)
	if err != nil {
		return err
	}
	if len(body) > largest {
		return sandbox.Errorf(sandbox.CodeTooLarge, "%d bytes are too much for one call: at most %d", len(body), largest)
	}
	if len(files) > mostFiles {
		return sandbox.Errorf(sandbox.CodeConfig, "%d mounts are too many: at most %d", len(files), mostFiles)
	}
	var rights []byte
	if len(files) > 0 {
		fds := make([]int, len(files))
		for i, f := range files {
			fds[i] = int(f.Fd())
		}
		rights = unix.UnixRights(fds...)
	}
	head := binary.BigEndian.AppendUint32(nil, uint32(len(body)))
	if _, _, err := conn.WriteMsgUnix(head, rights, nil); err != nil {
		return err
	}
	_, err = conn.Write(body)
	return err
}

// receive reads one message and the files that came with it. They belong to the caller, also when there is an error.
func receive(conn *net.UnixConn, message any) (files []*os.File, err error) {
	head, rights := make([]byte, 4), make([]byte, unix.CmsgSpace(4*mostFiles))
	n, oobn, flags, _, err := conn.ReadMsgUnix(head, rights)
	if err == nil {
		files, err = filesIn(rights[:oobn])
	}
	if err == nil && flags&unix.MSG_CTRUNC != 0 {
		err = errors.New("descriptors were lost on the way")
	}
	if err == nil {
		_, err = io.ReadFull(conn, head[n:])
	}
	if err != nil {
		return files, err
	}
	size := binary.BigEndian.Uint32(head)
	if size > largest {
		return files, fmt.Errorf("a message of %d bytes: at most %d", size, largest)
	}
	body := make([]byte, size)
	if _, err := io.ReadFull(conn, body); err != nil {
		return files, err
	}
	return files, decoding.Unmarshal(body, message)
}

func filesIn(rights []byte) (files []*os.File, err error) {
	messages, err := unix.ParseSocketControlMessage(rights)
	for _, m := range messages {
		fds, bad := unix.ParseUnixRights(&m)
		err = errors.Join(err, bad)
		for _, fd := range fds {
			_ = unix.SetNonblock(fd, true) // of a pipe; of a path it means nothing
			files = append(files, os.NewFile(uintptr(fd), "received"))
		}
	}
	return files, err
}

func closeAll(files []*os.File) {
	for _, f := range files {
		_ = f.Close() // it is not used any more
	}
}

// peerOf is the user who began to listen at a socket, or who connected to it. The kernel says so.
func peerOf(conn *net.UnixConn) (peer *unix.Ucred, err error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return nil, err
	}
	if broken := raw.Control(func(fd uintptr) { peer, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) }); broken != nil {
		return nil, broken
	}
	return peer, err
}
