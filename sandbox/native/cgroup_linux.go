package native

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
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
func findHierarchies(configured, instance string, log *slog.Logger) (*hierarchies, error) {
	own, err := ownGroups()
	if err != nil {
		return nil, err
	}
	mounts, err := cgroupMounts()
	if err != nil {
		return nil, err
	}
	h := newHierarchies(instance)
	if mount := mounts[""]; mount.dir != "" {
		alone := len(mounts) == 1 // with version 1 beside it, what version 2 could limit is there
		dir, err := delegated(configured, mount, own[""], alone, log)
		if err == nil {
			h.v2 = dir
			return h, h.try()
		}
		if alone {
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

// delegated is the directory of version 2 below which groups with limits can be made: the configured one, that of the
// group of this process, or, where it may ask, that of a scope that systemd makes for it.
func delegated(configured string, mount cgroupMount, group string, ask bool, log *slog.Logger) (string, error) {
	if configured != "" {
		return configured, delegate(configured)
	}
	dir := mount.path(withoutGatewayGroup(group))
	err := delegate(dir)
	if err == nil || !ask {
		return dir, err
	}
	if refused := enterScope(context.Background(), group); refused != nil {
		return "", fmt.Errorf("%w; %w", err, refused)
	}
	own, err := ownGroups()
	if err != nil {
		return "", err
	}
	log.Info("systemd gave the gateway and its sandboxes a scope. That of a user ends at the last logout unless lingering is on",
		"scope", unitOf(own[""]))
	dir = mount.path(own[""])
	return dir, delegate(dir)
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

// gatewayGroup is the group of the gateway itself, beside those of its sandboxes.
const gatewayGroup = "toolward-gateway"

// withoutGatewayGroup is the group that was delegated, also once [delegate] has moved the gateway.
func withoutGatewayGroup(group string) string { return strings.TrimSuffix(group, "/"+gatewayGroup) }

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
	members, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
	if err != nil {
		return err
	}
	own := strconv.Itoa(os.Getpid())
	for pid := range strings.FieldsSeq(string(members)) {
		if pid != own {
			return fmt.Errorf("%s has other members than the gateway (process %s): delegate it a group of its own", dir, pid)
		}
	}
	gateway := filepath.Join(dir, gatewayGroup)
	if err := os.Mkdir(gateway, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if err := put(filepath.Join(gateway, "cgroup.procs"), own); err != nil {
		return err
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
			_ = g.remove() // the first error counts
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
			_ = g.remove() // the next start tries again
		}
	}
}

// sweepAll does so wherever groups of an instance may be, whether or not any can be made there now.
func sweepAll(configured, instance string, alive func(name string) bool) {
	own, err := ownGroups()
	if err != nil {
		return
	}
	mounts, err := cgroupMounts()
	if err != nil {
		return
	}
	first, second := newHierarchies(instance), newHierarchies(instance)
	first.v2 = configured
	if mount := mounts[""]; first.v2 == "" && mount.dir != "" {
		first.v2 = mount.path(withoutGatewayGroup(own[""]))
	}
	for _, name := range append(slices.Clone(controllers), extraControllers...) {
		if mount, ok := mounts[name]; ok {
			second.v1[name] = mount.path(own[name])
		}
	}
	for _, h := range []*hierarchies{first, second} {
		h.sweep(alive)
		h.release()
	}
}

func newHierarchies(instance string) *hierarchies {
	return &hierarchies{v1: map[string]string{}, top: "toolward-" + instance}
}

// release removes the directory of all groups, if it is empty.
func (h *hierarchies) release() {
	for _, top := range h.dirs("") {
		_ = os.Remove(top) // another gateway of the instance may have groups
	}
}
