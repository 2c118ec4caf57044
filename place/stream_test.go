//go:build unix

package place

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

func TestOutputStream(t *testing.T) {
	w := newWorld(t)
	put := func(r Resolved, text string, appending bool) error {
		f, err := OpenOutput(r, appending)
		if err != nil {
			return err
		}
		defer f.Close()
		_, err = f.WriteString(text)
		return err
	}
	fresh := w.resolve(t, "fresh")
	must(t, put(fresh, "first", false))
	must(t, put(fresh, "+", true)) // it was missing when it was resolved, and is there now
	if got := w.content(t, "ws/fresh"); got != "first+" {
		t.Errorf("appended: %q", got)
	}
	must(t, put(fresh, "b", false))
	if got := w.content(t, "ws/fresh"); got != "b" {
		t.Errorf("emptied: %q", got)
	}
	in, err := OpenInput(fresh)
	must(t, err)
	defer in.Close()
	if data, err := io.ReadAll(in); string(data) != "b" || err != nil {
		t.Errorf("read %q, %v", data, err)
	}
}

func TestStreamsRefuse(t *testing.T) {
	for _, test := range []struct {
		name string
		swap func(t *testing.T, path string, w world)
		want error
	}{
		{"symbolic link to a file outside", func(t *testing.T, path string, w world) { must(t, os.Symlink(w.root+"/victim", path)) }, ErrChanged},
		{"symbolic link to nothing", func(t *testing.T, path string, w world) { must(t, os.Symlink(w.root+"/none", path)) }, ErrChanged},
		{"hard link", func(t *testing.T, path string, w world) { must(t, os.Link(w.root+"/victim", path)) }, ErrLinked},
		{"fifo", func(t *testing.T, path string, _ world) { must(t, syscall.Mkfifo(path, 0o600)) }, nil},
		{"directory", func(t *testing.T, path string, _ world) { must(t, os.Mkdir(path, 0o700)) }, syscall.EISDIR},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t)
			must(t, os.WriteFile(w.root+"/victim", []byte("precious"), 0o600))
			r := w.resolve(t, "out")
			test.swap(t, filepath.Join(w.ws, "out"), w)
			for _, appending := range []bool{false, true} {
				f, err := OpenOutput(r, appending)
				if err == nil {
					f.Close()
				}
				if err == nil || test.want != nil && !errors.Is(err, test.want) {
					t.Errorf("opened for writing (append %v): %v", appending, err)
				}
			}
			if got := w.content(t, "victim"); got != "precious" {
				t.Errorf("the file outside holds %q", got)
			}
		})
	}
	if _, err := OpenOutput(Resolved{}, false); err == nil {
		t.Error("the zero Resolved was opened")
	}
	w := newWorld(t)
	r := w.resolve(t, "a/new")
	must(t, os.Rename(w.ws+"/a", w.ws+"/moved"))
	must(t, os.Symlink(w.ws+"/moved", w.ws+"/a"))
	if _, err := OpenOutput(r, false); !errors.Is(err, ErrChanged) {
		t.Errorf("through a link that replaced a directory: %v", err)
	}
	if _, err := OpenInput(r); !errors.Is(err, ErrChanged) {
		t.Errorf("read through a link that replaced a directory: %v", err)
	}
}

// A file where a directory should be is a mistake of the command; a link there is a swap.
func TestStreamBelowAFile(t *testing.T) {
	for name, c := range map[string]struct {
		make func(t *testing.T, dir string)
		want error
	}{
		"file":                {func(t *testing.T, dir string) { must(t, os.WriteFile(dir+"/a", nil, 0o600)) }, ErrBadPath},
		"link to a directory": {func(t *testing.T, dir string) { must(t, os.Symlink("/tmp", dir+"/a")) }, ErrChanged},
		"nothing":             {func(*testing.T, string) {}, fs.ErrNotExist},
	} {
		dir, err := filepath.EvalSymlinks(t.TempDir())
		must(t, err)
		c.make(t, dir)
		for _, open := range []func(Resolved) (*os.File, error){OpenInput, func(r Resolved) (*os.File, error) { return OpenOutput(r, false) }} {
			_, err := open(Resolved{Real: dir + "/a/b", Zone: Workspace, Kind: KindMissing})
			if !errors.Is(err, c.want) || c.want != ErrChanged && errors.Is(err, ErrChanged) {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}
