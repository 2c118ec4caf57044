package gitindex

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
)

// TestWalk reads what git writes, and nothing else.
func TestWalk(t *testing.T) {
	dir := t.TempDir()
	git := func(args ...string) {
		t.Helper()
		if out, err := exec.Command("git", append([]string{"-C", dir}, args...)...).CombinedOutput(); err != nil {
			t.Fatalf("git %v: %s", args, out)
		}
	}
	paths := []string{"-o.git", "a b", "src/a", "src/ab", "src/\xff", "ä/ö"}
	git("init", "-q")
	for _, p := range paths {
		if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(p)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, p), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	git("add", ".")
	index := filepath.Join(dir, ".git", "index")
	walk := func(data []byte) (found []string, whole bool) {
		whole = Walk(data, func(path []byte) bool { found = append(found, string(path)); return true })
		return found, whole
	}
	for _, version := range []string{"2", "3", "4"} {
		git("update-index", "--index-version", version)
		if version == "3" {
			git("update-index", "--skip-worktree", "src/a") // which needs more flags
		}
		data, err := os.ReadFile(index)
		if err != nil {
			t.Fatal(err)
		}
		if found, whole := walk(data); !whole || !slices.Equal(found, paths) {
			t.Errorf("version %s: %q, %v", version, found, whole)
		}
		end := 12 // where the entries end: all that was cut off before is damage
		for n := range data {
			if found, whole := walk(data[:n]); whole && !slices.Equal(found, paths) {
				t.Fatalf("version %s, cut off after %d bytes: %q", version, n, found)
			} else if whole {
				end = n
				break
			}
		}
		if end == 12 {
			t.Errorf("version %s: nothing is whole", version)
		}
	}
	git("update-index", "--split-index")
	data, err := os.ReadFile(index)
	if err != nil {
		t.Fatal(err)
	}
	if found, whole := walk(data); whole {
		t.Errorf("an index in two files: %q", found)
	}
}
