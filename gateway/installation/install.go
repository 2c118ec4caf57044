// Package installation puts a gateway in front of the agents of a machine, takes it away again, and says whether what is
// installed stands as it should. It asks nobody and prints nothing.
package installation

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"github.com/toolward/toolward/bridge"
	"github.com/toolward/toolward/companion"
	"github.com/toolward/toolward/config"
)

// ErrTemporary says that the hook program lies in a temporary directory. It is not installed: once it is gone, every call of
// the agent would be refused.
var ErrTemporary = companion.ErrTemporary

// Target is what Toolward stands in front of, or shall.
type Target struct {
	Client  string // the agent's name, such as claude-code
	Project string // absolute path: for this project alone; "" for all of this user's
	Managed bool   // for everybody on this machine
	Hook    string // absolute path of the hook program; "" for the one that comes with this program
}

// Clients lists the agents that can be guarded, by name.
func Clients() []string { return bridge.Clients() }

// Plan is a change of a client's settings that has not been made: show its Diff and Notes, then Apply it. For everybody on a
// machine, programs come and go with it.
type Plan struct {
	*bridge.Plan
	programs *programs // nil: the settings alone
}

// Changed reports whether there is anything to do.
func (p *Plan) Changed() bool { return p.Plan.Changed() || p.programs != nil && p.programs.changed() }

// Apply makes the change. Settings never name a program that is not there.
func (p *Plan) Apply() error {
	if p.programs == nil {
		return p.Plan.Apply()
	}
	if p.programs.leaving {
		if err := p.Plan.Apply(); err != nil {
			return err // what the settings still name stays
		}
		return p.programs.remove()
	}
	if err := p.programs.put(filepath.Dir(p.Path)); err != nil {
		return err
	}
	return p.Plan.Apply()
}

// PlanInstall says what installing in front of a target changes. state is Toolward's home, with its configuration.
func PlanInstall(ctx context.Context, state string, loaded *config.Loaded, t Target) (*Plan, error) {
	setup, err := t.setup(state, loaded)
	if err != nil {
		return nil, err
	}
	if t.Managed {
		return planManaged(ctx, setup, t.Hook)
	}
	if setup.Hook = t.Hook; setup.Hook == "" {
		hook, err := companion.Find(ctx, "toolward-hook")
		if err != nil {
			return nil, err
		}
		setup.Hook, setup.HookArgs = hook.Path, hook.Args
	}
	plan, err := bridge.PlanInstall(setup)
	return &Plan{Plan: plan}, err
}

// PlanUninstall says what taking Toolward away from a target changes.
func PlanUninstall(state string, loaded *config.Loaded, t Target) (*Plan, error) {
	setup, err := t.setup(state, loaded)
	if err != nil {
		return nil, err
	}
	if t.Managed {
		return planUnmanaged(setup)
	}
	plan, err := bridge.PlanUninstall(setup)
	return &Plan{Plan: plan}, err
}

// setup is what installing, uninstalling and examining have in common.
func (t Target) setup(state string, loaded *config.Loaded) (bridge.Setup, error) {
	home, err := os.UserHomeDir()
	if err != nil {
		return bridge.Setup{}, err
	}
	setup := bridge.Setup{
		Client: t.Client, Scope: bridge.ScopeUser, Home: home, State: state, Getenv: os.Getenv,
		EnforceText:     loaded.File.Bridge.Enforces(),
		ApprovalTimeout: time.Duration(loaded.File.TEG.Approval.TimeoutMs) * time.Millisecond,
	}
	if t.Project != "" {
		setup.Scope, setup.Project = bridge.ScopeProject, t.Project
	}
	if t.Managed {
		setup.Scope, setup.Backups = bridge.ScopeManaged, recordDirectory
	}
	return setup, nil
}
