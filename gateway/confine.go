package gateway

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/toolward/toolward/sandbox/settings"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/builtin"
	"github.com/toolward/toolward/egress"
	"github.com/toolward/toolward/sandbox"
)

// confines reports whether the session of a caller runs in a sandbox, and whether nothing in that one can be written to.
// What a client runs itself never does.
func (g *Gateway) confines(c toolward.Caller) (yes, readOnly bool) {
	if g.sandboxes == nil || c.Surface == toolward.SurfaceHook {
		return false, false
	}
	yes, readOnly, _ = g.sandboxes.Settings().Confines(requestOf(c))
	return yes, readOnly
}

// whyConfined says by what mode the session of a caller runs in a sandbox.
func (g *Gateway) whyConfined(c toolward.Caller) string {
	if g.sandboxes == nil || c.Surface == toolward.SurfaceHook {
		return ""
	}
	if yes, _, why := g.sandboxes.Settings().Confines(requestOf(c)); yes {
		return why
	}
	return ""
}

// requestOf is which sandbox a caller's session needs, if it needs one.
func requestOf(c toolward.Caller) settings.Request {
	return settings.Request{Agent: c.Agent, Session: string(c.Session), Workspace: c.Workspace}
}

var errNoSandboxes = errors.New("the gateway has not found out about sandboxes yet")

// Confinement is the sandbox that a call works in.
func (g *Gateway) Confinement(ctx context.Context, call *toolward.Call) (*builtin.Confinement, error) {
	if g.sandboxes == nil {
		return nil, errNoSandboxes
	}
	caller := call.Caller
	caller.Session, caller.Surface = call.Session, call.Surface
	if yes, _ := g.confines(caller); !yes {
		return nil, nil
	}
	request := requestOf(caller)
	layout, err := g.sandboxes.Layout(ctx, request)
	if err != nil {
		return nil, err
	}
	identity := layout.Identity()
	var used atomic.Pointer[egress.Use]
	return &builtin.Confinement{
		Name: layout.Name, Identity: identity, Workdir: layout.Workdir, Home: layout.Home,
		Mounts: layout.Mounts(), FoldCase: layout.FoldCase,
		Env:     g.sandboxes.Settings().For(caller.Agent).EnvRules(),
		Environ: layout.Environ,
		Offline: layout.Offline,
		Acquire: func(ctx context.Context, command string) (sandbox.Handle, func(), error) {
			handle, use, release, err := g.acquire(ctx, call, request, layout.Name, identity, command)
			used.Store(use)
			return handle, release, err
		},
		Unreached: func() []string {
			if use := used.Load(); use != nil {
				return use.Unreached()
			}
			return nil
		},
	}, nil
}
