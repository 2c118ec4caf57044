package command

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/toolward/toolward/command/stamp"
)

// paths is a search path on the disk, the directories of which come, go and are exchanged.
type paths struct {
	t    *testing.T
	root string
	path string
}

func newPaths(t *testing.T) *paths {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	p := &paths{t: t, root: root}
	var dirs []string
	for _, dir := range []string{"a/bin", "b/bin", "c"} {
		p.do(os.MkdirAll(p.at(dir), 0o755))
		dirs = append(dirs, p.at(dir))
	}
	p.path = strings.Join(dirs, ":")
	p.program("c/tool")
	return p
}

func (p *paths) at(name string) string { return filepath.Join(p.root, name) }

func (p *paths) do(err error) {
	p.t.Helper()
	if err != nil {
		p.t.Fatal(err)
	}
}

func (p *paths) program(name string) {
	p.t.Helper()
	p.do(os.WriteFile(p.at(name), nil, 0o755))
}

// settle waits until the clock of the file system has gone on: what has just changed is not remembered.
func (p *paths) settle() { time.Sleep(stamp.Tick + 10*time.Millisecond) }

// warm asks until the answer is remembered and its directories are watched, where the system lets it. Others who
// change the directory of temporary files make it wait.
func (p *paths) warm(r *Resolver) {
	p.t.Helper()
	var system unix.Statfs_t
	p.do(unix.Statfs(p.root, &system))
	watchable := listening() != nil && slices.Contains(localSystems, int64(system.Type)) // differs by architecture
	for range 200 {
		for range watchAfter + 2 {
			r.Program("tool", Where{Path: p.path})
		}
		if known := r.known[lookup{word: "tool", path: p.path}]; known != nil && (known.watch != nil || !watchable) {
			return
		}
		p.settle()
	}
	p.t.Fatal("the answer is not remembered, or its directories are not watched")
}

// TestNoChangeIsMissed: whatever changes on the way to a program is seen by the next look, though nobody looks at the
// directories any more.
func TestNoChangeIsMissed(t *testing.T) {
	changes := map[string]func(p *paths){
		"a program before it":   func(p *paths) { p.program("a/bin/tool") },
		"a link before it":      func(p *paths) { p.do(os.Symlink(p.at("c/tool"), p.at("b/bin/tool"))) },
		"renamed into place":    func(p *paths) { p.program("new"); p.do(os.Rename(p.at("new"), p.at("a/bin/tool"))) },
		"a hard link before it": func(p *paths) { p.do(os.Link(p.at("c/tool"), p.at("b/bin/tool"))) },
		"gone":                  func(p *paths) { p.do(os.Remove(p.at("c/tool"))) },
		"renamed":               func(p *paths) { p.do(os.Rename(p.at("c/tool"), p.at("c/other"))) },
		"open to everybody":     func(p *paths) { p.do(os.Chmod(p.at("c"), 0o777)) },
		"the way to it is open": func(p *paths) { p.do(os.Chmod(p.root, 0o777)) },
		"its directory is gone": func(p *paths) { p.do(os.RemoveAll(p.at("c"))) },
		"another directory":     func(p *paths) { p.do(os.Rename(p.at("c"), p.at("d"))); p.do(os.Mkdir(p.at("c"), 0o755)) },
		"a link to a directory": func(p *paths) { p.do(os.Rename(p.at("c"), p.at("d"))); p.do(os.Symlink("d", p.at("c"))) },
		"a directory exchanged": func(p *paths) {
			p.do(unix.Renameat2(unix.AT_FDCWD, p.at("b/bin"), unix.AT_FDCWD, p.at("c"), unix.RENAME_EXCHANGE))
		},
		"the one above it moved": func(p *paths) {
			p.program("b/bin/tool")
			p.do(os.Rename(p.at("a"), p.at("x")))
			p.do(os.Rename(p.at("b"), p.at("a")))
		},
	}
	for name, change := range changes {
		t.Run(name, func(t *testing.T) {
			p := newPaths(t)
			r := NewResolver(Disk{})
			p.warm(r)
			before := r.Program("tool", Where{Path: p.path})
			change(p)
			got, want := r.Program("tool", Where{Path: p.path}), NewResolver(Disk{}).Program("tool", Where{Path: p.path})
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("%+v, and it is %+v", got, want)
			}
			if fmt.Sprint(want) == fmt.Sprint(before) {
				t.Errorf("nothing has changed: %+v", want)
			}
		})
	}
}

// TestRandomChangesAreSeen changes directories at random, and compares a resolver that remembers with one that does not.
func TestRandomChangesAreSeen(t *testing.T) {
	p := newPaths(t)
	r := NewResolver(Disk{})
	random := rand.New(rand.NewPCG(2, 2))
	names := []string{"a", "a/bin", "a/bin/tool", "b", "b/bin", "b/bin/tool", "c", "c/tool", "d", "d/tool", "e"}
	one := func() string { return p.at(names[random.IntN(len(names))]) }
	found := map[string]int{}
	for range 800 {
		from, to := one(), one()
		switch random.IntN(20) { // most of them fail, and change nothing
		case 0, 7, 8:
			_ = os.Rename(from, to)
		case 1, 9:
			_ = os.Symlink(from, to)
		case 2, 10, 11:
			_ = os.Mkdir(to, 0o755)
		case 3, 12, 13:
			_ = os.WriteFile(to, nil, 0o755)
		case 4:
			_ = os.Remove(to)
		case 5, 14:
			_ = unix.Renameat2(unix.AT_FDCWD, from, unix.AT_FDCWD, to, unix.RENAME_EXCHANGE)
		case 6:
			_ = os.Chmod(to, []os.FileMode{0o755, 0o777}[random.IntN(2)])
		case 15:
			p.settle()
		}
		for range random.IntN(6) {
			got, want := r.Program("tool", Where{Path: p.path}), NewResolver(Disk{}).Program("tool", Where{Path: p.path})
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Fatalf("%+v, and it is %+v", got, want)
			}
			found[got.Path+got.Hijack]++
		}
	}
	if len(found) < 4 {
		t.Errorf("too little has changed: %v", found)
	}
}
