package protocol

import (
	"slices"

	"github.com/toolward/toolward/identity"
)

// methodScopes are the scopes of every method of the protocol, also of those that this server does not have yet: which
// scope a method needs must not depend on when it is built.
var methodScopes = map[string]string{
	"status": identity.ScopeRead, "models.list": identity.ScopeRead, "agents.list": identity.ScopeRead, "tools.catalog": identity.ScopeRead,
	"tools.effective": identity.ScopeRead, "chat.history": identity.ScopeRead, "sessions.list": identity.ScopeRead,
	"sessions.preview": identity.ScopeRead, "sessions.resolve": identity.ScopeRead, "node.list": identity.ScopeRead,
	"node.describe": identity.ScopeRead, "config.get": identity.ScopeRead, "cron.list": identity.ScopeRead, "cron.status": identity.ScopeRead,
	"cron.runs": identity.ScopeRead, "audit.list": identity.ScopeRead, "logs.tail": identity.ScopeRead, "system-presence": identity.ScopeRead,
	"last-heartbeat": identity.ScopeRead, "agent.identity.get": identity.ScopeRead,

	"tools.invoke": identity.ScopeWrite, "agent": identity.ScopeWrite, "agent.wait": identity.ScopeWrite, "chat.send": identity.ScopeWrite,
	"chat.abort": identity.ScopeWrite, "node.invoke": identity.ScopeWrite, "send": identity.ScopeWrite, "wake": identity.ScopeWrite,

	"exec.approval.request": identity.ScopeApprovals, "exec.approval.waitDecision": identity.ScopeApprovals,
	"exec.approval.resolve": identity.ScopeApprovals, "exec.approval.list": identity.ScopeApprovals, "exec.approval.get": identity.ScopeApprovals,
	"approval.request": identity.ScopeApprovals, "approval.waitDecision": identity.ScopeApprovals, "approval.list": identity.ScopeApprovals,
	"approval.get": identity.ScopeApprovals, "approval.resolve": identity.ScopeApprovals, "approval.cancel": identity.ScopeApprovals,

	"node.pair.list": identity.ScopePairing, "node.pair.request": identity.ScopePairing, "node.pair.approve": identity.ScopePairing,
	"node.pair.reject": identity.ScopePairing, "node.pair.verify": identity.ScopePairing, "node.rename": identity.ScopePairing,
	"device.pair.list": identity.ScopePairing, "device.pair.approve": identity.ScopePairing, "device.pair.reject": identity.ScopePairing,
	"device.pair.remove": identity.ScopePairing, "device.token.rotate": identity.ScopePairing, "device.token.revoke": identity.ScopePairing,
}

// nodeMethods are the only methods of a node, and of nobody else.
var nodeMethods = []string{"node.invoke.result", "node.event", "skills.bins"}

// openMethod may be called by whoever is connected.
const openMethod = "health"

// missingScope is the scope that a call lacks; "" if it lacks none. wrongRole means that no scope would do. A method
// that nobody classified needs operator.admin.
func missingScope(method string, role identity.Role, scopes []string) (scope string, wrongRole bool) {
	forNodes := slices.Contains(nodeMethods, method)
	switch {
	case method == openMethod:
		return "", false
	case forNodes || role != identity.RoleOperator:
		return "", !forNodes || role != identity.RoleNode
	}
	scope = methodScope(method)
	if identity.Covers(scopes, scope) {
		return "", false
	}
	return scope, false
}

func methodScope(method string) string {
	if scope, known := methodScopes[method]; known {
		return scope
	}
	return identity.ScopeAdmin
}
