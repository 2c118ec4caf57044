package settings

import (
	"path/filepath"
	"slices"

	"github.com/toolward/toolward/sandbox"
)

// Site is where a sandbox is made.
type Site struct {
	Engine string
	// InPlace is [Capabilities.InPlace]: paths inside are those of the host.
	InPlace bool
}

// Mounts is what a sandbox of this layout has of the host, in the order of mounting.
func (l *Layout) Mounts() []sandbox.Mount {
	mounts := Mounts(l.Access, l.Workdir, l.WorkspaceDir, l.AgentDir, l.Binds)
	if l.HomeDir != "" {
		// Binds come last: they may lie in it.
		mounts = slices.Insert(mounts, len(mounts)-len(l.Binds), sandbox.Mount{Kind: sandbox.MountHome, Source: l.HomeDir, Target: l.Home, Writable: true})
	}
	mounts = slices.Insert(mounts, len(mounts)-len(l.Binds), l.cacheMounts()...)
	for _, d := range l.Tools {
		mounts = slices.Insert(mounts, len(mounts)-len(l.Binds), sandbox.Mount{Kind: sandbox.MountTools, Source: d.Path, Target: d.Path})
	}
	if l.InPlace {
		for i := range mounts {
			mounts[i].Target = mounts[i].Source
		}
	}
	return mounts
}

// Identity is equal for layouts in which a judged call means the same: the same sandbox, with the same of this machine at
// the same paths.
func (l *Layout) Identity() string {
	return Hash(map[string]any{"name": l.Name, "scope": l.ScopeKey, "workdir": l.Workdir, "mounts": l.Mounts(), "offline": l.Offline})
}

// settle says what lies where once the directory of the workspace is known.
func (l *Layout) settle() {
	if l.InPlace {
		l.Workdir = l.WorkspaceDir
		if l.HomeDir != "" {
			l.Home = l.HomeDir
		}
	}
	l.Table = NewMountTable(l.Workdir, l.Mounts())
}

// MakeWorkspace makes the private directory, if the sandbox gets one.
func (r *Resolved) MakeWorkspace(l *Layout, engine string) error {
	if l.Access == AccessReadWrite {
		return nil
	}
	user := r.view(engine).User
	owner := &sandbox.User{UID: plainUser, GID: plainUser}
	if user != "" {
		u, err := ParseUser(user)
		if err != nil {
			return err
		}
		owner = &u
	}
	dir, err := preparePrivate(r.WorkspaceRoot, r.privateName(l.ScopeKey), l.AgentDir, owner)
	if err != nil {
		return err
	}
	if l.WorkspaceDir, err = filepath.EvalSymlinks(dir); err != nil {
		return sandbox.Errorf(sandbox.CodeFailed, "find the private directory: %v", err)
	}
	l.settle()
	return nil
}
