package allowlist

import (
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestFullDisk: what cannot be written whole changes nothing.
func TestFullDisk(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("mounting a small file system needs root")
	}
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=64k,mode=700"); err != nil {
		t.Skipf("mounting a small file system: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	a := Open(dir, Options{})
	defer a.Close()
	if err := allow(t, a, "main", "/before"); err != nil {
		t.Fatal(err)
	}
	hash := a.Current().Hash
	if err := allow(t, a, "main", "/"+strings.Repeat("x", 100<<10)); err == nil || !strings.Contains(err.Error(), "no space left") {
		t.Errorf("got %v", err)
	}
	if s := a.Current(); s.Hash != hash || s.Corrupt != nil {
		t.Errorf("%+v", s)
	}
	if got := names(t, a); len(got) != 2 {
		t.Errorf("left over: %q", got)
	}
	if err := allow(t, a, "main", "/after"); err != nil {
		t.Error(err)
	}
}

func TestPipeIsNotWaitedFor(t *testing.T) {
	a := openTest(t)
	put(t, a, "")
	if err := os.Remove(a.Path()); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mkfifo(a.Path(), 0o600); err != nil {
		t.Fatal(err)
	}
	if s := a.Current(); s.Corrupt == nil || !strings.Contains(s.Corrupt.Error(), "not a plain file") {
		t.Errorf("%+v", s)
	}
}
