package store

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// smallDisk is a file system of a few megabytes.
func smallDisk(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	mount(t, dir, "tmpfs", 0, "size=3m")
	return dir
}

// readOnly makes a home that cannot be written, for root either.
func readOnly(t *testing.T, dir string) string {
	t.Helper()
	if os.Geteuid() != 0 {
		if err := os.Chmod(dir, 0o500); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	mount(t, dir, "tmpfs", unix.MS_RDONLY, "mode=0700")
	return dir
}

func mount(t *testing.T, dir, kind string, flags uintptr, data string) {
	t.Helper()
	if err := unix.Mount("toolward-test", dir, kind, flags, data); err != nil {
		t.Skipf("a file system of our own is needed, which takes root and CAP_SYS_ADMIN: %v", err)
	}
	t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
}
