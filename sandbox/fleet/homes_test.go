package fleet

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/toolward/toolward/sandbox/settings"
)

// A sandbox that is removed takes its homes along, also those that nobody may write to.
func TestHomesGoWithTheirSandbox(t *testing.T) {
	w := newHome(t)
	m := manage(t, w, newFake("native"), settings.Config{})
	lease := m.lease(t, "s")
	dir, name := lease.Layout.HomeDir, lease.Layout.Name
	w.Write(t, filepath.Join(dir, "go/pkg/mod/x@v1/x.go"), "x")
	outside := w.Write(t, filepath.Join(w.Home, "kept", "f"), "x")
	if err := os.Symlink(filepath.Dir(outside), filepath.Join(dir, "out")); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(dir, "go/pkg/mod/x@v1"), 0o500); err != nil {
		t.Fatal(err)
	}
	lease.Release()
	if err := m.Stop(t.Context(), name, "test"); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "go")); err != nil {
		t.Errorf("a sandbox that only stopped has lost its home: %v", err)
	}
	if err := m.Remove(t.Context(), name, "test"); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Dir(dir)); !os.IsNotExist(err) {
		t.Errorf("the homes are still there: %v", err)
	}
	if _, err := os.Stat(outside); err != nil {
		t.Errorf("what a link led to: %v", err)
	}
}
