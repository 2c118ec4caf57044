package native

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/toolward/toolward/sandbox"
)

// group is the control group of one sandbox.
type group struct {
	dirs []string
	v2   string
	v1   map[string]string
}

// file is the path of a value, by its name in version 2 and the controller and name in version 1.
func (g *group) file(v2, controller, v1 string) string {
	if g.v2 != "" {
		return filepath.Join(g.v2, v2)
	}
	if dir := g.v1[controller]; dir != "" && v1 != "" {
		return filepath.Join(dir, v1)
	}
	return ""
}

func (g *group) add(pid int) error {
	for _, dir := range g.dirs {
		if err := put(filepath.Join(dir, "cgroup.procs"), strconv.Itoa(pid)); err != nil {
			return err
		}
	}
	return nil
}

const cpuPeriod = 100_000 // microseconds

// limit sets the hard limits. Where the kernel does not count swap, no swap needs limiting.
func (g *group) limit(l sandbox.Limits) error {
	set := func(path string, value int64) error {
		if path == "" {
			return nil
		}
		return put(path, strconv.FormatInt(value, 10))
	}
	if l.Memory > 0 {
		if err := set(g.file("memory.max", "memory", "memory.limit_in_bytes"), l.Memory); err != nil {
			return err
		}
		swap, value := g.file("memory.swap.max", "memory", "memory.memsw.limit_in_bytes"), l.Swap
		if g.v2 == "" {
			value += l.Memory // version 1 counts both together
		}
		if err := set(swap, value); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if g.v2 != "" {
			if err := set(filepath.Join(g.v2, "memory.oom.group"), 0); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
	}
	if l.Pids > 0 {
		if err := set(g.file("pids.max", "pids", "pids.max"), l.Pids); err != nil {
			return err
		}
	}
	if l.CPUs <= 0 {
		return nil
	}
	quota := int64(l.CPUs * cpuPeriod)
	if g.v2 != "" {
		return put(filepath.Join(g.v2, "cpu.max"), fmt.Sprintf("%d %d", quota, cpuPeriod))
	}
	if err := set(filepath.Join(g.v1["cpu"], "cpu.cfs_period_us"), cpuPeriod); err != nil {
		return err
	}
	return set(filepath.Join(g.v1["cpu"], "cpu.cfs_quota_us"), quota)
}

// oomKills is how many processes were killed for lack of memory.
func (g *group) oomKills() int64 {
	if g == nil {
		return 0
	}
	data, err := os.ReadFile(g.file("memory.events", "memory", "memory.oom_control"))
	if err != nil {
		return 0
	}
	return field(data, "oom_kill")
}

// field reads "name number" from a file of such lines.
func field(data []byte, name string) int64 {
	for line := range strings.Lines(string(data)) {
		if value, ok := strings.CutPrefix(line, name+" "); ok {
			n, _ := strconv.ParseInt(strings.TrimSpace(value), 10, 64)
			return n
		}
	}
	return 0
}

func (g *group) stats() sandbox.Stats {
	number := func(path string) int64 {
		data, _ := os.ReadFile(path)
		n, _ := strconv.ParseInt(strings.TrimSpace(string(data)), 10, 64)
		return n
	}
	s := sandbox.Stats{
		Processors: runtime.NumCPU(),
		Memory:     number(g.file("memory.current", "memory", "memory.usage_in_bytes")),
		MemoryPeak: number(g.file("memory.peak", "memory", "memory.max_usage_in_bytes")),
		Pids:       number(g.file("pids.current", "pids", "pids.current")),
		OOMKills:   g.oomKills(),
	}
	s.Cache = min(s.Memory, g.cache())
	s.Memory -= s.Cache
	if g.v2 != "" {
		data, _ := os.ReadFile(filepath.Join(g.v2, "cpu.stat"))
		s.CPU = time.Duration(field(data, "usage_usec")) * time.Microsecond
	} else {
		s.CPU = time.Duration(number(g.file("", "cpuacct", "cpuacct.usage")))
	}
	return s
}

// cache is the page cache: the pages of files that can be given back. "cache" and "file" hold memory file systems as well,
// which cannot.
func (g *group) cache() int64 {
	data, _ := os.ReadFile(g.file("memory.stat", "memory", "memory.stat"))
	if g.v2 != "" {
		return field(data, "active_file") + field(data, "inactive_file")
	}
	return field(data, "total_active_file") + field(data, "total_inactive_file")
}

// freeze stops everything in the group where it is; without a freezer nothing happens.
func (g *group) freeze() {
	if g.v2 != "" {
		_ = put(filepath.Join(g.v2, "cgroup.freeze"), "1") // killing follows
	} else if dir := g.v1["freezer"]; dir != "" {
		_ = put(filepath.Join(dir, "freezer.state"), "FROZEN") // killing follows
	}
}

// thaw undoes freeze: what is frozen does not die in version 1.
func (g *group) thaw() {
	if dir := g.v1["freezer"]; dir != "" && g.v2 == "" {
		_ = put(filepath.Join(dir, "freezer.state"), "THAWED") // remove says what is left
	}
}

// kill ends every process of the group.
func (g *group) kill() {
	for _, dir := range g.dirs {
		if put(filepath.Join(dir, "cgroup.kill"), "1") == nil {
			continue
		}
		data, _ := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
		for pid := range strings.FieldsSeq(string(data)) {
			if n, err := strconv.Atoi(pid); err == nil && n > 1 {
				_ = syscall.Kill(n, syscall.SIGKILL) // it may have ended
			}
		}
	}
}

// groupRemoval bounds how long processes that were killed may take to leave their group.
const groupRemoval = 10 * time.Second

// remove removes the group once its last process has left it.
func (g *group) remove() error {
	if g == nil {
		return nil
	}
	deadline := time.Now().Add(groupRemoval)
	for _, dir := range g.dirs {
		for wait := time.Millisecond; ; wait = min(2*wait, 100*time.Millisecond) {
			err := os.Remove(dir)
			if err == nil || errors.Is(err, fs.ErrNotExist) {
				break
			}
			if !errors.Is(err, syscall.EBUSY) || time.Now().After(deadline) {
				return err
			}
			time.Sleep(wait) // the kernel tells nobody when a group of version 1 has become empty
		}
	}
	return nil
}

// put writes a value. It makes no file: of a value that the kernel does not have, fs.ErrNotExist tells.
func put(path, value string) error {
	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = file.WriteString(value)
	return errors.Join(err, file.Close())
}
