// Package installation puts a gateway in front of the agents of a machine, takes it away again, and says whether what is
// installed stands as it should. It asks nobody and prints nothing.
package installation

import (
	"context"
	"os"
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

// Plan is a change of a client's settings that has not been made: show its Diff, then Apply it.
type Plan = bridge.Plan

// PlanInstall says what installing in front of a target changes. state is Toolward's home, with its configuration.
func PlanInstall(ctx context.Context, state string, loaded *config.Loaded, t Target) (*Plan, error) {
	setup, err := t.setup(state, loaded)
	if err != nil {
		return nil, err
	}
	if setup.Hook = t.Hook; setup.Hook == "" {
		hook, err := companion.Find(ctx, "toolward-hook")
		if err != nil {
			return nil, err
		}
		setup.Hook, setup.HookArgs = hook.Path, hook.Args
	}
	return bridge.PlanInstall(setup)
}

// PlanUninstall says what taking Toolward away from a target changes.
func PlanUninstall(state string, loaded *config.Loaded, t Target) (*Plan, error) {
	setup, err := t.setup(state, loaded)
	if err != nil {
		return nil, err
	}
	return bridge.PlanUninstall(setup)
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
		setup.Scope = bridge.ScopeManaged
	}
	return setup, nil
}
