package fleet

import (
	"os"
	"path/filepath"

	"github.com/toolward/toolward/sandbox/settings"
)

// stands reports whether the workspace of a request is still what a sandbox shows of it: at its path, by whatever links, is the
// directory that was mounted. Otherwise a link that was led elsewhere, or a project that was removed and cloned again, would have calls judged
// by one directory and run in another, or all of them refused.
func stands(q settings.Request, layout *settings.Layout, mounted os.FileInfo) bool {
	if layout.AgentDir == "" {
		return true
	}
	real, err := filepath.EvalSymlinks(q.Workspace)
	if err != nil || real != layout.AgentDir {
		return false
	}
	now, err := os.Stat(real)
	return err == nil && (mounted == nil || os.SameFile(now, mounted))
}

// mountedWorkspace is the agent's directory as a plan mounts it; nil if it does not, or nobody can tell.
func mountedWorkspace(plan *settings.Plan) os.FileInfo {
	for i := range plan.Spec.Mounts {
		if m := &plan.Spec.Mounts[i]; m.Source == plan.AgentDir && m.Pinned != nil {
			if info, err := m.Pinned.Stat(); err == nil {
				return info
			}
		}
	}
	return nil
}

// replaced reports whether the sandbox that runs shows another directory at the path of the workspace. Its hash does not tell: that is of
// paths.
func (k *making) replaced(plan *settings.Plan) bool {
	k.m.mu.Lock()
	before := k.box.workspace
	k.m.mu.Unlock()
	now := mountedWorkspace(plan)
	return before != nil && now != nil && !os.SameFile(before, now)
}

// readyFor is the box that was found right for this very request before, if it still is; nil if there is none. It looks at the disk, so
// nobody holds the mutex.
func (m *Manager) readyFor(q settings.Request) (r readyBox, layout *settings.Layout) {
	m.mu.Lock()
	r, ok := m.ready[q]
	if !ok || r.box.layout == nil {
		m.mu.Unlock()
		return readyBox{}, nil
	}
	layout, mounted := r.box.layout, r.box.workspace
	m.mu.Unlock()
	if !stands(q, layout, mounted) {
		return readyBox{}, nil
	}
	return r, layout
}
