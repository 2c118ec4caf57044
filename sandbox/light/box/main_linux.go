package box

import (
	"errors"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// channel is the socket to the gateway.
const channel = 0

// server is the box at work.
type server struct {
	setup *Setup // nil until it was made

	// mu is held while a program starts, so that its end is never told before its start.
	mu       sync.Mutex
	children chan struct{} // has a token when there may be somebody to wait for
	group    int           // of the pipeline that runs; 0: none
}

// Main is the box. It returns when the gateway has hung up, or something cannot be made.
func Main() int {
	// Capabilities, Landlock and the like belong to a thread, and programs inherit those of the thread that starts them.
	runtime.LockOSThread()
	// A signal that is meant for the programs must not end the box. They get back the usual answers when they start,
	// which signals that are ignored would not.
	signal.Notify(make(chan os.Signal, 1))
	s := &server{children: make(chan struct{}, 1)}
	go s.reap()
	for {
		if !s.serve() {
			s.endAll()
			return 0
		}
	}
}

// serve does what one message says; false: there will be no more.
func (s *server) serve() bool {
	data, fds, err := receive()
	defer closeAll(fds)
	if err != nil || len(data) == 0 {
		return false
	}
	switch data[0] {
	case MessageSetup:
		return s.make(fds) == nil
	case MessageLaunch:
		s.launch(fds)
	case MessageSignal:
		if n, err := strconv.Atoi(string(data[1:])); err == nil && s.setup != nil {
			s.signal(syscall.Signal(n))
		}
	default:
		return false
	}
	return true
}

// make makes the confinement. What is not made whole is not used.
func (s *server) make(fds []int) error {
	// Programs inside have the same user: without this they could look into the process that guards them. Until now the
	// gateway had to: it says who this process is (setup.Owner).
	err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)
	var setup *Setup
	if err == nil {
		setup, err = s.read(fds)
	}
	if err == nil {
		err = setup.confine()
	}
	if err != nil {
		var number syscall.Errno
		errors.As(err, &number)
		send([]byte(string(MessageFailed)+strconv.Itoa(int(number))+" "+err.Error()), -1)
		return err
	}
	s.setup = setup
	send([]byte{MessageDone}, -1)
	return nil
}

func (s *server) read(fds []int) (*Setup, error) {
	if len(fds) != 1 || s.setup != nil {
		return nil, errText
	}
	data, err := content(fds[0])
	if err != nil {
		return nil, err
	}
	return DecodeSetup(data)
}

// launch starts a program and tells what became of that.
func (s *server) launch(fds []int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	pid, handle, err := s.start(fds)
	if err != nil {
		number := unix.EIO
		errors.As(err, &number)
		send([]byte(string(MessageRefused)+strconv.Itoa(int(number))), -1)
		return
	}
	send([]byte(string(MessageStarted)+strconv.Itoa(pid)), handle)
	_ = unix.Close(handle) // the gateway has it
	select {
	case s.children <- struct{}{}:
	default:
	}
}

// spare is how many descriptors above those that it passes on the runtime may use in the child.
const spare = 32

func (s *server) start(fds []int) (pid, handle int, err error) {
	if s.setup == nil || len(fds) < 5 { // without a confinement nothing starts
		return 0, -1, unix.EPERM
	}
	data, err := content(fds[0])
	if err != nil {
		return 0, -1, err
	}
	l, err := DecodeLaunch(data)
	if err != nil {
		return 0, -1, unix.EINVAL
	}
	dir, err := sameDirectory(l.Dir, fds[4])
	if err != nil {
		return 0, -1, err
	}
	defer unix.Close(dir)
	path := l.Path
	if l.Open {
		if len(fds) < 6 {
			return 0, -1, unix.EINVAL
		}
		program, err := unix.FcntlInt(uintptr(fds[5]), unix.F_DUPFD_CLOEXEC, spare)
		if err != nil {
			return 0, -1, err
		}
		defer unix.Close(program)
		path = "/proc/self/fd/" + strconv.Itoa(program)
	}
	attributes := &syscall.ProcAttr{
		Dir: "/proc/self/fd/" + strconv.Itoa(dir), Env: l.Env, Files: []uintptr{uintptr(fds[1]), uintptr(fds[2]), uintptr(fds[3])},
		Sys: &syscall.SysProcAttr{PidFD: &handle},
	}
	pid, err = s.fork(path, l, attributes)
	return pid, handle, err
}

// fork starts a program, in the process group of the pipeline if that still has members.
func (s *server) fork(path string, l *Launch, attributes *syscall.ProcAttr) (pid int, err error) {
	sys := attributes.Sys
	if l.Session {
		sys.Setsid, sys.Setctty, sys.Ctty = true, l.Terminal >= 0, max(l.Terminal, 0)
		return syscall.ForkExec(path, l.Argv, attributes)
	}
	sys.Setpgid, sys.Pgid = true, s.group
	pid, err = syscall.ForkExec(path, l.Argv, attributes)
	if s.group != 0 && (err == unix.EPERM || err == unix.ESRCH) { // all of it has ended
		s.group, sys.Pgid = 0, 0
		pid, err = syscall.ForkExec(path, l.Argv, attributes)
	}
	if err == nil && s.group == 0 {
		s.group = pid
	}
	return pid, err
}

// sameDirectory opens a directory by its path, as it is in here, and refuses another one than the gateway has judged. The
// gateway's own descriptor would lead out: what is hidden here is not hidden above it.
func sameDirectory(path string, judged int) (int, error) {
	dir, err := unix.Openat2(unix.AT_FDCWD, path, &unix.OpenHow{
		Flags: unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS,
	})
	if err != nil {
		return -1, err
	}
	var here, there unix.Stat_t
	if unix.Fstat(dir, &here) != nil || unix.Fstat(judged, &there) != nil || here.Dev != there.Dev || here.Ino != there.Ino {
		_ = unix.Close(dir) // nothing was done with it
		return -1, unix.ESTALE
	}
	high, err := unix.FcntlInt(uintptr(dir), unix.F_DUPFD_CLOEXEC, spare)
	_ = unix.Close(dir) // a copy is used
	return high, err
}

// reap collects everything that ends, and tells of what the gateway has started. It does not know which those are: the
// gateway does.
func (s *server) reap() {
	for range s.children {
		for {
			var status unix.WaitStatus
			pid, err := unix.Wait4(-1, &status, 0, nil)
			if err == unix.EINTR {
				continue
			}
			if err != nil {
				break // nobody is left
			}
			s.mu.Lock()
			send([]byte(string(MessageEnded)+strconv.Itoa(pid)+" "+strconv.Itoa(int(status))), -1)
			s.mu.Unlock()
		}
	}
}

// signal reaches everything that runs in the box.
func (s *server) signal(number syscall.Signal) {
	if s.setup.Namespaces {
		_ = unix.Kill(-1, number)          // everybody in this namespace; nobody is fine
		_ = unix.Kill(-1, syscall.SIGCONT) // a stopped process could not notice
		return
	}
	for _, pid := range descendants() {
		_ = unix.Kill(pid, number)
		_ = unix.Kill(pid, syscall.SIGCONT)
	}
}

// endAll ends what still runs, where no namespace does it. New processes can come while the list is read.
func (s *server) endAll() {
	if s.setup == nil || s.setup.Namespaces {
		return
	}
	for range 100 {
		left := descendants()
		if len(left) == 0 {
			return
		}
		for _, pid := range left {
			_ = unix.Kill(pid, syscall.SIGKILL) // it may have ended
		}
	}
}

// descendants are the processes below this one. Whose parent has ended is this one's child.
func descendants() (all []int) {
	queue := []int{os.Getpid()}
	for len(queue) > 0 && len(all) < 1<<16 {
		at := "/proc/" + strconv.Itoa(queue[0]) + "/task"
		queue = queue[1:]
		threads, err := os.ReadDir(at)
		if err != nil {
			continue
		}
		for _, thread := range threads {
			list, _ := os.ReadFile(at + "/" + thread.Name() + "/children")
			for _, field := range strings.Fields(string(list)) {
				if pid, err := strconv.Atoi(field); err == nil {
					all, queue = append(all, pid), append(queue, pid)
				}
			}
		}
	}
	return all
}

// receive reads a message with its descriptors.
func receive() (data []byte, fds []int, err error) {
	buffer, control := make([]byte, 64), make([]byte, unix.CmsgSpace(8*4))
	var n, m int
	for {
		if n, m, _, _, err = unix.Recvmsg(channel, buffer, control, unix.MSG_CMSG_CLOEXEC); err != unix.EINTR {
			break
		}
	}
	if err != nil || m == 0 {
		return buffer[:max(n, 0)], nil, err
	}
	messages, err := unix.ParseSocketControlMessage(control[:m])
	if err != nil || len(messages) != 1 {
		return nil, nil, errText
	}
	fds, err = unix.ParseUnixRights(&messages[0])
	return buffer[:n], fds, err
}

// send tells the gateway something. If it has gone, the next read says so.
func send(data []byte, fd int) {
	var rights []byte
	if fd >= 0 {
		rights = unix.UnixRights(fd)
	}
	for unix.Sendmsg(channel, data, rights, nil, unix.MSG_NOSIGNAL) == unix.EINTR {
	}
}

func content(fd int) (string, error) {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return "", err
	}
	data := make([]byte, st.Size)
	for read := 0; read < len(data); {
		n, err := unix.Pread(fd, data[read:], int64(read))
		if err != nil {
			return "", err
		}
		if n == 0 {
			return "", errText
		}
		read += n
	}
	return string(data), nil
}

func closeAll(fds []int) {
	for _, fd := range fds {
		_ = unix.Close(fd) // nothing was written through it
	}
}
