package settings

import (
	"path"
	"path/filepath"
	"slices"

	"github.com/toolward/toolward/sandbox"

	"github.com/toolward/toolward/place"
	"github.com/toolward/toolward/sandbox/task"
	"github.com/toolward/toolward/sandbox/toolchain"
)

// Request says who needs a sandbox.
type Request struct {
	Agent     string
	Session   string
	Workspace string // absolute directory that is the agent's own; "" if it has none
}

// Layout is where everything of a sandbox is, before anything is made. It is enough to judge paths.
type Layout struct {
	Name         string // of the sandbox
	ScopeKey     string
	Access       Access
	Workdir      string // inside
	WorkspaceDir string // of the host, mounted at Workdir
	AgentDir     string // the agent's workspace; "" if it has none
	Home         string // inside
	HomeDir      string // of the host, mounted at Home; "" if something else is there
	Tools        []toolchain.Dir
	Caches       []toolchain.Dir
	Layered      bool // what the sandbox adds to a cache is in a layer of its own
	Binds        []Bind
	InPlace      bool    // paths inside are those of the host
	Offline      bool    // there is no network
	CPUs         float64 // processors that it may use; 0 is no limit
	Table        *MountTable
	// Environ is what every command inside gets, "NAME=value", as far as it is known before: an image may add to it.
	Environ  []string
	FoldCase bool // names that differ only in case are the same file on this machine
}

// Layout says where everything of a sandbox is, without making anything.
func (r *Resolved) Layout(site Site, q Request) (*Layout, error) {
	l := &Layout{ScopeKey: ScopeKey(r.Scope, q.Session), Home: r.homeTarget(), InPlace: site.InPlace, FoldCase: r.settings.around.FoldCase}
	l.Access, _ = r.AccessTo(q.Workspace)
	network, err := ParseNetwork(r.view(site.Engine).Network, true)
	l.Offline = err == nil && network == sandbox.NetworkNone
	if cpus := r.view(site.Engine).Limits.CPUs; cpus != nil {
		l.CPUs = *cpus
	}
	if l.Name, err = ContainerName(r.Docker.ContainerPrefix, r.Scope, l.ScopeKey); err != nil {
		return nil, err
	}
	if l.AgentDir, err = r.agentDir(q.Workspace, l.Access); err != nil {
		return nil, err
	}
	if l.Access == AccessReadWrite {
		l.WorkspaceDir = l.AgentDir
	} else if l.WorkspaceDir, err = Resolve(r.settings.around.Files, filepath.Join(r.WorkspaceRoot, r.privateName(l.ScopeKey))); err != nil {
		return nil, sandbox.Errorf(sandbox.CodeFailed, "find the private directory: %v", err)
	}
	l.Workdir = r.workdirFor(site.Engine, l)
	if l.Binds, err = r.bindsFor(site.Engine, l); err != nil {
		return nil, err
	}
	l.Tools = r.tools(site.Engine, l)
	if l.HomeDir, err = r.homeDir(l); err != nil {
		return nil, err
	}
	l.Caches, l.Layered = r.caches(site.Engine, l), layered(site.Engine, l)
	l.settle()
	l.Environ = []string{"PATH=" + task.DefaultPath}
	for _, v := range r.variables(site.Engine, l) {
		l.Environ = append(l.Environ, v.Name+"="+v.Value)
	}
	return l, nil
}

// variables are those of the configuration that go in, and before them what programs are told about the user's place and
// the registries of this machine.
func (r *Resolved) variables(engine string, l *Layout) []Variable {
	rules := r.EnvRules()
	written := rules.Filter(variables(r.view(engine).Env)).Allowed
	own := append([]Variable{{"HOME", l.Home}}, r.settings.around.Person.variables(engine)...)
	own = append(own, r.toolVariables(engine, l)...)
	if l.HomeDir != "" {
		own = append(own, Variable{"GOTMPDIR", path.Join(l.Home, homeTmp)})
	}
	own = append(own, r.registryVariables(engine)...)
	set := func(v Variable) bool {
		return slices.ContainsFunc(written, func(w Variable) bool { return w.Name == v.Name && !r.byDefault(engine, v.Name) })
	}
	own = slices.DeleteFunc(own, func(v Variable) bool { return set(v) || rules.Strict && !plain(v.Name) })
	told := func(w Variable) bool {
		return slices.ContainsFunc(own, func(v Variable) bool { return v.Name == w.Name })
	}
	return append(own, slices.DeleteFunc(written, told)...)
}

// byDefault reports whether nobody has written a variable.
func (r *Resolved) byDefault(engine, name string) bool {
	leaf := "env."
	if engine == sandbox.EngineDocker {
		leaf = "docker.env."
	}
	return r.Sources[leaf+name].Level == FromDefault
}

// tmpfs are the file systems in memory. What is mounted takes the place of one at the same path: container engines refuse
// to mount twice there.
func (l *Layout) tmpfs(entries []string) (list []sandbox.Tmpfs, err error) {
	mounts := l.Mounts()
	for _, text := range entries {
		t, err := ParseTmpfs(text, l.Workdir)
		if err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(mounts, func(m sandbox.Mount) bool { return path.Clean(m.Target) == t.Target }) {
			list = append(list, t)
		}
	}
	return list, nil
}

// privateName is the private directory of a scope. The shared one has a name of its own: in the directory above it,
// the sandbox would see those of all others.
func (r *Resolved) privateName(scopeKey string) string {
	if r.Scope == ScopeShared {
		return string(ScopeShared)
	}
	return sandbox.Slug(scopeKey)
}

// AccessTo is what a sandbox has of a workspace, and why. Where nobody says, an agent that has a workspace works in it:
// whoever named it, by a token or to a client, has said what the agent is to work on. Without one it gets nothing.
func (r *Resolved) AccessTo(workspace string) (access Access, why string) {
	switch {
	case r.Sources["workspaceAccess"].Level != FromDefault:
		return r.Access, "it is written"
	case workspace == "":
		return r.Access, "the default without a workspace"
	}
	return AccessReadWrite, "the default with a workspace"
}

// ReadOnly reports whether nothing that a sandbox has of this machine can be written to: neither the workspace nor a bind,
// whatever the engine. Then there is nothing for tools that write.
func (r *Resolved) ReadOnly(workspace string) bool {
	if access, _ := r.AccessTo(workspace); access != AccessReadOnly {
		return false
	}
	return !slices.ContainsFunc(slices.Concat(r.Neutral.Binds, r.Docker.Binds), func(spec string) bool {
		b, err := ParseBind(spec)
		return err == nil && b.Writable
	})
}

// agentDir is the real path of the agent's workspace, if it may be shown.
func (r *Resolved) agentDir(workspace string, access Access) (string, error) {
	if workspace == "" {
		if access == AccessNone {
			return "", nil
		}
		return "", &sandbox.Error{
			Code: sandbox.CodeConfig, Text: "workspaceAccess is " + string(access) + ", but the agent has no workspace",
			Fix: "name its workspace, or set sandbox.workspaceAccess to none",
		}
	}
	if !filepath.IsAbs(workspace) {
		return "", sandbox.Errorf(sandbox.CodeConfig, "workspace %q is not an absolute path", workspace)
	}
	real, err := Resolve(r.settings.around.Files, filepath.Clean(workspace))
	if err != nil {
		return "", sandbox.Errorf(sandbox.CodeConfig, "workspace %s: %v", workspace, err)
	}
	if access == AccessNone {
		return real, nil
	}
	rules := r.bindRules(nil)
	if code, program := rules.replaces(real); code != "" && access == AccessReadWrite {
		return "", &sandbox.Error{
			Code: sandbox.CodeConfig, Text: "in the workspace " + workspace + " commands could replace " + program + ", a program of Toolward",
			Fix: "start Toolward from elsewhere, as after go install; or set sandbox.workspaceAccess to ro or none",
		}
	}
	if code, dir := rules.blockedWorkspace(real); code != "" {
		return "", &sandbox.Error{
			Code: sandbox.CodeConfig, Text: "the workspace " + workspace + " would show " + dir + " to the sandbox",
			Fix: "name a directory that holds one project and nothing else; or set agents.defaults.sandbox.workspaceAccess to none, " +
				"for a private directory in its place, or agents.defaults.sandbox.mode to off, to work on this machine",
		}
	}
	return real, nil
}

// blockedWorkspace is blocked for a workspace. Who works as root has it in /root; what of that home is secret stays out.
func (r *BindRules) blockedWorkspace(dir string) (sandbox.Code, string) {
	code, what := r.blocked(dir)
	homes := r.homes()
	inRoot := slices.ContainsFunc(homes, func(home string) bool { return place.Within(home, "/root") })
	if code == CodeTargets && what == "/root" && inRoot && !slices.Contains(homes, dir) {
		for _, home := range homes {
			for _, name := range homeSources {
				secret := filepath.Join(home, name)
				if place.Within(dir, secret) || place.Within(secret, dir) {
					return CodeTargets, secret
				}
			}
		}
		if state := filepath.Clean(r.StateDir); r.StateDir != "" && (place.Within(dir, state) || place.Within(state, dir)) {
			return CodeTargets, state
		}
		return "", ""
	}
	return code, what
}
