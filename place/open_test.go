//go:build unix

package place

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
)

func (w world) resolve(t testing.TB, p string) Resolved {
	t.Helper()
	r, err := w.Resolve(w.ws, p)
	must(t, err)
	return r
}

func (w world) content(t testing.TB, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(w.root, name))
	must(t, err)
	return string(data)
}

func TestReadFile(t *testing.T) {
	w := newWorld(t)
	content, err := ReadFile(w.resolve(t, "f"), 10)
	if err != nil || string(content.Data) != "F" || content.Stamp.Size != 1 || content.Mode == 0 {
		t.Fatalf("%q %+v %v", content.Data, content, err)
	}
	must(t, os.Truncate(w.ws+"/a/b/g", 20<<30)) // sparse
	if _, err := ReadFile(w.resolve(t, "a/b/g"), 1<<20); !errors.Is(err, ErrTooLarge) {
		t.Errorf("20 GiB: %v", err)
	}
	if _, err := ReadFile(w.resolve(t, "none"), 10); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("missing: %v", err)
	}
	if _, err := Open(w.resolve(t, "a")); !errors.Is(err, ErrNotFile) {
		t.Errorf("directory: %v", err)
	}
	if _, err := Open(Resolved{}); err == nil {
		t.Error("the zero Resolved was opened")
	}
	if _, err := Open(Resolved{Kind: KindRegular, Real: "../etc/passwd"}); !errors.Is(err, ErrBadPath) {
		t.Errorf("made up: %v", err)
	}
}

func TestSwapsAfterResolve(t *testing.T) {
	type act func(t *testing.T, w world, r Resolved) error
	read := func(_ *testing.T, _ world, r Resolved) error { _, err := ReadFile(r, 100); return err }
	write := func(_ *testing.T, _ world, r Resolved) error {
		return WriteFile(r, []byte("new"), WriteOptions{Parents: true})
	}
	remove := func(_ *testing.T, _ world, r Resolved) error { return Remove(r) }
	move := func(t *testing.T, w world, r Resolved) error { return Rename(r, w.resolve(t, "moved"), false) }
	linkDir := func(t *testing.T, w world) {
		must(t, os.Rename(w.ws+"/a", w.ws+"/a.old"))
		must(t, os.MkdirAll(w.root+"/outside/b", 0o755))
		w.write(t, "outside/b/g", "SECRET")
		w.link(t, "../outside", "ws/a")
	}
	linkFile := func(t *testing.T, w world) {
		must(t, os.Remove(w.ws+"/a/b/g"))
		w.link(t, "ROOT/outside/secret", "ws/a/b/g")
	}
	fifo := func(t *testing.T, w world) {
		must(t, os.Remove(w.ws+"/a/b/g"))
		must(t, syscall.Mkfifo(w.ws+"/a/b/g", 0o600))
	}
	hard := func(t *testing.T, w world) {
		must(t, os.Remove(w.ws+"/a/b/g"))
		must(t, os.Link(w.root+"/outside/secret", w.ws+"/a/b/g"))
	}
	for _, tc := range []struct {
		name string
		swap func(*testing.T, world)
		act  act
		want error
	}{
		{"directory becomes link, read", linkDir, read, ErrChanged},
		{"directory becomes link, write", linkDir, write, ErrChanged},
		{"directory becomes link, remove", linkDir, remove, ErrChanged},
		{"directory becomes link, move", linkDir, move, ErrChanged},
		{"file becomes link, read", linkFile, read, ErrChanged},
		{"file becomes link, write", linkFile, write, ErrChanged},
		{"file becomes link, remove", linkFile, remove, ErrChanged},
		{"file becomes link, move", linkFile, move, ErrChanged},
		{"file becomes FIFO, read", fifo, read, ErrChanged},
		{"file becomes FIFO, write", fifo, write, ErrChanged},
		{"file becomes hard link, write", hard, write, ErrLinked},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := newWorld(t)
			r := w.resolve(t, "a/b/g")
			tc.swap(t, w)
			if err := tc.act(t, w, r); !errors.Is(err, tc.want) {
				t.Errorf("got %v, want %v", err, tc.want)
			}
			if got := w.content(t, "outside/secret"); got != "SECRET" {
				t.Errorf("outside was changed to %q", got)
			}
			noTemporaries(t, w.root)
		})
	}
}

func noTemporaries(t *testing.T, root string) {
	t.Helper()
	must(t, filepath.WalkDir(root, func(p string, _ os.DirEntry, err error) error {
		if strings.Contains(p, temporary) {
			t.Errorf("left behind: %s", p)
		}
		return err
	}))
}

func TestWriteFile(t *testing.T) {
	w := newWorld(t)
	must(t, WriteFile(w.resolve(t, "x/y/z"), []byte("1"), WriteOptions{Parents: true}))
	if got := w.content(t, "ws/x/y/z"); got != "1" {
		t.Errorf("new file: %q", got)
	}
	must(t, os.Chmod(w.ws+"/f", 0o750))
	must(t, WriteFile(w.resolve(t, "f"), []byte("2"), WriteOptions{}))
	info, err := os.Stat(w.ws + "/f")
	must(t, err)
	if info.Mode().Perm() != 0o750 || w.content(t, "ws/f") != "2" {
		t.Errorf("replaced: %v %q", info.Mode(), w.content(t, "ws/f"))
	}

	t.Run("missing directory", func(t *testing.T) {
		if err := WriteFile(w.resolve(t, "no/dir"), nil, WriteOptions{}); !errors.Is(err, os.ErrNotExist) {
			t.Error(err)
		}
	})
	t.Run("appeared meanwhile", func(t *testing.T) {
		r := w.resolve(t, "late")
		w.write(t, "ws/late", "theirs")
		if err := WriteFile(r, []byte("ours"), WriteOptions{}); !errors.Is(err, ErrChanged) {
			t.Error(err)
		}
		if got := w.content(t, "ws/late"); got != "theirs" {
			t.Errorf("overwritten with %q", got)
		}
	})
	t.Run("lost update", func(t *testing.T) {
		r := w.resolve(t, "f")
		content, err := ReadFile(r, 100)
		must(t, err)
		w.write(t, "ws/f", "theirs")
		if err := WriteFile(r, []byte("ours"), WriteOptions{Unchanged: &content.Stamp}); !errors.Is(err, ErrChanged) {
			t.Error(err)
		}
		content, err = ReadFile(r, 100)
		must(t, err)
		must(t, WriteFile(r, []byte("ours"), WriteOptions{Unchanged: &content.Stamp}))
	})
	t.Run("special", func(t *testing.T) {
		must(t, syscall.Mkfifo(w.ws+"/fifo", 0o600))
		if err := WriteFile(w.resolve(t, "fifo"), nil, WriteOptions{}); !errors.Is(err, ErrNotFile) {
			t.Error(err)
		}
	})
	noTemporaries(t, w.root)
}

func TestRemoveAndRename(t *testing.T) {
	w := newWorld(t)
	w.link(t, "ROOT/outside/secret", "ws/link")
	entry := func(p string) Resolved {
		r, err := w.ResolveEntry(w.ws, p)
		must(t, err)
		return r
	}
	must(t, Remove(entry("link")))
	if w.content(t, "outside/secret") != "SECRET" {
		t.Error("removing a link touched its target")
	}
	must(t, Rename(entry("f"), entry("sub/dir/f2"), true))
	if w.content(t, "ws/sub/dir/f2") != "F" || (&Classifier{}).exists(w.ws+"/f") {
		t.Error("not moved")
	}
	must(t, MkdirAll(entry("empty/dir"), 0o755))
	must(t, MkdirAll(entry("empty/dir"), 0o755))
	must(t, Remove(entry("empty/dir")))
	if err := Remove(entry("a")); err == nil {
		t.Error("a directory with content was removed")
	}
	if err := Remove(entry("gone")); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
	if err := Rename(entry("a"), entry("a2"), false); !errors.Is(err, ErrNotFile) {
		t.Errorf("directory: %v", err)
	}
	if err := Rename(entry("a/b/g"), entry("sub/dir/f2"), false); !errors.Is(err, os.ErrExist) {
		t.Errorf("existing target: %v", err)
	}
	late := entry("late")
	w.write(t, "ws/late", "theirs")
	if err := Rename(entry("a/b/g"), late, false); !errors.Is(err, ErrChanged) || w.content(t, "ws/late") != "theirs" {
		t.Errorf("target that appeared: %v", err)
	}
}

func TestOpenDirAndChildren(t *testing.T) {
	w := newWorld(t)
	w.link(t, "ROOT/outside", "ws/a/out")
	w.link(t, "ROOT/outside/secret", "ws/a/b/leak")
	d, err := OpenDir(w.resolve(t, "a"))
	must(t, err)
	defer d.Close()
	sub, err := OpenChildDir(d, "b")
	must(t, err)
	defer sub.Close()
	f, err := OpenChild(sub, "g")
	must(t, err)
	defer f.Close()
	if f.Name() != w.ws+"/a/b/g" {
		t.Errorf("name %q", f.Name())
	}
	if _, err := OpenChildDir(d, "out"); !errors.Is(err, ErrChanged) {
		t.Errorf("link to a directory: %v", err)
	}
	if _, err := OpenChild(sub, "leak"); !errors.Is(err, ErrChanged) {
		t.Errorf("link to a file: %v", err)
	}
	for _, name := range []string{"", ".", "..", "../f", "x/y", "a\x00"} {
		if _, err := OpenChild(d, name); !errors.Is(err, ErrBadPath) {
			t.Errorf("child %q: %v", name, err)
		}
	}
}

// A directory flips between being itself and being a link to the outside while files in it are read, written,
// moved and removed. Not one byte may come from or go to the outside.
func TestRaceAgainstSwaps(t *testing.T) {
	w := newWorld(t)
	must(t, os.MkdirAll(w.root+"/outside/b", 0o755))
	w.write(t, "outside/b/g", "SECRET")
	w.link(t, "../outside", "ws/bait")
	rounds := 400
	if testing.Short() {
		rounds = 100
	}

	var stop atomic.Bool
	var flips sync.WaitGroup
	flips.Go(func() {
		for !stop.Load() {
			_ = os.Rename(w.ws+"/a", w.ws+"/real")
			_ = os.Rename(w.ws+"/bait", w.ws+"/a")
			_ = os.Rename(w.ws+"/a", w.ws+"/bait")
			_ = os.Rename(w.ws+"/real", w.ws+"/a")
		}
	})
	var reads, writes, refused int
	for range rounds {
		r, err := w.Resolve(w.ws, "a/b/g")
		if err != nil || r.Zone != Workspace {
			refused++
			continue
		}
		if content, err := ReadFile(r, 100); err == nil {
			reads++
			if string(content.Data) == "SECRET" {
				t.Fatal("read from outside")
			}
		}
		if err := WriteFile(r, []byte("MINE"), WriteOptions{}); err == nil {
			writes++
		}
		if r, err := w.Resolve(w.ws, "a/b/new"); err == nil && r.Zone == Workspace && r.Kind == KindMissing {
			if WriteFile(r, []byte("N"), WriteOptions{Parents: true}) == nil {
				r.Kind = KindRegular
				_ = Remove(r)
			}
		}
	}
	stop.Store(true)
	flips.Wait()
	if got := w.content(t, "outside/b/g"); got != "SECRET" {
		t.Fatalf("outside now says %q", got)
	}
	entries, err := os.ReadDir(w.root + "/outside/b")
	must(t, err)
	if len(entries) != 1 {
		t.Fatalf("outside got new entries: %v", entries)
	}
	t.Logf("%d reads and %d writes succeeded, %d resolutions led outside", reads, writes, refused)
	if reads == 0 && writes == 0 {
		t.Error("nothing succeeded: the test proves nothing")
	}
}
