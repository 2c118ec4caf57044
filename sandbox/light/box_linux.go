package light

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/toolward/toolward/job"
	inside "github.com/toolward/toolward/sandbox/light/box"
	"github.com/toolward/toolward/sandbox/native/setup"
)

// patience bounds each answer of a box: one that hangs in the kernel must not hold up its caller for ever.
const patience = 30 * time.Second

// endPatience is how long the end of everything in a box is waited for. Only what hangs in the kernel takes longer.
const endPatience = 2 * time.Second

// box is a process that makes a confinement and starts programs in it. It is a [job.Elsewhere].
type box struct {
	mode    Mode
	process *os.Process
	conn    *net.UnixConn
	exited  chan struct{}
	answers chan answer // of one request at a time

	starting sync.Mutex // held from a request to its answer

	mu      sync.Mutex
	running map[int]*started // by the process id inside
	gone    bool             // it answers no more
}

// answer is a message of a box, with the process that it started.
type answer struct {
	kind byte
	text string
	made *started
}

// started is a program in a box.
type started struct {
	pid    int // for this machine
	done   chan struct{}
	status syscall.WaitStatus
}

func (s *started) Process() int { return s.pid }

func (s *started) Wait() syscall.WaitStatus {
	<-s.done
	return s.status
}

// killed is the status of what ended with its box.
const killed = syscall.WaitStatus(syscall.SIGKILL)

// newBox starts a box, which waits for its setup. mode is what it is made of.
func (l *Light) newBox(ctx context.Context, mode Mode) (*box, error) {
	program, args, err := l.options.Program(ctx)
	if err != nil {
		return nil, err
	}
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("socketpair", err)
	}
	ours, theirs := os.NewFile(uintptr(ends[0]), "box"), os.NewFile(uintptr(ends[1]), "gateway")
	defer ours.Close()   // net has a copy
	defer theirs.Close() // the box has a copy
	conn, err := net.FileConn(ours)
	if err != nil {
		return nil, err
	}
	null, err := job.OpenNull()
	if err != nil {
		_ = conn.Close() // nothing was sent
		return nil, err
	}
	defer null.Close() // the box has a copy
	argv := append(append([]string{"toolward-inside"}, args...), inside.Argument)
	process, err := os.StartProcess("/proc/self/fd/"+strconv.Itoa(int(program.Fd())), argv, &os.ProcAttr{
		Dir: "/", Env: []string{"GOMAXPROCS=2", "GOGC=off"}, Files: []*os.File{theirs, null, null}, Sys: ownNamespaces(mode),
	})
	if err == nil && mode == Namespaces && os.Geteuid() != 0 {
		// In its user namespace the user is the same one, so that files belong to who they should.
		uid, gid := os.Geteuid(), os.Getegid()
		if err = (setup.Owner{UID: uid, HostUID: uid, GID: gid, HostGID: gid}).Give(process.Pid); err != nil {
			_ = process.Kill()
			_, _ = process.Wait() // the first error counts
		}
	}
	if err != nil {
		_ = conn.Close() // nothing was sent
		return nil, err
	}
	b := &box{
		mode: mode, process: process, conn: conn.(*net.UnixConn), exited: make(chan struct{}), answers: make(chan answer, 1), running: map[int]*started{},
	}
	go func() {
		_, _ = process.Wait() // how it ended does not matter
		close(b.exited)
	}()
	go b.listen()
	return b, nil
}

// ownNamespaces are those of a box.
func ownNamespaces(mode Mode) *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Setsid: true}
	if mode != Namespaces {
		return attr
	}
	attr.Cloneflags = unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWIPC
	if os.Geteuid() == 0 {
		return attr
	}
	attr.Cloneflags |= unix.CLONE_NEWUSER
	// What is executed as another user than 0 keeps only these.
	attr.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_SETPCAP}
	return attr
}

// listen takes what the box says, to its end.
func (b *box) listen() {
	buffer, control := make([]byte, 4096), make([]byte, unix.CmsgSpace(4))
	for {
		n, m, _, _, err := b.conn.ReadMsgUnix(buffer, control)
		if err != nil || n == 0 {
			break
		}
		a := answer{kind: buffer[0], text: string(buffer[1:n])}
		switch a.kind {
		case inside.MessageEnded:
			b.ended(a.text)
			continue
		case inside.MessageStarted:
			a.made = b.begun(a.text, control[:m])
		}
		b.answers <- a // somebody waits for each
	}
	b.mu.Lock()
	b.gone = true
	for pid, s := range b.running {
		s.status = killed
		close(s.done)
		delete(b.running, pid)
	}
	b.mu.Unlock()
	close(b.answers)
}

// begun notes a program before its end can be told.
func (b *box) begun(text string, control []byte) *started {
	s := &started{done: make(chan struct{})}
	if messages, err := unix.ParseSocketControlMessage(control); err == nil && len(messages) == 1 {
		if fds, err := unix.ParseUnixRights(&messages[0]); err == nil && len(fds) == 1 {
			s.pid = processOf(fds[0])
			_ = unix.Close(fds[0]) // its number was wanted
		}
	}
	inside, _ := strconv.Atoi(text)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.running[inside] = s
	return s
}

func (b *box) ended(text string) {
	pid, status, _ := strings.Cut(text, " ")
	number, err := strconv.Atoi(pid)
	code, err2 := strconv.Atoi(status)
	if err != nil || err2 != nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if s := b.running[number]; s != nil { // else a program's own child
		s.status = syscall.WaitStatus(code)
		close(s.done)
		delete(b.running, number)
	}
}

// processOf is the id of a process for this machine, of a descriptor that came from another namespace; 0 if it cannot be known.
func processOf(fd int) int {
	info, err := os.ReadFile("/proc/self/fdinfo/" + strconv.Itoa(fd))
	if err != nil {
		return 0
	}
	for line := range bytes.Lines(info) {
		if number, ok := bytes.CutPrefix(line, []byte("Pid:")); ok {
			pid, _ := strconv.Atoi(string(bytes.TrimSpace(number)))
			return max(pid, 0)
		}
	}
	return 0
}

// ask sends a request and returns what the box answers.
func (b *box) ask(kind byte, text string, fds ...int) (answer, error) {
	memory, err := inMemory(text)
	if err != nil {
		return answer{}, err
	}
	defer memory.Close() // the box has a copy
	rights := unix.UnixRights(append([]int{int(memory.Fd())}, fds...)...)
	b.starting.Lock()
	defer b.starting.Unlock()
	if _, _, err := b.conn.WriteMsgUnix([]byte{kind}, rights, nil); err != nil {
		return answer{}, fmt.Errorf("the confinement takes no request: %w", err)
	}
	late := time.NewTimer(patience)
	defer late.Stop()
	select {
	case a, ok := <-b.answers:
		if ok {
			return a, nil
		}
	case <-late.C:
		b.kill() // an answer that comes now would be taken for that of the next request
	}
	return answer{}, errors.New("the confinement ended without an answer")
}

// confine makes the confinement.
func (b *box) confine(setup *inside.Setup) error {
	a, err := b.ask(inside.MessageSetup, setup.Encode())
	switch {
	case err != nil:
		return err
	case a.kind == inside.MessageDone:
		return nil
	case a.kind != inside.MessageFailed:
		return errors.New("the confinement gave no answer that makes sense")
	}
	number, text, _ := strings.Cut(a.text, " ")
	code, _ := strconv.Atoi(number)
	return &setupError{syscall.Errno(code), text}
}

// setupError is what a box could not make.
type setupError struct {
	number syscall.Errno
	text   string
}

func (e *setupError) Error() string { return "the confinement could not be made: " + e.text }

func (e *setupError) Unwrap() error { return e.number }

// Start starts a program.
func (b *box) Start(l job.Launch) (job.Started, error) {
	launch := inside.Launch{Path: l.Path, Dir: l.DirPath, Open: l.Program >= 0, Session: l.Session, Terminal: l.Terminal, Argv: l.Argv, Env: l.Env}
	fds := []int{int(l.Files[0].Fd()), int(l.Files[1].Fd()), int(l.Files[2].Fd()), int(l.Dir.Fd())}
	if l.Program >= 0 {
		fds = append(fds, l.Program)
	}
	a, err := b.ask(inside.MessageLaunch, launch.Encode(), fds...)
	switch {
	case err != nil:
		return nil, err
	case a.made != nil:
		return a.made, nil
	case a.kind != inside.MessageRefused:
		return nil, errors.New("the confinement gave no answer that makes sense")
	}
	code, err := strconv.Atoi(a.text)
	if err != nil || code == 0 {
		code = int(unix.EIO)
	}
	return nil, syscall.Errno(code)
}

// Signal reaches everything in the box.
func (b *box) Signal(signal syscall.Signal) {
	if signal == syscall.SIGKILL && b.mode == Namespaces {
		b.kill() // all of it ends with it, even if it is busy
		return
	}
	_, _ = b.conn.Write([]byte(string(rune(inside.MessageSignal)) + strconv.Itoa(int(signal)))) // it may have ended
}

// kill ends everything in the box. Without namespaces the box has to do that itself, which it does when it is hung up on.
func (b *box) kill() {
	if b.mode == Namespaces {
		_ = b.process.Kill() // it may have ended
	}
	_ = b.conn.Close() // nothing more is asked
}

// End ends everything in the box, and waits for it.
func (b *box) End() {
	b.kill()
	late := time.NewTimer(endPatience)
	defer late.Stop()
	select {
	case <-b.exited:
	case <-late.C:
		_ = b.process.Kill() // it may have ended
	}
}

func (b *box) alive() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return !b.gone
}

// inMemory puts text into memory that a box can read: arguments and environments are seen by everybody.
func inMemory(text string) (*os.File, error) {
	fd, err := unix.MemfdCreate("toolward-launch", unix.MFD_CLOEXEC|unix.MFD_NOEXEC_SEAL)
	if errors.Is(err, unix.EINVAL) { // before Linux 6.3
		fd, err = unix.MemfdCreate("toolward-launch", unix.MFD_CLOEXEC)
	}
	if err != nil {
		return nil, os.NewSyscallError("memfd_create", err)
	}
	file := os.NewFile(uintptr(fd), "toolward-launch")
	if _, err := file.WriteString(text); err != nil {
		_ = file.Close() // it is not used
		return nil, err
	}
	return file, nil
}
