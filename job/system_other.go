//go:build unix && !linux

package job

import (
	"fmt"
	"os"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

func pipe(ends *[2]int) error {
	// No program may be started between the two calls: it would get the ends.
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	if err := unix.Pipe(ends[:]); err != nil {
		return err
	}
	unix.CloseOnExec(ends[0])
	unix.CloseOnExec(ends[1])
	return nil
}

// openUnreadable opens a file that may be executed and not read, which this system cannot.
func openUnreadable(string) (int, error) { return -1, unix.EACCES }

// keepDescriptors marks every open file beyond the three standard ones as not to be passed on.
func keepDescriptors() error {
	entries, err := os.ReadDir("/dev/fd")
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

// startsOpenFiles: this system cannot name an open file for a child.
const startsOpenFiles = false

// start executes the file by its path, directly after it was compared with what is open, as the directory is here.
func (p *program) start(argv []string, attributes *os.ProcAttr, dir *os.File) (*os.Process, error) {
	attributes.Dir = dir.Name()
	held, err := dir.Stat()
	if err != nil {
		return nil, &Refusal{What: dir.Name(), Err: err}
	}
	if named, err := os.Stat(dir.Name()); err != nil || !os.SameFile(held, named) {
		return nil, &Refusal{What: dir.Name(), Err: ErrChanged}
	}
	return os.StartProcess(p.Path, argv, attributes)
}

// documentFile is a file that holds the text and has lost its name.
func documentFile(text string) (*os.File, error) {
	f, err := os.CreateTemp("", "toolward-")
	if err != nil {
		return nil, fmt.Errorf("make a file for the here-document: %w", err)
	}
	_ = os.Remove(f.Name()) // it is empty
	if _, err = f.WriteString(text); err == nil {
		_, err = f.Seek(0, 0)
	}
	if err != nil {
		_ = f.Close() // it holds nothing
		return nil, fmt.Errorf("write the here-document: %w", err)
	}
	return f, nil
}

// awaitLeader waits until the leader has ended. The status cannot be had here without giving up the process id, and
// with it the group: what the pipeline left behind is ended now. A zombie is known by having no group.
func (j *Job) awaitLeader() status {
	for pause := time.Millisecond; ; pause = min(2*pause, 50*time.Millisecond) {
		if _, err := unix.Getpgid(j.leader.Pid); err != nil {
			break
		}
		time.Sleep(pause)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	signalGroup(j.leader.Pid, syscall.SIGKILL)
	s := statusOf(j.leader.Wait())
	j.leader = nil
	return s
}

// descendants cannot be listed without /proc.
func descendants([]*os.Process, int) []*os.Process { return nil }
