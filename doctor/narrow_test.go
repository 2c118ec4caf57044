package doctor

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// Between the look and the change somebody else may put a link where the file was.
func TestNarrowFollowsNoLinks(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	target, link := filepath.Join(dir, "target"), filepath.Join(dir, "link")
	if err := os.WriteFile(target, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(target, 0o444); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(target, link); err != nil {
		t.Fatal(err)
	}
	for path, seen := range map[string]fs.FileMode{link: 0o444, target: 0o666} {
		if err := narrow(path, seen, 0o600); err == nil {
			t.Errorf("%s was changed", path)
		}
	}
	if info, err := os.Stat(target); err != nil || info.Mode().Perm() != 0o444 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if err := narrow(target, 0o444, 0o400); err != nil {
		t.Error(err)
	}
}
