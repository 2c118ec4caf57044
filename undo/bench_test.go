package undo_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/toolward/toolward/undo"
)

// project makes a workspace of 20,000 files and 300 MB, of which a tenth is large files, as real ones are.
func project(b *testing.B) string {
	b.Helper()
	root := b.TempDir()
	r := rand.New(rand.NewPCG(1, 2))
	noise := make([]byte, 1<<20)
	for i := range noise {
		noise[i] = byte(r.Uint32())
	}
	for i := range 20_000 {
		size := 2000 + r.IntN(20_000)
		if i%250 == 0 {
			size = 1 << 20
		}
		at := filepath.Join(root, fmt.Sprint("dir", i%50), fmt.Sprint("sub", i%1000/50), fmt.Sprint("file", i))
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			b.Fatal(err)
		}
		from := r.IntN(len(noise) - size + 1)
		if err := os.WriteFile(at, append(noise[from:from+size:from+size], fmt.Sprint(i)...), 0o644); err != nil {
			b.Fatal(err)
		}
	}
	return root
}

// BenchmarkKeep is what keeping a workspace of 20,000 files and 300 MB costs a call: the first time, beside "cp -a" of it, and when
// nothing has changed, beside "find" with the times of all files, which is the floor of looking at them; and after a restart, with
// what was read before it and without.
func BenchmarkKeep(b *testing.B) {
	root := project(b)
	dir := filepath.Join(b.TempDir(), "undo")
	var s *undo.Store
	open := func() {
		var err error
		if s, err = undo.Open(b.Context(), dir, undo.Limits{}); err != nil {
			b.Fatal(err)
		}
	}
	open()
	defer func() { _ = s.Close() }()
	keep := func(id string) time.Duration {
		start := time.Now()
		if err := s.Begin(b.Context(), undo.Call{ID: id, Workspace: []byte(root), At: begun}); err != nil {
			b.Fatal(err)
		}
		return time.Since(start)
	}
	run := func(name string, args ...string) time.Duration {
		start := time.Now()
		if err := exec.Command(name, args...).Run(); err != nil {
			b.Fatal(err)
		}
		return time.Since(start)
	}
	copied := run("cp", "-a", root, filepath.Join(b.TempDir(), "copy"))
	first := keep("first")
	keep("settled")
	restarted := func(id string, forget bool) time.Duration {
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
		if forget {
			if err := os.RemoveAll(filepath.Join(dir, "read")); err != nil {
				b.Fatal(err)
			}
		}
		open()
		return keep(id)
	}
	unread := restarted("restarted, and nothing is known", true)
	restart := restarted("restarted", false)
	var again, floor []time.Duration
	for i := 0; b.Loop(); i++ {
		again = append(again, keep(fmt.Sprint(i)))
		floor = append(floor, run("find", root, "-newermt", "2100-01-01"))
	}
	slices.Sort(again)
	slices.Sort(floor)
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(first.Seconds(), "first-s")
	b.ReportMetric(first.Seconds()/copied.Seconds(), "first/cp")
	b.ReportMetric(float64(restart.Microseconds())/1000, "restart-ms")
	b.ReportMetric(float64(unread.Microseconds())/1000, "restart-unread-ms")
	b.ReportMetric(float64(again[len(again)/2].Microseconds())/1000, "unchanged-ms-p50")
	b.ReportMetric(float64(again[len(again)/2])/float64(floor[len(floor)/2]), "unchanged/find")
}

// BenchmarkTakeBack takes a call back that changed 1,000 files of 20,000, beside writing as many.
func BenchmarkTakeBack(b *testing.B) {
	root := project(b)
	s, err := undo.Open(b.Context(), filepath.Join(b.TempDir(), "undo"), undo.Limits{})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	var took, wrote []time.Duration
	for i := 0; b.Loop(); i++ {
		id := fmt.Sprint(i)
		if err := s.Begin(b.Context(), undo.Call{ID: id, Workspace: []byte(root), At: begun}); err != nil {
			b.Fatal(err)
		}
		start := time.Now()
		for n := range 1000 {
			at := filepath.Join(root, fmt.Sprint("dir", n%50), fmt.Sprint("sub", n/50), fmt.Sprint("file", n%50+n/50*50))
			if err := os.WriteFile(at, []byte(id), 0o644); err != nil {
				b.Fatal(err)
			}
		}
		wrote = append(wrote, time.Since(start))
		if err := s.End(b.Context(), id); err != nil {
			b.Fatal(err)
		}
		start = time.Now()
		taken, err := s.TakeBack(b.Context(), undo.Request{ID: id}, undo.Call{ID: id + " undo", At: begun})
		if err != nil || len(taken.Restored) != 1000 {
			b.Fatal(err, len(taken.Restored))
		}
		took = append(took, time.Since(start))
	}
	slices.Sort(took)
	slices.Sort(wrote)
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(took[len(took)/2].Seconds(), "s-p50")
	b.ReportMetric(float64(took[len(took)/2])/float64(wrote[len(wrote)/2]), "x-writing-them")
}
