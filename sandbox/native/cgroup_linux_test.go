package native

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/toolward/toolward/sandbox"
)

// What is written where, on a directory that stands for version 2: few machines that tests run on have it delegated.
func TestLimitsVersion2(t *testing.T) {
	dir := t.TempDir()
	files := []string{"memory.max", "memory.swap.max", "pids.max", "cpu.max", "cgroup.procs", "cgroup.freeze"}
	for _, name := range files {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	g := &group{v2: dir, dirs: []string{dir}}
	// memory.oom.group is not there: an older kernel.
	err := errors.Join(g.limit(sandbox.Limits{Memory: 1 << 20, Swap: 4096, Pids: 7, CPUs: 1.5}), g.add(42))
	if err != nil {
		t.Fatal(err)
	}
	g.freeze()
	for name, want := range map[string]string{
		"memory.max": "1048576", "memory.swap.max": "4096", "pids.max": "7", "cpu.max": "150000 100000", "cgroup.procs": "42",
		"cgroup.freeze": "1",
	} {
		if got := content(filepath.Join(dir, name)); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	if err := os.Remove(filepath.Join(dir, "pids.max")); err != nil {
		t.Fatal(err)
	}
	if err := g.limit(sandbox.Limits{Pids: 7}); err == nil {
		t.Error("a limit that the kernel does not have was set")
	}
}

func TestStatsVersion2(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"memory.current": "4096\n", "memory.peak": "8192\n", "pids.current": "3\n",
		"memory.events": "low 0\nhigh 0\nmax 5\noom 2\noom_kill 2\noom_group_kill 0\n", "cpu.stat": "usage_usec 1500\nuser_usec 1000\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got := (&group{v2: dir}).stats()
	want := sandbox.Stats{CPU: 1_500_000, Memory: 4096, MemoryPeak: 8192, Pids: 3, OOMKills: 2}
	if got != want {
		t.Errorf("stats are %+v, want %+v", got, want)
	}
}

// A gateway's groups are its own as long as it runs, and nobody's when another process has its number.
func TestOwnerRuns(t *testing.T) {
	e := &Engine{}
	own := startTime(os.Getpid())
	for name, want := range map[string]bool{
		fmtOwner(os.Getpid(), own): true, fmtOwner(os.Getpid(), "1"): false, "probe": false, "x-1-1": false, fmtOwner(1<<22+1, own): false,
	} {
		if got := e.ownerRuns(name); got != want {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}

func fmtOwner(pid int, start string) string { return fmt.Sprintf("%d-%s-3", pid, start) }
