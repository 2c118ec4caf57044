package ownfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestRead(t *testing.T) {
	for name, test := range map[string]struct {
		spoil func(path string) error
		want  string // in the error; "": it is read
	}{
		"a plain file":         {func(string) error { return nil }, ""},
		"readable by all":      {func(path string) error { return os.Chmod(path, 0o644) }, ""},
		"a directory by all":   {func(path string) error { return os.Chmod(filepath.Dir(path), 0o755) }, ""},
		"a link":               {func(path string) error { return errors.Join(os.Rename(path, path+"2"), os.Symlink(path+"2", path)) }, "is a link"},
		"a link to nothing":    {func(path string) error { return errors.Join(os.Remove(path), os.Symlink("nothing", path)) }, "is a link"},
		"two names":            {func(path string) error { return os.Link(path, path+"2") }, "second name"},
		"writable by a group":  {func(path string) error { return os.Chmod(path, 0o620) }, "chmod go-w"},
		"writable by all":      {func(path string) error { return os.Chmod(path, 0o602) }, "chmod go-w"},
		"a directory of all":   {func(path string) error { return os.Chmod(filepath.Dir(path), 0o1777) }, "chmod go-w"},
		"a pipe":               {func(path string) error { return errors.Join(os.Remove(path), unix.Mkfifo(path, 0o600)) }, "not a plain file"},
		"a directory":          {func(path string) error { return errors.Join(os.Remove(path), os.Mkdir(path, 0o700)) }, "not a plain file"},
		"too long":             {func(path string) error { return os.WriteFile(path, make([]byte, 101), 0o600) }, "larger than 100 bytes"},
		"as long as it may be": {func(path string) error { return os.WriteFile(path, make([]byte, 100), 0o600) }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "f")
			if err := errors.Join(os.WriteFile(path, []byte("text"), 0o600), os.Chmod(filepath.Dir(path), 0o700), test.spoil(path)); err != nil {
				t.Fatal(err)
			}
			content, err := Read(path, 100)
			if test.want == "" && (err != nil || len(content) == 0) || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("%q, %v", content, err)
			}
			if errors.Is(err, fs.ErrNotExist) {
				t.Error("it passes for a file that was never there")
			}
		})
	}
	if _, err := Read(filepath.Join(t.TempDir(), "f"), 100); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
}

func TestOwners(t *testing.T) {
	me := uint32(os.Geteuid())
	for uid, ok := range map[uint32]bool{0: true, me: true, me + 1: false, 65534: me == 65534} {
		if err := Check("f", &unix.Stat_t{Uid: uid, Mode: 0o600}); (err == nil) != ok {
			t.Errorf("uid %d: %v", uid, err)
		}
	}
}
