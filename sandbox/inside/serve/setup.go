//go:build linux

package serve

import (
	"bytes"
	"os"
	"path"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/toolward/toolward/sandbox/task"
)

// minOpenFiles is what this program needs itself.
const minOpenFiles = 512

// environment is that of every command.
type environment struct {
	list    []string
	path    string
	pathSet bool // by somebody: it must survive the files that a login shell reads
}

// setUp prepares what every request needs.
func (s *server) setUp() error {
	h := s.hello
	if !path.IsAbs(h.Workdir) {
		return task.Errorf(task.CodeFailed, "the working directory %q is no absolute path", h.Workdir)
	}
	s.env = environment{path: task.DefaultPath}.with([]string{"PATH=" + task.DefaultPath, "HOME=" + h.Workdir}).with(h.Env)
	s.env = s.env.withShellOf(h.Env)
	s.env.pathSet = setsPath(h.Env)
	s.files = newFiles(h)
	s.oom = newOOMCounter()
	for resource, limit := range map[int]int64{unix.RLIMIT_NOFILE: h.OpenFiles, unix.RLIMIT_FSIZE: h.FileSize} {
		if limit <= 0 {
			continue
		}
		if resource == unix.RLIMIT_NOFILE {
			limit = max(limit, minOpenFiles)
		}
		// Where the machine allows less, that is the limit: nobody in here may raise it.
		var value syscall.Rlimit
		err := syscall.Getrlimit(resource, &value)
		value.Max = min(value.Max, uint64(limit))
		value.Cur = value.Max
		if err == nil {
			err = syscall.Setrlimit(resource, &value)
		}
		if err != nil {
			return task.Errorf(task.CodeFailed, "limit what commands use: %v", err)
		}
	}
	return nil
}

// with overlays variables. A name stands once: programs disagree about which of two counts.
func (e environment) with(overlay []string) environment {
	if len(overlay) == 0 {
		return e
	}
	at := make(map[string]int, len(e.list)+len(overlay))
	list := make([]string, 0, len(e.list)+len(overlay))
	for _, variable := range append(e.list[:len(e.list):len(e.list)], overlay...) {
		name, value, ok := strings.Cut(variable, "=")
		if !ok || name == "" || strings.IndexByte(variable, 0) >= 0 {
			continue
		}
		if name == "PATH" {
			e.path = value
		}
		if i, there := at[name]; there {
			list[i] = variable
			continue
		}
		at[name] = len(list)
		list = append(list, variable)
	}
	e.list = list
	e.pathSet = e.pathSet || setsPath(overlay)
	return e
}

// withShellOf leaves the person's shell where it is in here, too: programs start what SHELL names.
func (e environment) withShellOf(env []string) environment {
	for _, variable := range env {
		if shell, ok := strings.CutPrefix(variable, "SHELL="); ok && executable(shell) != 0 {
			return e.with([]string{"SHELL=/bin/sh"})
		}
	}
	return e
}

func setsPath(list []string) bool {
	for _, variable := range list {
		if strings.HasPrefix(variable, "PATH=") {
			return true
		}
	}
	return false
}

// find finds a program. status is 0, or that of a shell that cannot start it.
func (e environment) find(name, dir string) (file string, status int) {
	if strings.Contains(name, "/") {
		if !path.IsAbs(name) {
			name = path.Join(dir, name)
		}
		return name, executable(name)
	}
	status = statusNotFound
	for place := range strings.SplitSeq(e.path, ":") {
		// An empty or relative place is the working directory, where anybody may have put a program called "ls".
		if !path.IsAbs(place) || name == "" {
			continue
		}
		file := place + "/" + name
		found := executable(file)
		if found == 0 {
			return file, 0
		}
		status = min(status, found)
	}
	return "", status
}

func executable(file string) (status int) {
	var st unix.Stat_t
	if err := unix.Stat(file, &st); err != nil {
		if err == unix.EACCES {
			return statusNotExecutable
		}
		return statusNotFound
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG || unix.Faccessat(unix.AT_FDCWD, file, unix.X_OK, unix.AT_EACCESS) != nil {
		return statusNotExecutable
	}
	return 0
}

// oomCounter reads how many processes the system has killed because memory ran out.
type oomCounter struct {
	file *os.File
	key  []byte
}

func newOOMCounter() *oomCounter {
	for _, name := range []string{"/sys/fs/cgroup/memory.events", "/sys/fs/cgroup/memory/memory.oom_control"} {
		if f, err := os.Open(name); err == nil {
			return &oomCounter{file: f, key: []byte("oom_kill ")}
		}
	}
	return &oomCounter{}
}

func (o *oomCounter) count() int64 {
	if o.file == nil {
		return 0
	}
	var buffer [512]byte
	n, _ := o.file.ReadAt(buffer[:], 0)
	return field(buffer[:n], o.key)
}

// field finds the number after a key that begins a line.
func field(text, key []byte) int64 {
	for line := range bytes.Lines(text) {
		if rest, ok := bytes.CutPrefix(line, key); ok {
			n, _ := strconv.ParseInt(string(bytes.TrimSpace(rest)), 10, 64)
			return n
		}
	}
	return 0
}

// stats is what the control group says of the sandbox, as far as it can be seen from here.
func (s *server) stats() task.Stats {
	number := func(names ...string) int64 {
		for _, name := range names {
			if b, err := os.ReadFile("/sys/fs/cgroup/" + name); err == nil {
				n, _ := strconv.ParseInt(string(bytes.TrimSpace(b)), 10, 64)
				return max(n, 0)
			}
		}
		return 0
	}
	st := task.Stats{
		Memory:     number("memory.current", "memory/memory.usage_in_bytes"),
		MemoryPeak: number("memory.peak", "memory/memory.max_usage_in_bytes"),
		Pids:       number("pids.current", "pids/pids.current"),
		OOMKills:   s.oom.count(),
	}
	if b, err := os.ReadFile("/sys/fs/cgroup/cpu.stat"); err == nil {
		st.CPU = time.Duration(max(0, field(b, []byte("usage_usec ")))) * time.Microsecond
	} else {
		st.CPU = time.Duration(number("cpuacct/cpuacct.usage"))
	}
	return st
}

// Statuses of a shell for what could not be started.
const (
	statusNotExecutable = 126
	statusNotFound      = 127
)
