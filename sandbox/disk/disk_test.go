package disk

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolward/toolward/sandbox/disk/usage"
)

func TestWatch(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, size int) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), make([]byte, size), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("before", 3<<20)
	w := Watch{sources: []string{dir}, limit: 2 << 20, before: usage.Of(dir)}
	write("own", 1<<20)
	if err := os.Link(filepath.Join(dir, "own"), filepath.Join(dir, "second-name")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/usr", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	if reason := w.breach(); reason != "" {
		t.Errorf("1 MiB of 2 was written: %s", reason)
	}
	write("more", 2<<20)
	if reason := w.breach(); !strings.Contains(reason, "3 MiB") {
		t.Errorf("3 MiB of 2 were written: %q", reason)
	}
}
