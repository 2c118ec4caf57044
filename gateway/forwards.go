package gateway

import (
	"github.com/toolward/toolward/audit"
	"github.com/toolward/toolward/desk"
	"github.com/toolward/toolward/sandbox/forward"
	"github.com/toolward/toolward/sandbox/settings"
)

// forwardEnded keeps that a port of a sandbox is no longer open to this machine, and why.
func (g *Gateway) forwardEnded(f forward.Forward, why string) {
	data := desk.ForwardData(desk.EventForwardEnded, &f)
	data["why"] = why
	g.events.put(audit.Event{Type: audit.TypeSandbox, Agent: settings.ScopeAgentID(f.Scope), Data: data})
}
