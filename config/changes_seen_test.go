package config

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestEveryWayToChangeTheFileIsSeen(t *testing.T) {
	write := func(path, text string) error { return os.WriteFile(path, []byte(text), 0o600) }
	for _, test := range []struct {
		name   string
		change func(path string) error
	}{
		{"written in place", func(path string) error { return write(path, `{"a":1}`) }},
		{"replaced, as editors do", func(path string) error {
			if err := write(path+"~", `{"b":1}`); err != nil {
				return err
			}
			return os.Rename(path+"~", path)
		}},
		{"removed", os.Remove},
		{"moved away", func(path string) error { return os.Rename(path, path+".old") }},
		{"replaced by a link", func(path string) error {
			if err := os.Remove(path); err != nil {
				return err
			}
			return os.Symlink(path+".elsewhere", path)
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), FileName)
			if err := write(path, `{}`); err != nil {
				t.Fatal(err)
			}
			changed, err := changes(t.Context(), path)
			if err != nil {
				t.Fatal(err)
			}
			if err := write(path+"-wal", "the daemon's own state"); err != nil {
				t.Fatal(err)
			}
			if err := test.change(path); err != nil {
				t.Fatal(err)
			}
			select {
			case _, ok := <-changed:
				if !ok {
					t.Error("the watch has ended")
				}
			case <-time.After(time.Minute):
				t.Error("not seen")
			}
		})
	}
}

func TestAWatchOfNothingIsAnError(t *testing.T) {
	if _, err := changes(t.Context(), filepath.Join(t.TempDir(), "absent", FileName)); err == nil {
		t.Error("a directory that is not there is watched")
	}
}
