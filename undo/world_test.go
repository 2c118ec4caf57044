package undo_test

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/toolward/toolward/undo"
)

// begun is when the calls of the tests were made.
var begun = time.Date(2026, 11, 23, 9, 0, 0, 0, time.UTC)

func open(t *testing.T, limits undo.Limits) *undo.Store {
	t.Helper()
	return openAt(t, filepath.Join(t.TempDir(), "undo"), limits)
}

func openAt(t *testing.T, dir string, limits undo.Limits) *undo.Store {
	t.Helper()
	s, err := undo.Open(t.Context(), dir, limits)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// during keeps a workspace before and after something changes it.
func during(t *testing.T, s *undo.Store, id, workspace string, change func()) {
	t.Helper()
	if err := s.Begin(t.Context(), undo.Call{ID: id, Workspace: []byte(workspace), At: begun}); err != nil {
		t.Fatal(err)
	}
	change()
	if err := s.End(t.Context(), id); err != nil {
		t.Fatal(err)
	}
}

func takeBack(t *testing.T, s *undo.Store, r undo.Request, as string) *undo.Taken {
	t.Helper()
	taken, err := s.TakeBack(t.Context(), r, undo.Call{ID: as, At: begun})
	if err != nil {
		t.Fatal(err)
	}
	return taken
}

// look is a tree as an ordinary program reads it: what each path is, byte for byte.
func look(t *testing.T, root string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
		if err != nil || path == root {
			return err
		}
		var st unix.Stat_t
		if err := unix.Lstat(path, &st); err != nil {
			return err
		}
		at, _ := filepath.Rel(root, path)
		switch st.Mode & unix.S_IFMT {
		case unix.S_IFREG:
			content, err := os.ReadFile(path)
			out[at] = fmt.Sprintf("file %o %q", st.Mode&0o7777, content)
			return err
		case unix.S_IFLNK:
			target, err := os.Readlink(path)
			out[at] = fmt.Sprintf("link %q", target)
			return err
		default:
			out[at] = fmt.Sprintf("%o", st.Mode)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// expect compares a tree with what it was.
func expect(t *testing.T, root string, want map[string]string) {
	t.Helper()
	got := look(t, root)
	for _, at := range slices.Sorted(maps.Keys(want)) {
		if got[at] != want[at] {
			t.Errorf("%q is %.200s, want %.200s", at, got[at], want[at])
		}
	}
	for _, at := range slices.Sorted(maps.Keys(got)) {
		if _, known := want[at]; !known {
			t.Errorf("%q is %.200s, and was not there", at, got[at])
		}
	}
}

// vandal changes a tree in random ways.
type vandal struct {
	t    *testing.T
	r    *rand.Rand
	root string
}

// names are few, so that one thing often takes another's place; not all are UTF-8.
var names = []string{"a", "b", "c", "lib", "src", "Makefile", "x y", "new\nline", "b\xffd", "ünï", "-rf", ".git", "HEAD"}

func (v *vandal) path() string {
	parts := []string{v.root}
	for range 1 + v.r.IntN(3) {
		parts = append(parts, names[v.r.IntN(len(names))])
	}
	return filepath.Join(parts...)
}

func (v *vandal) content() []byte {
	switch v.r.IntN(12) {
	case 0:
		return nil
	case 1:
		return make([]byte, 1<<20+1) // above what is read into memory
	}
	content := make([]byte, v.r.IntN(3000))
	for i := range content {
		content[i] = byte(v.r.Uint32())
	}
	return content
}

// change does one thing; most of what cannot be done just fails.
func (v *vandal) change() {
	at := v.path()
	switch v.r.IntN(14) {
	case 0, 1, 2:
		_ = os.MkdirAll(filepath.Dir(at), 0o755)
		_ = os.WriteFile(at, v.content(), 0o644)
	case 3:
		_ = os.MkdirAll(at, 0o750)
	case 4:
		_ = os.RemoveAll(at)
	case 5:
		_ = os.Symlink([]string{"/etc/passwd", "..", "a", "missing", v.root}[v.r.IntN(5)], at)
	case 6:
		_ = unix.Chmod(at, []uint32{0o600, 0o644, 0o755, 0o4755, 0o1777, 0o444, 0o555, 0o500}[v.r.IntN(8)])
	case 7:
		_ = os.Rename(at, v.path())
	case 8:
		_ = os.Link(at, v.path())
	case 9:
		_ = os.Truncate(at, int64(v.r.IntN(5000)))
	case 10:
		if f, err := os.OpenFile(at, os.O_WRONLY|os.O_APPEND, 0); err == nil {
			_, _ = f.Write(v.content())
			_ = f.Close()
		}
	case 11:
		_ = os.Remove(at)
	case 12:
		if info, err := os.Lstat(at); err == nil && info.Mode().IsRegular() {
			_ = os.WriteFile(at, []byte("short"), 0o644)
			_ = os.Chtimes(at, info.ModTime(), info.ModTime()) // a program that hides its change
		}
	case 13:
		_ = os.RemoveAll(at)
		_ = os.MkdirAll(filepath.Join(at, "deep", "er"), 0o755)
		_ = os.WriteFile(filepath.Join(at, "deep", "er", "file"), v.content(), 0o600)
	}
}

func (v *vandal) rage(times int) {
	for range times {
		v.change()
	}
}

func asJSON(t *testing.T, value any) string {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}
