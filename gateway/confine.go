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
// What a client does itself never is; a command that it wants to run may be, see Confinement.
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

// worksInside reports whether a call does its work in a sandbox, and by what mode. Of what clients do themselves it is the
// commands that do, through toolward-run.
func (g *Gateway) worksInside(call *toolward.Call, caller toolward.Caller) (yes bool, why string) {
	if caller.Surface == toolward.SurfaceHook {
		if !call.ByClient || call.Tool != "exec" || !g.runsForClients(caller) {
			return false, ""
		}
	}
	yes, _, why = g.sandboxes.Settings().Confines(requestOf(caller))
	return yes, why
}

// runsForClients reports whether the commands of a client are confined where nothing else is said: it has a workspace of its own, and
// toolward-run was found.
func (g *Gateway) runsForClients(caller toolward.Caller) bool {
	if g.sandboxes == nil || caller.Workspace == "" {
		return false
	}
	yes, _, _ := g.sandboxes.Settings().Confines(requestOf(caller))
	return yes && g.issuesTickets()
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
	yes, why := g.worksInside(call, caller)
	if !yes {
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
		Name: layout.Name, Identity: identity, Why: why, Workdir: layout.Workdir, Home: layout.Home,
		Mounts: layout.Mounts(), FoldCase: layout.FoldCase,
		Env:     g.sandboxes.Settings().For(caller.Agent).EnvRules(),
		Environ: layout.Environ,
		Offline: layout.Offline, CPUs: layout.CPUs, Private: layout.Access == settings.AccessNone,
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
