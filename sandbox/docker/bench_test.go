package docker

import (
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/toolward/toolward/internal/live"
	"github.com/toolward/toolward/sandbox"
)

const (
	rounds    = 60
	seldom    = 5         // rounds between two of what takes long
	streamed  = 256 << 20 // bytes of output
	smallFile = 4 << 10
)

// BenchmarkDocker measures, in turns, what a plain process costs, what a command in a container costs, through our
// channel and through the engine's own client, and the same for reading a small file; more seldom, output without end, and
// making a container with its first command, beside what the client takes for the same. The figures are medians and
// their ratios; b.N has no meaning.
func BenchmarkDocker(b *testing.B) {
	client := live.Need(b, live.Program("docker"))
	e := testEngine(b)
	workspace := newWorkspace(b)
	spec := testSpec(b, workspace)
	if err := os.WriteFile(filepath.Join(workspace, "small"), make([]byte, smallFile), 0o644); err != nil {
		b.Fatal(err)
	}
	h := ensure(b, e, spec)
	ctx := context.Background()
	plain := func(name string, args ...string) {
		if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
			b.Fatalf("%s: %v: %s", name, err, out)
		}
	}
	bare := []string{
		"run", "--rm", "--network", "none", "--cap-drop", "ALL", "--security-opt", "no-new-privileges", "--read-only", "--memory", "1g", "--pids-limit", "512",
		"-v", workspace + ":/workspace", imageName(), "/bin/true",
	}
	steps := []struct {
		name  string
		every int
		run   func()
	}{
		{"plain", 1, func() { plain("/bin/true") }},
		{"exec", 1, func() { runInside(b, h, "/bin/true") }},
		{"docker-exec", 1, func() { plain(client, "exec", spec.Name, "/bin/true") }},
		{"read", 1, func() {
			if data, _, err := h.ReadFile(ctx, "/workspace/small", 0, smallFile); err != nil || len(data) != smallFile {
				b.Fatal(len(data), err)
			}
		}},
		{"docker-cat", 1, func() { plain(client, "exec", spec.Name, "cat", "/workspace/small") }},
		{"stream", seldom, func() {
			if n := runInside(b, h, "dd", "if=/dev/zero", "bs=1M", "count="+strconv.Itoa(streamed>>20)); n != streamed {
				b.Fatalf("%d bytes of output came", n)
			}
		}},
		{"cold", seldom, func() { runInside(b, makeCold(b, e, spec), "/bin/true") }},
		{"docker-run", seldom, func() { plain(client, bare...) }},
	}
	times := map[string][]time.Duration{}
	for round := range rounds {
		for _, step := range steps {
			if round%step.every != 0 {
				continue
			}
			start := time.Now()
			step.run()
			times[step.name] = append(times[step.name], time.Since(start))
			if step.name == "cold" {
				remove(b, e, coldName(spec))
			}
		}
	}
	median := map[string]float64{}
	for name, list := range times {
		slices.Sort(list)
		median[name] = list[len(list)/2].Seconds() * 1e3
		b.ReportMetric(median[name], name+"-ms")
	}
	b.ReportMetric(median["exec"]/median["plain"], "exec/plain")
	b.ReportMetric(median["docker-exec"]/median["exec"], "docker-exec/exec")
	b.ReportMetric(median["docker-cat"]/median["read"], "docker-cat/read")
	b.ReportMetric(median["cold"]/median["docker-run"], "cold/docker-run")
	b.ReportMetric(streamed/1e3/median["stream"], "MB/s")
	b.ReportMetric(0, "ns/op")
}

func coldName(spec *sandbox.Spec) string { return spec.Name + "-cold" }

// makeCold makes another sandbox.
func makeCold(b *testing.B, e *Engine, spec *sandbox.Spec) sandbox.Handle {
	b.Helper()
	cold := *spec
	cold.Name = coldName(spec)
	h, err := e.Ensure(context.Background(), &cold)
	if err != nil {
		b.Fatal(err)
	}
	return h
}

// runInside runs a program to its end and returns how much it has put out.
func runInside(b *testing.B, h sandbox.Handle, argv ...string) int64 {
	b.Helper()
	process, err := h.Start(context.Background(), sandbox.Command{Argv: argv})
	if err != nil {
		b.Fatal(err)
	}
	n, err := io.Copy(io.Discard, process.Stdout())
	if err != nil {
		b.Fatal(err)
	}
	if status, err := process.Wait(context.Background()); err != nil || status.Code != 0 {
		b.Fatal(status, err)
	}
	return n
}
