package place

import (
	"os"
	"path/filepath"
	"testing"
)

// A program that is reached through a link can be exchanged where it lies and where the link stands.
func TestLinksToOwnFilesAreOwn(t *testing.T) {
	t.Parallel()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	workspace, bin := filepath.Join(dir, "ws"), filepath.Join(dir, "bin")
	program, link := filepath.Join(bin, "guard"), filepath.Join(workspace, "guard")
	for _, err := range []error{
		os.MkdirAll(workspace, 0o700), os.MkdirAll(bin, 0o700), os.WriteFile(program, nil, 0o700), os.Symlink(program, link),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	missing := filepath.Join(workspace, "later")
	layout, err := Layout{Workspace: workspace, Home: dir, StateDir: filepath.Join(dir, "state"), ConfigFile: filepath.Join(dir, "state", "c"), Own: []string{link, missing}}.Canonical()
	if err != nil {
		t.Fatal(err)
	}
	c := classifier(t, layout)
	for path, want := range map[string]Zone{program: Self, link: Self, missing: Self, filepath.Join(workspace, "other"): Workspace} {
		if got := c.Classify(path); got != want {
			t.Errorf("%s is %s, want %s", path, got, want)
		}
	}
}
