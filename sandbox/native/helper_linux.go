package native

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/toolward/toolward/sandbox"
	"github.com/toolward/toolward/sandbox/native/setup"
)

// setupTimeout bounds each plan: a helper that hangs in the kernel must not hold up its caller for ever.
const setupTimeout = 30 * time.Second

// namespaces are all that a sandbox has of its own; that of cgroups is made after it was put into its group.
const namespaces = unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWIPC |
	unix.CLONE_NEWUTS

// helperError is what a helper could not do.
type helperError struct {
	errno syscall.Errno
	text  string
}

func (e *helperError) Error() string { return e.text }
func (e *helperError) Unwrap() error { return e.errno }

// startHelper starts the program as a helper with clone flags. identity counts with a new user namespace only.
func (e *Engine) startHelper(ctx context.Context, flags uintptr, who identity) (*helper, error) {
	program, err := e.program(ctx)
	if err != nil {
		return nil, err
	}
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("socketpair", err)
	}
	ours, theirs := os.NewFile(uintptr(ends[0]), "helper"), os.NewFile(uintptr(ends[1]), "gateway")
	defer ours.Close()   // net has a copy
	defer theirs.Close() // the helper has a copy
	conn, err := net.FileConn(ours)
	if err != nil {
		return nil, err
	}
	argv := append(append([]string{"toolward-inside"}, program.args...), setup.Argument)
	attr := &os.ProcAttr{
		Dir: "/", Env: []string{}, Files: []*os.File{theirs, e.null, e.null}, Sys: cloneAttr(flags, who),
	}
	var process *os.Process
	done := make(chan struct{})
	e.starter.requests <- func() {
		defer close(done)
		process, err = os.StartProcess("/proc/self/fd/"+strconv.Itoa(int(program.file.Fd())), argv, attr)
	}
	<-done
	if err == nil && flags&unix.CLONE_NEWUSER != 0 && os.Geteuid() != 0 {
		if err = (setup.Owner{UID: who.uid, HostUID: who.hostUID, GID: who.gid, HostGID: who.hostGID}).Give(process.Pid); err != nil {
			_ = process.Kill()
			_, _ = process.Wait() // the first error counts
		}
	}
	if err != nil {
		_ = conn.Close() // nothing was sent
		return nil, err
	}
	h := &helper{pid: process.Pid, conn: conn.(*net.UnixConn), exited: make(chan struct{}), leave: sync.OnceFunc(e.live.Done)}
	h.kill = func() { _ = process.Kill() } // it may have ended already
	h.id = processID(h.pid)
	e.live.Add(1)
	go func() {
		defer h.leave()
		_, _ = process.Wait() // how it ended is told over the channel, if at all
		close(h.exited)
	}()
	return h, nil
}

func cloneAttr(flags uintptr, who identity) *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Cloneflags: flags, Setsid: true, Pdeathsig: syscall.SIGKILL}
	if flags&unix.CLONE_NEWUSER == 0 {
		// Without a process namespace, what it has started would outlive it: it ends them when the gateway hangs up.
		attr.Pdeathsig = 0
		return attr
	}
	// What is executed as another user than 0 keeps only these. CAP_DAC_OVERRIDE is for the kernel's own work directory of a
	// layer, whose mode is 0; of the host it reaches what the user owns, and no more.
	attr.AmbientCaps = []uintptr{unix.CAP_DAC_OVERRIDE, unix.CAP_SYS_ADMIN, unix.CAP_NET_ADMIN, unix.CAP_SETPCAP, unix.CAP_SYS_RESOURCE}
	if os.Geteuid() != 0 {
		return attr // its owner comes with setup.Owner
	}
	attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: who.uid, HostID: who.hostUID, Size: 1}}
	attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: who.gid, HostID: who.hostGID, Size: 1}}
	attr.GidMappingsEnableSetgroups = true // it gives up root's other groups
	attr.Credential = &syscall.Credential{Uid: uint32(who.uid), Gid: uint32(who.gid)}
	return attr
}

// send has the helper carry out a plan, with the descriptors that it speaks of.
func (h *helper) send(ctx context.Context, plan *setup.Plan, fds []int) error {
	memory, err := inMemory(plan.Encode())
	if err != nil {
		return err
	}
	defer memory.Close() // the helper has a copy
	deadline := time.Now().Add(setupTimeout)
	if d, ok := ctx.Deadline(); ok && d.Before(deadline) {
		deadline = d
	}
	_ = h.conn.SetDeadline(deadline) // a closed connection says so below
	stop := context.AfterFunc(ctx, func() { _ = h.conn.SetDeadline(time.Unix(1, 0)) })
	rights := unix.UnixRights(append([]int{int(memory.Fd())}, fds...)...)
	if _, _, err = h.conn.WriteMsgUnix([]byte{1}, rights, nil); err != nil {
		err = fmt.Errorf("the helper takes no plan: %w", err)
	} else {
		err = h.answer()
	}
	if !stop() {
		return ctx.Err()
	}
	if err != nil {
		return err
	}
	return h.conn.SetDeadline(time.Time{})
}

// answer reads what became of a plan. Not a byte more is read: what follows belongs to the program inside.
func (h *helper) answer() error {
	var kind [1]byte
	if _, err := h.conn.Read(kind[:]); err != nil {
		return fmt.Errorf("the helper ended without an answer: %w", err)
	}
	if kind[0] == setup.Done {
		return nil
	}
	text := make([]byte, 4096) // the helper ends after a failure; one message is all there is
	n, err := h.conn.Read(text)
	if err != nil || n < 2 || kind[0] != setup.Failed {
		return errors.New("the helper gave no answer that makes sense")
	}
	return &helperError{errno: syscall.Errno(binary.LittleEndian.Uint16(text)), text: string(text[2:n])}
}

// end ends the helper and everything in its namespaces, and waits for it.
func (h *helper) end() {
	h.kill()
	h.hangUp()
	<-h.exited
	h.leave()
}

// letGo leaves the helper to itself.
func (h *helper) letGo() {
	h.hangUp()
	h.leave()
}

func (h *helper) hangUp() {
	if h.conn != nil {
		_ = h.conn.Close() // it is not used any more
	}
}

// inMemory puts data into memory that a helper can read: never into arguments or an environment, which everybody sees.
func inMemory(data []byte) (*os.File, error) {
	fd, err := unix.MemfdCreate("toolward-plan", unix.MFD_CLOEXEC|unix.MFD_NOEXEC_SEAL)
	if errors.Is(err, unix.EINVAL) { // before Linux 6.3
		fd, err = unix.MemfdCreate("toolward-plan", unix.MFD_CLOEXEC)
	}
	if err != nil {
		return nil, os.NewSyscallError("memfd_create", err)
	}
	file := os.NewFile(uintptr(fd), "toolward-plan")
	if _, err := file.Write(data); err != nil {
		_ = file.Close() // it is not used
		return nil, err
	}
	return file, nil
}

// unavailable makes an error of what could not be started.
func unavailable(err error) error {
	if e, ok := errors.AsType[*sandbox.Error](err); ok {
		return e
	}
	return sandbox.Errorf(sandbox.CodeUnavailable, "the sandbox could not be made: %v", err)
}

// explainSetup says what went wrong in the helper in words that lead to a remedy.
func explainSetup(err error) error {
	failed, ok := errors.AsType[*helperError](err)
	if !ok {
		return err
	}
	if failed.errno == unix.ESTALE || failed.errno == unix.ELOOP { // another file, or a symbolic link
		return sandbox.Errorf(sandbox.CodeChanged, "a mount was replaced after it was checked: %v", err)
	}
	return sandbox.Errorf(sandbox.CodeUnavailable, "the sandbox could not be set up: %v", err)
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

var errGone = errors.New("it has ended")
