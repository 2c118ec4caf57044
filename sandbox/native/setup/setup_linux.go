package setup

import (
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Argument is what makes toolward-inside the helper. It stands before what starts the program inside.
const Argument = "native"

// Answers of the helper. After an error its number and its text follow.
const (
	Done   = 1
	Failed = 2
)

// channel is the socket to the gateway.
const channel = 0

// Main is the helper: it carries out two plans and becomes the program inside, which has the same channel. It returns
// only to say what went wrong: the exit code. subcommand is what stands before the arguments where the big program
// stands in.
func Main(subcommand []string) int {
	// Capabilities, Landlock and the filter belong to a thread, and the program inside inherits those of the thread that
	// starts it. All of them are done on this one.
	runtime.LockOSThread()
	self, err := unix.Open("/proc/self/exe", unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return report(fail("open", "/proc/self/exe", err))
	}
	var b *builder
	for {
		plan, fds, err := receive()
		if err == errClosed {
			return 0 // a helper that nobody needed
		}
		if err == nil && b == nil && !plan.NoNamespace {
			b, err = newBuilder()
		}
		if err == nil && b != nil {
			b.fds = fds
			err = b.run(plan.Steps)
		}
		door := -1
		if err == nil && plan.Last {
			door, err = finish(b, plan, fds, self)
		}
		if err != nil {
			return report(err)
		}
		answer([]byte{Done})
		if plan.Last {
			argv := append([]string{"toolward-inside"}, subcommand...)
			if plan.Forward {
				argv = append(argv, ForwardTo(plan.Forwards))
			}
			argv = append(argv, Serve)
			if door >= 0 {
				argv = append(argv, decimal(uint64(door)))
			}
			return report(fail("start the program inside", "", execute(self, argv)))
		}
	}
}

// Serve is the argument that makes toolward-inside the program inside. After it stands the descriptor of the door, if the
// sandbox has one.
const Serve = "serve"

// finish locks the sandbox, and returns the door that the plan leaves to the next gateway; -1 is none. The order matters:
// whatever needs a right comes before that right is given up.
func finish(b *builder, plan *Plan, fds []int, self int) (door int, err error) {
	if door, err = doorOf(plan, fds); err != nil {
		return -1, err
	}
	if err := confine(b, plan, fds, self); err != nil || door < 0 {
		return -1, err
	}
	// Of this alone the program inside gets the descriptor, and it lives on when the thread of the gateway ends that has
	// started it. Both at the very end: until then, whatever ends the gateway ends this.
	if _, err := unix.FcntlInt(uintptr(door), unix.F_SETFD, 0); err != nil {
		return -1, fail("fcntl", "the door", err)
	}
	return door, fail("parent death signal", "", unix.Prctl(unix.PR_SET_PDEATHSIG, 0, 0, 0, 0))
}

// doorOf takes the door out of the descriptors of a plan, which are closed soon.
func doorOf(plan *Plan, fds []int) (int, error) {
	n := int(plan.Door)
	if n == 0 {
		return -1, nil
	}
	if n > len(fds) {
		return -1, fail("door", "", errPlan)
	}
	door, err := unix.FcntlInt(uintptr(fds[n-1]), unix.F_DUPFD_CLOEXEC, 10)
	return door, fail("fcntl", "the door", err)
}

func confine(b *builder, plan *Plan, fds []int, self int) error {
	if b != nil {
		if err := b.enter(); err != nil {
			return err
		}
		if err := unix.Sethostname([]byte(plan.Hostname)); err != nil {
			return fail("sethostname", "", err)
		}
		if err := nullOutput(); err != nil {
			return err
		}
	}
	if err := unix.CloseRange(3, ^uint(0)>>1, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return fail("close_range", "", err)
	}
	unix.Umask(0o022)
	for _, l := range plan.Rlimits {
		if err := limit(l); err != nil {
			return fail("setrlimit", decimal(uint64(l.Resource)), err)
		}
	}
	if err := dropCapabilities(b != nil); err != nil {
		return err
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fail("no_new_privs", "", err)
	}
	if plan.LandlockABI > 0 {
		if err := landlock(plan, fds, self); err != nil {
			return err
		}
	}
	return fail("seccomp", "", filter(plan.Filter))
}

// nullOutput makes the standard output and error those of the sandbox: the gateway's log is not the payload's.
func nullOutput() error {
	null, err := unix.Open("/dev/null", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return fail("open", "/dev/null", err)
	}
	for fd := 1; fd <= 2; fd++ {
		if err := unix.Dup3(null, fd, 0); err != nil {
			return fail("dup", "/dev/null", err)
		}
	}
	return nil
}

func limit(l Rlimit) error {
	var now unix.Rlimit
	if err := unix.Getrlimit(int(l.Resource), &now); err != nil {
		return err
	}
	value := min(l.Value, now.Max)
	return unix.Setrlimit(int(l.Resource), &unix.Rlimit{Cur: value, Max: value})
}

// dropCapabilities gives up every capability in every set, for good. In a user namespace of its own a process has all
// of them for that namespace: enough for raw sockets, mounts and chroot.
func dropCapabilities(namespaced bool) error {
	if namespaced {
		for c := uintptr(0); ; c++ {
			err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0)
			if err == unix.EINVAL {
				break // the kernel knows no more
			}
			if err != nil {
				return fail("drop capability", decimal(uint64(c)), err)
			}
		}
		if err := unix.Prctl(unix.PR_SET_SECUREBITS, lockedSecurebits, 0, 0, 0); err != nil {
			return fail("securebits", "", err)
		}
	}
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return fail("ambient capabilities", "", err)
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	return fail("capset", "", unix.Capset(&header, &none[0]))
}

// lockedSecurebits: user 0 is nobody special, no set of capabilities survives a change of user, and nothing of this can
// be undone.
const lockedSecurebits = 1<<0 | 1<<1 | // NOROOT
	1<<2 | 1<<3 | // NO_SETUID_FIXUP
	1<<5 | // KEEP_CAPS stays off
	1<<6 | 1<<7 // NO_CAP_AMBIENT_RAISE

// filter installs the seccomp program. Without one nothing starts.
func filter(program []byte) error {
	const size = int(unsafe.Sizeof(unix.SockFilter{}))
	if len(program) == 0 || len(program)%size != 0 {
		return errPlan
	}
	fprog := unix.SockFprog{Len: uint16(len(program) / size), Filter: (*unix.SockFilter)(unsafe.Pointer(&program[0]))}
	_, _, errno := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&fprog)))
	runtime.KeepAlive(program)
	if errno != 0 {
		return errno
	}
	return nil
}

// execute becomes the program at a descriptor, with an empty environment.
func execute(fd int, argv []string) error {
	args, err := syscall.SlicePtrFromStrings(argv)
	if err != nil {
		return err
	}
	env := []*byte{nil}
	var empty [1]byte
	_, _, errno := unix.RawSyscall6(unix.SYS_EXECVEAT, uintptr(fd), uintptr(unsafe.Pointer(&empty[0])),
		uintptr(unsafe.Pointer(&args[0])), uintptr(unsafe.Pointer(&env[0])), unix.AT_EMPTY_PATH, 0)
	return errno
}

type closed struct{}

func (closed) Error() string { return "the gateway has hung up" }

var errClosed error = closed{}

// receive reads the next plan: one byte with descriptors, of which the first is the plan in memory.
func receive() (*Plan, []int, error) {
	var data [1]byte
	control := make([]byte, unix.CmsgSpace(253*4))
	var n, m int
	var err error
	for {
		n, m, _, _, err = unix.Recvmsg(channel, data[:], control, unix.MSG_CMSG_CLOEXEC)
		if err != unix.EINTR {
			break
		}
	}
	if err != nil {
		return nil, nil, fail("receive", "", err)
	}
	if n == 0 {
		return nil, nil, errClosed
	}
	messages, err := unix.ParseSocketControlMessage(control[:m])
	if err != nil || len(messages) != 1 {
		return nil, nil, fail("receive", "", errPlan)
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(fds) == 0 {
		return nil, nil, fail("receive", "", errPlan)
	}
	text, err := content(fds[0])
	_ = unix.Close(fds[0])
	if err != nil {
		return nil, nil, fail("read the plan", "", err)
	}
	plan, err := Decode(text)
	return plan, fds[1:], err
}

func content(fd int) ([]byte, error) {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, err
	}
	data := make([]byte, st.Size)
	for read := 0; read < len(data); {
		n, err := unix.Pread(fd, data[read:], int64(read))
		if err != nil {
			return nil, err
		}
		if n == 0 {
			return nil, errPlan
		}
		read += n
	}
	return data, nil
}

// report tells the gateway what went wrong.
func report(err error) int {
	var number unix.Errno
	if f, ok := err.(*failure); ok {
		number, _ = f.err.(unix.Errno)
	}
	text := err.Error()
	answer(append([]byte{Failed, byte(number), byte(number >> 8)}, text...))
	return 1
}

func answer(data []byte) {
	for {
		if _, err := unix.Write(channel, data); err != unix.EINTR {
			return
		}
	}
}
