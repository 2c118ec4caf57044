// Command probe tries to get out of a sandbox, in every way of the escape battery, and says what came of it: one line
// for each attempt, its name, a tab and the outcome. "ok" means that the attempt succeeded. Tests put it into the
// workspace of a sandbox and run it there.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// target is what the test has put up on the host, to be reached or not.
type target struct {
	Paths    []string // files and directories that exist on the host
	Abstract string   // an abstract Unix socket that listens
	Port     int      // a TCP port on 127.0.0.1 that listens
	Victim   int      // a process
	Marker   string   // in that process's arguments
}

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: probe battery TARGET.json | hog anonymous|shared|FILE | bomb N | fill FILE | inodes DIRECTORY")
		os.Exit(64)
	}
	switch os.Args[1] {
	case "battery":
		var t target
		data, err := os.ReadFile(os.Args[2])
		if err == nil {
			err = json.Unmarshal(data, &t)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(64)
		}
		battery(t)
	case "hog":
		hog(os.Args[2])
	case "bomb":
		bomb(os.Args[2])
	case "fill":
		fill(os.Args[2])
	case "inodes":
		inodes(os.Args[2])
	}
}

// tell reports one attempt.
func tell(name string, err error) { tellText(name, outcome(err)) }

func tellText(name, text string) { fmt.Printf("%s\t%s\n", name, text) }

func outcome(err error) string {
	if err == nil {
		return "ok"
	}
	if errno, ok := errors.AsType[syscall.Errno](err); ok {
		if name := unix.ErrnoName(errno); name != "" {
			return name
		}
	}
	return err.Error()
}

// call makes a system call by number: what a library refuses to do is tried as well.
func call(number uintptr, args ...uintptr) error {
	var a [6]uintptr
	copy(a[:], args)
	_, _, errno := unix.Syscall6(number, a[0], a[1], a[2], a[3], a[4], a[5])
	if errno != 0 {
		return errno
	}
	return nil
}

func text(s string) uintptr {
	b, _ := unix.BytePtrFromString(s)
	kept = append(kept, b)
	return uintptr(unsafe.Pointer(b))
}

// kept keeps what system calls were given by address.
var kept []*byte

func battery(t target) {
	files()
	paths(t)
	sockets(t)
	mounts()
	namespaces()
	machine()
	processes(t)
	families(t)
	refused()
	privileges()
	more(t)
}

// files: 1, 24, 25.
func files() {
	for _, dir := range []string{"/", "/usr", "/etc", "/bin", "/usr/bin", "/lib", "/dev"} {
		fd, err := unix.Open(strings.TrimSuffix(dir, "/")+"/toolward-escape", unix.O_CREAT|unix.O_WRONLY, 0o644)
		_ = unix.Close(fd) // it may not be open
		tell("1 create in "+dir, err)
	}
	for _, dir := range []string{".", "/tmp"} {
		tell("24 block device in "+dir, unix.Mknod(dir+"/block", unix.S_IFBLK|0o666, int(unix.Mkdev(8, 0))))
		tell("24 char device in "+dir, unix.Mknod(dir+"/char", unix.S_IFCHR|0o666, int(unix.Mkdev(1, 1))))
	}
	for _, device := range []string{"/dev/sda", "/dev/vda", "/dev/mem", "/dev/kmsg", "/dev/fuse", "/dev/kvm"} {
		fd, err := unix.Open(device, unix.O_RDONLY, 0)
		_ = unix.Close(fd) // it may not be open
		tell("24 open "+device, err)
	}
}

// paths: 3, 11, 10, 30.
func paths(t target) {
	for _, path := range append([]string{"/etc/shadow", "/etc/gshadow", "/root", "/home", "/var/lib", "/sys/kernel", "/boot"}, t.Paths...) {
		file, err := os.Open(path)
		_ = file.Close() // it may not be open
		tell("3 host's "+path, err)
	}
	for _, path := range []string{
		"/proc/sys/kernel/core_pattern", "/proc/sysrq-trigger", "/proc/sys/vm/overcommit_memory", "/proc/sys/kernel/modprobe",
		"/proc/sys/fs/binfmt_misc/register", "/proc/irq/default_smp_affinity",
	} {
		fd, err := unix.Open(path, unix.O_WRONLY, 0)
		_ = unix.Close(fd) // it may not be open
		tell("10 open for writing "+path, err)
	}
	for _, path := range []string{"/proc/kcore", "/proc/keys", "/proc/timer_list", "/proc/kmsg", "/proc/kallsyms"} {
		data := make([]byte, 16)
		file, err := os.Open(path)
		if err == nil {
			var n int
			if n, _ = file.Read(data); n == 0 {
				tellText("11 read "+path, "empty")
				continue
			}
		}
		tell("11 read "+path, err)
	}
	for _, path := range []string{"/sys/fs/cgroup/cgroup.procs", "/sys/fs/cgroup/release_agent", "/sys/fs/cgroup/memory/release_agent"} {
		fd, err := unix.Open(path, unix.O_WRONLY, 0)
		_ = unix.Close(fd) // it may not be open
		tell("30 open for writing "+path, err)
	}
}

// sockets: 4, 5, 18, 19.
func sockets(t target) {
	for _, path := range []string{
		"/var/run/docker.sock", "/run/docker.sock", "/run/containerd/containerd.sock", "/run/podman/podman.sock",
		"/run/dbus/system_bus_socket", "/run/systemd/private", "/run/systemd/journal/socket",
	} {
		tell("4 connect "+path, connect(unix.AF_UNIX, &unix.SockaddrUnix{Name: path}))
	}
	tell("5 abstract socket of the host", connect(unix.AF_UNIX, &unix.SockaddrUnix{Name: "@" + t.Abstract}))
	inet := func(a, b, c, d byte, port int) unix.Sockaddr {
		return &unix.SockaddrInet4{Port: port, Addr: [4]byte{a, b, c, d}}
	}
	tell("18 TCP 169.254.169.254:80", connect(unix.AF_INET, inet(169, 254, 169, 254, 80)))
	tell("18 TCP 172.17.0.1:22", connect(unix.AF_INET, inet(172, 17, 0, 1, 22)))
	tell("18 TCP 1.1.1.1:443", connect(unix.AF_INET, inet(1, 1, 1, 1, 443)))
	tell("18 TCP to the host's 127.0.0.1", connect(unix.AF_INET, inet(127, 0, 0, 1, t.Port)))
	ula := [16]byte{0: 0xfd, 15: 1}
	tell("18 TCP fd00::1", connect(unix.AF_INET6, &unix.SockaddrInet6{Port: 80, Addr: ula}))
	for _, server := range [][4]byte{{8, 8, 8, 8}, {1, 1, 1, 1}, {192, 168, 1, 1}} {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
		if err == nil {
			query := []byte("\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x07example\x03com\x00\x00\x01\x00\x01")
			err = unix.Sendto(fd, query, 0, &unix.SockaddrInet4{Port: 53, Addr: server})
			_ = unix.Close(fd) // nothing was sent
		}
		tell(fmt.Sprintf("19 DNS to %d.%d.%d.%d", server[0], server[1], server[2], server[3]), err)
	}
}

func connect(family int, address unix.Sockaddr) error {
	fd, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd) // nothing was sent
	return unix.Connect(fd, address)
}

// mounts: 6, 7, 30.
func mounts() {
	tell("6 mount tmpfs", unix.Mount("none", "/tmp", "tmpfs", 0, ""))
	tell("6 bind", unix.Mount("/usr", "/tmp", "", unix.MS_BIND, ""))
	tell("6 remount / writable", unix.Mount("none", "/", "", unix.MS_REMOUNT|unix.MS_BIND, ""))
	tell("6 umount /proc/sys", unix.Unmount("/proc/sys", unix.MNT_DETACH))
	tell("6 pivot_root", unix.PivotRoot("/tmp", "/tmp"))
	tell("6 chroot", unix.Chroot("/tmp"))
	tell("7 open_tree", call(unix.SYS_OPEN_TREE, 0, text("/"), 1))
	tell("7 fsopen", call(unix.SYS_FSOPEN, text("tmpfs"), 0))
	tell("7 move_mount", call(unix.SYS_MOVE_MOUNT, 0, text("/tmp"), 0, text("/var"), 0))
	tell("7 mount_setattr", call(unix.SYS_MOUNT_SETATTR, 0, text("/"), 0, 0, 0))
	tell("30 mount cgroup", unix.Mount("none", "/tmp", "cgroup", 0, "memory"))
	tell("30 mount cgroup2", unix.Mount("none", "/tmp", "cgroup2", 0, ""))
}

// namespaces: 8, 9.
func namespaces() {
	tell("8 unshare user", unix.Unshare(unix.CLONE_NEWUSER))
	tell("8 unshare mount", unix.Unshare(unix.CLONE_NEWNS))
	cmd := exec.Command("/proc/self/exe")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWUSER}
	err := cmd.Start()
	if err == nil {
		_ = cmd.Wait() // that it started is what counts
	}
	tell("8 clone user", err)
	// Arguments that are refused for their size: only a kernel that has the call looks at them.
	tell("8 clone3", call(unix.SYS_CLONE3, 0, 1))
	for _, name := range []string{"user", "mnt", "net", "pid"} {
		fd, err := unix.Open("/proc/1/ns/"+name, unix.O_RDONLY, 0)
		if err == nil {
			err = unix.Setns(fd, 0)
		}
		tell("9 setns /proc/1/ns/"+name, err)
	}
	fd, err := unix.Open("/proc/self/ns/user", unix.O_RDONLY, 0)
	if err == nil {
		err = unix.Setns(fd, 0)
	}
	tell("9 setns /proc/self/ns/user", err)
}

// machine: 20, 21, 22, 23, and the terminal.
func machine() {
	params := make([]byte, 120)
	tell("20 io_uring_setup", call(unix.SYS_IO_URING_SETUP, 1, uintptr(unsafe.Pointer(&params[0]))))
	tell("21 bpf", call(unix.SYS_BPF, 0, uintptr(unsafe.Pointer(&params[0])), 48))
	tell("21 perf_event_open", call(unix.SYS_PERF_EVENT_OPEN, uintptr(unsafe.Pointer(&params[0])), 0, ^uintptr(0), ^uintptr(0), 0))
	tell("21 userfaultfd", call(unix.SYS_USERFAULTFD, unix.O_CLOEXEC))
	const sessionKeyring, userKeyring = ^uintptr(2), ^uintptr(3)
	tell("22 keyctl session keyring", call(unix.SYS_KEYCTL, unix.KEYCTL_READ, sessionKeyring, uintptr(unsafe.Pointer(&params[0])), 100))
	tell("22 keyctl user keyring", call(unix.SYS_KEYCTL, unix.KEYCTL_READ, userKeyring, uintptr(unsafe.Pointer(&params[0])), 100))
	tell("22 add_key", call(unix.SYS_ADD_KEY, text("user"), text("escape"), text("x"), 1, sessionKeyring))
	handle := []byte{8, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0}
	tell("23 open_by_handle_at", call(unix.SYS_OPEN_BY_HANDLE_AT, atFDCWD, uintptr(unsafe.Pointer(&handle[0])), unix.O_RDONLY))
	var c byte = 'x'
	tell("x TIOCSTI", call(unix.SYS_IOCTL, 0, unix.TIOCSTI, uintptr(unsafe.Pointer(&c))))
	tell("x TIOCSTI with a high bit", call(unix.SYS_IOCTL, 0, 1<<32|unix.TIOCSTI, uintptr(unsafe.Pointer(&c))))
	tell("x personality READ_IMPLIES_EXEC", call(unix.SYS_PERSONALITY, 0x400000))
}

const atFDCWD = ^uintptr(99)

// processes: 12, 13, 15, 16.
func processes(t target) {
	for _, name := range []string{"root/etc", "cwd/etc", "mem", "environ", "fd", "exe"} {
		_, err := os.Open("/proc/1/" + name)
		tell("12 /proc/1/"+name, err)
	}
	const attach, seize = 16, 0x4206
	tell("13 ptrace the program inside", call(unix.SYS_PTRACE, attach, 1))
	cmd := exec.Command("/bin/sleep", "60")
	if err := cmd.Start(); err == nil {
		tell("13 ptrace a sibling", call(unix.SYS_PTRACE, seize, uintptr(cmd.Process.Pid)))
		var local, remote unix.RemoteIovec
		tell("13 read a sibling's memory", call(unix.SYS_PROCESS_VM_READV, uintptr(cmd.Process.Pid), uintptr(unsafe.Pointer(&local)), 1, uintptr(unsafe.Pointer(&remote)), 1))
		_ = cmd.Process.Kill() // it ends
		_ = cmd.Wait()         // it was killed
	}
	found := "own"
	entries, err := os.ReadDir("/proc")
	if err != nil {
		found = err.Error()
	}
	for _, entry := range entries {
		line, _ := os.ReadFile("/proc/" + entry.Name() + "/cmdline")
		if t.Marker != "" && entry.Name()[0] <= '9' && strings.Contains(string(line), t.Marker) {
			found = "foreign"
		}
	}
	tellText("15 processes", found)
	tell("16 signal a host process", unix.Kill(t.Victim, unix.SIGTERM))
	signal := unix.Kill(-1, unix.SIGUSR1)
	tell("16 signal everything", signal)
	fd, err := unix.PidfdOpen(t.Victim, 0)
	_ = unix.Close(fd) // it may not be open
	tell("16 pidfd of a host process", err)
}

// families: 17.
func families(target) {
	for _, one := range []struct {
		name                   string
		family, kind, protocol int
	}{
		{"raw ICMP", unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP},
		{"raw ICMPv6", unix.AF_INET6, unix.SOCK_RAW, unix.IPPROTO_ICMPV6},
		{"AF_PACKET", unix.AF_PACKET, unix.SOCK_RAW, 0x300},
		{"AF_VSOCK", unix.AF_VSOCK, unix.SOCK_STREAM, 0},
		{"AF_ALG", unix.AF_ALG, unix.SOCK_SEQPACKET, 0},
		{"AF_BLUETOOTH", unix.AF_BLUETOOTH, unix.SOCK_RAW, 1},
		{"netfilter netlink", unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_NETFILTER},
		{"audit netlink", unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_AUDIT},
	} {
		fd, err := unix.Socket(one.family, one.kind, one.protocol)
		_ = unix.Close(fd) // it may not be open
		tell("17 "+one.name, err)
	}
}

// refused are calls that change the machine.
func refused() {
	tell("x reboot", call(unix.SYS_REBOOT, 0, 0, 0, 0)) // wrong magic numbers: no machine reboots
	tell("x init_module", call(unix.SYS_INIT_MODULE, 0, 0, 0))
	tell("x swapon", call(unix.SYS_SWAPON, text("/tmp/none"), 0))
	tell("x sethostname", unix.Sethostname([]byte("escape")))
	tell("x settimeofday", call(unix.SYS_SETTIMEOFDAY, 0, 0))
}

// privileges: 25, 26.
func privileges() {
	self, err := os.ReadFile("/proc/self/exe")
	if err == nil {
		err = os.WriteFile("setuid", self, 0o755)
	}
	if err != nil {
		tell("25 copy", err)
		return
	}
	chmod := unix.Chmod("setuid", 0o4755)
	if chmod != nil {
		tellText("25 setuid bit", "no-gain")
	} else {
		tellText("25 setuid bit", gained(exec.Command("./setuid")))
	}
	tell("25 setuid(0)", unix.Setuid(0))
	tell("25 setgroups", unix.Setgroups([]int{0}))
	capability := []byte{0, 0, 0, 2, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0}
	tell("25 file capability", unix.Setxattr("setuid", "security.capability", capability, 0))
	for _, name := range []string{"su", "sudo", "newuidmap", "pkexec"} {
		path, err := exec.LookPath(name)
		if err != nil {
			tellText("26 "+name, "absent")
			continue
		}
		args := map[string][]string{"su": {"-c", "id -u"}, "sudo": {"-n", "id", "-u"}, "newuidmap": {"1", "0", "0", "1"}, "pkexec": {"id", "-u"}}
		cmd := exec.Command(path, args[name]...)
		out, err := cmd.Output()
		if err == nil && strings.TrimSpace(string(out)) == "0" || err == nil && name == "newuidmap" {
			tellText("26 "+name, "gained")
		} else {
			tellText("26 "+name, "no-gain")
		}
	}
}

// gained runs a copy of this program without arguments, which ends at once, and looks at whom it ran as.
func gained(cmd *exec.Cmd) string {
	if err := cmd.Start(); err != nil {
		return "no-gain"
	}
	before := os.Geteuid()
	var st unix.Stat_t
	err := unix.Stat(fmt.Sprintf("/proc/%d", cmd.Process.Pid), &st)
	_ = cmd.Wait() // it ends with usage
	if err == nil && int(st.Uid) != before {
		return fmt.Sprintf("gained: user %d", st.Uid)
	}
	return "no-gain"
}
