package native

import (
	"os"
	"strconv"
	"strings"
	"syscall"
)

// processID tells a process from every other that had or will have its number.
func processID(pid int) string {
	boot, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strconv.Itoa(pid) + ":" + startTime(pid) + ":" + strings.TrimSpace(string(boot))
}

// startTime is when a process started, in ticks since the boot; "" if there is none.
func startTime(pid int) string {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return ""
	}
	// The name of the program, in parentheses, may hold anything.
	_, rest, _ := strings.Cut(string(stat[strings.LastIndexByte(string(stat), ')'):]), " ")
	fields := strings.Fields(rest)
	if len(fields) < 20 {
		return ""
	}
	return fields[19]
}

// lives reports whether the process of an id runs: that very one, since the same boot. One that has ended and that nobody
// has waited for does not.
func lives(id string) bool {
	pid, ok := pidOf(id)
	return ok && processID(pid) == id && !isZombie(pid)
}

func pidOf(id string) (pid int, ok bool) {
	number, _, ok := strings.Cut(id, ":")
	pid, err := strconv.Atoi(number)
	return pid, ok && err == nil && pid > 1
}

// ofThisBoot reports whether an id is of a process that this boot has had: numbers of groups come again.
func ofThisBoot(id string) bool {
	_, after, _ := strings.Cut(processID(os.Getpid()), ":")
	_, now, _ := strings.Cut(after, ":")
	return now != "" && strings.HasSuffix(id, ":"+now)
}

func isZombie(pid int) bool {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return true
	}
	_, rest, _ := strings.Cut(string(stat[strings.LastIndexByte(string(stat), ')'):]), " ")
	return strings.HasPrefix(rest, "Z") || strings.HasPrefix(rest, "X")
}

// ownerRuns reports whether the gateway that made a group still runs.
func ownerRuns(group string) bool {
	parts := strings.Split(group, "-")
	if len(parts) != 3 {
		return false
	}
	pid, err := strconv.Atoi(parts[0])
	return err == nil && parts[1] != "" && startTime(pid) == parts[1]
}

// descendants are all processes that a process has started, directly or not.
func descendants(pid int) []int {
	var found []int
	tasks, _ := os.ReadDir("/proc/" + strconv.Itoa(pid) + "/task")
	for _, task := range tasks {
		data, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/task/" + task.Name() + "/children")
		for text := range strings.FieldsSeq(string(data)) {
			if child, err := strconv.Atoi(text); err == nil {
				found = append(append(found, child), descendants(child)...)
			}
		}
	}
	return found
}

// endAll ends a process and all that it has started. Where there is no namespace whose first process takes the others
// with it, they are stopped first, so that none can start another while they are counted.
func endAll(first int) {
	for _, signal := range []syscall.Signal{syscall.SIGSTOP, syscall.SIGKILL} {
		for _, pid := range descendants(first) {
			_ = syscall.Kill(pid, signal) // it may have ended
		}
	}
}
