package native

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/toolward/toolward/sandbox"
)

// hierarchies is where groups can be made on this machine: one directory for everything (version 2), or one for each
// controller (version 1, which only root may use).
type hierarchies struct {
	v2  string            // the directory below which groups are made; "" with version 1
	v1  map[string]string // the same for each controller
	top string            // name of the directory of all groups of this instance
}

// controllers that hard limits need.
var controllers = []string{"memory", "pids", "cpu"}

// extraControllers are used where version 1 has them.
var extraControllers = []string{"freezer", "cpuacct"}

// findHierarchies finds where groups can be made, by making one. The error says why not, for people.
func findHierarchies(configured, instance string) (*hierarchies, error) {
	own, err := ownGroups()
	if err != nil {
		return nil, err
	}
	mounts, err := cgroupMounts()
	if err != nil {
		return nil, err
	}
	h := &hierarchies{v1: map[string]string{}, top: "toolward-" + instance}
	if mount := mounts[""]; mount.dir != "" {
		dir := configured
		if dir == "" {
			dir = mount.path(own[""])
		}
		if err := delegate(dir); err == nil {
			h.v2 = dir
			return h, h.try()
		} else if len(mounts) == 1 {
			return nil, fmt.Errorf("control groups are not delegated: %w", err)
		}
	}
	for _, name := range append(slices.Clone(controllers), extraControllers...) {
		if mount, ok := mounts[name]; ok {
			h.v1[name] = mount.path(own[name])
		} else if slices.Contains(controllers, name) {
			return nil, fmt.Errorf("the kernel has no control group controller %q", name)
		}
	}
	return h, h.try()
}

// try makes a group and removes it.
func (h *hierarchies) try() error {
	pid := os.Getpid()
	g, err := h.create(fmt.Sprintf("%d-%s-probe", pid, startTime(pid)))
	if err != nil {
		return fmt.Errorf("control groups cannot be made: %w", err)
	}
	return g.remove()
}

// delegate sees to it that groups below a directory of version 2 can have limits. A group with members has no groups
// with limits below it, so the gateway moves itself into one of its own.
func delegate(dir string) error {
	available, err := os.ReadFile(filepath.Join(dir, "cgroup.controllers"))
	if err != nil {
		return err
	}
	have := strings.Fields(string(available))
	for _, name := range controllers {
		if !slices.Contains(have, name) {
			return fmt.Errorf("%s has no controller %q", dir, name)
		}
	}
	enable := "+" + strings.Join(controllers, " +")
	control := filepath.Join(dir, "cgroup.subtree_control")
	err = put(control, enable)
	if !errors.Is(err, syscall.EBUSY) {
		return err
	}
	gateway := filepath.Join(dir, "toolward-gateway")
	if err := os.Mkdir(gateway, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	members, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
	if err != nil {
		return err
	}
	for _, pid := range strings.Fields(string(members)) {
		if pid != strconv.Itoa(os.Getpid()) {
			return fmt.Errorf("%s has other members than the gateway (process %s): delegate it a group of its own", dir, pid)
		}
		if err := put(filepath.Join(gateway, "cgroup.procs"), pid); err != nil {
			return err
		}
	}
	return put(control, enable)
}

// ownGroups are the groups of this process by controller; "" is version 2.
func ownGroups() (map[string]string, error) {
	data, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return nil, err
	}
	own := map[string]string{}
	for line := range strings.Lines(string(data)) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 {
			continue
		}
		for name := range strings.SplitSeq(parts[1], ",") {
			own[name] = parts[2]
		}
	}
	return own, nil
}

// cgroupMount is where a hierarchy is mounted, and which of its groups is there.
type cgroupMount struct{ dir, root string }

func (m cgroupMount) path(group string) string {
	return filepath.Join(m.dir, strings.TrimPrefix(group, m.root))
}

// cgroupMounts finds the mounts by controller; "" is version 2.
func cgroupMounts() (map[string]cgroupMount, error) {
	data, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	mounts := map[string]cgroupMount{}
	scanner := bufio.NewScanner(bytes.NewReader(data))
	for scanner.Scan() {
		before, after, ok := strings.Cut(scanner.Text(), " - ")
		place, kind := strings.Fields(before), strings.Fields(after)
		if !ok || len(place) < 5 || len(kind) < 3 {
			continue
		}
		mount := cgroupMount{dir: place[4], root: strings.TrimSuffix(place[3], "/")}
		switch kind[0] {
		case "cgroup2":
			mounts[""] = mount
		case "cgroup":
			for name := range strings.SplitSeq(kind[2], ",") {
				mounts[name] = mount
			}
		}
	}
	return mounts, scanner.Err()
}

// dirs are the directories of a group with a name, each once.
func (h *hierarchies) dirs(name string) []string {
	if h.v2 != "" {
		return []string{filepath.Join(h.v2, h.top, name)}
	}
	var dirs []string
	for _, parent := range h.v1 {
		dirs = append(dirs, filepath.Join(parent, h.top, name))
	}
	slices.Sort(dirs)
	return slices.Compact(dirs)
}

// create makes a group without limits.
func (h *hierarchies) create(name string) (*group, error) {
	g := &group{dirs: h.dirs(name), v1: map[string]string{}}
	for controller, parent := range h.v1 {
		g.v1[controller] = filepath.Join(parent, h.top, name)
	}
	if h.v2 != "" {
		g.v2 = g.dirs[0]
		if err := h.enableTop(); err != nil {
			return nil, err
		}
	}
	for _, dir := range g.dirs {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			g.remove() //nolint:errcheck // the first error counts
			return nil, err
		}
	}
	return g, nil
}

func (h *hierarchies) enableTop() error {
	top := filepath.Join(h.v2, h.top)
	if err := os.MkdirAll(top, 0o755); err != nil {
		return err
	}
	return put(filepath.Join(top, "cgroup.subtree_control"), "+"+strings.Join(controllers, " +"))
}

// sweep ends and removes the groups that gateways left which do not run any more. alive says of a group's name whether
// its gateway does.
func (h *hierarchies) sweep(alive func(name string) bool) {
	for _, top := range h.dirs("") {
		entries, err := os.ReadDir(top)
		if err != nil {
			continue
		}
		for _, entry := range entries {
			if !entry.IsDir() || alive(entry.Name()) {
				continue
			}
			g := &group{dirs: []string{filepath.Join(top, entry.Name())}}
			g.kill()
			g.remove() //nolint:errcheck // the next start tries again
		}
	}
}

// release removes the directory of all groups, if it is empty.
func (h *hierarchies) release() {
	for _, top := range h.dirs("") {
		os.Remove(top) //nolint:errcheck // another gateway of the instance may have groups
	}
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
		Memory:     number(g.file("memory.current", "memory", "memory.usage_in_bytes")),
		MemoryPeak: number(g.file("memory.peak", "memory", "memory.max_usage_in_bytes")),
		Pids:       number(g.file("pids.current", "pids", "pids.current")),
		OOMKills:   g.oomKills(),
	}
	if g.v2 != "" {
		data, _ := os.ReadFile(filepath.Join(g.v2, "cpu.stat"))
		s.CPU = time.Duration(field(data, "usage_usec")) * time.Microsecond
	} else {
		s.CPU = time.Duration(number(g.file("", "cpuacct", "cpuacct.usage")))
	}
	return s
}

// freeze stops everything in the group where it is; without a freezer nothing happens.
func (g *group) freeze() {
	if g.v2 != "" {
		put(filepath.Join(g.v2, "cgroup.freeze"), "1") //nolint:errcheck // killing follows
	} else if dir := g.v1["freezer"]; dir != "" {
		put(filepath.Join(dir, "freezer.state"), "FROZEN") //nolint:errcheck // killing follows
	}
}

// thaw undoes freeze: what is frozen does not die in version 1.
func (g *group) thaw() {
	if dir := g.v1["freezer"]; dir != "" && g.v2 == "" {
		put(filepath.Join(dir, "freezer.state"), "THAWED") //nolint:errcheck // remove says what is left
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
				syscall.Kill(n, syscall.SIGKILL) //nolint:errcheck // it may have ended
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
