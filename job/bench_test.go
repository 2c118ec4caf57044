//go:build unix

package job_test

import (
	"io"
	"os"
	"os/exec"
	"slices"
	"testing"
	"time"

	"github.com/toolward/toolward/job"
)

// BenchmarkOneProgram is a job of one program beside the same program through os/exec, taking turns.
func BenchmarkOneProgram(b *testing.B) {
	t := newBench(b)
	plan := t.plan("true")
	path := plan.Segments[0].Programs[0].Path
	takeTurns(b, "x-fork-exec", func() { t.finish(plan) }, func() {
		cmd := exec.Command(path)
		cmd.Dir, cmd.Env = t.dir, t.env
		if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
			b.Fatal(err, out)
		}
	})
}

// BenchmarkPipe is a job of three programs beside bash with the same text.
func BenchmarkPipe(b *testing.B) {
	t := newBench(b)
	t.write("in", "3\n1\n2\n")
	const text = "cat in | sort | wc -l"
	plan := t.plan(text)
	bash, err := exec.LookPath("bash")
	must(b, err)
	takeTurns(b, "x-bash", func() { t.finish(plan) }, func() {
		cmd := exec.Command(bash, "-c", text)
		cmd.Dir, cmd.Env = t.dir, t.env
		if _, err := cmd.CombinedOutput(); err != nil {
			b.Fatal(err)
		}
	})
}

// finish runs a job to its end as the tool does: output and errors in one pipe that is read.
func (b *bench) finish(plan job.Plan) {
	read, write, err := os.Pipe()
	must(b, err)
	running, err := job.Start(plan, job.Streams{Out: write, Err: write})
	must(b, err)
	io.Copy(io.Discard, read)
	read.Close()
	running.Release()
	if running.Result().Code != 0 {
		b.Fatal(running.Result())
	}
}

// takeTurns reports the median time of ours, and its ratio to that of the peer.
func takeTurns(b *testing.B, unit string, ours, peer func()) {
	var own, other []time.Duration
	for b.Loop() {
		start := time.Now()
		ours()
		middle := time.Now()
		peer()
		own, other = append(own, middle.Sub(start)), append(other, time.Since(middle))
	}
	slices.Sort(own)
	slices.Sort(other)
	mine, theirs := own[len(own)/2], other[len(other)/2]
	b.ReportMetric(float64(mine.Microseconds()), "us-p50")
	b.ReportMetric(float64(theirs.Microseconds()), "us-p50-peer")
	b.ReportMetric(float64(mine)/float64(theirs), unit)
	b.ReportMetric(0, "ns/op") // both together: nobody asked for it
}
