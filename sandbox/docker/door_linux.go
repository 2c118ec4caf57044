package docker

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"strconv"
	"time"
)

// doorTime bounds how long a container may take from its start to its program's greeting.
const doorTime = 60 * time.Second

// door is a Unix socket at which the program inside a container meets the gateway. Through the standard streams, every
// byte would pass through two other programs.
//
// It is open for one caller and a moment: until the program inside has connected, nothing else runs in the container, and
// then the socket is gone.
type door struct {
	dir      *os.File
	listener *net.UnixListener
}

// openDoor listens in a directory that is mounted in the container.
func openDoor(dir string) (_ *door, err error) {
	d := &door{}
	if d.dir, err = os.Open(dir); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			d.close()
		}
	}()
	// Through the descriptor: names of sockets are short, and homes may be long.
	name := "/proc/self/fd/" + strconv.Itoa(int(d.dir.Fd())) + "/" + doorName
	if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if d.listener, err = net.ListenUnix("unix", &net.UnixAddr{Name: name, Net: "unix"}); err != nil {
		return nil, err
	}
	return d, os.Chmod(name, 0o666)
}

// meet waits for the program inside, until the container has ended.
func (d *door) meet(ctx context.Context, ended <-chan struct{}) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, doorTime)
	defer cancel()
	go func() {
		select {
		case <-ended:
			cancel()
		case <-ctx.Done():
		}
	}()
	stop := context.AfterFunc(ctx, func() { _ = d.listener.SetDeadline(time.Unix(1, 0)) }) // it is closed then
	defer stop()
	conn, err := d.listener.Accept()
	if err == nil {
		return conn, nil
	}
	select {
	case <-ended:
		return nil, errors.New("its program ended before it could be greeted")
	default:
		return nil, fmt.Errorf("its program could not be greeted: %w", errors.Join(ctx.Err(), err))
	}
}

// close closes the door and takes the socket away.
func (d *door) close() {
	if d.listener != nil {
		_ = d.listener.Close() // nobody is let in any more in any case
	}
	if d.dir != nil {
		_ = d.dir.Close() // nothing was written
	}
}

// hasDoor reports whether the program inside can reach a socket of this machine: not from another machine, and not
// through a runtime that answers system calls itself.
func (e *Engine) hasDoor(sharesKernel bool) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return sharesKernel && e.endpoint.local() && !e.options.streams
}
