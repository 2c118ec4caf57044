package main

import (
	"context"
	"errors"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/builtin"
	"github.com/toolward/toolward/sandbox"
)

// confines reports whether the session of a caller runs in a sandbox, and whether nothing in that one can be written to.
// What a client runs itself never does.
func (d *daemon) confines(c toolward.Caller) (yes, readOnly bool) {
	if d.sandboxes == nil || c.Session == "" || c.Surface == toolward.SurfaceHook {
		return false, false
	}
	if yes, _ = d.sandboxes.Sandboxed(c.Agent, string(c.Session)); !yes {
		return false, false
	}
	return true, d.sandboxes.Settings().For(c.Agent).ReadOnly(c.Workspace)
}

// whyConfined says by what mode the session of a caller runs in a sandbox.
func (d *daemon) whyConfined(c toolward.Caller) string {
	if yes, _ := d.confines(c); !yes {
		return ""
	}
	_, why := d.sandboxes.Sandboxed(c.Agent, string(c.Session))
	return why
}

var errNoSandboxes = errors.New("the gateway has not found out about sandboxes yet")

// Confinement is the sandbox that a call works in.
func (d *daemon) Confinement(ctx context.Context, call *toolward.Call) (*builtin.Confinement, error) {
	if d.sandboxes == nil {
		return nil, errNoSandboxes
	}
	caller := call.Caller
	caller.Session, caller.Surface = call.Session, call.Surface
	if yes, _ := d.confines(caller); !yes {
		return nil, nil
	}
	request := sandbox.Request{Agent: caller.Agent, Session: string(call.Session), Workspace: caller.Workspace}
	layout, err := d.sandboxes.Layout(ctx, request)
	if err != nil {
		return nil, err
	}
	identity := layout.Identity()
	return &builtin.Confinement{
		Name: layout.Name, Identity: identity, Workdir: layout.Workdir,
		Mounts: layout.Mounts(), FoldCase: layout.FoldCase,
		Env:     d.sandboxes.Settings().For(caller.Agent).EnvRules(),
		Environ: layout.Environ,
		Offline: layout.Offline,
		Acquire: func(ctx context.Context) (sandbox.Handle, func(), error) {
			return d.acquire(ctx, call, request, layout.Name, identity)
		},
	}, nil
}
