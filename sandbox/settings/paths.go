package settings

import (
	"cmp"
	"path"
	"slices"
	"strings"

	"github.com/toolward/toolward/sandbox"

	"github.com/toolward/toolward/place"
)

// The codes of a path that cannot be mapped, besides CodeEscape and CodeReadOnly.
const (
	CodeEmptyPath sandbox.Code = "empty_path"
	CodeBadPath   sandbox.Code = "bad_path"
)

// MountTable says what of the host stands where inside.
type MountTable struct {
	workdir string
	home    string          // the workdir where no mount is one
	mounts  []sandbox.Mount // the longest target first; of equal ones that which is seen
	sources []sandbox.Mount // the longest source first; of equal ones binds first
}

// Location is a path as both sides know it.
type Location struct {
	Inside   string            `json:"containerPath"`
	Host     string            `json:"hostPath"`
	Relative string            `json:"relativePath"` // from the workdir; Inside where it is not below it
	Writable bool              `json:"writable"`
	Mount    sandbox.MountKind `json:"mount"`
}

// mountRank orders mounts at one target: a bind hides the workspace that it is mounted over.
var mountRank = map[sandbox.MountKind]int{sandbox.MountBind: 0, sandbox.MountHome: 1, sandbox.MountTools: 2, sandbox.MountCache: 2, sandbox.MountAgent: 3, sandbox.MountWorkspace: 4}

// NewMountTable makes a table of mounts.
func NewMountTable(workdir string, mounts []sandbox.Mount) *MountTable {
	t := &MountTable{workdir: path.Clean(workdir)}
	t.home = t.workdir
	for _, m := range mounts {
		m.Source, m.Target, m.Pinned = path.Clean(m.Source), path.Clean(m.Target), nil
		same := func(o sandbox.Mount) bool { return o.Source == m.Source && o.Target == m.Target }
		if !slices.ContainsFunc(t.mounts, same) {
			t.mounts = append(t.mounts, m)
		}
		if m.Kind == sandbox.MountHome {
			t.home = m.Target
		}
	}
	t.sources = slices.Clone(t.mounts)
	slices.SortStableFunc(t.mounts, func(a, b sandbox.Mount) int {
		return cmp.Or(len(b.Target)-len(a.Target), mountRank[a.Kind]-mountRank[b.Kind])
	})
	slices.SortStableFunc(t.sources, func(a, b sandbox.Mount) int {
		return cmp.Or(len(b.Source)-len(a.Source), mountRank[a.Kind]-mountRank[b.Kind])
	})
	return t
}

// Map finds a path that a call names: one inside, one of the host that is mounted, or one relative to cwd (a directory
// inside; "" is the workdir). write says that it will be written to. files follows the symbolic links above a path of
// the host; nil takes it as it is written.
func (t *MountTable) Map(given, cwd string, write bool, files FileSystem) (Location, error) {
	p, err := t.clean(given)
	if err != nil {
		return Location{}, err
	}
	if !path.IsAbs(cwd) {
		cwd = t.workdir
	}
	absolute := path.IsAbs(p)
	if !absolute {
		p = path.Join(cwd, p)
	}
	p = path.Clean(p)
	m := t.inside(p)
	if m == nil && absolute {
		p, m = t.fromHost(p, files)
	} else if absolute && m.Kind == sandbox.MountHome {
		// A path of the machine below the real home: it may lead through a link there to what is mounted.
		if other, found := t.fromHost(p, files); found != nil && found.Kind != sandbox.MountHome {
			p, m = other, found
		}
	}
	if m == nil {
		return Location{}, sandbox.Errorf(sandbox.CodeEscape, "Path escapes sandbox root (%s): %s", t.workdir, given)
	}
	if write && !m.Writable {
		return Location{}, sandbox.Errorf(sandbox.CodeReadOnly, "%s is read-only in the sandbox", p)
	}
	return Location{
		Inside: p, Host: path.Join(m.Source, strings.TrimPrefix(p, m.Target)), Relative: t.relative(p),
		Writable: m.Writable, Mount: m.Kind,
	}, nil
}

// clean takes off what people and models put around paths.
func (t *MountTable) clean(p string) (string, error) {
	if strings.ContainsRune(p, 0) {
		return "", sandbox.Errorf(CodeBadPath, "the path has a NUL character")
	}
	p = strings.TrimPrefix(p, "@")
	if p == "" {
		return "", sandbox.Errorf(CodeEmptyPath, "the path is empty")
	}
	p = strings.Map(func(r rune) rune {
		if r == 0xa0 || r >= 0x2000 && r <= 0x200a || r == 0x202f || r == 0x205f || r == 0x3000 {
			return ' '
		}
		return r
	}, p)
	if p == "~" || strings.HasPrefix(p, "~/") {
		// The gateway's own would be a path that nothing inside can reach.
		p = t.home + p[1:]
	}
	return p, nil
}

// inside is the mount that a path inside lies in; nil is none.
func (t *MountTable) inside(p string) *sandbox.Mount {
	for i := range t.mounts {
		if place.Within(p, t.mounts[i].Target) {
			return &t.mounts[i]
		}
	}
	return nil
}

// Shows reports whether a path inside is of a mount: what another one hides is not there.
func (t *MountTable) Shows(m *sandbox.Mount, inside string) bool {
	seen := t.inside(inside)
	return seen != nil && seen.Source == path.Clean(m.Source) && seen.Target == path.Clean(m.Target)
}

// fromHost finds a path of the host inside. Where something else is mounted over it, it is not there.
func (t *MountTable) fromHost(p string, files FileSystem) (string, *sandbox.Mount) {
	if dir, err := Resolve(files, path.Dir(p)); err == nil {
		p = path.Join(dir, path.Base(p))
	} else {
		return "", nil
	}
	i := slices.IndexFunc(t.sources, func(m sandbox.Mount) bool { return place.Within(p, m.Source) })
	if i < 0 {
		return "", nil
	}
	found := &t.sources[i]
	inside := path.Join(found.Target, strings.TrimPrefix(p, found.Source))
	seen := t.inside(inside)
	if seen == nil || seen.Source != found.Source || seen.Target != found.Target {
		return "", nil
	}
	return inside, seen
}

// relative is the path from the workdir. One that begins with two points would read as if it led out.
func (t *MountTable) relative(p string) string {
	rest := strings.TrimPrefix(strings.TrimPrefix(p, t.workdir), "/")
	if !place.Within(p, t.workdir) || strings.HasPrefix(rest, "..") {
		return p
	}
	return rest
}

// Mounts is what a sandbox has of the host, in the order of mounting.
func Mounts(access Access, workdir, workspaceDir, agentDir string, binds []Bind) []sandbox.Mount {
	mounts := []sandbox.Mount{{Kind: sandbox.MountWorkspace, Source: workspaceDir, Target: workdir, Writable: access != AccessReadOnly}}
	if access == AccessReadOnly && agentDir != "" && agentDir != workspaceDir {
		mounts = append(mounts, sandbox.Mount{Kind: sandbox.MountAgent, Source: agentDir, Target: AgentTarget})
	}
	for _, b := range binds {
		mounts = append(mounts, sandbox.Mount{Kind: sandbox.MountBind, Source: b.Source, Target: b.Target, Writable: b.Writable, SELinux: b.SELinux})
	}
	return mounts
}

// Find says where on the host a clean path inside is; above is true for a directory that leads to mounts: whatever stands at its
// path on the host, or will once the sandbox is made, it is one inside.
func (t *MountTable) Find(inside string) (host string, above, ok bool) {
	leads := func(m sandbox.Mount) bool { return m.Target != inside && place.Within(m.Target, inside) }
	above = slices.ContainsFunc(t.mounts, leads)
	m := t.inside(inside)
	if m == nil {
		return "", above, false
	}
	// Of a mount over the workspace nothing is made beforehand: there the disk says what a path is.
	return path.Join(m.Source, strings.TrimPrefix(inside, m.Target)), above && m.Kind == sandbox.MountHome, true
}
