package fleet

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/toolward/toolward/sandbox"
	"github.com/toolward/toolward/sandbox/settings"
)

// ShownLimits are [Limits] with the names that programs read. Limits itself keeps the names that hashes are made of.
type ShownLimits struct {
	Memory    int64   `json:"memory"`
	Swap      int64   `json:"swap"`
	Pids      int64   `json:"pids"`
	CPUs      float64 `json:"cpus"`
	Disk      int64   `json:"disk"`
	OpenFiles int64   `json:"openFiles"`
	FileSize  int64   `json:"fileSize"`
}

// MountInfo is a directory or file of the machine inside.
type MountInfo struct {
	Kind     sandbox.MountKind `json:"kind"`
	Source   string            `json:"hostPath"`
	Target   string            `json:"containerPath"`
	Writable bool              `json:"writable"`
}

// Detail is everything that is known of one sandbox.
type Detail struct {
	Info
	Workdir   string      `json:"workdir,omitempty"` // inside
	User      string      `json:"user,omitempty"`    // uid:gid
	Mounts    []MountInfo `json:"mounts"`            // nothing where ByConfiguration: they are not known
	Protected []string    `json:"protected"`         // paths inside that cannot be written
	// ProtectedKnown: Protected is what it was made with. A container that an earlier run made is not looked into.
	ProtectedKnown bool               `json:"protectedKnown"`
	Tmpfs          []string           `json:"tmpfs"`
	Env            []string           `json:"env"`          // names only
	RootWritable   bool               `json:"rootWritable"` // the image's root can be changed; what is changed there is lost with the sandbox
	Ptrace         bool               `json:"ptrace"`
	Hardlinks      bool               `json:"hardlinks"`
	DegradeOK      []string           `json:"degradeOk"`
	Runtime        string             `json:"runtime,omitempty"` // of containers
	Settings       []settings.Setting `json:"settings"`
	IdleAfter      time.Duration      `json:"-"` // unused for so long: IdleAction; 0 is never
	IdleAction     settings.Pruning   `json:"-"`
	MaxAge         time.Duration      `json:"-"` // 0 is no end
}

// madeAs says what a sandbox is after a plan was carried out. started: its protected paths are those of the plan.
func madeAs(old *made, plan *settings.Plan, kind EventKind, started bool) *made {
	switch {
	case kind == EventKept && old != nil:
		same := *old
		same.kept = true
		return &same
	case kind == EventKept:
		return &made{kept: true}
	case kind == "" && old != nil && old.spec.Hash == plan.Spec.Hash:
		return old
	}
	m := &made{spec: *plan.Spec, layout: plan.Layout, protected: started, known: true}
	m.spec.Mounts = slices.Clone(m.spec.Mounts)
	for i := range m.spec.Mounts {
		m.spec.Mounts[i].Pinned = nil
	}
	return m
}

// confined adds what confines a sandbox: what it was made as, else what the configuration says for its scope.
func (i *Info) confined(m *made, r *settings.Resolved) {
	i.Access, i.Scope, i.Outdated = r.Access, r.Scope, m != nil && m.kept
	if m == nil || !m.known {
		i.ByConfiguration, i.Network = true, r.NetworkOf(i.Engine)
		if limits, err := r.LimitsOf(i.Engine); err == nil {
			i.Limits = ShownLimits(limits)
		}
		return
	}
	i.Limits, i.Network = ShownLimits(m.spec.Limits), m.spec.Network.Mode
	i.Access, i.WorkspaceDir, i.AgentDir = m.layout.Access, m.layout.WorkspaceDir, m.layout.AgentDir
	if i.Access == settings.AccessNone {
		i.AgentDir = "" // it is only copied from
	}
}

// Describe says everything that is known of a sandbox; CodeNotFound if there is none of that name.
func (m *Manager) Describe(ctx context.Context, name string) (*Detail, error) {
	infos, err := m.List(ctx)
	at := slices.IndexFunc(infos, func(i Info) bool { return i.Name == name })
	if at < 0 {
		if err != nil {
			return nil, err
		}
		return nil, sandbox.Errorf(sandbox.CodeNotFound, "there is no sandbox %s", name)
	}
	d := &Detail{Info: infos[at]}
	r := m.Settings().ForScope(d.ScopeKey)
	m.mu.Lock()
	var as *made
	if b := m.boxes[name]; b != nil {
		as = b.made
		if b.resolved != nil {
			r = b.resolved
		}
	}
	m.mu.Unlock()
	d.Settings = r.Settings()
	rules := r.PruneRules()
	d.IdleAfter, d.IdleAction, d.MaxAge = rules.Idle, rules.Action, rules.MaxAge
	d.describe(as)
	return d, nil
}

func (d *Detail) describe(as *made) {
	d.Mounts, d.Protected, d.Tmpfs, d.Env, d.DegradeOK = []MountInfo{}, []string{}, []string{}, []string{}, []string{}
	if as == nil || !as.known {
		return
	}
	s := &as.spec
	d.Workdir, d.User = s.Workdir, fmt.Sprintf("%d:%d", s.User.UID, s.User.GID)
	d.ProtectedKnown, d.RootWritable, d.Ptrace, d.Hardlinks = as.protected, s.Writable, s.Ptrace, s.Hardlinks
	d.Runtime = s.Docker.Runtime
	for _, mount := range s.Mounts {
		d.Mounts = append(d.Mounts, MountInfo{mount.Kind, mount.Source, mount.Target, mount.Writable})
	}
	if as.protected {
		d.Protected = append(d.Protected, s.Protected...)
	}
	for _, t := range s.Tmpfs {
		d.Tmpfs = append(d.Tmpfs, t.Target)
	}
	for _, entry := range s.Env {
		variable, _, _ := strings.Cut(entry, "=")
		d.Env = append(d.Env, variable)
	}
	d.DegradeOK = append(d.DegradeOK, s.DegradeOK...)
}

// Found is what an engine was found to enforce on this machine.
type Found struct {
	sandbox.Capabilities
	At     time.Time // zero: it was not tried yet
	Trying bool      // it is being tried now
}

// Found says what was found out about every engine, without waiting for any. What was never tried is tried now, in the
// background, and told the next time.
func (m *Manager) Found() []Found {
	var all []Found
	for _, e := range m.options.Engines {
		p := m.probes[e.Name()]
		f := Found{Capabilities: sandbox.Capabilities{Engine: e.Name()}, Trying: true}
		select {
		case p.turn <- struct{}{}:
			f.Capabilities, f.At, f.Trying = p.found, p.at, p.at.IsZero()
			if p.err != nil {
				f.Checks = append(slices.Clone(f.Checks), sandbox.Check{Name: "probe", Found: p.err.Error()})
			}
			f.Engine = e.Name()
			<-p.turn
			if f.Trying {
				m.tryEngine(p)
			}
		default: // somebody waits for the engine
		}
		all = append(all, f)
	}
	return all
}

func (m *Manager) tryEngine(p *probe) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return
	}
	m.workers.Go(func() {
		if _, err := p.look(m.ended, false); err != nil {
			m.options.Log.Debug("a sandbox engine was tried", "engine", p.engine.Name(), "err", err)
		}
	})
}

// levelOf is what an engine enforces, as far as that is known without asking it.
func (m *Manager) levelOf(engine string) (level sandbox.Level, known bool) {
	p := m.probes[engine]
	if p == nil {
		return sandbox.LevelNone, false
	}
	select {
	case p.turn <- struct{}{}:
		defer func() { <-p.turn }()
		return p.found.Level, !p.at.IsZero() && p.err == nil
	default:
		return sandbox.LevelNone, false
	}
}

// names of sessions in order.
func sessionNames(sessions map[string]int) []string {
	return append([]string{}, slices.Sorted(maps.Keys(sessions))...)
}

// Info is one sandbox as people see it.
type Info struct {
	Name       string      `json:"containerName"`
	ScopeKey   string      `json:"sessionKey"`
	Agent      string      `json:"agentId,omitempty"`
	Engine     string      `json:"engine"`
	EngineID   string      `json:"engineId,omitempty"`
	Running    bool        `json:"running"`
	Image      string      `json:"image"`
	ImageMatch bool        `json:"imageMatch"`
	Users      int         `json:"users"`    // calls that use it now
	Sessions   []string    `json:"sessions"` // whose calls these are
	Ports      []Listening `json:"ports"`    // on which programs inside listened at the last look
	Created    time.Time   `json:"createdAt"`
	Used       time.Time   `json:"lastUsedAt"`
	Missing    bool        `json:"missing,omitempty"`  // the engine does not know it; a native one that is stopped is never known
	Detached   bool        `json:"detached,omitempty"` // it goes on when its gateway ends
	Silent     bool        `json:"silent,omitempty"`   // the engine did not answer: whether it runs is not known

	Level           string              `json:"level,omitempty"` // what its engine enforces, in words; "" until that was tried
	Scope           settings.Scope      `json:"scope"`
	Limits          ShownLimits         `json:"limits"`
	Network         sandbox.NetworkMode `json:"network"`
	Access          settings.Access     `json:"workspaceAccess"`
	WorkspaceDir    string              `json:"workspaceDir,omitempty"`    // of the machine, what the workdir inside is
	AgentDir        string              `json:"agentDir,omitempty"`        // the agent's workspace, where that is inside
	Outdated        bool                `json:"outdated,omitempty"`        // it is not what the configuration says, and in use
	ByConfiguration bool                `json:"byConfiguration,omitempty"` // limits, network and workspace are what the configuration says: this gateway has not used it yet
}
