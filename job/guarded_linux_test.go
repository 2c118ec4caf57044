package job

import (
	"os"
	"path/filepath"
	"testing"
)

func TestBelongsToRoot(t *testing.T) {
	dir := t.TempDir()
	for name, target := range map[string]string{"own": "", "link": "/bin/sh", "loop": dir + "/loop", "sub/x": ""} {
		path := filepath.Join(dir, name)
		err := os.MkdirAll(filepath.Dir(path), 0o755)
		if err == nil && target == "" {
			err = os.WriteFile(path, nil, 0o755)
		} else if err == nil {
			err = os.Symlink(target, path)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for path, want := range map[string]bool{
		"/bin/sh": true, "/usr/../bin//./sh": true, // "sh" and, on many systems, "bin" are links
		"/bin": false, "/bin/no-such-program": false, "/bin/sh/x": false, "/dev/null": false, "/": false, "": false,
		"/proc/self/exe":          false, // of this test, which is not root's alone
		dir + "/own":              false,
		dir + "/link":             false, // where it leads to is root's, but the link can be turned
		dir + "/loop":             false,
		dir + "/sub/x":            false,
		dir + "/sub/../../../bin": false,
	} {
		if got := belongsToRoot(path); got != want {
			t.Errorf("%q: %v", path, got)
		}
	}
}
