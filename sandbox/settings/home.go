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

// A sandbox has a home directory of its own, at the path of the real one, so that programs find there what they keep: caches,
// downloads, settings. Nothing of the real one is in it. It is a directory of the disk, so that building anew stays fast.

// strangerHome is the home inside where that of the gateway's user cannot be one.
const strangerHome = "/home/sandbox"

// homeTmp is where Go builds: what lies in /tmp counts as memory of the sandbox.
const homeTmp = ".cache/tmp"

// homesName is the directory of all homes in the one of private directories. No private directory has this name: those
// end in a hash.
const homesName = "homes"

// systemTargets are what a sandbox has of the system. Nothing of the agent's stands there, or around one of them.
var systemTargets = []string{
	"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/dev", "/proc", "/sys", "/run", "/tmp", "/var/tmp", ownTarget,
}

// hidesSystem reports whether a directory of the agent at a path would replace something of the system.
func hidesSystem(target string) bool {
	return badTarget(target) || place.Within(target, "/etc") || slices.ContainsFunc(systemTargets, func(dir string) bool { return place.Within(dir, target) })
}

// homeTarget is where the home is inside: where the gateway's user has it.
func (r *Resolved) homeTarget() string {
	home := path.Clean(r.settings.around.Home)
	if !path.IsAbs(home) || hidesSystem(home) || place.Within(home, "/usr") {
		return strangerHome
	}
	return home
}

// standsAtItself is where a directory of the machine is inside if nothing else is said: at its own path, so that "cd" into it,
// what compilers print and what file tools take are the same on both sides.
func standsAtItself(dir, home string, tmpfs []string) string {
	hides := func(entry string) bool {
		_, err := ParseTmpfs(entry, dir)
		return err != nil
	}
	if hidesSystem(dir) || place.Within(home, dir) || slices.ContainsFunc(tmpfs, hides) {
		return WorkspaceTarget
	}
	return dir
}

// workdirFor is where the workspace is inside.
func (r *Resolved) workdirFor(engine string, l *Layout) string {
	switch written := r.Workdir; {
	case engine == sandbox.EngineDocker && r.Docker.Workdir != "":
		return path.Clean(r.Docker.Workdir)
	case written != "":
		return path.Clean(written)
	case l.Access == AccessReadWrite:
		return standsAtItself(l.WorkspaceDir, r.homeTarget(), r.view(engine).Tmpfs)
	}
	return WorkspaceTarget // a private directory: nobody knows its path on the machine
}

// homeDir is the home of a scope for a workspace, on the host. It is not that of another workspace: what a hostile
// project leaves there would be built into the next one.
func (r *Resolved) homeDir(l *Layout) (string, error) {
	hidden := func(b Bind) bool { return place.Within(l.Home, b.Target) }
	if place.Within(l.Home, l.Workdir) || slices.ContainsFunc(l.Binds, hidden) {
		return "", nil
	}
	dir, err := Resolve(r.settings.around.Files, filepath.Join(r.WorkspaceRoot, homesName, r.privateName(l.ScopeKey), sandbox.Slug(l.WorkspaceDir)))
	if err != nil {
		return "", sandbox.Errorf(sandbox.CodeFailed, "find the home directory of the sandbox: %v", err)
	}
	return dir, nil
}

// openHome makes the home, if there is to be one, with the places of what is mounted in it, and pins it.
func (p *Plan) openHome() (err error) {
	i := slices.IndexFunc(p.Spec.Mounts, func(m sandbox.Mount) bool { return m.Kind == sandbox.MountHome })
	if i < 0 {
		return nil
	}
	var below []string
	for _, m := range p.Spec.Mounts {
		if m.Target != p.Home && place.Within(m.Target, p.Home) && !p.InPlace && isDirectory(m.Pinned) {
			below = append(below, strings.TrimPrefix(m.Target, p.Home+"/"))
		}
	}
	if err = prepareHome(p.HomeDir, p.Spec.User, append(below, homeTmp)); err == nil {
		p.Spec.Mounts[i].Pinned, err = pin(p.HomeDir)
	}
	if err != nil {
		return sandbox.Errorf(sandbox.CodeFailed, "make the home directory of the sandbox: %v", err)
	}
	return nil
}

func isDirectory(f *os.File) bool {
	if f == nil {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.IsDir()
}

// prepareHome makes the directory, the user's alone, and directories below it. One that belonged to another user is of no use,
// and is begun anew.
func prepareHome(dir string, user sandbox.User, below []string) error {
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		return err
	}
	if info, err := os.Lstat(dir); err == nil && !belongs(info, user) {
		if err := removeHome(dir); err != nil {
			return err
		}
	}
	above, err := os.OpenRoot(filepath.Dir(dir))
	if err != nil {
		return err
	}
	defer above.Close()
	if err := makeOwn(above, filepath.Base(dir), user); err != nil {
		return err
	}
	// Commands write below here: nothing is done by a path that leads out.
	home, err := above.OpenRoot(filepath.Base(dir))
	if err != nil {
		return err
	}
	defer home.Close()
	for _, name := range below {
		for i, c := range name + "/" {
			if c != '/' {
				continue
			}
			if err := makeOwn(home, name[:i], user); err != nil {
				return err
			}
		}
	}
	return nil
}

// makeOwn makes a directory the user's. Something else that stands there goes: a command has put a link or a file in the place
// where the workspace is mounted, and no sandbox would start any more, or its workspace would be elsewhere.
func makeOwn(root *os.Root, name string, user sandbox.User) error {
	info, err := root.Lstat(name)
	switch {
	case err == nil && info.IsDir():
		return nil
	case err == nil:
		err = root.Remove(name)
	case errors.Is(err, fs.ErrNotExist):
		err = nil
	}
	if err != nil {
		return err
	}
	if err := root.Mkdir(name, 0o700); err != nil {
		return err
	}
	return giveTo(root, name, &user)
}

// belongs reports whether a directory can be used by a user of a sandbox.
func belongs(info fs.FileInfo, user sandbox.User) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return info.IsDir() && (os.Geteuid() != 0 || ok && int(stat.Uid) == user.UID && int(stat.Gid) == user.GID)
}

// removeHome removes a home, or all those of a scope. Some programs take away their own right to remove what they have
// kept, which only matters to who is not root.
func removeHome(dir string) error {
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

// RemoveHomes removes the homes of a sandbox that was removed: whoever wants it anew wants them anew, too.
func (s *Settings) RemoveHomes(scopeKey string) error {
	r := s.ForScope(scopeKey)
	name := sandbox.Slug(scopeKey)
	if strings.TrimSpace(scopeKey) == string(ScopeShared) {
		name = string(ScopeShared)
	}
	if err := removeHome(filepath.Join(r.WorkspaceRoot, homesName, name)); err != nil {
		return sandbox.Errorf(sandbox.CodeFailed, "remove the homes of %s: %v", scopeKey, err)
	}
	return nil
}
