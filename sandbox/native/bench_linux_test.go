package native

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"testing"
	"time"

	"github.com/toolward/toolward/sandbox"
)

const rounds = 60

// BenchmarkSandbox measures, in turns, what a plain process costs, what a command in a sandbox costs, what the whole
// sandbox costs with its first command, with bubblewrap where that is installed, and what much output costs. The figures
// are medians and their ratios; b.N has no meaning.
func BenchmarkSandbox(b *testing.B) {
	e := benchEngine(b)
	ctx := context.Background()
	spec := benchSpec(b, "warm")
	warm, err := e.Ensure(ctx, spec)
	if err != nil {
		b.Fatal(err)
	}
	type step struct {
		name string
		run  func(round int)
	}
	steps := []step{
		{"plain", func(int) { plain(b, "/bin/true") }},
		{"warm", func(int) { runInside(b, warm) }},
		{"cold", func(round int) {
			s := *spec
			s.Name = fmt.Sprintf("cold-%d", round)
			box, err := e.Ensure(ctx, &s)
			if err != nil {
				b.Fatal(err)
			}
			runInside(b, box)
			// What follows is not the sandbox's: it is removed, and the next one prepared, while nobody waits.
			b.Cleanup(func() { box.Close() })
		}},
	}
	if path, err := exec.LookPath("bwrap"); err == nil {
		steps = append(steps, step{"bwrap", func(int) { plain(b, path, bwrapArgs(spec)...) }})
	} else {
		b.Log("bubblewrap is not installed: no comparison with it")
	}
	steps = append(steps,
		step{"stream", func(int) { stream(b, warm) }},
		step{"stream-plain", func(int) { streamPlain(b) }},
	)
	times := map[string][]time.Duration{}
	for round := range rounds {
		for _, step := range steps {
			start := time.Now()
			step.run(round)
			times[step.name] = append(times[step.name], time.Since(start))
			waitForSpare(e)
		}
	}
	median := map[string]float64{}
	for name, list := range times {
		slices.Sort(list)
		median[name] = list[len(list)/2].Seconds() * 1e3
		b.ReportMetric(median[name], name+"-ms")
	}
	b.ReportMetric(median["warm"]/median["plain"], "warm/plain")
	b.ReportMetric(median["cold"]/median["plain"], "cold/plain")
	if median["bwrap"] > 0 {
		b.ReportMetric(median["cold"]/median["bwrap"], "cold/bwrap")
	}
	b.ReportMetric(streamed/1e3/median["stream"], "stream-MB/s")
	b.ReportMetric(median["stream"]/median["stream-plain"], "stream/plain")
	b.ReportMetric(memoryPerSandbox(b, e, spec), "MB/sandbox")
	b.ReportMetric(0, "ns/op")
}

func benchEngine(b *testing.B) *Engine {
	b.Helper()
	e := New(Options{Instance: b.Name()})
	b.Cleanup(func() { e.Close() })
	if c := e.capabilities(); c.Level < sandbox.LevelNoCgroup {
		b.Skipf("no sandboxes here: %+v", c.Checks)
	}
	return e
}

func benchSpec(b *testing.B, name string) *sandbox.Spec {
	b.Helper()
	return &sandbox.Spec{
		Name: name, Hash: "1", ScopeKey: "agent:bench", Workdir: "/workspace",
		Mounts:  []sandbox.Mount{{Kind: sandbox.MountWorkspace, Source: b.TempDir(), Target: "/workspace", Writable: true}},
		Env:     []string{"PATH=/usr/bin:/bin"},
		User:    sandbox.User{UID: os.Geteuid(), GID: os.Getegid()},
		Tmpfs:   []sandbox.Tmpfs{{Target: "/tmp"}, {Target: "/var/tmp"}, {Target: "/run"}},
		Network: sandbox.Network{Mode: sandbox.NetworkNone}, Limits: sandbox.Limits{Memory: 1 << 30, Pids: 512},
		DegradeOK: []string{"cgroup"},
	}
}

// bwrapArgs asks bubblewrap for the same namespaces and mounts.
func bwrapArgs(spec *sandbox.Spec) []string {
	args := []string{"--unshare-all", "--die-with-parent", "--new-session", "--ro-bind", "/usr", "/usr", "--proc", "/proc", "--dev", "/dev"}
	for _, name := range systemTop {
		if target, err := os.Readlink("/" + name); err == nil {
			args = append(args, "--symlink", target, "/"+name)
		}
	}
	for _, path := range systemEtc {
		args = append(args, "--ro-bind-try", path, path)
	}
	for _, t := range spec.Tmpfs {
		args = append(args, "--tmpfs", t.Target)
	}
	for _, m := range spec.Mounts {
		args = append(args, "--bind", m.Source, m.Target)
	}
	return append(args, "--remount-ro", "/", "--chdir", "/workspace", "/bin/true")
}

func plain(b *testing.B, name string, args ...string) {
	b.Helper()
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		b.Fatalf("%s: %v: %s", name, err, out)
	}
}

func runInside(b *testing.B, box sandbox.Handle) {
	b.Helper()
	process, err := box.Start(context.Background(), sandbox.Command{Argv: []string{"/bin/true"}})
	if err != nil {
		b.Fatal(err)
	}
	io.Copy(io.Discard, process.Stdout())
	if status, err := process.Wait(context.Background()); err != nil || status.Code != 0 {
		b.Fatal(status, err)
	}
}

// streamed is how much output a command of the measurement has.
const streamed = 256 << 20

var flood = []string{"dd", "if=/dev/zero", "bs=1M", fmt.Sprintf("count=%d", streamed>>20), "status=none"}

// stream is a command inside that writes as fast as it is read.
func stream(b *testing.B, box sandbox.Handle) {
	b.Helper()
	process, err := box.Start(context.Background(), sandbox.Command{Argv: flood})
	if err != nil {
		b.Fatal(err)
	}
	if n, err := io.Copy(io.Discard, process.Stdout()); n != streamed || err != nil {
		b.Fatal(n, err)
	}
	if status, err := process.Wait(context.Background()); err != nil || status.Code != 0 {
		b.Fatal(status, err)
	}
}

// streamPlain is the same through a pipe, without a sandbox.
func streamPlain(b *testing.B) {
	b.Helper()
	command := exec.Command(flood[0], flood[1:]...)
	out, err := command.StdoutPipe()
	if err == nil {
		err = command.Start()
	}
	if err != nil {
		b.Fatal(err)
	}
	if n, err := io.Copy(io.Discard, out); n != streamed || err != nil {
		b.Fatal(n, err)
	}
	if err := command.Wait(); err != nil {
		b.Fatal(err)
	}
}

// waitForSpare waits until the next sandbox is prepared, as it is when sandboxes are not made one right after another.
func waitForSpare(e *Engine) {
	for deadline := time.Now().Add(5 * time.Second); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		e.mu.Lock()
		busy := e.refilling
		e.mu.Unlock()
		if !busy {
			return
		}
	}
}

// memoryPerSandbox is what one more idle sandbox adds to the memory of the machine, in MB: its processes' own memory,
// and what the kernel counts for its group.
func memoryPerSandbox(b *testing.B, e *Engine, spec *sandbox.Spec) float64 {
	b.Helper()
	const many = 10
	var total float64
	for i := range many {
		s := *spec
		s.Name = fmt.Sprintf("memory-%d", i)
		h, err := e.Ensure(context.Background(), &s)
		if err != nil {
			b.Fatal(err)
		}
		runInside(b, h)
		stats, err := h.Stats(context.Background())
		if err != nil {
			b.Fatal(err)
		}
		total += float64(stats.Memory) / 1e6
	}
	return total / many
}
