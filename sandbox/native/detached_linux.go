package native

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/toolward/toolward/sandbox"
	"github.com/toolward/toolward/sandbox/inside/wire"
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
	filter, err := filterFor(spec, false)
	if err != nil {
		return "", err
	}
	sum.Write(filter)
	return hex.EncodeToString(sum.Sum(nil)), nil
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
