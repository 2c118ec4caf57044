package identity

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// System inspects the processes of this machine through sysctl.
func System() Processes { return sysctl{} }

type sysctl struct{}

// Process asks the kernel for kern.proc.pid and kern.procargs2.
func (sysctl) Process(pid int) (Process, error) {
	if pid <= 0 {
		return Process{}, fmt.Errorf("process %d: not visible from here", pid)
	}
	info, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if err != nil {
		return Process{}, fmt.Errorf("process %d: %w", pid, err)
	}
	const zombie = 5 // SZOMB
	if int(info.Proc.P_pid) != pid || info.Proc.P_stat == zombie {
		return Process{}, fmt.Errorf("process %d: has ended", pid)
	}
	session, err := unix.Getsid(pid)
	if err != nil {
		return Process{}, fmt.Errorf("process %d: %w", pid, err)
	}
	start := info.Proc.P_starttime
	p := Process{
		PID: pid, Parent: int(info.Eproc.Ppid), Session: session, UID: info.Eproc.Ucred.Uid,
		Start: uint64(start.Sec)*1_000_000 + uint64(start.Usec),
	}
	if info.Eproc.Tdev != -1 { // NODEV
		p.TTY = uint64(uint32(info.Eproc.Tdev)) + 1<<32 // device 0 is a terminal too
	}
	// Another user's process hides these; then it is no shell and no go tool to us.
	if raw, err := unix.SysctlRaw("kern.procargs2", pid); err == nil {
		p.Exe, p.Args = parseArgs(raw)
	}
	return p, nil
}

// parseArgs reads kern.procargs2: the number of arguments, the executable's path, padding, the arguments.
func parseArgs(raw []byte) (exe string, args []string) {
	if len(raw) < 4 {
		return "", nil
	}
	count := int(binary.LittleEndian.Uint32(raw))
	path, rest, ok := bytes.Cut(raw[4:], []byte{0})
	if !ok {
		return "", nil
	}
	rest = bytes.TrimLeft(rest, "\x00")
	for range count {
		arg, tail, ok := bytes.Cut(rest, []byte{0})
		if !ok {
			break
		}
		args = append(args, string(arg))
		rest = tail
	}
	return strings.TrimSpace(string(path)), args
}

// peerPID asks the kernel who connected, and as which user. There is no way to pin the process here; its start time is compared
// instead.
func peerPID(fd int) (pid int, uid uint32, still func() bool, done func(), err error) {
	cred, err := unix.GetsockoptXucred(fd, unix.SOL_LOCAL, unix.LOCAL_PEERCRED)
	if err != nil {
		return 0, 0, nil, nil, fmt.Errorf("ask who connected: %w", err)
	}
	pid, err = unix.GetsockoptInt(fd, unix.SOL_LOCAL, unix.LOCAL_PEERPID)
	if err != nil {
		return 0, 0, nil, nil, fmt.Errorf("ask who connected: %w", err)
	}
	return pid, cred.Uid, func() bool { return true }, func() {}, nil
}

// openExecutable opens the file that a process was started from.
func openExecutable(p Process) (*os.File, error) { return os.Open(p.Exe) }

// identify names a file and its content by what the kernel keeps: the time of change cannot be set.
func identify(info os.FileInfo) (fileID, bool) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return fileID{}, false
	}
	return fileID{uint64(st.Dev), st.Ino, info.Size(), time.Unix(st.Ctimespec.Unix())}, true
}
