package server

import (
	"errors"
	"fmt"
	"net"
	"path/filepath"

	"github.com/toolward/toolward/approval/socket"
)

// SocketName is the file name of the local socket under the home directory.
const SocketName = "toolward.sock"

// listenSocket binds the local socket: in the home, or where programs of another user reach it, too. The caller holds the home's
// daemon lock, so an existing socket is a dead daemon's.
func listenSocket(home, shared string) (*net.UnixListener, error) {
	listener, err := (*net.UnixListener)(nil), error(nil)
	if shared != "" {
		listener, err = socket.ListenShared(shared)
	} else {
		listener, err = socket.Listen(filepath.Join(home, SocketName))
	}
	switch {
	case errors.Is(err, socket.ErrPathTooLong):
		return nil, fmt.Errorf("%w; choose a shorter TOOLWARD_HOME", err)
	case errors.Is(err, socket.ErrInUse):
		return nil, fmt.Errorf("%w; is toolward already running?", err)
	}
	return listener, err
}
