package identity

import (
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"syscall"
)

// Peer finds out which process is at the other end of a connection on the local socket. Call it when the connection
// is accepted, before anything is read from it: the kernel notes who connected, and a process that has ended since
// must not lend its number to another.
func (k *Keeper) Peer(conn net.Conn) (Process, error) {
	raw, ok := conn.(syscall.Conn)
	if !ok {
		return Process{}, errors.New("identify the other end: not a local socket")
	}
	control, err := raw.SyscallConn()
	if err != nil {
		return Process{}, fmt.Errorf("identify the other end: %w", err)
	}
	var p Process
	inner := error(nil)
	err = control.Control(func(fd uintptr) { p, inner = k.inspectPeer(int(fd)) })
	if err := errors.Join(err, inner); err != nil {
		return Process{}, fmt.Errorf("identify the other end: %w", err)
	}
	return p, nil
}

// serves reports whether programs of a user may use the local socket.
func (k *Keeper) serves(uid uint32) bool {
	return int(uid) == os.Geteuid() || slices.Contains(k.clients, uid)
}

func (k *Keeper) inspectPeer(fd int) (Process, error) {
	pid, uid, still, done, err := peerPID(fd)
	if err != nil {
		return Process{}, err
	}
	defer done()
	if !k.serves(uid) {
		return Process{}, fmt.Errorf("the connection comes from user %d, who is not served here", uid)
	}
	p, err := k.processes.Process(pid)
	if err != nil {
		return Process{}, err
	}
	// The kernel says who connected, the system whose the process is: one that changed its user since is nobody that is known.
	if p.UID != uid {
		return Process{}, fmt.Errorf("process %d belongs to user %d, but connected as user %d", pid, p.UID, uid)
	}
	if !still() {
		return Process{}, fmt.Errorf("process %d has ended", pid)
	}
	return p, nil
}
