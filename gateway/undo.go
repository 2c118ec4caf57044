package gateway

import (
	"context"
	"path/filepath"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/undo/kept"
)

// openUndo opens what keeps workspaces, unless the configuration switches it off. What is kept lies in the state directory, which is
// out of every agent's reach: whoever can write to it decides what taking a call back writes.
func (g *Gateway) openUndo(ctx context.Context, _ Options) error {
	settings := g.atStart.Undo
	if !settings.Keeps() || g.person != nil {
		return nil
	}
	g.kept = kept.Open(ctx, kept.Options{
		Dir: filepath.Join(g.home, "undo"), Limits: settings.Limits(), Workspace: g.places.CheckWorkspace, Redact: g.secrets.String, Log: g.log,
	})
	return nil
}

// keeper is what the gate asks before calls; nil if nothing is kept.
func (g *Gateway) keeper() toolward.Keeper {
	if g.kept == nil {
		return nil
	}
	return g.kept
}
