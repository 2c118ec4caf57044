package socket

import (
	"os"
	"path/filepath"
	"testing"
)

// TestASharedSocketIsInADirectoryOfOurs: everybody may connect, and nobody may put another socket in its place.
func TestASharedSocketIsInADirectoryOfOurs(t *testing.T) {
	dir := directory(t)
	path := filepath.Join(dir, "s.sock")
	for _, mode := range []os.FileMode{0o777, 0o775, 0o757, 0o777 | os.ModeSticky} {
		if err := os.Chmod(dir, mode); err != nil {
			t.Fatal(err)
		}
		if l, err := ListenShared(path); err == nil {
			_ = l.Close()
			t.Errorf("listens in a directory of mode %o", mode)
		}
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if l, err := Listen(path); err == nil {
		_ = l.Close()
		t.Error("a socket of one user is in a directory that others enter")
	}
	l, err := ListenShared(path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o666 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
}
