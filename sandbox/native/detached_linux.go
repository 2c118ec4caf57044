package native

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"strconv"
	"strings"
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

var (
	errGone = errors.New("it has ended")
	errBusy = errors.New("another gateway uses it")
)

// checkDetach refuses what cannot go on without a gateway.
func (e *Engine) checkDetach(spec *sandbox.Spec, level sandbox.Level) error {
	if spec.Detach <= 0 {
		return nil
	}
	if level == sandbox.LevelLandlock {
		failed := sandbox.Errorf(sandbox.CodeConfig, "without namespaces a sandbox cannot outlive the gateway: nothing would end its processes together")
		failed.Fix = "leave sandbox.native.detach out, or give sandboxes namespaces: toolward sandbox probe"
		return failed
	}
	if err := e.supervised.open(); err != nil {
		return sandbox.Errorf(sandbox.CodeUnavailable, "the sandbox cannot outlive the gateway: %v", err)
	}
	if !soundName(spec.Name) {
		return sandbox.Errorf(sandbox.CodeConfig, "%q is no name of a sandbox that outlives the gateway", spec.Name)
	}
	return nil
}

// newDoor makes the socket by which the next gateway comes in, in the directory that only the gateway's user gets into. It is
// bound here, where that directory is; the first process inside listens on it, and the kernel names that process to whoever
// connects. Nothing inside can reach the path.
func (e *Engine) newDoor(name string) (fd int, err error) {
	fd, err = unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, os.NewSyscallError("socket", err)
	}
	err = e.atDoor(name, func(path string) error {
		if err := os.Remove(e.supervised.path(name, socketSuffix)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if err := unix.Bind(fd, &unix.SockaddrUnix{Name: path}); err != nil {
			return os.NewSyscallError("bind", err)
		}
		return os.Chmod(path, 0o600)
	})
	if err != nil {
		_ = unix.Close(fd) // it is not used
		return -1, sandbox.Errorf(sandbox.CodeUnavailable, "make the door of sandbox %s: %v", name, err)
	}
	return fd, nil
}

// atDoor does something with a socket by a path that is short: those of sockets are, and homes may be long.
func (e *Engine) atDoor(name string, do func(path string) error) error {
	dir, err := os.Open(e.supervised.dir)
	if err != nil {
		return err
	}
	defer dir.Close()
	return do("/proc/self/fd/" + strconv.Itoa(int(dir.Fd())) + "/" + name + socketSuffix)
}

// recordOf makes the record of a sandbox whose first process waits for its greeting. Key and answer are nowhere but in the
// record and in that process, which nothing inside can read.
func (e *Engine) recordOf(ctx context.Context, b *box, spec *sandbox.Spec) (*record, error) {
	made, err := e.madeBy(ctx, spec)
	if err != nil {
		return nil, err
	}
	r := &record{
		Name: spec.Name, ScopeKey: spec.ScopeKey, Hash: spec.Hash, Instance: spec.Instance, Created: b.state.Created, ID: b.helper.id,
		UID: e.identityOf(spec.User).hostUID, Made: made, Group: pathsOf(b.group), Ready: spec.Setup == "",
		Key: make([]byte, wire.NonceSize), Answer: make([]byte, wire.NonceSize),
	}
	rand.Read(r.Key)    // it never fails
	rand.Read(r.Answer) // it never fails
	if err := e.supervised.write(r); err != nil {
		return nil, sandbox.Errorf(sandbox.CodeUnavailable, "write down sandbox %s, which is to outlive the gateway: %v", spec.Name, err)
	}
	return r, nil
}

// terms are what the first process must know to go on.
func (b *box) terms(spec *sandbox.Spec) wire.Detach {
	t := wire.Detach{Alone: int64(spec.Detach / time.Second), Disk: spec.Limits.Disk}
	if b.group == nil {
		t.Memory = spec.Limits.Memory
	}
	copy(t.Key[:], b.record.Key)
	copy(t.Answer[:], b.record.Answer)
	return t
}

// madeBy tells what confines a sandbox from what another version of this program would make: one that an update has made
// stricter must not go on as it was.
func (e *Engine) madeBy(ctx context.Context, spec *sandbox.Spec) (string, error) {
	program, err := e.program(ctx)
	if err != nil {
		return "", err
	}
	info, err := program.file.Stat()
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	if _, err := io.Copy(sum, io.NewSectionReader(program.file, 0, info.Size())); err != nil {
		return "", fmt.Errorf("read the program inside: %w", err)
	}
	for _, foreign := range []bool{false, true} {
		filter, err := filterFor(spec, foreign, false)
		if err != nil {
			return "", err
		}
		sum.Write(filter)
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

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

// letGo leaves a sandbox to itself: it goes on until another gateway takes it over, or its time is over.
func (b *box) letGo() {
	b.once.Do(func() {
		_ = b.client.Client.Close() // it tells nothing
		b.helper.letGo()
		b.noting.Lock()
		b.engine.putSupervised(b.record)
		b.engine.boxes.Leave(b.state.Name, b)
		close(b.done)
		b.noting.Unlock()
	})
	<-b.done
}

// noteDisk writes down what was on the disk before, so that outliving a gateway gives no new share.
func (b *box) noteDisk() {
	bytes, known := b.engine.disk.Before(b.state.Name)
	if !known {
		return
	}
	b.noting.Lock()
	defer b.noting.Unlock()
	if b.record == nil || !b.running() { // nothing is written of what has ended: nobody would remove it
		return
	}
	b.record.Before = &bytes
	if err := b.engine.supervised.write(b.record); err != nil {
		b.engine.log.Warn("what a sandbox has found on the disk could not be written down", "sandbox", b.state.Name, "error", err)
	}
}

// ready writes down that the set-up command of a sandbox has ended: until then nobody takes it over.
func (b *box) ready() error {
	b.noting.Lock()
	defer b.noting.Unlock()
	if b.record == nil {
		return nil
	}
	b.record.Ready = true
	return b.engine.supervised.write(b.record)
}

// findHelper finds a process by its id, which no other process will ever have.
func findHelper(id string) (*helper, error) {
	pid, ok := pidOf(id)
	if !ok {
		return nil, errGone
	}
	fd, err := unix.PidfdOpen(pid, unix.PIDFD_NONBLOCK)
	if errors.Is(err, unix.ESRCH) {
		return nil, errGone
	}
	if err != nil {
		return nil, os.NewSyscallError("pidfd_open", err)
	}
	handle := os.NewFile(uintptr(fd), "supervisor")
	// The number belonged to the process of the id before the handle was opened, and belongs to it now: so does the handle.
	if !lives(id) {
		_ = handle.Close() // nothing was written
		return nil, errGone
	}
	raw, err := handle.SyscallConn()
	if err != nil {
		_ = handle.Close() // nothing was written
		return nil, err
	}
	h := &helper{pid: pid, id: id, exited: make(chan struct{})}
	h.kill = func() {
		_ = raw.Control(func(fd uintptr) { _ = unix.PidfdSendSignal(int(fd), unix.SIGKILL, nil, 0) }) // it may have ended
	}
	h.leave = func() { _ = handle.Close() } // nothing was written
	go func() {
		err := raw.Read(func(fd uintptr) bool {
			n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
			return n > 0 || err != nil && !errors.Is(err, unix.EINTR)
		})
		if err == nil { // otherwise it was let go
			close(h.exited)
		}
	}()
	return h, nil
}

// lives reports whether the process of an id runs: that very one, since the same boot. One that has ended and that nobody
// has waited for does not.
func lives(id string) bool {
	pid, ok := pidOf(id)
	return ok && processID(pid) == id && !isZombie(pid)
}

func pidOf(id string) (pid int, ok bool) {
	number, _, ok := strings.Cut(id, ":")
	pid, err := strconv.Atoi(number)
	return pid, ok && err == nil && pid > 1
}

// ofThisBoot reports whether an id is of a process that this boot has had: numbers of groups come again.
func ofThisBoot(id string) bool {
	_, after, _ := strings.Cut(processID(os.Getpid()), ":")
	_, now, _ := strings.Cut(after, ":")
	return now != "" && strings.HasSuffix(id, ":"+now)
}

func isZombie(pid int) bool {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return true
	}
	_, rest, _ := strings.Cut(string(stat[strings.LastIndexByte(string(stat), ')'):]), " ")
	return strings.HasPrefix(rest, "Z") || strings.HasPrefix(rest, "X")
}
