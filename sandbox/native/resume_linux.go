package native

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"golang.org/x/sys/unix"

	"github.com/toolward/toolward/sandbox"
	"github.com/toolward/toolward/sandbox/inside"
	"github.com/toolward/toolward/sandbox/inside/wire"
)

// meetTime bounds how long a supervisor may take: it ends first what an earlier gateway has left.
const meetTime = 30 * time.Second

// busyTime is how long somebody else may be there, and busyPause how long is waited before asking again.
const (
	busyTime  = 3 * time.Second
	busyPause = 20 * time.Millisecond
)

var errBusy = errors.New("another gateway uses it")

// resume takes over a sandbox that has outlived its gateway.
func (e *Engine) resume(ctx context.Context, b *box, spec *sandbox.Spec, r *record) error {
	made, err := e.madeBy(ctx, spec)
	if err != nil {
		return err
	}
	if made != r.Made {
		return errors.New("another version of this program has made it")
	}
	h, err := findHelper(r.ID)
	if err != nil {
		return err
	}
	conn, err := e.meet(ctx, r, h)
	if err != nil {
		h.letGo()
		return err
	}
	b.helper, b.group, b.record = h, r.group(), r
	settings := e.settingsOf(b, spec)
	client, err := inside.Connect(ctx, conn, settings)
	if err != nil {
		h.letGo()
		return err
	}
	if r.Before != nil {
		e.disk.Recall(spec.Name, *r.Before)
	}
	b.state.Created = r.Created
	b.begin(client, spec)
	return nil
}

// meet connects to the supervisor of a sandbox. Whoever took its place would command what the gateway believes to be
// confined, so the kernel is asked who listens: the process with the number and the start time of the record, as the user
// who runs inside. Only then the key is shown, and only who knows the answer is believed.
func (e *Engine) meet(ctx context.Context, r *record, h *helper) (net.Conn, error) {
	if err := e.supervised.open(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, meetTime)
	defer cancel()
	for end := time.Now().Add(busyTime); ; {
		conn, err := e.meetOnce(ctx, r, h)
		if !errors.Is(err, errBusy) || time.Now().After(end) {
			return conn, err
		}
		select { // it may not have noticed yet that its gateway has ended
		case <-time.After(busyPause):
		case <-ctx.Done():
		}
	}
}

func (e *Engine) meetOnce(ctx context.Context, r *record, h *helper) (conn net.Conn, err error) {
	err = e.atDoor(r.Name, func(path string) error {
		conn, err = new(net.Dialer).DialContext(ctx, "unix", path)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("connect to its supervisor: %w", err)
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) }) // what waits for it says so
	err = isSupervisor(conn, r, h)
	if err == nil {
		err = showKey(conn, r)
	}
	if !stop() && err == nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		_ = conn.Close() // it is not used
		return nil, err
	}
	return conn, nil
}

func isSupervisor(conn net.Conn, r *record, h *helper) error {
	raw, err := conn.(*net.UnixConn).SyscallConn()
	if err != nil {
		return err
	}
	var peer *unix.Ucred
	if broken := raw.Control(func(fd uintptr) { peer, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) }); broken != nil {
		return broken
	}
	switch {
	case err != nil:
		return fmt.Errorf("ask who listens: %w", err)
	case int(peer.Pid) != h.pid || int(peer.Uid) != r.UID || !lives(r.ID):
		return fmt.Errorf("process %d of user %d listens in the place of its supervisor", peer.Pid, peer.Uid)
	}
	return nil
}

func showKey(conn net.Conn, r *record) error {
	if _, err := conn.Write(r.Key); err != nil {
		return fmt.Errorf("show the key: %w", err)
	}
	var said [1 + wire.NonceSize]byte
	if _, err := io.ReadFull(conn, said[:1]); err != nil {
		return fmt.Errorf("it does not know the key: %w", err)
	}
	if said[0] == wire.DoorBusy {
		return errBusy
	}
	if _, err := io.ReadFull(conn, said[1:]); err != nil {
		return fmt.Errorf("it does not know the answer: %w", err)
	}
	if said[0] != wire.DoorOpen || subtle.ConstantTimeCompare(said[1:], r.Answer) != 1 {
		return errors.New("it does not know the answer")
	}
	return nil
}
