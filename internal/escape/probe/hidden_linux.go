package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// more are attempts that the specification does not list: x.
func more(t target) {
	parent(t)
	otherPrograms()
	terminals()
	links()
	marks()
	numbers()
}

// parent: the program inside has the payload's user id, and is what everything else is started by.
func parent(t target) {
	pid := os.Getppid()
	fd, err := unix.Open(fmt.Sprintf("/proc/%d/mem", pid), unix.O_RDWR, 0)
	_ = unix.Close(fd) // it may not be open
	tell("12 write the program inside's memory", err)
	for _, name := range []string{"0", "10"} {
		_, err := os.Open(fmt.Sprintf("/proc/%d/fd/%s", pid, name))
		tell("12 the gateway's channel, "+name, err)
	}
	if handle, err := unix.PidfdOpen(pid, 0); err == nil {
		tell("13 pidfd_getfd", call(unix.SYS_PIDFD_GETFD, uintptr(handle), 0, 0))
		_ = unix.Close(handle) // it was only named
	} else {
		tell("13 pidfd_getfd", err)
	}
	tell("13 kcmp", call(unix.SYS_KCMP, uintptr(pid), uintptr(os.Getpid()), 0, 0, 0))
	raised := unix.Rlimit{Cur: unix.RLIM_INFINITY, Max: unix.RLIM_INFINITY}
	tell("x raise a limit of the program inside", unix.Prlimit(pid, unix.RLIMIT_CORE, &raised, nil))
	tell("x raise an own limit", unix.Prlimit(0, unix.RLIMIT_CORE, &raised, nil))
	tell("x be killed last", os.WriteFile("/proc/self/oom_score_adj", []byte("-1000"), 0))
	tell("x map user 0", os.WriteFile("/proc/self/uid_map", []byte("0 0 1"), 0))
	_, err = os.ReadDir(fmt.Sprintf("/proc/%d/root/", t.Victim))
	tell("12 /proc/PID/root of the host", err)
}

// otherPrograms are programs for other numbers of system calls, and programs in no file.
func otherPrograms() {
	tellText("x unshare by a program of 32 bits", ending(start32()))
	tellText("x a call by the numbers of x32", ending(startX32()))
	tellText("25 setuid program in memory", setuidMemory())
	secret := call(447, 0) // memfd_secret: memory that nobody can look into
	tell("x memfd_secret", secret)
	tell("x statmount", call(457, 0, 0, 0, 0))
	tell("x request_key", call(unix.SYS_REQUEST_KEY, text("user"), text("x"), 0, 0))
	tell("x fanotify_init", call(unix.SYS_FANOTIFY_INIT, 0, 0))
	tell("x process_madvise", call(unix.SYS_PROCESS_MADVISE, ^uintptr(0), 0, 0, 0, 0))
}

// start32 makes a program of 32 bits that asks for a user namespace and ends with what it got.
func start32() *exec.Cmd {
	const base, head = 0x08048000, 52 + 32
	code := []byte{
		0xb8, 0x36, 0x01, 0, 0, // mov eax, 310: unshare
		0xbb, 0, 0, 0, 0x10, // mov ebx, CLONE_NEWUSER
		0xcd, 0x80, // int 0x80
		0x89, 0xc3, // mov ebx, eax
		0xb8, 1, 0, 0, 0, // mov eax, 1: exit
		0xcd, 0x80,
	}
	size := uint32(head + len(code))
	return program("program32", 1, code, []any{
		uint16(2), uint16(3), uint32(1), uint32(base + head), uint32(52), uint32(0), uint32(0), // program, i386, entry
		uint16(52), uint16(32), uint16(1), uint16(0), uint16(0), uint16(0),
		uint32(1), uint32(0), uint32(base), uint32(base), size, size, uint32(5), uint32(0x1000),
	})
}

// startX32 makes a program of 64 bits that makes one call by the numbers of x32, another table of the same processor. It
// has one thread: a filter may end the thread only.
func startX32() *exec.Cmd {
	const base, head = 0x400000, 64 + 56
	code := []byte{
		0xb8, 0x6e, 0, 0, 0x40, // mov eax, 0x40000000 + 110: getppid
		0x0f, 0x05, // syscall
		0x89, 0xc7, 0xc1, 0xef, 0x1f, // mov edi, eax; shr edi, 31: 1 for an error
		0xb8, 60, 0, 0, 0, // mov eax, 60: exit
		0x0f, 0x05,
	}
	size := uint64(head + len(code))
	return program("program-x32", 2, code, []any{
		uint16(2), uint16(62), uint32(1), uint64(base + head), uint64(64), uint64(0), uint32(0), // program, x86-64, entry
		uint16(64), uint16(56), uint16(1), uint16(0), uint16(0), uint16(0),
		uint32(1), uint32(5), uint64(0), uint64(base), uint64(base), size, size, uint64(0x1000),
	})
}

// program writes a program file: class 1 is of 32 bits, 2 of 64.
func program(name string, class byte, code []byte, header []any) *exec.Cmd {
	var file bytes.Buffer
	file.Write([]byte{0x7f, 'E', 'L', 'F', class, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0})
	for _, field := range header {
		_ = binary.Write(&file, binary.LittleEndian, field) // a buffer takes everything
	}
	file.Write(code)
	_ = os.WriteFile(name, file.Bytes(), 0o755) // it then does not start
	return exec.Command("./" + name)
}

// ending says how a program ended: "ok" where it got what it asked for.
func ending(cmd *exec.Cmd) string {
	err := cmd.Run()
	if err == nil {
		return "ok"
	}
	if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); cmd.ProcessState != nil && ok {
		if status.Signaled() {
			return unix.SignalName(status.Signal())
		}
		return "refused"
	}
	return outcome(err)
}

// setuidMemory runs a program in memory that was marked to run as its owner.
func setuidMemory() string {
	self, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		return outcome(err)
	}
	fd, err := unix.MemfdCreate("escape", 0)
	if err != nil {
		return outcome(err)
	}
	file := os.NewFile(uintptr(fd), "escape")
	defer file.Close() // it is only memory
	if _, err := file.Write(self); err != nil {
		return outcome(err)
	}
	if unix.Fchmod(fd, 0o4755) != nil {
		return "no-gain"
	}
	return gained(exec.Command(fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), fd)))
}

// terminals: those of others, and what types on one.
func terminals() {
	for _, name := range []string{"/dev/pts/0", "/dev/tty0", "/dev/tty1", "/dev/console", "/dev/vcs", "/dev/uinput"} {
		fd, err := unix.Open(name, unix.O_RDWR|unix.O_NOCTTY, 0)
		_ = unix.Close(fd) // it may not be open
		tell("24 open "+name, err)
	}
	var command byte = 2
	tell("x TIOCLINUX", call(unix.SYS_IOCTL, 0, unix.TIOCLINUX, uintptr(unsafe.Pointer(&command))))
	tell("x TIOCLINUX with a high bit", call(unix.SYS_IOCTL, 0, 1<<40|unix.TIOCLINUX, uintptr(unsafe.Pointer(&command))))
	// A terminal of its own is allowed; typing on that one is not.
	if master, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY, 0); err == nil {
		tell("x TIOCSTI on a terminal of its own", call(unix.SYS_IOCTL, uintptr(master), unix.TIOCSTI, uintptr(unsafe.Pointer(&command))))
		_ = unix.Close(master) // nothing was written
	} else {
		tell("x TIOCSTI on a terminal of its own", unix.EPERM)
	}
}

// links: what can only be read, under a name where one may write.
func links() {
	tell("1 link a program of the system", unix.Link("/usr/bin/env", "linked"))
	tell("1 rename a program of the system", unix.Rename("/usr/bin/env", "renamed"))
	fd, err := unix.Open("/usr/bin/env", unix.O_PATH, 0)
	if err == nil {
		err = unix.Linkat(unix.AT_FDCWD, fmt.Sprintf("/proc/self/fd/%d", fd), unix.AT_FDCWD, "linked", unix.AT_SYMLINK_FOLLOW)
		_ = unix.Close(fd) // it was only named
	}
	tell("1 link a program of the system by descriptor", err)
	fd, err = unix.Open("/usr/bin/env", unix.O_PATH, 0)
	if err == nil {
		_, err = os.OpenFile(fmt.Sprintf("/proc/self/fd/%d", fd), os.O_WRONLY, 0)
		_ = unix.Close(fd) // it was only named
	}
	tell("1 open a program of the system again for writing", err)
	file, err := os.Open("/usr/bin/env")
	if err == nil {
		err = unix.Fchmod(int(file.Fd()), 0o777)
		_ = file.Close() // it was only read
	}
	tell("1 chmod a program of the system", err)
}

// marks are what files of the workspace may carry to the host.
func marks() {
	if err := os.WriteFile("marked", []byte("x"), 0o644); err != nil {
		tell("25 mark", err)
		return
	}
	file, err := os.Open("marked")
	if err != nil {
		tell("25 mark", err)
		return
	}
	defer file.Close()
	const immutable = 0x10
	tell("x make a file immutable", unix.IoctlSetPointerInt(int(file.Fd()), unix.FS_IOC_SETFLAGS, immutable))
	tell("25 chown to root", unix.Chown("marked", 0, 0))
	for _, name := range []string{"trusted.escape", "security.selinux", "security.ima", "security.evm"} {
		tell("25 attribute "+name, unix.Setxattr("marked", name, []byte("x"), 0))
	}
}

// numbers: what the kernel counts for each user of the machine.
func numbers() {
	var open []int
	for len(open) < 4096 {
		fd, err := unix.InotifyInit1(unix.IN_CLOEXEC)
		if err != nil {
			break
		}
		open = append(open, fd)
	}
	for _, fd := range open {
		_ = unix.Close(fd) // nothing was watched
	}
	allowed, _ := os.ReadFile("/proc/sys/fs/inotify/max_user_instances")
	var all int
	_, _ = fmt.Sscan(string(allowed), &all) // 0: nothing is known
	if len(open) <= all/2 {
		tellText("x watchers of files", "some")
	} else {
		tellText("x watchers of files", "all")
	}
}
