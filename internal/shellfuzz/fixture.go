//go:build linux

package shellfuzz

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// Where commands run, in the sandbox.
const (
	workDir = "/w"
	homeDir = "/home/u"
)

// environment is what every command gets. PATH is /bin, where every name is a program.
var environment = []string{
	"PATH=/bin", "HOME=" + homeDir, "LC_ALL=C.UTF-8", "PLAIN=value", "SPACED=two  words", "STAR=*.go", "EMPTY=",
	"TILDE=~/x", "QUOTE=it's \"q\"", "DASH=-rf", "BACK=a\\b", "BRACE={a,b}", "NL=a\nb", "DOLLAR=$PLAIN", "X=1",
}

// Getenv looks a variable up as commands would.
func Getenv(name string) (string, bool) {
	for _, entry := range environment {
		if n, value, _ := strings.Cut(entry, "="); n == name {
			return value, true
		}
	}
	return "", false
}

// fixtureFiles are the files that are there, by their path; what ends in a slash is a directory, what has an arrow a
// link. Their names are those that analyzers get wrong.
var fixtureFiles = []string{
	"/w/a.go", "/w/b.go", "/w/B.go", "/w/.hidden", "/w/.h.go", "/w/with space", "/w/-rf", "/w/[x]", "/w/x", "/w/README.md",
	"/w/a*b", "/w/a\\b", "/w/é.txt", "/w/{a,b}", "/w/~", "/w/sub/c.go", "/w/sub/d.txt", "/w/sub/deep/e.go", "/w/sub/.s",
	"/w/empty/", "/w/dir with space/f", "/w/-d/g", "/w/link -> sub", "/w/dangling -> nowhere", "/w/$PLAIN", "/w/a\nb",
	"/w/quote's", "/w/sub.d/", "/w/1", "/w/2", "/w/x1y", "/w/#c", "/w/=", "/w/!h", "/w/test", "/w/out.txt", "/w/src/main.py", "/w/run.sh", "/w/sub/tool",
	"/w/ lead", "/w/trail ", "/w/semi;x", "/w/pipe|x", "/w/amp&", "/w/q\"uote", "/w/back`tick", "/w/(p)", "/w/<a>", "/w/%1", "/w/...",
	"/w/sub/with space.txt", "/w/sub/é.md", "/w/sub/[z].c", "/w/sub/a;b", "/w/sub/q'q", "/w/sub/nl\nx", "/w/sub/$X", "/w/sub/~", "/w/sub/*",
	"/w/sub/\\", "/w/sub/{a,b}.h", "/w/sub/#", "/w/sub/ ", "/w/sub/.hidden.go", "/w/sub/a.gone -> nowhere",
	"/home/u/x", "/home/u/notes.txt", "/tmp/",
}

// fixturePrograms are those of the files that are programs.
var fixturePrograms = []string{"/w/run.sh", "/w/sub/tool"}

// fixture keeps the files as they are listed.
type fixture struct {
	root    string
	entries map[string]string // what is there, by its path: "/" for a directory, "-> x" for a link, or the text of a file
}

func newFixture(root string) (fixture, error) {
	f := fixture{root: root, entries: map[string]string{}}
	for _, entry := range fixtureFiles {
		name, target, link := strings.Cut(entry, " -> ")
		for dir := path.Dir(strings.TrimSuffix(name, "/")); dir != "/"; dir = path.Dir(dir) {
			f.entries[dir] = "/"
		}
		switch {
		case link:
			f.entries[name] = "-> " + target
		case strings.HasSuffix(name, "/"):
			f.entries[strings.TrimSuffix(name, "/")] = "/"
		default:
			f.entries[name] = name + "\n"
		}
	}
	program, err := os.ReadFile(filepath.Join(root, "real", "filter"))
	for _, name := range fixturePrograms {
		f.entries[name] = string(program)
	}
	return f, err
}

// restore makes all files what they are listed to be.
func (f fixture) restore() error {
	for _, name := range slices.Sorted(maps.Keys(f.entries)) {
		if err := f.restoreOne(name); err != nil {
			return err
		}
	}
	for _, top := range []string{workDir, homeDir, "/tmp"} {
		err := filepath.WalkDir(f.root+top, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || f.entries[strings.TrimPrefix(path, f.root)] != "" {
				return err
			}
			if err := os.RemoveAll(path); err != nil {
				return err
			}
			if entry.IsDir() {
				return fs.SkipDir
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// restoreOne makes one file what it is listed to be, or removes it.
func (f fixture) restoreOne(name string) error {
	path, want := f.root+name, f.entries[name]
	target, link := strings.CutPrefix(want, "-> ")
	switch {
	case want == "":
		if err := os.RemoveAll(path); !errors.Is(err, syscall.ENOTDIR) {
			return err
		}
		return nil // what it would lie in is a file
	case want == "/":
		return os.MkdirAll(path, 0o755)
	case link:
		if at, _ := os.Readlink(path); at == target {
			return nil
		}
		_ = os.RemoveAll(path)
		return os.Symlink(target, path)
	}
	if have, err := os.ReadFile(path); err == nil && string(have) == want {
		return nil
	}
	_ = os.RemoveAll(path)
	return os.WriteFile(path, []byte(want), 0o755)
}

// changed lists what is not as it is listed. It is how the sandbox notices writes that it was not told of.
func (f fixture) changed() []string {
	var changed []string
	seen := 0
	for _, top := range []string{workDir, homeDir, "/tmp"} {
		_ = filepath.WalkDir(f.root+top, func(path string, entry fs.DirEntry, err error) error {
			name := strings.TrimPrefix(path, f.root)
			want := f.entries[name]
			have := "/"
			if err == nil && entry.Type()&fs.ModeSymlink != 0 {
				at, _ := os.Readlink(path)
				have = "-> " + at
			} else if err == nil && !entry.IsDir() {
				text, _ := os.ReadFile(path)
				have = string(text)
			}
			if want != have {
				changed = append(changed, name)
			}
			seen++
			return nil
		})
	}
	if len(changed) == 0 && seen < len(f.entries)-1 { // "/home" is above what is walked
		changed = append(changed, "something is gone")
	}
	return changed
}
