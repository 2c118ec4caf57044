//go:build !linux

package store

import (
	"os"
	"testing"
)

func smallDisk(t *testing.T) string {
	t.Skip("a small file system can be mounted for a test on Linux only")
	return ""
}

func readOnly(t *testing.T, dir string) string {
	t.Helper()
	if os.Geteuid() == 0 {
		t.Skip("root can write everywhere")
	}
	if err := os.Chmod(dir, 0o500); err != nil {
		t.Fatal(err)
	}
	return dir
}
