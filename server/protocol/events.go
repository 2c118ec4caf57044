package protocol

import (
	"github.com/toolward/toolward/identity"
)

// maxBuffered is how many bytes may wait for a client before it counts as slow.
const maxBuffered = 50 << 20

// eventRule is who gets an event, and whether a slow client may miss it.
type eventRule struct {
	name      string
	scope     string // "" is everybody who is connected
	droppable bool
	meaning   string // for the documentation
	payload   string
}

// eventTable is every event that this server sends. Events that are not here go to nobody but operator.admin.
var eventTable = []eventRule{
	{"connect.challenge", "", false, "before anything else, to that connection", "`{nonce, ts}`"},
	{"tick", "", true, "every 30 s: whoever misses two reconnects", "`{ts}`"},
	{"shutdown", "", false, "the gateway ends; close 1012 follows", "`{reason, restartExpectedMs?}`"},
	{"health", "", false, "the gateway's health is not what it was", "as of method `health`"},
	{"presence", "", true, "who is connected has changed; told at most twice a second", "`{presence[{host, mode, platform, version, deviceId?, roles, scopes, tags?, ts}]}`: the latest 100; `tags` has `person`"},
	{"security", identity.ScopeApprovals, true, "something odd, for people: what a detector noticed, or somebody who guesses credentials", "`{kind, severity, detail, ts, sessionKey?, agentId?, tool?}`"},
	{"exec.approval.requested", identity.ScopeApprovals, true, "a command waits for people", "`{id, request, createdAtMs, expiresAtMs}`"},
	{"exec.approval.resolved", identity.ScopeApprovals, true, "it was answered, or nobody did in time", "`{id, decision, resolvedBy, ts, request}`"},
	{"approval.requested", identity.ScopeApprovals, true, "any call waits for people", "the same with `kind`, `allowedDecisions`, `bindingDigest`"},
	{"approval.resolved", identity.ScopeApprovals, true, "it was answered, or nobody did in time", "the same with `kind`, `reason`"},
	{"device.pair.requested", identity.ScopePairing, true, "a device waits to be paired", "`{requestId, deviceId, role, scopes, platform, …}`"},
	{"device.pair.resolved", identity.ScopePairing, true, "it was paired, or declined", "`{requestId, deviceId, decision, ts}`"},
}

// laterRules are events of parts that this server does not have yet, with the scopes that the protocol gives them.
var laterRules = map[string]eventRule{
	"agent":               {scope: identity.ScopeRead},
	"chat":                {scope: identity.ScopeRead},
	"cron":                {scope: identity.ScopeRead, droppable: true},
	"heartbeat":           {scope: identity.ScopeRead, droppable: true},
	"node.pair.requested": {scope: identity.ScopePairing, droppable: true},
	"node.pair.resolved":  {scope: identity.ScopePairing, droppable: true},
}

// nodeInvoke is for the one node that it names.
const nodeInvoke = "node.invoke.request"

func eventRuleOf(name string) eventRule {
	for _, rule := range eventTable {
		if rule.name == name {
			return rule
		}
	}
	if rule, known := laterRules[name]; known {
		return rule
	}
	return eventRule{scope: identity.ScopeAdmin}
}

// delivery is what becomes of an event for one client.
type delivery uint8

// The deliveries. The zero value tells nothing to anybody.
const (
	skip      delivery = iota // it is not meant for this client: it does not use up a number
	send                      // it is queued
	sendAlone                 // it is queued without a number: it is for this client alone, which misses nothing that others get
	drop                      // the client is slow and may miss it: the number is used up, so that the client notices
	hangUp                    // the client is slow and must not miss it: the connection is closed
)

// addressed is an event on its way.
type addressed struct {
	name      string
	droppable bool
	targeted  bool // it is for one client
}

// deliver decides about one event and one client. A node gets no operator's event, whatever scopes it claims, and an operator none
// that is for a node.
func (e addressed) deliver(buffered int64, role identity.Role, scopes []string) delivery {
	scope, toNode := eventRuleOf(e.name).scope, e.name == nodeInvoke
	switch {
	case toNode && role != identity.RoleNode:
		return skip
	case !toNode && scope != "" && (role != identity.RoleOperator || !identity.Covers(scopes, scope)):
		return skip
	case buffered <= maxBuffered && (e.targeted || toNode):
		return sendAlone
	case buffered <= maxBuffered:
		return send
	case e.droppable && e.targeted:
		return skip
	case e.droppable:
		return drop
	}
	return hangUp
}

// usesNumber reports whether an event advances the client's own sequence.
func (d delivery) usesNumber() bool { return d == send || d == drop }
