package gateway

import (
	"context"

	"github.com/toolward/toolward/approval"
	"github.com/toolward/toolward/audit"
	"github.com/toolward/toolward/config"
	"github.com/toolward/toolward/display"
	"github.com/toolward/toolward/session"
)

// recordApproval keeps that people were asked, and what they said.
func (g *Gateway) recordApproval(e approval.Event) {
	a := e.Approval
	event := audit.Event{Type: audit.TypeApproval, Data: map[string]any{
		"event": string(e.Type), "id": a.ID, "binding": a.Binding, "state": string(a.State),
		"decision": a.Decision.String(), "resolvedBy": a.ResolvedBy, "reason": a.Reason, "grant": a.Grant,
	}}
	if a.Request != nil {
		event.Agent, event.Session, event.Tool = a.Request.Agent, a.Request.Session, a.Request.Tool
	}
	g.events.put(event)
	if wire := g.wire.Load(); wire != nil {
		wire.ApprovalNews(e)
	}
	if e.Type == approval.EventResolved && a.Grant != "" {
		g.events.put(audit.Event{Type: audit.TypeGrant, Agent: event.Agent, Session: event.Session, Tool: event.Tool, Data: map[string]any{
			"event": "made", "grant": a.Grant, "approval": a.ID, "by": a.ResolvedBy,
		}})
	}
	if e.Type == approval.EventResolved && len(a.Saved) > 0 {
		var entries []string
		for _, entry := range a.Saved {
			entries = append(entries, display.AllowedProgram(entry.Pattern, entry.Effects, entry.Argv))
		}
		g.events.put(audit.Event{Type: audit.TypeGrant, Agent: event.Agent, Session: event.Session, Tool: event.Tool, Data: map[string]any{
			"event": "added to exec-approvals.json", "entries": entries, "approval": a.ID, "by": a.ResolvedBy,
		}})
	}
}

// takeBack ends the grants that which names, and keeps which they were.
func (g *Gateway) takeBack(why string, which func(*approval.Grant) bool) {
	var gone []*approval.Grant
	_, err := g.approver.DropGrants(context.Background(), why, func(grant *approval.Grant) bool {
		if !which(grant) {
			return false
		}
		gone = append(gone, grant)
		return true
	})
	for _, grant := range gone {
		g.events.put(audit.Event{Type: audit.TypeGrant, Agent: grant.Agent, Tool: grant.Tool, Data: map[string]any{
			"event": "taken back", "grant": grant.ID, "text": grant.Text, "why": why,
		}})
	}
	if err != nil {
		g.log.Error("grants that were taken back could not be ended on disk; they end with this process", "why", why, "err", err)
	}
}

// recordLevel keeps that a session's level changed, and why.
func (g *Gateway) recordLevel(c session.Change) {
	g.log.Info("teg.level", "session", c.Session, "from", c.From, "to", c.To, "reasons", c.Reasons)
	g.events.put(audit.Event{
		Type: audit.TypeLevel, Session: c.Session, Agent: c.Session.Agent(),
		Data: map[string]any{"from": c.From.String(), "to": c.To.String(), "reasons": c.Reasons, "by": c.By},
	})
}

// configChanged tells what became of a changed configuration file.
func (g *Gateway) configChanged(e config.Event) {
	switch {
	case e.Err != nil:
		g.log.Error("the changed configuration is wrong; the old one stays in force", "err", e.Err)
		g.events.put(audit.Event{Type: audit.TypeConfig, Data: map[string]any{"event": "refused", "error": e.Err.Error()}})
	case e.Pending != nil:
		g.log.Warn("the configuration file has changed; the change waits for you in the console", "file", e.Pending.Name)
		g.events.put(audit.Event{Type: audit.TypeConfig, Data: map[string]any{"event": "proposed", "hash": e.Pending.Hash}})
	case e.Applied != nil:
		g.log.Info("configuration in force", "hash", e.Applied.Hash[:12], "after a restart", e.Restart)
		g.events.put(audit.Event{Type: audit.TypeConfig, Data: map[string]any{"event": "in force", "hash": e.Applied.Hash}})
	}
}
