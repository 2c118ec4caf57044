package local

import (
	"context"
	"net/http"
	"net/url"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/desk"
	"github.com/toolward/toolward/server/api"
)

// Status is what the gateway tells anybody about itself.
func (g *Gateway) Status(ctx context.Context) (status api.Status, err error) {
	err = g.get(ctx, "/v1/status", nil, &status)
	return status, err
}

// PendingConfig is the change of the configuration that waits.
func (g *Gateway) PendingConfig(ctx context.Context) (change desk.ConfigChange, err error) {
	err = g.get(ctx, "/v1/config/pending", nil, &change)
	return change, err
}

// ApplyConfig puts a change in force, by the revision that was shown.
func (g *Gateway) ApplyConfig(ctx context.Context, revision string) error {
	return g.post(ctx, "/v1/config/apply", api.ConfigAnswer{Revision: revision}, nil)
}

// What is asked about a call that is not made, and which tools its caller sees.
type (
	ExplainRequest = api.ExplainRequest
	ToolViews      = api.ToolViews
)

// Explain says what would happen to a call.
func (g *Gateway) Explain(ctx context.Context, request ExplainRequest) (trace toolward.Trace, err error) {
	err = g.post(ctx, "/v1/explain", request, &trace)
	return trace, err
}

// ExplainTools says which tools the caller of a request without a tool sees.
func (g *Gateway) ExplainTools(ctx context.Context, request ExplainRequest) (views ToolViews, err error) {
	err = g.post(ctx, "/v1/explain", request, &views)
	return views, err
}

const levelRoute = "/v1/level"

// Level is how tense a session is.
type Level = api.Level

// Level says how tense a session is.
func (g *Gateway) Level(ctx context.Context, session string) (level Level, err error) {
	err = g.get(ctx, levelRoute, url.Values{"session": {session}}, &level)
	return level, err
}

// SetLevel sets the least tense level that a session may have.
func (g *Gateway) SetLevel(ctx context.Context, session, least string) (level Level, err error) {
	query := url.Values{"session": {session}}
	err = g.send(ctx, http.MethodPost, levelRoute, query, api.LevelFloor{Level: least}, &level)
	return level, err
}

// ClearLevel takes that back. With the stamp of the sources that a person has read, the session has also seen nothing of them.
func (g *Gateway) ClearLevel(ctx context.Context, session, read string) (level Level, err error) {
	query := url.Values{"session": {session}}
	if read != "" {
		query.Set("external", read)
	}
	err = g.send(ctx, http.MethodDelete, levelRoute, query, nil, &level)
	return level, err
}

// Sandbox is one sandbox with what it uses.
type Sandbox = api.Sandbox

// Sandboxes lists the sandboxes.
func (g *Gateway) Sandboxes(ctx context.Context) (list api.SandboxList, err error) {
	err = g.get(ctx, "/v1/sandboxes", nil, &list)
	return list, err
}

// StopSandbox stops a sandbox.
func (g *Gateway) StopSandbox(ctx context.Context, name string) error {
	return g.post(ctx, sandbox(name)+"/stop", struct{}{}, nil)
}

// RemoveSandbox removes a sandbox; the next call makes it anew.
func (g *Gateway) RemoveSandbox(ctx context.Context, name string) error {
	return g.post(ctx, sandbox(name)+"/remove", struct{}{}, nil)
}

func sandbox(name string) string { return "/v1/sandboxes/" + url.PathEscape(name) }

// PruneSandboxes ends the sandboxes that are old or unused.
func (g *Gateway) PruneSandboxes(ctx context.Context) (pruned api.Pruned, err error) {
	err = g.post(ctx, "/v1/sandboxes/prune", struct{}{}, &pruned)
	return pruned, err
}
