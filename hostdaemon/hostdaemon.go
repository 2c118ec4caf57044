// Package hostdaemon knows which daemon a program of this machine may talk to, and makes sure that it is that one which
// listens, before a byte is sent.
//
// Where a system install has put a daemon under a user of its own, [File] names that user and the socket, and nothing else
// does: an option or a variable that led elsewhere would let an agent bring a daemon of its own that says yes. Anywhere else
// the daemon is the user's own, at the socket in its home.
//
// The daemon must make its socket itself: the kernel answers with the user who began to listen, so a socket that a service
// manager hands over belongs to root.
//
// toolward-hook runs before every tool call, so this package imports nothing that takes time to start.
package hostdaemon

import (
	"errors"
	"os"
	"strconv"
	"syscall"
)

// SocketName is the socket of a user's own daemon, in its home.
const SocketName = "toolward.sock"

// maxSocket is how long the path of a socket may be on every system, in bytes.
const maxSocket = 100

// Daemon is the daemon that a program may talk to.
type Daemon struct {
	UID    uint32 // the user under which it runs
	Socket string // absolute path of its socket
	System bool   // File says so, and no home, option or variable says otherwise
}

// Of is the daemon for a program of this user: that of the machine if File names one, else that of the home. An error says
// what is odd about File, and how it is mended; nothing may be asked of anybody then.
func Of(home string) (Daemon, error) {
	daemon, ok, err := read(File)
	if err != nil || ok {
		return daemon, err
	}
	if home == "" {
		return Daemon{}, errors.New("neither TOOLWARD_HOME nor HOME is set, so the daemon cannot be found")
	}
	return Daemon{UID: uint32(os.Geteuid()), Socket: home + "/" + SocketName}, nil
}

// Check makes sure of who listens at the other end of a connection. It stops an agent's program that has taken the socket's
// place from answering for the daemon, and from being told what is for the daemon alone.
func (d Daemon) Check(conn syscall.Conn) error {
	raw, err := conn.SyscallConn()
	if err != nil {
		return err
	}
	var wrong error
	if err := raw.Control(func(fd uintptr) { wrong = d.CheckDescriptor(int(fd)) }); err != nil {
		return err
	}
	return wrong
}

// CheckDescriptor is Check for a connection without a wrapper.
func (d Daemon) CheckDescriptor(fd int) error {
	uid, err := peer(fd)
	if err != nil {
		return &UntrustedError{d.Socket + ": the system does not say who listens there: " + err.Error()}
	}
	if uid != d.UID {
		return &UntrustedError{d.Socket + ": user " + number(uid) + " listens there, not user " + number(d.UID) + " as it should: " + d.repair()}
	}
	return nil
}

// UntrustedError says why nothing may be asked of whoever listens, and how that is mended.
type UntrustedError struct{ text string }

func (e *UntrustedError) Error() string { return e.text }

func (d Daemon) repair() string {
	if d.System {
		return "the administrator must look what took the place of the daemon that " + File + " names"
	}
	return "find that program and end it, or use the home of the daemon's own user"
}

// Start says how the daemon is started.
func (d Daemon) Start() string {
	if d.System {
		return "start it as the administrator: systemctl start toolward"
	}
	return "start it with: toolward up"
}

func number(uid uint32) string { return strconv.FormatUint(uint64(uid), 10) }
