package settings

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/toolward/toolward/sandbox"
	"github.com/toolward/toolward/sandbox/protected"

	"github.com/toolward/toolward/schema"
)

// securityEpoch is part of every hash. It changes when sandboxes that were made by an older version must not be used.
const securityEpoch = "2"

// Plan is a sandbox that is about to be made.
type Plan struct {
	Layout
	Spec         *sandbox.Spec
	SecurityHash string   // of what confines
	Blocked      []string // variables of the configuration that do not go in
	Notes        []string // what people should know
	Left         []string // toolchains that were found and are not shown, with the reason

	hidden []string // paths with credentials, in toolchains that are shown

	Survey *protected.Survey // of what is protected; nil where it can be written
}

// Close lets go of the pinned sources.
func (p *Plan) Close() {
	if p.Survey != nil {
		p.Survey.Close()
	}
	for _, m := range p.Spec.Mounts {
		if m.Pinned != nil {
			_ = m.Pinned.Close()
		}
	}
}

// view is what an engine gets of the settings that can be written for all.
func (r *Resolved) view(engine string) Neutral {
	v := r.Neutral
	if engine == sandbox.EngineDocker {
		d := r.Docker.WithEngineDefaults()
		v.Network, v.Tmpfs, v.Env, v.Binds, v.User = d.network(), d.Tmpfs, d.Env, d.Binds, d.User
		v.Limits.Memory, v.Limits.Pids, v.Limits.CPUs = d.Memory, d.PidsLimit, d.CPUs
		v.Limits.Swap = cmp.Or(swapBeyond(d), v.Limits.Swap)
	}
	return v
}

// swapBeyond turns docker's sum of memory and swap into swap alone; "" where it says nothing.
func swapBeyond(d DockerConfig) Quantity {
	if d.MemorySwap.Text() == noLimit {
		return d.MemorySwap
	}
	memory, err := d.Memory.Count()
	both, err2 := d.MemorySwap.Count()
	if err != nil || err2 != nil || d.MemorySwap.Text() == d.Memory.Text() {
		return ""
	}
	return Bytes(max(0, both-memory))
}

func (r *Resolved) bindRules(roots []string) *BindRules {
	around := r.settings.around
	return &BindRules{
		Home: around.Home, OtherHomes: around.OtherHomes, StateDir: around.StateDir, WorkspaceRoot: r.WorkspaceRoot, Roots: roots,
		AllowReserved: *r.Docker.AllowReservedTargets, AllowExternal: *r.Docker.AllowExternalSources,
		FoldCase: around.FoldCase, Files: around.Files, Programs: around.Programs,
	}
}

func (r *Resolved) bindsFor(engine string, l *Layout) ([]Bind, error) {
	roots := []string{l.WorkspaceDir}
	if l.AgentDir != "" && l.AgentDir != l.WorkspaceDir {
		roots = append(roots, l.AgentDir)
	}
	rules := r.bindRules(roots)
	rules.InPlace, rules.Workdir = l.InPlace, l.Workdir
	binds, err := rules.Validate(r.view(engine).Binds)
	if err != nil {
		return nil, &sandbox.Error{Code: sandbox.CodeConfig, Text: err.Error(), Cause: err}
	}
	for _, own := range Mounts(l.Access, l.Workdir, l.WorkspaceDir, l.AgentDir, nil) {
		again := func(b Bind) bool { return b.Source == own.Source && (b.Target == own.Target || l.InPlace) }
		if slices.ContainsFunc(binds, again) {
			// It would be there twice, with the rights of one or the other.
			return nil, sandbox.Errorf(sandbox.CodeConfig, "a bind shows %s at %s, where it is without one: workspaceAccess says what can be done there", own.Source, own.Target)
		}
	}
	return binds, nil
}

// OpenEgress has the gateway's proxy listen for the sandbox of a name, and returns the directory of its socket.
type OpenEgress func(name string) (dir string, err error)

// Spec makes ready what a sandbox needs on the host and says what it must be. The caller closes the plan once the
// sandbox is made. egress is nil where the proxy does not run.
func (r *Resolved) Spec(ctx context.Context, site Site, q Request, egress OpenEgress) (_ *Plan, err error) {
	engine := site.Engine
	layout, err := r.Layout(site, q)
	if err != nil {
		return nil, err
	}
	plan, err := r.draft(engine, layout)
	if err != nil {
		return nil, err
	}
	s, v := plan.Spec, r.view(engine)
	defer func() {
		if err != nil {
			plan.Close()
		}
	}()
	if s.Network, err = r.network(engine, v.Network, layout.Name, egress); err != nil {
		return nil, err
	}
	if err := r.MakeWorkspace(&plan.Layout, engine); err != nil {
		return nil, err
	}
	s.Workdir = plan.Workdir
	plan.pinTools()
	if err := plan.pinMounts(); err != nil {
		return nil, err
	}
	if err := r.owner(plan, v.User); err != nil {
		return nil, err
	}
	if err := plan.openHome(); err != nil {
		return nil, err
	}
	if err := plan.pinCaches(); err != nil {
		return nil, err
	}
	if err := r.showSystem(engine, plan); err != nil {
		return nil, err
	}
	if !r.AllowProtected {
		// Where nothing can be mounted, Landlock cannot take away a part of what it allows.
		if plan.Survey, s.Protected, err = protected.NewSurvey(ctx, s.Mounts, plan.Table.Shows, layout.InPlace); err != nil {
			return nil, err
		}
	}
	if r.Detach && engine != sandbox.EngineDocker {
		s.Detach = r.alone()
	}
	plan.hash(engine)
	return plan, nil
}

// draft is what a sandbox must be as far as the settings say it.
func (r *Resolved) draft(engine string, layout *Layout) (_ *Plan, err error) {
	v := r.view(engine)
	s := &sandbox.Spec{
		Name: layout.Name, ScopeKey: layout.ScopeKey, Instance: r.settings.around.Instance,
		DegradeOK: r.DegradeOK, Ptrace: r.AllowPtrace, Hardlinks: r.Hardlinks,
		Account: sandbox.Account{Name: r.settings.around.Person.Name, Home: layout.Home, Shell: r.settings.around.Person.Shell},
	}
	plan := &Plan{Layout: *layout, Spec: s, Blocked: r.EnvRules().Filter(variables(v.Env)).Blocked}
	if s.Limits, err = v.Limits.parse(); err != nil {
		return nil, err
	}
	if s.Tmpfs, err = layout.tmpfs(v.Tmpfs); err != nil {
		return nil, err
	}
	for _, variable := range r.variables(engine, layout) {
		s.Env = append(s.Env, variable.Name+"="+variable.Value)
	}
	if engine == sandbox.EngineDocker {
		r.dockerSpec(s)
	}
	return plan, nil
}

// pinMounts opens the sources, so that what was validated is what is mounted.
func (p *Plan) pinMounts() error {
	for i := range p.Spec.Mounts {
		m := &p.Spec.Mounts[i]
		if m.Kind == sandbox.MountHome || m.Kind == sandbox.MountCache || m.Pinned != nil {
			continue // the home: it is made for who runs inside, which is not known yet
		}
		var err error
		if m.Pinned, err = pin(m.Source); errors.Is(err, os.ErrNotExist) {
			return &sandbox.Error{Code: sandbox.CodeConfig, Text: m.Source + " does not exist", Fix: "create it: a missing source is never made"}
		} else if err != nil {
			return sandbox.Errorf(sandbox.CodeOf(err), "mount %s: %v", m.Source, err)
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
		return sandbox.Errorf(sandbox.CodeFailed, "find the owner of the workspace: %v", err)
	}
	if plan.Spec.User.UID == 0 {
		plan.Notes = append(plan.Notes, "sandbox_root_user: the workspace is root's, so commands inside run as root without capabilities")
	}
	return nil
}

func (r *Resolved) network(engine, network, name string, egress OpenEgress) (sandbox.Network, error) {
	mode, err := ParseNetwork(network, *r.Docker.AllowNamespaceJoin)
	switch {
	case err != nil:
		return sandbox.Network{}, &sandbox.Error{Code: sandbox.CodeConfig, Text: err.Error(), Cause: err}
	case mode == sandbox.NetworkEgress && egress == nil:
		return sandbox.Network{}, &sandbox.Error{Code: sandbox.CodeUnavailable, Text: "network egress needs the gateway's proxy, which does not run", Fix: "set sandbox.network to none"}
	case mode == sandbox.NetworkEgress:
		dir, err := egress(name)
		if err != nil {
			return sandbox.Network{}, &sandbox.Error{
				Code: sandbox.CodeUnavailable, Text: "the gateway's proxy does not listen for the sandbox: " + err.Error(),
				Fix: "mend that, or set sandbox.network to none", Cause: err,
			}
		}
		return sandbox.Network{Mode: mode, EgressDir: dir, Forwards: r.Egress.forwards()}, nil
	case engine != sandbox.EngineDocker && mode != sandbox.NetworkNone:
		return sandbox.Network{}, &sandbox.Error{
			Code: sandbox.CodeConfig, Text: "network " + string(mode) + " is one of container engines, and the engine is " + engine,
			Fix: "set sandbox.network to egress or none, or sandbox.engine to docker",
		}
	}
	return sandbox.Network{Mode: mode}, nil
}

func (l *LimitsConfig) parse() (sandbox.Limits, error) {
	var limits sandbox.Limits
	for _, q := range []struct {
		from Quantity
		to   *int64
	}{{l.Memory, &limits.Memory}, {l.Swap, &limits.Swap}, {l.Disk, &limits.Disk}, {l.FileSize, &limits.FileSize}} {
		if q.to == &limits.Swap && q.from.Text() == noLimit {
			limits.Swap = -1
			continue
		}
		n, err := q.from.Count()
		if err != nil {
			return sandbox.Limits{}, err
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

func (r *Resolved) dockerSpec(s *sandbox.Spec) {
	d := r.Docker.WithEngineDefaults()
	s.Writable, s.Setup = !*d.ReadOnlyRoot, d.SetupCommand
	s.Docker = sandbox.DockerSpec{
		Image: d.Image, Runtime: d.Runtime, CapDrop: d.CapDrop, SeccompProfile: sandbox.Trim(d.SeccompProfile), AppArmor: sandbox.Trim(d.AppArmorProfile),
		DNS: trimmed(d.DNS), ExtraHosts: trimmed(d.ExtraHosts), HostPaths: d.HostPathMap,
	}
	for _, name := range slices.Sorted(maps.Keys(d.Ulimits)) {
		soft, hard, both := strings.Cut(d.Ulimits[name].Render(), ":")
		if !both {
			hard = soft
		}
		limit := sandbox.Ulimit{Name: sandbox.Trim(name)}
		var err, err2 error
		limit.Soft, err = strconv.ParseInt(soft, 10, 64)
		limit.Hard, err2 = strconv.ParseInt(hard, 10, 64)
		if err != nil || err2 != nil || limit.Name == "" {
			continue // blank: nothing is said
		}
		s.Docker.Ulimits = append(s.Docker.Ulimits, limit)
	}
}

// trimmed is a list without white space around its entries, and without blank ones.
func trimmed(list []string) []string {
	var kept []string
	for _, s := range list {
		if s = sandbox.Trim(s); s != "" {
			kept = append(kept, s)
		}
	}
	return kept
}

// hash names the configuration of a sandbox, and the part of it that confines. What is protected is left out: it depends
// on what the agent has in its workspace, not on what anybody has decided.
func (p *Plan) hash(engine string) {
	s := p.Spec
	agentDir := p.AgentDir
	if p.Access == AccessNone {
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
		"securityEpoch": securityEpoch, "engine": engine, "workspaceAccess": p.Access, "workspaceDir": p.WorkspaceDir,
		"agentWorkspaceDir": agentDir, "mounts": mounts, "workdir": s.Workdir, "env": s.Env, "user": s.User, "account": s.Account,
		"network": s.Network, "degradeOk": s.DegradeOK, "ptrace": s.Ptrace, "hardlinks": s.Hardlinks, "writable": s.Writable,
		"runtime": s.Docker.Runtime, "capDrop": s.Docker.CapDrop, "seccompProfile": s.Docker.SeccompProfile, "apparmorProfile": s.Docker.AppArmor,
	}
	if s.Detach > 0 { // how long is told when it is used, and is no reason to make it anew
		confines["detach"] = true
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
