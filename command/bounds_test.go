package command

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/place"
)

// countingDisk counts how often this machine's disk is asked.
type countingDisk struct {
	Disk
	looks, lists, names atomic.Int64
}

func (d *countingDisk) Look(p string) (Node, error) {
	d.looks.Add(1)
	return d.Disk.Look(p)
}

func (d *countingDisk) ReadDir(dir string) ([]fs.DirEntry, error) {
	d.lists.Add(1)
	entries, err := d.Disk.ReadDir(dir)
	d.names.Add(int64(len(entries)))
	return entries, err
}

// countingPlaces counts the files that are looked up, and the elements of their paths.
type countingPlaces struct {
	Places
	files, elements int
}

func (p *countingPlaces) Resolve(dir, asked string) (place.Resolved, error) {
	p.files++
	p.elements += strings.Count(dir, "/") + strings.Count(asked, "/")
	return p.Places.Resolve(dir, asked)
}

// judgedCounting judges a command under the developer preset and tells what it cost.
func judgedCounting(t *testing.T, command string, files int) (*Assessment, *countingDisk, *countingPlaces) {
	t.Helper()
	p, request := machine(t)
	for i := range files {
		if err := os.WriteFile(filepath.Join(request.Dir, fmt.Sprintf("f%05d", i)), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p.Preset = Developer
	disk, places := &countingDisk{}, &countingPlaces{Places: request.Places}
	e, _, err := New(p, "/home/dev", NewResolver(disk))
	if err != nil {
		t.Fatal(err)
	}
	request.Command, request.Places = command, places
	return e.Evaluate(request), disk, places
}

// What 64 KiB can make us do is bounded by counts: files that are looked up, directories that are read, commands that
// are judged, and bytes of the paths that they make.
func TestHostileTextIsBounded(t *testing.T) {
	check := func(text func(n int) string, size int) func(t *testing.T) {
		return func(t *testing.T) {
			got, disk, places := judgedCounting(t, text(size), 0)
			commands, bytes := 0, 0
			eachSegment(got.Segments, func(s *Segment) {
				commands++
				for _, e := range s.effects {
					bytes += len(e.Path) + len(e.Dir)
				}
			})
			for _, c := range []struct {
				what       string
				count, may int
			}{
				{"files looked up", places.files, maxElements / lookupCost},
				{"elements of paths", places.elements, maxElements},
				{"looks for programs", int(disk.looks.Load()), maxElements},
				{"directories read", int(disk.lists.Load()), maxDirsRead},
				{"commands", commands, 256 + maxInnerCommands + maxRunsInAll},
				{"bytes of paths", bytes, 1 << 20},
			} {
				if c.count > c.may {
					t.Errorf("%s: %d, want at most %d", c.what, c.count, c.may)
				}
			}
		}
	}
	for name, text := range hostile {
		for _, kib := range []int{4, 64} { // the longest do not always go the furthest
			t.Run(fmt.Sprintf("%s/%d KiB", name, kib), check(text, kib<<10-64))
		}
	}
}

// What lies beyond a bound asks, and what is below runs.
func TestBeyondBoundsAsks(t *testing.T) {
	repeat := strings.Repeat
	for name, test := range map[string]struct {
		command string
		files   int
		want    toolward.Verdict
	}{
		"some files":             {"cat" + repeat(" a", 200), 0, toolward.Allow},
		"too many elements":      {"cat" + repeat(" "+repeat("a/", 64)+"b", 200), 0, toolward.Ask},
		"some patterns":          {"cat" + repeat(" f*", 8), 100, toolward.Allow},
		"too many patterns":      {"cat" + repeat(" f*", 65), 1, toolward.Ask},
		"too many names":         {"cat" + repeat(" z*", 60), 400, toolward.Ask},
		"too many levels":        {"cat " + repeat("*/", 65), 0, toolward.Ask},
		"scripts":                {repeat("sh -c 'ls;ls;ls';", 10), 0, toolward.Allow},
		"too many commands":      {repeat("sh -c 'ls;ls;ls';", 100), 0, toolward.Ask},
		"words of braces":        {repeat("echo {1..900};", 4), 0, toolward.Allow},
		"too many of them":       {repeat("echo {1..900};", 6), 0, toolward.Ask},
		"loaded files":           {"java -cp " + numbered("a%d:", 2000) + " B", 0, toolward.Allow},
		"too many loaded files":  {"java -cp " + numbered("a%d:", 8000) + " B", 0, toolward.Deny},
		"names below long names": {"cp " + repeat("a ", 500) + repeat("b/", 200), 0, toolward.Ask},
	} {
		t.Run(name, func(t *testing.T) {
			if got, _, _ := judgedCounting(t, test.command, test.files); verdict(got) != test.want {
				t.Errorf("%s %v, want %s", verdict(got), codes(got), test.want)
			}
		})
	}
}

// What could not be looked up any more may be a directory: else what is put into it would not be judged.
func TestUnknownMayBeDirectory(t *testing.T) {
	v := &evaluation{bounds: bounds{elements: maxElements}}
	if !v.mayBeDirectory("/work", "b") {
		t.Error("a path beyond the bound counts as no directory")
	}
}

// The dangers are named without searching the text again and again.
func TestCriticalByName(t *testing.T) {
	for text, want := range map[string]bool{
		":(){ :|:& };:":            true,
		"bomb() { bomb | bomb & }": true,
		"b () {\n b|b& }":          true,
		"a(){ x; }; b(){ b|b& }":   true,
		"() { a|b& }":              false,
		"f() { a & b | c; }":       false,
		"f() { a | b; }; c &":      false,
		"f() { a | b &":            false,
	} {
		if got := isForkBomb(text); got != want {
			t.Errorf("isForkBomb(%q) = %t", text, got)
		}
	}
	for p, want := range map[string]bool{
		".bashrc": true, "/home/a/.zshrc": true, "x/authorized_keys": true, "/etc/cron.daily/x": true,
		"/etc/systemd/system/a.service": true, "/etc/cron.d/": true, "my.bashrc": false, "cron": false,
		"cron.d": false, "/etc/cron.D1/x": false, "/a/systemdx/b": false, ".bashrc/x": false,
	} {
		if got := isPersistent(p); got != want {
			t.Errorf("isPersistent(%q) = %t", p, got)
		}
	}
}
