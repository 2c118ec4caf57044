package companion_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/toolward/toolward/companion"
)

func TestFind(t *testing.T) {
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("no Go toolchain to build it with")
	}
	t.Setenv("XDG_CACHE_HOME", t.TempDir()) // nothing there yet
	for range 2 {                           // the second time it is up to date
		found, err := companion.Find(t.Context(), "toolward-inside")
		if err != nil {
			t.Fatal(err)
		}
		if info, err := os.Stat(found.Path); err != nil || info.Mode()&0o111 == 0 || len(found.Args) > 0 {
			t.Fatalf("%+v, %v", found, err)
		}
	}
	if _, err := companion.Find(t.Context(), "toolward-none"); !errors.Is(err, companion.ErrTemporary) {
		t.Errorf("a test stood in for a program: %v", err)
	}
}

func TestTemporary(t *testing.T) {
	for path, want := range map[string]bool{
		filepath.Join(os.TempDir(), "x"):         true,
		os.TempDir() + "-not/x":                  false,
		"/home/me/go-build123/b001/exe/toolward": true,
		"/usr/local/bin/toolward":                false,
	} {
		if companion.Temporary(path) != want {
			t.Errorf("%s: %v", path, !want)
		}
	}
}
