//go:build linux

package inside_test

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/toolward/toolward/sandbox"
	"github.com/toolward/toolward/sandbox/inside"
)

// BenchmarkExec is a command inside beside the same program by os/exec, taking turns.
func BenchmarkExec(b *testing.B) {
	path, err := exec.LookPath("true")
	must(b, err)
	for name, command := range map[string]sandbox.Command{
		"argv":     {Argv: []string{path}},
		"segments": {Segments: []sandbox.Segment{{Argv: []string{path}, Operator: ";"}}},
	} {
		b.Run(name, func(b *testing.B) {
			box := newBox(b)
			takeTurns(b, "x-fork-exec", func() { box.do(command) }, func() {
				plain := exec.Command(path)
				var out, err bytes.Buffer
				plain.Dir, plain.Env, plain.Stdout, plain.Stderr = box.dir, os.Environ(), &out, &err
				must(b, plain.Run())
			})
		})
	}
}

// BenchmarkRead is reading 4 KiB inside beside reading the file directly.
func BenchmarkRead(b *testing.B) {
	box := newBox(b)
	file := box.put("file", string(make([]byte, 4<<10)))
	takeTurns(b, "x-direct", func() {
		_, _, err := box.ReadFile(b.Context(), file, 0, 1<<20)
		must(b, err)
	}, func() {
		_, err := os.ReadFile(file)
		must(b, err)
	})
}

// BenchmarkStream is the output of a command that writes as fast as it can.
func BenchmarkStream(b *testing.B) {
	box := newBox(b)
	const size = 1 << 30
	b.SetBytes(size)
	for b.Loop() {
		p, err := box.Start(b.Context(), sandbox.Command{Argv: []string{"dd", "if=/dev/zero", "bs=128k", "count=" + strconv.Itoa(size/(128<<10)), "status=none"}})
		must(b, err)
		n, err := io.Copy(io.Discard, p.Stdout())
		if err != nil || n != size {
			b.Fatal(n, err)
		}
		p.Wait(b.Context())
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

var _ = inside.Serve
