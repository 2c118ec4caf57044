package job

import (
	"errors"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

func pipe(ends *[2]int) error { return unix.Pipe2(ends[:], unix.O_CLOEXEC) }

// openUnreadable opens a file that may be executed and not read.
func openUnreadable(path string) (int, error) { return openRetry(path, unix.O_PATH|unix.O_CLOEXEC) }

// keepDescriptors marks every open file beyond the three standard ones as not to be passed on.
func keepDescriptors() error {
	if unix.CloseRange(3, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC) == nil {
		return nil
	}
	entries, err := os.ReadDir("/proc/self/fd") // before Linux 5.11
	if err != nil {
		return fmt.Errorf("look for inherited open files: %w", err)
	}
	for _, entry := range entries {
		if fd, err := strconv.Atoi(entry.Name()); err == nil && fd > 2 {
			_, _ = unix.FcntlInt(uintptr(fd), unix.F_SETFD, unix.FD_CLOEXEC) // it may have been closed meanwhile
		}
	}
	return nil
}

// startsOpenFiles: the system can execute a file that is open.
const startsOpenFiles = true

// spare is how many descriptors above the highest that it passes on the runtime may use, in the child, before it
// executes: one for its own pipe and one for each of the three streams.
const spare = 8

// start executes the file that is open, whatever its path names by now, in the directory that is open. What only the
// system's administrator could exchange is executed by its path: the process then has its name in lists of processes,
// and not a number.
//
// The child has our descriptors until it executes, so that it can name both by number. The number of the program is
// moved out of the way of what the runtime does with descriptors there.
func (p *program) start(argv []string, attributes *os.ProcAttr, dir *os.File) (*os.Process, error) {
	attributes.Dir = "/proc/self/fd/" + strconv.Itoa(int(dir.Fd()))
	if p.byName || guarded(p.Path) {
		return os.StartProcess(p.Path, argv, attributes)
	}
	highest := 2
	for _, f := range attributes.Files {
		highest = max(highest, int(f.Fd()))
	}
	fd, err := unix.FcntlInt(uintptr(p.fd), unix.F_DUPFD_CLOEXEC, highest+spare)
	if err != nil {
		return nil, fmt.Errorf("hold the program open: %w", err)
	}
	defer unix.Close(fd) // nothing was written
	return os.StartProcess("/proc/self/fd/"+strconv.Itoa(fd), argv, attributes)
}

// documentFile is a file without a name that holds the text.
func documentFile(text string) (*os.File, error) {
	fd, err := unix.MemfdCreate("here-document", unix.MFD_CLOEXEC|unix.MFD_NOEXEC_SEAL)
	if errors.Is(err, unix.EINVAL) { // before Linux 6.3
		fd, err = unix.MemfdCreate("here-document", unix.MFD_CLOEXEC)
	}
	if err != nil {
		return nil, fmt.Errorf("make a file for the here-document: %w", err)
	}
	f := os.NewFile(uintptr(fd), "here-document")
	if _, err = f.WriteString(text); err == nil {
		_, err = f.Seek(0, 0)
	}
	if err != nil {
		_ = f.Close() // it holds nothing
		return nil, fmt.Errorf("write the here-document: %w", err)
	}
	return f, nil
}

// awaitLeader waits until the leader has ended and leaves it a zombie, so that its process group keeps its id for the
// segments that follow, and until nothing more is sent to the group.
func (j *Job) awaitLeader() status {
	var info struct {
		_, _, code int32
		child      struct {
			_      [0]uintptr // as the system aligns it
			_, _   int32
			status int32
			_      [28]int32
		}
	}
	for {
		err := unix.Waitid(unix.P_PID, j.leader.Pid, (*unix.Siginfo)(unsafe.Pointer(&info)), unix.WEXITED|unix.WNOWAIT, nil)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		const exitedItself = 1 // CLD_EXITED
		switch {
		case err != nil:
			return exited(statusNotExecutable)
		case info.code == exitedItself:
			return exited(int(info.child.status))
		}
		return signaled(syscall.Signal(info.child.status))
	}
}

// maxDescendants bounds how many processes outside the group are looked after.
const maxDescendants = 4096

// descendants returns the processes that the roots have started, and those that they have, as far as they are not in
// the process group: a program that calls setsid escapes a signal to the group. Processes whose parent has already
// ended cannot be found this way.
func descendants(roots []*os.Process, group int) []*os.Process {
	var found []*os.Process
	var queue []int
	for _, p := range roots {
		queue = append(queue, p.Pid)
	}
	for seen := 0; len(queue) > 0 && seen < maxDescendants; seen++ {
		parent := queue[0]
		queue = queue[1:]
		for _, child := range childrenOf(parent) {
			queue = append(queue, child)
			if own, err := unix.Getpgid(child); err != nil || own == group {
				continue
			}
			// The handle is taken first and the parent checked after: the id cannot change its owner in between.
			process, err := os.FindProcess(child)
			if err != nil {
				continue
			}
			if parentOf(child) != parent {
				_ = process.Release() // somebody else's
				continue
			}
			found = append(found, process)
		}
	}
	return found
}

func childrenOf(pid int) []int {
	dir := "/proc/" + strconv.Itoa(pid) + "/task"
	threads, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	var children []int
	for _, thread := range threads {
		list, err := os.ReadFile(dir + "/" + thread.Name() + "/children")
		if err != nil {
			continue
		}
		for _, field := range strings.Fields(string(list)) {
			if child, err := strconv.Atoi(field); err == nil {
				children = append(children, child)
			}
		}
	}
	return children
}

// parentOf reads the parent's id from /proc/<pid>/stat, behind the program's name in parentheses.
func parentOf(pid int) int {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return -1
	}
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	if len(fields) < 2 {
		return -1
	}
	parent, err := strconv.Atoi(fields[1])
	if err != nil {
		return -1
	}
	return parent
}
