package command

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/command/allowlist"
	"github.com/toolward/toolward/place"
)

// machine is a request on this machine's own disk, in a workspace of the test.
func machine(tb testing.TB) (Policy, *Request) {
	tb.Helper()
	dir, home := tb.TempDir(), tb.TempDir()
	classifier, err := place.New(place.Layout{Workspace: dir, Home: home, StateDir: home + "/.toolward", ConfigFile: home + "/.toolward/toolward.jsonc"})
	if err != nil {
		tb.Fatal(err)
	}
	p := Policy{Preset: Strict}
	for _, name := range []string{"cat", "grep", "sort", "head"} {
		p.Entries = append(p.Entries, allowlist.Listed{Entry: allowlist.Entry{Pattern: "/usr/bin/" + name}})
	}
	for i := range 96 {
		pattern := fmt.Sprintf("/opt/tools/%d/bin/tool%d", i, i)
		if i%4 == 0 {
			pattern = fmt.Sprintf("/opt/tools/%d/*/tool*", i)
		}
		p.Entries = append(p.Entries, allowlist.Listed{Entry: allowlist.Entry{Pattern: pattern}})
	}
	for _, name := range []string{"main.go", "util.go"} {
		if err := os.WriteFile(dir+"/"+name, []byte("package main\n"), 0o600); err != nil {
			tb.Fatal(err)
		}
	}
	path := "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
	return p, &Request{
		Command: "cat main.go util.go | grep -n TODO | sort -u | head -n 20", Dir: dir, Level: toolward.Normal, Places: classifier,
		Getenv: func(name string) (string, bool) {
			switch name {
			case "PATH":
				return path, true
			case "HOME":
				return home, true
			}
			return os.LookupEnv(name)
		},
	}
}

// BenchmarkFourSegments judges pipelines of four programs against 100 entries: with programs that were found before, and
// with a resolver that remembers nothing. No text is judged twice. Beside it, in turns, stands what the kernel takes for
// the system calls that no decision can do without: a look at every directory of the search path, and one at each file.
func BenchmarkFourSegments(b *testing.B) {
	p, request := machine(b)
	for _, warm := range []bool{true, false} {
		name := map[bool]string{true: "warm", false: "cold"}[warm]
		b.Run(name, func(b *testing.B) {
			e, _, err := New(p, "/home/dev", NewResolver(Disk{}))
			if err != nil {
				b.Fatal(err)
			}
			if got := e.Evaluate(request); verdict(got) != toolward.Allow {
				b.Fatalf("%s: %v", verdict(got), codes(got))
			}
			decisions, floors := make([]time.Duration, 0, b.N), make([]time.Duration, 0, b.N)
			b.ReportAllocs()
			for n := 0; b.Loop(); n++ {
				if !warm {
					e.resolver.known = map[lookup]*answer{}
				}
				fresh := *request
				fresh.Command = fmt.Sprintf("cat main.go util.go | grep -n TODO%d | sort -u | head -n %d", n, 10+n%90)
				start := time.Now()
				e.Evaluate(&fresh)
				decisions = append(decisions, time.Since(start))
				floors = append(floors, looks(request.Dir))
			}
			report(b, "", decisions)
			report(b, "floor-", floors)
			b.ReportMetric(median(decisions)/median(floors), "of-floor")
		})
	}
}

// looks is how long the kernel takes for one look at each directory of the search path and at both files.
func looks(workspace string) time.Duration {
	start := time.Now()
	for _, p := range []string{"/", "/usr", "/usr/local", "/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", workspace + "/main.go", workspace + "/util.go"} {
		_, _ = Disk{}.Look(p)
	}
	return time.Since(start)
}

func report(b *testing.B, name string, times []time.Duration) {
	slices.Sort(times)
	b.ReportMetric(median(times)/1000, name+"p50-µs")
	b.ReportMetric(float64(times[len(times)*99/100].Nanoseconds())/1000, name+"p99-µs")
}

// median of sorted times, in nanoseconds.
func median(times []time.Duration) float64 { return float64(times[len(times)/2].Nanoseconds()) }

// BenchmarkHostile judges command lines that are made to cost time, from 1 KiB to 64 KiB.
func BenchmarkHostile(b *testing.B) {
	p, request := machine(b)
	p.Preset = Developer
	e, _, err := New(p, "/home/dev", NewResolver(Disk{}))
	if err != nil {
		b.Fatal(err)
	}
	for _, name := range slices.Sorted(maps.Keys(hostile)) {
		for _, kib := range []int{1, 4, 16, 64} {
			b.Run(fmt.Sprintf("%s/%dKiB", name, kib), func(b *testing.B) {
				r := *request
				r.Command = hostile[name](kib*1024 - 64)
				times := make([]time.Duration, 0, b.N)
				for b.Loop() {
					start := time.Now()
					e.Evaluate(&r)
					times = append(times, time.Since(start))
				}
				slices.Sort(times)
				b.ReportMetric(median(times)/1e6, "p50-ms")
				b.ReportMetric(float64(times[0].Nanoseconds())/1e6, "min-ms")
			})
		}
	}
}
