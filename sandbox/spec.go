package sandbox

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/toolward/toolward/schema"
)

// securityEpoch is part of every hash. It changes when sandboxes that were made by an older version must not be used.
const securityEpoch = "1"

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
	Binds        []Bind
	Table        *MountTable
}

// Plan is a sandbox that is about to be made.
type Plan struct {
	Layout
	Spec         *Spec
	SecurityHash string   // of what confines
	Blocked      []string // variables of the configuration that do not go in
	Notes        []string // what people should know
}

// Close lets go of the pinned sources.
func (p *Plan) Close() {
	for _, m := range p.Spec.Mounts {
		if m.Pinned != nil {
			_ = m.Pinned.Close()
		}
	}
}

// view is what an engine gets of the settings that can be written for all.
func (r *Resolved) view(engine string) Neutral {
	v := r.Neutral
	if engine == EngineDocker {
		d := r.Docker.WithEngineDefaults()
		v.Network, v.Tmpfs, v.Env, v.Binds, v.User = d.network(), d.Tmpfs, d.Env, d.Binds, d.User
		v.Limits.Memory, v.Limits.Pids, v.Limits.CPUs = d.Memory, d.PidsLimit, d.CPUs
		v.Limits.Swap = cmp.Or(swapBeyond(d), v.Limits.Swap)
	}
	return v
}

// swapBeyond turns docker's sum of memory and swap into swap alone; "" where it says nothing.
func swapBeyond(d DockerConfig) Quantity {
	memory, err := d.Memory.Count()
	both, err2 := d.MemorySwap.Count()
	if err != nil || err2 != nil || d.MemorySwap.Text() == d.Memory.Text() {
		return ""
	}
	return Bytes(max(0, both-memory))
}

// Layout says where everything of a sandbox is, without making anything.
func (r *Resolved) Layout(engine string, q Request) (*Layout, error) {
	l := &Layout{ScopeKey: ScopeKey(r.Scope, q.Session), Access: r.Access, Workdir: WorkspaceTarget}
	var err error
	if l.Name, err = ContainerName(r.Docker.ContainerPrefix, r.Scope, l.ScopeKey); err != nil {
		return nil, err
	}
	if engine == EngineDocker {
		l.Workdir = filepath.Clean(r.Docker.Workdir)
	}
	if l.AgentDir, err = r.agentDir(q.Workspace); err != nil {
		return nil, err
	}
	if r.Access == AccessReadWrite {
		l.WorkspaceDir = l.AgentDir
	} else if l.WorkspaceDir, err = Resolve(r.settings.around.Files, filepath.Join(r.WorkspaceRoot, r.privateName(l.ScopeKey))); err != nil {
		return nil, Errorf(CodeFailed, "find the private directory: %v", err)
	}
	if l.Binds, err = r.bindsFor(engine, l); err != nil {
		return nil, err
	}
	l.Table = NewMountTable(l.Workdir, Mounts(r.Access, l.Workdir, l.WorkspaceDir, l.AgentDir, l.Binds))
	return l, nil
}

// privateName is the private directory of a scope. The shared one has a name of its own: in the directory above it,
// the sandbox would see those of all others.
func (r *Resolved) privateName(scopeKey string) string {
	if r.Scope == ScopeShared {
		return string(ScopeShared)
	}
	return Slug(scopeKey)
}

// agentDir is the real path of the agent's workspace, if it may be shown.
func (r *Resolved) agentDir(workspace string) (string, error) {
	if workspace == "" {
		if r.Access == AccessNone {
			return "", nil
		}
		return "", &Error{
			Code: CodeConfig, Text: "workspaceAccess is " + string(r.Access) + ", but the agent has no workspace",
			Fix: "name its workspace, or set sandbox.workspaceAccess to none",
		}
	}
	if !filepath.IsAbs(workspace) {
		return "", Errorf(CodeConfig, "workspace %q is not an absolute path", workspace)
	}
	real, err := Resolve(r.settings.around.Files, filepath.Clean(workspace))
	if err != nil {
		return "", Errorf(CodeConfig, "workspace %s: %v", workspace, err)
	}
	if r.Access == AccessNone {
		return real, nil
	}
	if code, dir := r.bindRules(nil).blockedWorkspace(real); code != "" {
		return "", &Error{
			Code: CodeConfig, Text: "workspace " + workspace + " would show " + dir + " to the sandbox",
			Fix: "choose a workspace that holds nothing else, or set sandbox.workspaceAccess to none",
		}
	}
	return real, nil
}

// blockedWorkspace is blocked for a workspace. Who works as root has it in /root; what of that home is secret stays out.
func (r *BindRules) blockedWorkspace(dir string) (Code, string) {
	code, what := r.blocked(dir)
	if code == CodeTargets && what == "/root" && within(r.Home, "/root") && r.Home != dir {
		for _, name := range homeSources {
			secret := filepath.Join(r.Home, name)
			if within(dir, secret) || within(secret, dir) {
				return CodeTargets, secret
			}
		}
		if state := filepath.Clean(r.StateDir); r.StateDir != "" && (within(dir, state) || within(state, dir)) {
			return CodeTargets, state
		}
		return "", ""
	}
	return code, what
}

func (r *Resolved) bindRules(roots []string) *BindRules {
	around := r.settings.around
	return &BindRules{
		Home: around.Home, StateDir: around.StateDir, WorkspaceRoot: r.WorkspaceRoot, Roots: roots,
		AllowReserved: *r.Docker.AllowReservedTargets, AllowExternal: *r.Docker.AllowExternalSources,
		FoldCase: around.FoldCase, Files: around.Files,
	}
}

func (r *Resolved) bindsFor(engine string, l *Layout) ([]Bind, error) {
	roots := []string{l.WorkspaceDir}
	if l.AgentDir != "" && l.AgentDir != l.WorkspaceDir {
		roots = append(roots, l.AgentDir)
	}
	binds, err := r.bindRules(roots).Validate(r.view(engine).Binds)
	if err != nil {
		return nil, &Error{Code: CodeConfig, Text: err.Error(), Cause: err}
	}
	return binds, nil
}

// Spec makes ready what a sandbox needs on the host and says what it must be. The caller closes the plan once the
// sandbox is made. egressSocket is the gateway's proxy, "" without one.
func (r *Resolved) Spec(ctx context.Context, engine string, q Request, egressSocket string) (_ *Plan, err error) {
	layout, err := r.Layout(engine, q)
	if err != nil {
		return nil, err
	}
	v := r.view(engine)
	s := &Spec{
		Name: layout.Name, ScopeKey: layout.ScopeKey, Instance: r.settings.around.Instance, Workdir: layout.Workdir,
		DegradeOK: r.DegradeOK, Ptrace: r.AllowPtrace, Hardlinks: r.Hardlinks,
	}
	plan := &Plan{Layout: *layout, Spec: s}
	defer func() {
		if err != nil {
			plan.Close()
		}
	}()
	if s.Network, err = r.network(engine, v.Network, egressSocket); err != nil {
		return nil, err
	}
	if s.Limits, err = v.Limits.parse(); err != nil {
		return nil, err
	}
	for _, text := range v.Tmpfs {
		t, err := ParseTmpfs(text)
		if err != nil {
			return nil, err
		}
		s.Tmpfs = append(s.Tmpfs, t)
	}
	filtered := r.EnvRules().Filter(variables(v.Env))
	for _, variable := range filtered.Allowed {
		s.Env = append(s.Env, variable.Name+"="+variable.Value)
	}
	plan.Blocked = filtered.Blocked
	if err := r.workspace(plan, v.User); err != nil {
		return nil, err
	}
	if err := plan.pinMounts(); err != nil {
		return nil, err
	}
	if err := r.owner(plan, v.User); err != nil {
		return nil, err
	}
	if !r.AllowProtected {
		if s.Protected, err = protectedPaths(ctx, s.Mounts, plan.Table); err != nil {
			return nil, err
		}
	}
	if engine == EngineDocker {
		r.dockerSpec(s)
	}
	plan.hash(engine, r.Access)
	return plan, nil
}

// workspace makes the private directory, if the sandbox gets one.
func (r *Resolved) workspace(plan *Plan, user string) error {
	if r.Access == AccessReadWrite {
		return nil
	}
	owner := &User{plainUser, plainUser}
	if user != "" {
		u, err := ParseUser(user)
		if err != nil {
			return err
		}
		owner = &u
	}
	dir, err := preparePrivate(r.WorkspaceRoot, r.privateName(plan.ScopeKey), plan.AgentDir, owner)
	if err != nil {
		return err
	}
	if plan.WorkspaceDir, err = filepath.EvalSymlinks(dir); err != nil {
		return Errorf(CodeFailed, "find the private directory: %v", err)
	}
	plan.Table = NewMountTable(plan.Workdir, Mounts(plan.Access, plan.Workdir, plan.WorkspaceDir, plan.AgentDir, plan.Binds))
	return nil
}

// pinMounts opens the sources, so that what was validated is what is mounted.
func (p *Plan) pinMounts() error {
	p.Spec.Mounts = Mounts(p.Access, p.Workdir, p.WorkspaceDir, p.AgentDir, p.Binds)
	for i := range p.Spec.Mounts {
		m := &p.Spec.Mounts[i]
		var err error
		if m.Pinned, err = pin(m.Source); errors.Is(err, os.ErrNotExist) {
			return &Error{Code: CodeConfig, Text: m.Source + " does not exist", Fix: "create it: a missing source is never made"}
		} else if err != nil {
			return Errorf(CodeOf(err), "mount %s: %v", m.Source, err)
		}
	}
	return nil
}

// owner decides who runs inside: who is written, else who owns the workspace.
func (r *Resolved) owner(plan *Plan, user string) (err error) {
	if user != "" {
		plan.Spec.User, err = ParseUser(user)
		return err
	}
	if plan.Spec.User, err = ownerOf(plan.Spec.Mounts[0].Pinned); err != nil {
		return Errorf(CodeFailed, "find the owner of the workspace: %v", err)
	}
	if plan.Spec.User.UID == 0 {
		plan.Notes = append(plan.Notes, "sandbox_root_user: the workspace is root's, so commands inside run as root without capabilities")
	}
	return nil
}

func (r *Resolved) network(engine, name, egressSocket string) (Network, error) {
	mode, err := ParseNetwork(name, *r.Docker.AllowNamespaceJoin)
	switch {
	case err != nil:
		return Network{}, &Error{Code: CodeConfig, Text: err.Error(), Cause: err}
	case mode == NetworkEgress && egressSocket == "":
		return Network{}, &Error{Code: CodeUnavailable, Text: "network egress needs the gateway's proxy, which does not run", Fix: "set sandbox.network to none"}
	case mode == NetworkEgress:
		return Network{Mode: mode, EgressSocket: egressSocket}, nil
	case engine != EngineDocker && mode != NetworkNone:
		return Network{}, &Error{
			Code: CodeConfig, Text: "network " + string(mode) + " is one of container engines, and the engine is " + engine,
			Fix: "set sandbox.network to egress or none, or sandbox.engine to docker",
		}
	}
	return Network{Mode: mode}, nil
}

func (l *LimitsConfig) parse() (Limits, error) {
	var limits Limits
	for _, q := range []struct {
		from Quantity
		to   *int64
	}{{l.Memory, &limits.Memory}, {l.Swap, &limits.Swap}, {l.Disk, &limits.Disk}, {l.FileSize, &limits.FileSize}} {
		n, err := q.from.Count()
		if err != nil {
			return Limits{}, err
		}
		*q.to = n
	}
	if l.Pids != nil {
		limits.Pids = *l.Pids
	}
	if l.CPUs != nil {
		limits.CPUs = *l.CPUs
	}
	if l.OpenFiles != nil {
		limits.OpenFiles = *l.OpenFiles
	}
	return limits, nil
}

func (r *Resolved) dockerSpec(s *Spec) {
	d := r.Docker.WithEngineDefaults()
	s.Writable, s.Setup = !*d.ReadOnlyRoot, d.SetupCommand
	s.Docker = DockerSpec{
		Image: d.Image, Runtime: d.Runtime, CapDrop: d.CapDrop, SeccompProfile: d.SeccompProfile, AppArmor: d.AppArmorProfile,
		DNS: notBlank(d.DNS), ExtraHosts: notBlank(d.ExtraHosts), HostPaths: d.HostPathMap,
	}
	for _, name := range slices.Sorted(maps.Keys(d.Ulimits)) {
		soft, hard, both := strings.Cut(d.Ulimits[name].Render(), ":")
		limit := Ulimit{Name: trim(name), Hard: -1}
		var err error
		if limit.Soft, err = strconv.ParseInt(soft, 10, 64); err != nil || limit.Name == "" {
			continue
		}
		if both {
			limit.Hard, _ = strconv.ParseInt(hard, 10, 64)
		}
		s.Docker.Ulimits = append(s.Docker.Ulimits, limit)
	}
}

func notBlank(list []string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(s string) bool { return trim(s) == "" })
}

// hash names the configuration of a sandbox, and the part of it that confines. What is protected is left out: it depends
// on what the agent has in its workspace, not on what anybody has decided.
func (p *Plan) hash(engine string, access Access) {
	s := p.Spec
	agentDir := p.AgentDir
	if access == AccessNone {
		agentDir = "" // it is only copied from
	}
	type mount struct {
		Source, Target string
		Writable       bool
	}
	var mounts []mount
	for _, m := range s.Mounts {
		mounts = append(mounts, mount{m.Source, m.Target, m.Writable})
	}
	confines := map[string]any{
		"securityEpoch": securityEpoch, "engine": engine, "workspaceAccess": access, "workspaceDir": p.WorkspaceDir,
		"agentWorkspaceDir": agentDir, "mounts": mounts, "workdir": s.Workdir, "env": s.Env, "user": s.User,
		"network": s.Network, "degradeOk": s.DegradeOK, "ptrace": s.Ptrace, "hardlinks": s.Hardlinks, "writable": s.Writable,
		"runtime": s.Docker.Runtime, "capDrop": s.Docker.CapDrop, "seccompProfile": s.Docker.SeccompProfile, "apparmorProfile": s.Docker.AppArmor,
	}
	p.SecurityHash = Hash(confines)
	all := maps.Clone(confines)
	maps.Copy(all, map[string]any{"tmpfs": s.Tmpfs, "limits": s.Limits, "setup": s.Setup, "docker": s.Docker})
	s.Hash = Hash(all)
}

// Hash names a value: SHA-256 of its canonical JSON, keys sorted, in lower hex.
func Hash(v any) string {
	raw, err := json.Marshal(v)
	if err == nil {
		raw, err = schema.Canonicalize(raw)
	}
	if err != nil {
		return "" // equal to no hash: what cannot be compared is made anew
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:])
}
