package config

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// TestUntrustedFile: what others can choose neither starts a gateway nor changes one, even where a change needs no person.
func TestUntrustedFile(t *testing.T) {
	for name, spoil := range map[string]func(path string) error{
		"a link into a workspace": func(path string) error { return errors.Join(os.Rename(path, path+"2"), os.Symlink(path+"2", path)) },
		"a second name":           func(path string) error { return os.Link(path, path+"2") },
		"others can write it":     func(path string) error { return os.Chmod(path, 0o622) },
		"others can replace it":   func(path string) error { return os.Chmod(filepath.Dir(path), 0o1777) },
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), FileName)
			applied := 0
			options := Options{Memory: &memory{}, Apply: func(*Loaded) error { applied++; return nil }}
			write := func(text string) {
				if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			write(`{"config": {"autoApply": true}}`)
			if err := os.Chmod(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			var last Event
			options.Notify = func(e Event) { last = e }
			live, err := Open(t.Context(), path, options)
			if err != nil {
				t.Fatal(err)
			}
			if write(`{"config": {"autoApply": true}, "teg": {"preset": "workspace"}}`); spoil(path) != nil {
				t.Fatal("cannot be spoiled")
			}
			live.Reload()
			if live.Current().File.TEG.Preset == "workspace" || live.Pending() != nil || last.Err == nil || applied != 1 {
				t.Errorf("it counts: %d applied, %v", applied, last)
			}
			if _, err := Open(t.Context(), path, options); err == nil {
				t.Error("a gateway starts with it")
			}
		})
	}
}
