//go:build linux

package serve

import (
	"bytes"
	"errors"
	"os"
	"os/signal"
	"strconv"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// children knows the processes that this one has started, and collects those that became its children because their
// parents ended: the duty of the first process.
type children struct {
	starting sync.RWMutex // held to read while a process is started and not entered yet
	mu       sync.Mutex
	own      map[int]bool // somebody waits for them
}

func newChildren() *children {
	c := &children{own: map[int]bool{}}
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGCHLD)
	go c.collect(ended)
	return c
}

// start starts a process that somebody waits for. What has ended is collected before: it counts for the limit of
// processes, and after a command that has reached that limit the next one would fail for those it left behind.
func (c *children) start(start func() (pid int, err error)) (int, error) {
	if endedChild() > 0 {
		c.collectNow()
	}
	c.starting.RLock()
	defer c.starting.RUnlock()
	pid, err := start()
	if err == nil {
		c.mu.Lock()
		c.own[pid] = true
		c.mu.Unlock()
		dieFirst(pid)
	}
	return pid, err
}

// dieFirst has the kernel choose a command before this program when memory runs out: with many small processes it could
// take this one, and the whole sandbox with it.
func dieFirst(pid int) {
	fd, err := unix.Open("/proc/"+strconv.Itoa(pid)+"/oom_score_adj", unix.O_WRONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return // it has ended already, or this system has no such file
	}
	_, _ = unix.Write(fd, []byte("500")) // raising it is always allowed
	_ = unix.Close(fd)                   // nothing is lost
}

// waited says that somebody has waited for them.
func (c *children) waited(pids ...int) {
	c.mu.Lock()
	for _, pid := range pids {
		delete(c.own, pid)
	}
	c.mu.Unlock()
}

// pause is how long collecting waits after it was done: a process more or less that has ended costs nothing.
const pause = 200 * time.Millisecond

func (c *children) collect(ended <-chan os.Signal) {
	for range ended {
		c.collectNow()
		time.Sleep(pause)
	}
}

func (c *children) collectNow() {
	c.starting.Lock()
	defer c.starting.Unlock()
	for {
		pid := endedChild()
		if pid <= 0 {
			return
		}
		if !c.isOwn(pid) {
			_, _ = unix.Wait4(pid, nil, unix.WNOHANG, nil) // it has ended
			continue
		}
		// The system shows only this one, which somebody else will take: look for others behind it.
		self := os.Getpid()
		for p := range processes() {
			if p.parent == self && p.zombie && !c.isOwn(p.pid) {
				_, _ = unix.Wait4(p.pid, nil, unix.WNOHANG, nil) // it has ended
			}
		}
		return
	}
}

func (c *children) isOwn(pid int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.own[pid]
}

// endedChild is a child that has ended and that nobody has waited for; 0 if there is none.
func endedChild() int {
	var info struct {
		_, _, _ int32
		child   struct {
			_   [0]uintptr // as the system aligns it
			pid int32
			_   [30]int32
		}
	}
	for {
		err := unix.Waitid(unix.P_ALL, 0, (*unix.Siginfo)(unsafe.Pointer(&info)), unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return int(info.child.pid)
		}
	}
}

// killAll ends every descendant. New ones may appear while it looks, so it looks until there are none.
func (c *children) killAll() {
	for range 50 {
		if n := killDescendants(os.Getpid(), 0); n == 0 {
			return
		}
		for {
			pid, err := unix.Wait4(-1, nil, unix.WNOHANG, nil)
			if pid <= 0 && !errors.Is(err, unix.EINTR) {
				break
			}
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// processInfo is a line of the table of processes.
type processInfo struct {
	pid, parent, group, session int
	zombie                      bool
}

// processes goes through all processes that can be seen.
func processes() func(yield func(processInfo) bool) {
	return func(yield func(processInfo) bool) {
		dir, err := os.Open("/proc")
		if err != nil {
			return
		}
		defer dir.Close()
		names, _ := dir.Readdirnames(-1)
		for _, name := range names {
			if name[0] < '1' || name[0] > '9' {
				continue
			}
			if p, ok := readProcess(name); ok && !yield(p) {
				return
			}
		}
	}
}

// readProcess reads /proc/<pid>/stat. The name of the program stands in parentheses and can be anything.
func readProcess(name string) (p processInfo, ok bool) {
	fd, err := unix.Open("/proc/"+name+"/stat", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return p, false
	}
	var buffer [512]byte
	n, err := unix.Read(fd, buffer[:])
	_ = unix.Close(fd) // it was only read
	if err != nil || n <= 0 {
		return p, false
	}
	line := buffer[:n]
	fields := bytes.Fields(line[bytes.LastIndexByte(line, ')')+1:])
	if len(fields) < 4 {
		return p, false
	}
	number := func(b []byte) int { v, _ := strconv.Atoi(string(b)); return v }
	p.pid, _ = strconv.Atoi(name)
	p.zombie = fields[0][0] == 'Z' || fields[0][0] == 'X'
	p.parent, p.group, p.session = number(fields[1]), number(fields[2]), number(fields[3])
	return p, true
}

// descendants returns what descends from a process, or is in its session and is not the process itself, as far as it has
// not ended. What lost its parent before cannot be found by it.
func descendants(root, session int) (found []processInfo) {
	family := map[int]bool{root: true}
	var all []processInfo
	for p := range processes() {
		all = append(all, p)
	}
	for grown := true; grown; {
		grown = false
		for _, p := range all {
			if !family[p.pid] && (family[p.parent] || session != 0 && p.session == session) {
				family[p.pid], grown = true, true
				if !p.zombie {
					found = append(found, p)
				}
			}
		}
	}
	return found
}

// killDescendants kills what descends from a process and returns how many it found.
func killDescendants(root, session int) int {
	found := descendants(root, session)
	for _, p := range found {
		_ = unix.Kill(p.pid, unix.SIGKILL) // it may have ended
	}
	return len(found)
}

// escaped returns handles of the descendants of a process that left its process group, so that they can be signaled
// when their parents are gone.
func escaped(root int) (handles []int) {
	for _, p := range descendants(root, root) {
		if p.group == root {
			continue
		}
		handle, err := unix.PidfdOpen(p.pid, 0)
		if err != nil {
			continue
		}
		// The id cannot change its owner between the handle and this look.
		if now, ok := readProcess(strconv.Itoa(p.pid)); !ok || now.parent != p.parent {
			_ = unix.Close(handle) // somebody else's
			continue
		}
		handles = append(handles, handle)
	}
	return handles
}

// groupLives reports whether a process group has a member that has not ended.
func groupLives(group int) bool {
	for p := range processes() {
		if p.group == group && !p.zombie {
			return true
		}
	}
	return false
}
