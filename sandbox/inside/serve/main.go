//go:build linux

package serve

import (
	"errors"
	"math"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/toolward/toolward/sandbox/inside/wire"
)

// stopGrace is what commands get to end beyond the time after which they are made to.
const stopGrace = 200 * time.Millisecond

// The programs that toolward-inside is.
const (
	serveName = "serve" // the gateway's peer
	initName  = "init"  // a first process that does nothing but its duties: servers come and go beside it
	lateName  = "late"  // becomes a program that is looked up when its turn comes
)

// Main is the program. It returns the exit code.
func Main(args []string) int {
	switch {
	case len(args) == 1 && args[0] == serveName:
		return serveMain(nil)
	case len(args) == 2 && args[0] == serveName:
		if d, ok := newDoor(args[1]); ok {
			return serveMain(d)
		}
	case len(args) == 1 && args[0] == initName:
		return initMain()
	case len(args) > 1 && args[0] == lateName:
		return lateMain(args[1:])
	}
	complain("engines of Toolward start this program in a sandbox")
	return 64
}

// lateMain becomes the program that is there now, or ends as a shell that cannot start it.
func lateMain(argv []string) int {
	dir, _ := os.Getwd() // without one, only absolute paths lead somewhere
	file, status := environment{path: os.Getenv("PATH")}.find(argv[0], dir)
	if status == 0 {
		status = statusNotExecutable
		if err := syscall.Exec(file, argv, os.Environ()); errors.Is(err, unix.ENOENT) {
			status = statusNotFound
		}
	}
	text := notExecutable
	if status == statusNotFound {
		text = notFound
	}
	complain(argv[0] + ": " + text)
	return status
}

func complain(text string) {
	_, _ = os.Stderr.WriteString("toolward: " + text + "\n") // nobody else to tell
}

// serveMain serves gateways: one, or where there is a door, one after the other.
func serveMain(d *door) int {
	// The program is small, lives long and shall not be noticed.
	debug.SetGCPercent(50)
	runtime.GOMAXPROCS(min(runtime.GOMAXPROCS(0), 4))
	in, out, err := channel()
	if err != nil {
		complain(err.Error())
		return 1
	}
	null, err := nothing()
	if err != nil {
		complain(err.Error())
		return 1
	}
	harden()
	h := &house{null: null, kids: newChildren(), door: d}
	over := make(chan error, 1)
	go func() { over <- h.serve(in, out) }()
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	select {
	case err = <-over:
	case <-signals:
		if s := h.current.Load(); s != nil {
			s.stopAll(stopDelay + stopGrace)
		}
	}
	h.kids.killAll()
	if err != nil {
		complain(err.Error())
		return 1
	}
	return 0
}

// house is a sandbox, whoever is its gateway.
type house struct {
	null    int
	kids    *children
	door    *door
	current atomic.Pointer[server]
}

// begin makes the server of one connection.
func (h *house) begin(in, out *os.File) *server {
	s := &server{in: wire.NewReader(in), peer: in, null: h.null, kids: h.kids, door: h.door, streams: map[uint32]*stream{}}
	s.out.open(out)
	h.current.Store(s)
	return s
}

// serve serves until there is nobody more to serve. What a gateway had started ends with it: nobody could be told what
// became of it, and the next gateway, which knows nothing of it, must not be taken for who has allowed it.
func (h *house) serve(in, out *os.File) error {
	for {
		s := h.begin(in, out)
		err := s.run()
		if !h.door.lasts() {
			return err
		}
		h.door.set(doorClearing)
		_ = in.Close() // who still writes to it must not wait
		if !s.stopAll(clearTime) {
			return errors.New("what the gateway had started does not end")
		}
		if in = h.door.wait(); in == nil {
			return nil
		}
		out = in
	}
}

// channel is the stream to the gateway: standard input and output, or standard input alone if that is a socket. They
// are moved out of the way, so that no command can be given them by mistake.
func channel() (in, out *os.File, err error) {
	incoming, err := moved(0)
	if err != nil {
		return nil, nil, err
	}
	in = os.NewFile(uintptr(incoming), "gateway")
	var st unix.Stat_t
	if unix.Fstat(incoming, &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFSOCK {
		_ = unix.SetsockoptInt(incoming, unix.SOL_SOCKET, unix.SO_SNDBUF, 1<<20) // it is only faster
		return in, in, nil
	}
	outgoing, err := moved(1)
	if err != nil {
		return nil, nil, err
	}
	return in, os.NewFile(uintptr(outgoing), "gateway"), nil
}

// moved is a copy of a standard stream that commands do not get.
func moved(fd int) (int, error) {
	high, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 10)
	if err == nil {
		err = unix.SetNonblock(high, true)
	}
	if err != nil {
		return -1, os.NewSyscallError("fcntl", err)
	}
	return high, nil
}

// nothing is /dev/null, put in place of standard input and output. Where there is none, it is a pipe of which the other
// end is closed.
func nothing() (int, error) {
	fd, err := unix.Open(os.DevNull, unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		var ends [2]int
		if err := unix.Pipe2(ends[:], unix.O_CLOEXEC); err != nil {
			return -1, os.NewSyscallError("pipe2", err)
		}
		_ = unix.Close(ends[1]) // nothing was written
		fd = ends[0]
	}
	high, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 10)
	if err != nil {
		return -1, os.NewSyscallError("fcntl", err)
	}
	for standard := range 2 {
		if err := unix.Dup3(high, standard, 0); err != nil {
			return -1, os.NewSyscallError("dup3", err)
		}
	}
	if fd > 2 {
		_ = unix.Close(fd) // nothing was written
	}
	return high, nil
}

// harden keeps commands from reading and tracing this program, which has their user id, and from inheriting files.
func harden() {
	_ = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)                 // it cannot fail
	_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)          // since Linux 3.4
	_ = unix.CloseRange(3, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC) // ours have the mark anyway
	_ = syscall.Setrlimit(syscall.RLIMIT_CORE, &syscall.Rlimit{})    // lowering is always allowed
	// A file that grows too large is an error of writing. Ignoring the signal would make all commands ignore it.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGXFSZ)
}

// initMain is the first process of a container: it collects every process that ends.
func initMain() int {
	debug.SetGCPercent(50)
	runtime.GOMAXPROCS(1)
	harden()
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGCHLD)
	for received := range signals {
		if received != syscall.SIGCHLD {
			signalOthers(syscall.SIGTERM)
			time.Sleep(stopDelay / 4) // the container ends with this process: what wants to say goodbye may
			return 0
		}
		for {
			pid, err := unix.Wait4(-1, nil, unix.WNOHANG, nil)
			if pid <= 0 && !errors.Is(err, unix.EINTR) {
				break
			}
		}
	}
	return 0
}

// signalOthers signals all processes that the first process of a container can: all of it.
func signalOthers(number syscall.Signal) {
	if os.Getpid() == 1 {
		_ = unix.Kill(-1, number) // there may be none
	}
}
