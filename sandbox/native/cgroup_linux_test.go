package native

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/toolward/toolward/internal/escape"
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
		"memory.stat": "anon 1024\nfile 2560\nkernel 0\nshmem 512\nactive_file 2000\ninactive_file 48\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got := (&group{v2: dir}).stats()
	want := sandbox.Stats{CPU: 1_500_000, Processors: runtime.NumCPU(), Memory: 2048, Cache: 2048, MemoryPeak: 8192, Pids: 3, OOMKills: 2}
	if got != want {
		t.Errorf("stats are %+v, want %+v", got, want)
	}
}

func TestStatsVersion1(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"memory.usage_in_bytes": "8192\n", "memory.max_usage_in_bytes": "9000\n", "pids.current": "4\n", "cpuacct.usage": "1500000\n",
		"memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 1\n",
		"memory.stat":        "cache 1\nactive_file 1\ntotal_cache 5120\ntotal_rss 2048\ntotal_shmem 1024\ntotal_inactive_file 4000\ntotal_active_file 96\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got := (&group{v1: map[string]string{"memory": dir, "pids": dir, "cpuacct": dir}}).stats()
	want := sandbox.Stats{CPU: 1_500_000, Processors: runtime.NumCPU(), Memory: 4096, Cache: 4096, MemoryPeak: 9000, Pids: 4, OOMKills: 1}
	if got != want {
		t.Errorf("stats are %+v, want %+v", got, want)
	}
}

// What a sandbox uses is what its processes have used, with a control group and by what can be seen of processes.
func TestUsage(t *testing.T) {
	e := testEngine(t, Options{})
	handle := ensure(t, e, testSpec(t, escape.OnDisk(t)))
	b := handle.(*box)
	before := b.usage().CPU
	used := escape.Loop(t, handle)
	if got := b.usage().CPU - before; got < used-2*clockTick || got > used+used/2+time.Second {
		t.Errorf("without a control group a loop that used %v is counted as %v", used, got)
	}
	if b.group == nil {
		t.Skip("no control groups on this machine")
	}
	escape.Usage(t, handle)
}

// A gateway's groups are its own as long as it runs, and nobody's when another process has its number.
func TestOwnerRuns(t *testing.T) {
	own := startTime(os.Getpid())
	for name, want := range map[string]bool{
		fmtOwner(os.Getpid(), own): true, fmtOwner(os.Getpid(), "1"): false, "probe": false, "x-1-1": false, fmtOwner(1<<22+1, own): false,
	} {
		if got := ownerRuns(name); got != want {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}

func fmtOwner(pid int, start string) string { return fmt.Sprintf("%d-%s-3", pid, start) }
