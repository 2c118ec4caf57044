package identity

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// System inspects the processes of this machine through /proc.
func System() Processes { return procfs{} }

type procfs struct{}

// Process reads /proc/<pid>.
func (procfs) Process(pid int) (Process, error) {
	if pid <= 0 {
		return Process{}, fmt.Errorf("process %d: not visible from here", pid)
	}
	dir := "/proc/" + strconv.Itoa(pid)
	stat, err := os.ReadFile(dir + "/stat")
	if err != nil {
		return Process{}, fmt.Errorf("process %d: %w", pid, err)
	}
	p, err := parseStat(pid, stat)
	if err != nil {
		return Process{}, err
	}
	info, err := os.Stat(dir)
	if err != nil {
		return Process{}, fmt.Errorf("process %d: %w", pid, err)
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return Process{}, fmt.Errorf("process %d: its owner cannot be told", pid)
	}
	p.UID = owner.Uid
	// Another user's process hides these; then it is no shell and no go tool to us.
	p.Exe, _ = os.Readlink(dir + "/exe")
	if line, err := os.ReadFile(dir + "/cmdline"); err == nil && len(line) > 0 {
		p.Args = strings.Split(strings.TrimSuffix(string(line), "\x00"), "\x00")
	}
	return p, nil
}

// parseStat reads the fields behind the program's name. The name may hold anything, brackets included, so it ends
// at the last one.
func parseStat(pid int, stat []byte) (Process, error) {
	bad := fmt.Errorf("process %d: /proc stat is not understood", pid)
	end := bytes.LastIndexByte(stat, ')')
	if end < 0 {
		return Process{}, bad
	}
	fields := strings.Fields(string(stat[end+1:]))
	if len(fields) < 20 {
		return Process{}, bad
	}
	if fields[0] == "Z" || fields[0] == "X" {
		return Process{}, fmt.Errorf("process %d: has ended", pid)
	}
	var firstErr error
	number := func(i int) uint64 {
		n, err := strconv.ParseInt(fields[i], 10, 64)
		firstErr = errors.Join(firstErr, err)
		return uint64(n)
	}
	p := Process{PID: pid, Parent: int(number(1)), Session: int(number(3)), TTY: number(4), Start: number(19)}
	if firstErr != nil {
		return Process{}, bad
	}
	return p, nil
}

// peerPID asks the kernel who connected, and as which user. The returned check says whether that process still is the one that did; it
// pins the process on kernels that can (6.5 and later).
func peerPID(fd int) (pid int, uid uint32, still func() bool, done func(), err error) {
	cred, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
	if err != nil {
		return 0, 0, nil, nil, fmt.Errorf("ask who connected: %w", err)
	}
	pidfd, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_PEERPIDFD)
	if err != nil {
		return int(cred.Pid), cred.Uid, func() bool { return true }, func() {}, nil
	}
	still = func() bool {
		err := unix.PidfdSendSignal(pidfd, 0, nil, 0)
		return err == nil || errors.Is(err, unix.EPERM) // it is there, and another user's
	}
	return int(cred.Pid), cred.Uid, still, func() { _ = unix.Close(pidfd) }, nil
}

// openExecutable opens the executable of a process: through the kernel's own link, so that it is the file that runs and not what has been
// put in its place.
func openExecutable(p Process) (*os.File, error) {
	return os.Open("/proc/" + strconv.Itoa(p.PID) + "/exe")
}

// identify names a file and its content by what the kernel keeps: the time of change cannot be set.
func identify(info os.FileInfo) (fileID, bool) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return fileID{}, false
	}
	return fileID{uint64(st.Dev), st.Ino, info.Size(), time.Unix(st.Ctim.Unix())}, true
}
