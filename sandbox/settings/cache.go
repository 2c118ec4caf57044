package settings

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/toolward/toolward/sandbox"

	"github.com/toolward/toolward/place"
)

// CacheTarget is where programs keep what is theirs and not the project's: caches, downloads, settings. HOME is the
// workspace; where that is somebody's project, they would leave all of it there, for the next commit. It is a directory
// of the disk, so that building anew stays fast, and programs in it can be run, as tests are.
const CacheTarget = "/var/cache/sandbox"

// cacheEnv are the variables by which programs find it, and where in it each keeps its own. Most are of those that neither
// the configuration nor a call can set, because they choose what programs load: this directory is the sandbox's alone.
var cacheEnv = []Variable{
	{"XDG_CACHE_HOME", "cache"}, // pip, go build, uv, yarn, ccache, …
	{"XDG_CONFIG_HOME", "config"},
	{"XDG_DATA_HOME", "data"},
	{"XDG_STATE_HOME", "state"},
	{"GOPATH", "go"},
	{"GOTMPDIR", cacheTmp}, // nothing in /tmp can be run
	{"npm_config_cache", "npm"},
	{"CARGO_HOME", "cargo"},
	{"GRADLE_USER_HOME", "gradle"},
	{"PYTHONUSERBASE", "python"},
}

const cacheTmp = "tmp"

// cachesName is the directory of all caches in the one of private directories. No private directory has this name: those
// end in a hash.
const cachesName = "caches"

// cacheDir is the cache of a scope for a workspace, on the host. It is not that of another workspace: what a hostile
// project leaves there would be built into the next one.
func (r *Resolved) cacheDir(l *Layout) (string, error) {
	hidden := func(b Bind) bool { return place.Within(CacheTarget, b.Target) }
	if l.Access != AccessReadWrite || place.Within(CacheTarget, l.Workdir) || place.Within(l.Workdir, CacheTarget) || slices.ContainsFunc(l.Binds, hidden) {
		return "", nil
	}
	dir, err := Resolve(r.settings.around.Files, filepath.Join(r.WorkspaceRoot, cachesName, r.privateName(l.ScopeKey), sandbox.Slug(l.WorkspaceDir)))
	if err != nil {
		return "", sandbox.Errorf(sandbox.CodeFailed, "find the directory for caches: %v", err)
	}
	return dir, nil
}

// cacheVariables are the variables of the cache, but those that the configuration sets.
func (l *Layout) cacheVariables(set []Variable, strict bool) (own []Variable) {
	if l.CacheDir == "" || strict {
		return nil
	}
	base := CacheTarget
	if l.InPlace {
		base = l.CacheDir
	}
	for _, v := range cacheEnv {
		if !slices.ContainsFunc(set, func(other Variable) bool { return other.Name == v.Name }) {
			own = append(own, Variable{v.Name, path.Join(base, v.Value)})
		}
	}
	return own
}

// openCache makes the directory for caches, if there is to be one, and pins it.
func (p *Plan) openCache() (err error) {
	i := slices.IndexFunc(p.Spec.Mounts, func(m sandbox.Mount) bool { return m.Kind == sandbox.MountCache })
	if i < 0 {
		return nil
	}
	if err = prepareCache(p.CacheDir, p.Spec.User); err == nil {
		p.Spec.Mounts[i].Pinned, err = pin(p.CacheDir)
	}
	if err != nil {
		return sandbox.Errorf(sandbox.CodeFailed, "make the directory for caches: %v", err)
	}
	return nil
}

// prepareCache makes the directory, the user's alone. One that belonged to another user is of no use, and is begun anew.
func prepareCache(dir string, user sandbox.User) error {
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		return err
	}
	if info, err := os.Lstat(dir); err == nil && !belongs(info, user) {
		if err := removeCache(dir); err != nil {
			return err
		}
	}
	root, err := os.OpenRoot(filepath.Dir(dir))
	if err != nil {
		return err
	}
	defer root.Close()
	name := filepath.Base(dir)
	for _, made := range []string{name, filepath.Join(name, cacheTmp)} { // who is told a directory for temporary files wants it to be there
		switch err := root.Mkdir(made, 0o700); {
		case errors.Is(err, fs.ErrExist):
		case err != nil:
			return err
		default:
			if err := giveTo(root, made, &user); err != nil {
				return err
			}
		}
	}
	return nil
}

// belongs reports whether a directory can be used by a user of a sandbox.
func belongs(info fs.FileInfo, user sandbox.User) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return info.IsDir() && (os.Geteuid() != 0 || ok && int(stat.Uid) == user.UID && int(stat.Gid) == user.GID)
}

// removeCache removes a cache, or all those of a scope. Some programs take away their own right to remove what they have
// kept, which only matters to who is not root.
func removeCache(dir string) error {
	if err := os.RemoveAll(dir); err == nil || !errors.Is(err, fs.ErrPermission) {
		return err
	}
	root, err := os.OpenRoot(dir) // nothing below it is changed by a path that leads out
	if err != nil {
		return err
	}
	defer root.Close()
	err = fs.WalkDir(root.FS(), ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil || !e.IsDir() {
			return err
		}
		if info, err := e.Info(); err != nil || info.Mode().Perm()&0o700 == 0o700 {
			return err
		}
		if err := root.Chmod(name, 0o700); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	})
	return errors.Join(err, os.RemoveAll(dir))
}

// RemoveCaches removes the caches of a sandbox that was removed: whoever wants it anew wants them anew, too.
func (s *Settings) RemoveCaches(scopeKey string) error {
	r := s.ForScope(scopeKey)
	name := sandbox.Slug(scopeKey)
	if strings.TrimSpace(scopeKey) == string(ScopeShared) {
		name = string(ScopeShared)
	}
	if err := removeCache(filepath.Join(r.WorkspaceRoot, cachesName, name)); err != nil {
		return sandbox.Errorf(sandbox.CodeFailed, "remove the caches of %s: %v", scopeKey, err)
	}
	return nil
}
