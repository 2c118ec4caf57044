package protocol

import (
	"slices"

	"github.com/toolward/toolward/device"
)

// methodScopes are the scopes of every method of the protocol, also of those that this server does not have yet: which
// scope a method needs must not depend on when it is built.
var methodScopes = map[string]string{
	"status": device.ScopeRead, "models.list": device.ScopeRead, "agents.list": device.ScopeRead, "tools.catalog": device.ScopeRead,
	"tools.effective": device.ScopeRead, "chat.history": device.ScopeRead, "sessions.list": device.ScopeRead,
	"sessions.preview": device.ScopeRead, "sessions.resolve": device.ScopeRead, "node.list": device.ScopeRead,
	"node.describe": device.ScopeRead, "config.get": device.ScopeRead, "cron.list": device.ScopeRead, "cron.status": device.ScopeRead,
	"cron.runs": device.ScopeRead, "audit.list": device.ScopeRead, "logs.tail": device.ScopeRead, "system-presence": device.ScopeRead,
	"last-heartbeat": device.ScopeRead, "agent.identity.get": device.ScopeRead,

	"tools.invoke": device.ScopeWrite, "agent": device.ScopeWrite, "agent.wait": device.ScopeWrite, "chat.send": device.ScopeWrite,
	"chat.abort": device.ScopeWrite, "node.invoke": device.ScopeWrite, "send": device.ScopeWrite, "wake": device.ScopeWrite,

	"exec.approval.request": device.ScopeApprovals, "exec.approval.waitDecision": device.ScopeApprovals,
	"exec.approval.resolve": device.ScopeApprovals, "exec.approval.list": device.ScopeApprovals, "exec.approval.get": device.ScopeApprovals,
	"approval.request": device.ScopeApprovals, "approval.waitDecision": device.ScopeApprovals, "approval.list": device.ScopeApprovals,
	"approval.get": device.ScopeApprovals, "approval.resolve": device.ScopeApprovals, "approval.cancel": device.ScopeApprovals,

	"node.pair.list": device.ScopePairing, "node.pair.request": device.ScopePairing, "node.pair.approve": device.ScopePairing,
	"node.pair.reject": device.ScopePairing, "node.pair.verify": device.ScopePairing, "node.rename": device.ScopePairing,
	"device.pair.list": device.ScopePairing, "device.pair.approve": device.ScopePairing, "device.pair.reject": device.ScopePairing,
	"device.pair.remove": device.ScopePairing, "device.token.rotate": device.ScopePairing, "device.token.revoke": device.ScopePairing,
}

// nodeMethods are the only methods of a node, and of nobody else.
var nodeMethods = []string{"node.invoke.result", "node.event", "skills.bins"}

// openMethod may be called by whoever is connected.
const openMethod = "health"

// missingScope is the scope that a call lacks; "" if it lacks none. wrongRole means that no scope would do. A method
// that nobody classified needs operator.admin.
func missingScope(method string, role device.Role, scopes []string) (scope string, wrongRole bool) {
	forNodes := slices.Contains(nodeMethods, method)
	switch {
	case method == openMethod:
		return "", false
	case forNodes || role != device.RoleOperator:
		return "", !forNodes || role != device.RoleNode
	}
	scope = methodScope(method)
	if device.Covers(scopes, scope) {
		return "", false
	}
	return scope, false
}

func methodScope(method string) string {
	if scope, known := methodScopes[method]; known {
		return scope
	}
	return device.ScopeAdmin
}
