package place

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// inside shows a directory of this machine as /workspace.
type inside struct{ dir string }

func (v inside) Find(p string) (host string, above, ok bool) {
	if p == "/" {
		return "", true, false
	}
	if rest, found := strings.CutPrefix(p, "/workspace"); found && (rest == "" || rest[0] == '/') {
		return v.dir + rest, false, true
	}
	return "", false, false
}

func TestPathsInsideASandbox(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	must(t, os.MkdirAll(dir+"/src/.git/hooks", 0o755))
	must(t, os.WriteFile(dir+"/src/a", []byte("A"), 0o600))
	must(t, os.Symlink("/workspace/src/a", dir+"/absolute")) // means the sandbox's /workspace
	must(t, os.Symlink("src/a", dir+"/relative"))
	must(t, os.Symlink("/etc/passwd", dir+"/out"))
	must(t, os.Symlink("../../etc/passwd", dir+"/up"))
	must(t, os.Symlink(dir+"/src/a", dir+"/host")) // a path of this machine that is not there inside
	c, err := New(Layout{Workspace: "/workspace", Home: "/workspace", StateDir: "/.toolward", ConfigFile: "/.toolward/toolward.jsonc"})
	must(t, err)
	c = c.Through(inside{dir})
	for asked, want := range map[string]Resolved{
		"src/a":            {Real: "/workspace/src/a", Zone: Workspace, Kind: KindRegular},
		"/workspace/src/a": {Real: "/workspace/src/a", Zone: Workspace, Kind: KindRegular},
		"absolute":         {Real: "/workspace/src/a", Zone: Workspace, Kind: KindRegular, ViaLink: true},
		"relative":         {Real: "/workspace/src/a", Zone: Workspace, Kind: KindRegular, ViaLink: true},
		"src/new/file":     {Real: "/workspace/src/new/file", Zone: Workspace, Kind: KindMissing},
		"~/src":            {Real: "/workspace/src", Zone: Workspace, Kind: KindDirectory},
		".ssh/id_rsa":      {Real: "/workspace/.ssh/id_rsa", Zone: Secret, Kind: KindMissing},
		"src/.git/hooks/x": {Real: "/workspace/src/.git/hooks/x", Zone: Protected, Kind: KindMissing},
		"../workspace/src": {Real: "/workspace/src", Zone: Workspace, Kind: KindDirectory},
	} {
		got, err := c.Resolve("/workspace", asked)
		if err != nil || got.Real != want.Real || got.Zone != want.Zone || got.Kind != want.Kind || got.ViaLink != want.ViaLink {
			t.Errorf("%s: %+v, %v", asked, got, err)
		}
	}
	for _, asked := range []string{"out", "up", "host", "/etc/passwd", "../etc/passwd", dir + "/src/a", "/workspacex"} {
		if got, err := c.Resolve("/workspace", asked); !errors.Is(err, ErrNotMounted) {
			t.Errorf("%s: %+v, %v", asked, got, err)
		}
	}
	entry, err := c.ResolveEntry("/workspace", "out")
	if err != nil || entry.Kind != KindSymlink || entry.Real != "/workspace/out" {
		t.Errorf("the link itself: %+v, %v", entry, err)
	}
}
