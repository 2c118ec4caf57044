package settings

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/toolward/toolward/sandbox"

	"github.com/toolward/toolward/place"
)

// cacheOf is the mount of the cache, "" without one.
func cacheOf(p *Plan) string {
	i := slices.IndexFunc(p.Spec.Mounts, func(m sandbox.Mount) bool { return m.Kind == sandbox.MountCache })
	if i < 0 {
		return ""
	}
	return p.Spec.Mounts[i].Source
}

// Programs that work in somebody's project do not leave what is theirs in it.
func TestProgramsKeepTheirOwnBesideTheWorkspace(t *testing.T) {
	w := newWorld(t)
	plan, err := w.plan(t, sandbox.EngineNative, Config{Env: map[string]string{"GOTMPDIR": "/mine"}})
	if err != nil {
		t.Fatal(err)
	}
	dir := cacheOf(plan)
	if !place.Within(dir, filepath.Join(w.State, "sandboxes", cachesName, sandbox.Slug("agent:coder"))) {
		t.Fatalf("caches are in %q", dir)
	}
	if info, err := os.Stat(filepath.Join(dir, cacheTmp)); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("no directory for temporary files: %v %v", info, err)
	}
	for name, want := range map[string]string{
		"XDG_CACHE_HOME": CacheTarget + "/cache", "GOPATH": CacheTarget + "/go", "GOTMPDIR": "/mine", "HOME": "",
	} {
		if got := value(plan.Spec.Env, name); got != want {
			t.Errorf("%s=%s, want %q", name, got, want)
		}
	}
	if location, err := plan.Table.Map(CacheTarget+"/cache/x", "", true, nil); err != nil || location.Host != filepath.Join(dir, "cache/x") {
		t.Errorf("file tools: %+v, %v", location, err) // they have the rights of commands
	}

	project := w.Workspace
	w.Workspace = filepath.Dir(w.Write(t, filepath.Join(w.Home, "other", "f"), "x"))
	if plan, err = w.plan(t, sandbox.EngineNative, Config{}); err != nil {
		t.Fatal(err)
	}
	if other := cacheOf(plan); other == dir || other == "" {
		t.Errorf("two workspaces share the cache %q", other)
	}
	w.Workspace = project
	for name, c := range map[string]Config{
		"a private directory": {WorkspaceAccess: "none"}, "nothing can be written": {WorkspaceAccess: "ro"},
		"something else stands there": {Binds: []string{project + ":/var/cache"}},
	} {
		if plan, err = w.plan(t, sandbox.EngineNative, c); err != nil {
			t.Fatal(err)
		}
		if cacheOf(plan) != "" || value(plan.Spec.Env, "XDG_CACHE_HOME") != "" {
			t.Errorf("%s: there is a cache", name)
		}
	}
	if plan, err = w.plan(t, sandbox.EngineNative, Config{EnvStrict: new(true)}); err != nil || value(plan.Spec.Env, "XDG_CACHE_HOME") != "" {
		t.Errorf("only variables that every system has: %v %v", plan.Spec.Env, err)
	}
}

// value is that of a variable; the last one counts.
func value(env []string, name string) (v string) {
	for _, entry := range env {
		if rest, ok := strings.CutPrefix(entry, name+"="); ok {
			v = rest
		}
	}
	return v
}

func TestACacheOfAnotherUserIsBegunAnew(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("not run: only root gives files to others")
	}
	dir := filepath.Join(t.TempDir(), "caches", "a", "b")
	mine := filepath.Join(dir, "mine")
	for _, c := range []struct {
		user sandbox.User
		kept bool
	}{{sandbox.User{UID: 1234, GID: 1234}, false}, {sandbox.User{UID: 1234, GID: 1234}, true}, {sandbox.User{UID: 1235, GID: 1235}, false}} {
		if err := prepareCache(dir, c.user); err != nil {
			t.Fatal(err)
		}
		if info, err := os.Stat(dir); err != nil || !belongs(info, c.user) {
			t.Errorf("%+v: %v, %v", c.user, info, err)
		}
		if _, err := os.Stat(mine); (err == nil) != c.kept {
			t.Errorf("%+v: what was in it: %v", c.user, err)
		}
		if err := os.WriteFile(mine, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
