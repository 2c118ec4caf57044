package settings

import (
	"context"
	"os"

	"github.com/toolward/toolward/sandbox"
	"github.com/toolward/toolward/sandbox/protected"
)

// Preview is what a container engine would be asked for, without making anything on this machine. The hash is not known before.
func (r *Resolved) Preview(ctx context.Context, q Request) (*Plan, error) {
	layout, err := r.Layout(Site{Engine: sandbox.EngineDocker}, q)
	if err != nil {
		return nil, err
	}
	plan, err := r.draft(sandbox.EngineDocker, layout)
	if err != nil {
		return nil, err
	}
	s, v := plan.Spec, r.view(sandbox.EngineDocker)
	if s.Network.Mode, err = ParseNetwork(v.Network, true); err != nil {
		return nil, err
	}
	if s.Network.Mode == sandbox.NetworkEgress {
		s.Network.Mode = sandbox.NetworkNone // the proxy is a socket, and listens for sandboxes of the gateway only
	}
	s.Workdir, s.Mounts = layout.Workdir, layout.Mounts()
	if s.User = likelyUser(layout.WorkspaceDir, layout.Access); v.User != "" {
		if s.User, err = ParseUser(v.User); err != nil {
			return nil, err
		}
	}
	files, err := r.systemFiles(sandbox.EngineDocker, s)
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		if _, err := os.Stat(f.source); err == nil { // a container engine makes a directory of what is not there
			s.Mounts = append(s.Mounts, f.mount())
		}
	}
	if !r.AllowProtected {
		s.Protected, err = layout.protected(ctx)
	}
	return plan, err
}

// protected are the paths inside that would be read-only. Of a directory that is not there yet, nothing is.
func (l *Layout) protected(ctx context.Context) ([]string, error) {
	mounts := Mounts(l.Access, l.Workdir, l.WorkspaceDir, l.AgentDir, l.Binds)
	for i := range mounts {
		if f, err := pin(mounts[i].Source); err == nil {
			mounts[i].Pinned = f
			defer f.Close()
		}
	}
	s, protected, err := protected.NewSurvey(ctx, mounts, l.Table.Shows, false)
	if err != nil {
		return nil, err
	}
	s.Close()
	return protected, nil
}

// likelyUser is who would run inside, as far as it can be told before the directory is made.
func likelyUser(dir string, access Access) sandbox.User {
	u := sandbox.User{UID: os.Getuid(), GID: os.Getgid()}
	if u.UID == 0 && access != AccessReadWrite {
		u = sandbox.User{UID: plainUser, GID: plainUser}
	}
	if f, err := pin(dir); err == nil {
		defer f.Close()
		if owner, err := ownerOf(f); err == nil {
			u = owner
		}
	}
	return u
}
