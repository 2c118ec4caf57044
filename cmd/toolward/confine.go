package main

import (
	"context"
	"errors"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/builtin"
	"github.com/toolward/toolward/sandbox"
)

// confines reports whether the session of a caller runs in a sandbox, and whether that one can change the workspace.
// What a client runs itself never does.
func (d *daemon) confines(c toolward.Caller) (yes, readOnly bool) {
	if d.sandboxes == nil || c.Session == "" || c.Surface == toolward.SurfaceHook {
		return false, false
	}
	if yes, _ = d.sandboxes.Sandboxed(c.Agent, string(c.Session)); !yes {
		return false, false
	}
	return true, d.sandboxes.Settings().For(c.Agent).Access == sandbox.AccessReadOnly
}

var errNoSandboxes = errors.New("the gateway has not found out about sandboxes yet")

// Confinement is the sandbox that a call works in.
func (d *daemon) Confinement(call *toolward.Call) (*builtin.Confinement, error) {
	if d.sandboxes == nil {
		return nil, errNoSandboxes
	}
	caller := call.Caller
	caller.Session, caller.Surface = call.Session, call.Surface
	if yes, _ := d.confines(caller); !yes {
		return nil, nil
	}
	request := sandbox.Request{Agent: caller.Agent, Session: string(call.Session), Workspace: caller.Workspace}
	layout, err := d.sandboxes.Layout(context.Background(), request)
	if err != nil {
		return nil, err
	}
	return &builtin.Confinement{
		Workdir: layout.Workdir,
		Mounts:  sandbox.Mounts(layout.Access, layout.Workdir, layout.WorkspaceDir, layout.AgentDir, layout.Binds),
		Env:     d.sandboxes.Settings().For(caller.Agent).EnvRules(),
		Acquire: func(ctx context.Context) (sandbox.Handle, func(), error) {
			lease, err := d.sandboxes.Acquire(ctx, request)
			if err != nil {
				return nil, nil, err
			}
			return lease, lease.Release, nil
		},
	}, nil
}
