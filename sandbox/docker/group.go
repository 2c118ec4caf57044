package docker

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/moby/moby/client"
)

// group is the control group of a container on this machine. What it counts is said by the kernel, not by the sandbox.
type group struct {
	memory string // directory of the memory controller
	v2     bool
}

// groupOf finds the control group of a running container; nil where it cannot be seen.
func (e *Engine) groupOf(ctx context.Context, id string) *group {
	c, err := e.connect()
	if err != nil {
		return nil
	}
	found, err := c.ContainerInspect(ctx, id, client.ContainerInspectOptions{})
	if err != nil || found.Container.State == nil || found.Container.State.Pid <= 1 {
		return nil
	}
	data, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(found.Container.State.Pid), "cgroup"))
	if err != nil {
		return nil
	}
	for line := range strings.Lines(string(data)) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		// A number of another machine's process names somebody else here.
		if len(parts) != 3 || !strings.Contains(parts[2], id) {
			continue
		}
		var g *group
		switch {
		case parts[0] == "0":
			g = &group{memory: filepath.Join("/sys/fs/cgroup", parts[2]), v2: true}
		case parts[1] == "memory":
			g = &group{memory: filepath.Join("/sys/fs/cgroup/memory", parts[2])}
		default:
			continue
		}
		if _, ok := g.oomKills(); ok {
			return g
		}
	}
	return nil
}

// oomKills is how many processes were ended for lack of memory.
func (g *group) oomKills() (int64, bool) {
	if g == nil {
		return 0, false
	}
	name := "memory.oom_control"
	if g.v2 {
		name = "memory.events"
	}
	data, err := os.ReadFile(filepath.Join(g.memory, name))
	if err != nil {
		return 0, false
	}
	for line := range strings.Lines(string(data)) {
		if key, value, _ := strings.Cut(strings.TrimSpace(line), " "); key == "oom_kill" {
			n, err := strconv.ParseInt(value, 10, 64)
			return n, err == nil
		}
	}
	return 0, false
}

// memoryPeak is the most memory that was used at a time; 0 is unknown.
func (g *group) memoryPeak() int64 {
	if g == nil || !g.v2 {
		return 0
	}
	data, _ := os.ReadFile(filepath.Join(g.memory, "memory.peak"))
	n, _ := strconv.ParseInt(strings.TrimSpace(string(data)), 10, 64)
	return n
}
