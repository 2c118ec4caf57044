//go:build linux

package serve

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/toolward/toolward/sandbox/inside/wire"
)

// Without openat2 (old kernels, filters of containers) directories are found all the same, and the same ones.
func TestWithoutOpenat2(t *testing.T) {
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"a/b", "c"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, target := range map[string]string{
		"relative": "a/b", "absolute": filepath.Join(root, "c"), "up": "a/../c", "loop": "loop", "through": "relative/../../c", "magic": "/proc/self/cwd",
		"file-link": "file",
	} {
		if err := os.Symlink(target, filepath.Join(root, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(root, "file"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, p := range []string{
		"a", "a/b/", "a//b/.", "a/../c", "relative", "absolute", "up", "through", "relative/..", "loop", "magic", "none", "none/x", "file", "file/x", "file-link", "..", "/", "",
	} {
		full := root + "/" + p
		if p == "/" {
			full = p
		}
		noOpenat2.Store(false)
		with, withErr := opened(t, full)
		noOpenat2.Store(true)
		without, withoutErr := opened(t, full)
		noOpenat2.Store(false)
		if with != without || withErr != withoutErr {
			t.Errorf("%s: %q, %v; without openat2 %q, %v", full, with, withErr, without, withoutErr)
		}
	}
}

func opened(t *testing.T, p string) (string, error) {
	fd, err := openDirectory(p)
	if err != nil {
		return "", err
	}
	defer unix.Close(fd)
	real, err := realPath(fd)
	if err != nil {
		t.Error(err)
	}
	return real, nil
}

func TestProtectedPaths(t *testing.T) {
	f := newFiles(&wire.Hello{
		Mounts:    []wire.Mount{{Target: "/w", Writable: true}, {Target: "/w/sub"}, {Target: "/w/sub/rw/", Writable: true}, {Target: "/wide", Writable: true}},
		Protected: []string{".git/hooks", ".envrc", "/w/keys"},
	})
	for p, want := range map[string][2]bool{ // may be written, may be moved
		"/w/a": {true, true}, "/w": {true, false}, "/w/sub": {false, false}, "/w/sub/x": {false, false}, "/w/sub/rw/x": {true, true},
		"/wide/a": {true, true}, "/wid": {false, false}, "/": {false, false}, "/w/.git/hooks": {false, false},
		"/w/.git/hooks/a": {false, false}, "/w/a/.GIT/HOOKS": {false, false}, "/w/.git": {true, false}, "/w/.git/hook": {true, true},
		"/w/.gitx/hooks": {true, true}, "/w/keys": {false, false}, "/w/keys2": {true, true}, "/w/a/keys": {true, true},
		"/w/a/.envrc": {false, false}, "/w/.envrc/x": {false, false},
	} {
		if got := [2]bool{f.writable(p) == nil, f.removable(p) == nil}; got != want {
			t.Errorf("%s: %v, not %v", p, got, want)
		}
	}
}

func TestPrograms(t *testing.T) {
	dir := t.TempDir()
	for name, mode := range map[string]os.FileMode{"run": 0o755, "data": 0o644} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("x"), mode); err != nil {
			t.Fatal(err)
		}
	}
	env := environment{}.with([]string{"PATH=.:" + "relative:" + ":" + dir, "A=1", "A=2", "broken", "=x"})
	if len(env.list) != 2 || env.list[1] != "A=2" {
		t.Errorf("%q", env.list)
	}
	for name, want := range map[string]int{"run": 0, "data": statusNotExecutable, "none": statusNotFound, "": statusNotFound, dir: statusNotExecutable} {
		if _, status := env.find(name, dir); status != want {
			t.Errorf("%q: %d, not %d", name, status, want)
		}
	}
}
