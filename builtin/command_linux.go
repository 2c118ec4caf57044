package builtin

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// openFiles lists the open files of a process.
const openFiles = "/proc/self/fd"

// directoryPath names an open directory for a child process that has just been forked: whatever has happened to the
// directory's name since it was checked, the command starts in the very directory that was.
func directoryPath(dir *os.File) string {
	if dir == nil {
		return ""
	}
	return fmt.Sprintf("/proc/self/fd/%d", dir.Fd())
}

// awaitExit waits until the process has ended and leaves it a zombie, so that its process group keeps its id.
func awaitExit(pid int) error {
	for {
		err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// maxDescendants bounds how many processes outside the group are looked after.
const maxDescendants = 4096

// descendants returns the processes that pid has started, and those that they have, as far as they are not in its
// process group: a program that calls setsid escapes a signal to the group. Processes whose parent has already
// ended cannot be found this way.
func descendants(pid int) []*os.Process {
	var found []*os.Process
	queue := []int{pid}
	for seen := 0; len(queue) > 0 && seen < maxDescendants; seen++ {
		parent := queue[0]
		queue = queue[1:]
		for _, child := range childrenOf(parent) {
			queue = append(queue, child)
			if group, err := unix.Getpgid(child); err != nil || group == pid {
				continue
			}
			// The handle is taken first and the parent checked after: the id cannot change its owner in between.
			process, err := os.FindProcess(child)
			if err != nil {
				continue
			}
			if parentOf(child) != parent {
				process.Release() //nolint:errcheck // somebody else's
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
