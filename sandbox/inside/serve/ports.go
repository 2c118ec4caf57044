//go:build linux

package serve

import (
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/toolward/toolward/sandbox/inside/wire"
	"github.com/toolward/toolward/sandbox/task"
)

// Bounds of looking at what programs inside can make as large as they like.
const (
	tableBytes = 1 << 20 // of the kernel's list: listeners stand at its beginning
	openFiles  = 1 << 16 // that are looked at to find who listens
)

// listening is one listener in the kernel's list.
type listening struct {
	port  uint16
	inode string
	local bool
}

// ports are those on which programs of this sandbox listen, as the kernel says.
func ports(gone func() bool) ([]task.Port, bool, error) {
	// Without a network of its own a sandbox has no sockets at all, and the list would be that of the machine.
	probe, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, false, nil
	}
	_ = unix.Close(probe) // it was only tried
	own, found := ownPorts(), map[uint16]*task.Port{}
	waiting := map[string]*task.Port{} // whose programs are not known
	for _, table := range []string{"/proc/self/net/tcp", "/proc/self/net/tcp6"} {
		for _, l := range listeners(table) {
			if own[l.port] {
				continue
			}
			if found[l.port] == nil {
				found[l.port] = &task.Port{Number: l.port}
			}
			found[l.port].Local = found[l.port].Local || l.local
			waiting["socket:["+l.inode+"]"] = found[l.port]
		}
	}
	nameListeners(waiting, gone)
	if gone() {
		return nil, false, errStopped
	}
	list := make([]task.Port, 0, len(found))
	for _, p := range found {
		list = append(list, *p)
	}
	slices.SortFunc(list, func(a, b task.Port) int { return int(a.Number) - int(b.Number) })
	return list[:min(len(list), wire.MaxPorts)], len(list) > wire.MaxPorts, nil
}

// listeners reads the kernel's list of connections.
func listeners(table string) (list []listening) {
	f, err := os.Open(table)
	if err != nil {
		return nil // without IPv6 there is no list of it
	}
	defer f.Close()
	text, _ := io.ReadAll(io.LimitReader(f, tableBytes)) // as far as it goes
	for line := range strings.Lines(string(text)) {
		if l, ok := listener(line); ok {
			list = append(list, l)
		}
	}
	return list
}

// listener reads a line: "0: 0100007F:0BB8 00000000:0000 0A …", the inode in the tenth field. 0A is listening.
func listener(line string) (l listening, ok bool) {
	fields := strings.Fields(line)
	if len(fields) < 10 || fields[3] != "0A" {
		return l, false
	}
	address, port, ok := strings.Cut(fields[1], ":")
	number, err := strconv.ParseUint(port, 16, 16)
	if !ok || err != nil || number == 0 {
		return l, false
	}
	return listening{uint16(number), fields[9], locally(address)}, true
}

// locally reports whether a listener is reached at 127.0.0.1 or ::1. The kernel writes each four bytes as a number of this machine,
// whose smallest byte is the first on all that Toolward runs on.
func locally(address string) bool {
	switch address {
	case "00000000", "0100007F", // 0.0.0.0, 127.0.0.1
		"00000000000000000000000000000000", "00000000000000000000000001000000", // ::, ::1
		"0000000000000000FFFF000000000000", "0000000000000000FFFF00000100007F": // the first two in an IPv6 socket
		return true
	}
	return false
}

// nameListeners finds the programs that hold the listening sockets.
func nameListeners(waiting map[string]*task.Port, gone func() bool) {
	left := openFiles
	for process := range processes() {
		pid := strconv.Itoa(process.pid)
		if len(waiting) == 0 || left <= 0 || gone() {
			return
		}
		dir, err := os.Open("/proc/" + pid + "/fd")
		if err != nil {
			continue // it has ended, or does not want to be looked at
		}
		names, _ := dir.Readdirnames(left) // as far as it goes
		_ = dir.Close()                    // it was only read
		left -= len(names) + 1
		for _, name := range names {
			socket, err := os.Readlink("/proc/" + pid + "/fd/" + name)
			if err != nil || waiting[socket] == nil {
				continue
			}
			if p := waiting[socket]; p.PID == 0 {
				p.PID, p.Program = process.pid, programOf(pid)
			}
			delete(waiting, socket)
		}
	}
}

// programOf is the name of a process, as it calls itself.
func programOf(pid string) string {
	f, err := os.Open("/proc/" + pid + "/comm")
	if err != nil {
		return ""
	}
	defer f.Close()
	name := make([]byte, 64)
	n, _ := f.Read(name) // it is short
	return strings.TrimSuffix(string(name[:max(n, 0)]), "\n")
}

// ownPorts are those of this program: the forwarder listens before anything is served, and nothing does later.
var ownPorts = sync.OnceValue(func() map[uint16]bool {
	own := map[uint16]bool{}
	dir, err := os.Open("/proc/self/fd")
	if err != nil {
		return own
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1) // as far as it goes
	for _, name := range names {
		fd, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		if is, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ACCEPTCONN); err != nil || is == 0 {
			continue
		}
		if at, err := unix.Getsockname(fd); err == nil {
			if four, ok := at.(*unix.SockaddrInet4); ok {
				own[uint16(four.Port)] = true
			}
		}
	}
	return own
})
