package protocol

import (
	"context"
	"fmt"

	"github.com/toolward/toolward/desk"
	"github.com/toolward/toolward/schema"
)

// method is one row of the table of methods. The documentation is made from it.
type method struct {
	name    string
	meaning string
	params  shape
	result  string
	does    desk.Operation // what a person must be allowed to do, checked before it is handled; "" if nobody need be
	person  bool           // a person is needed; with does "" the handler finds out how far
	handle  func(context.Context, *call) (any, *Error)

	check *schema.Schema
}

// on makes a method of a handler with parameters of its own type.
func on[P any](name string, params shape, does desk.Operation, handle func(*call, context.Context, *P) (any, *Error), result, meaning string) *method {
	m := &method{name: name, meaning: meaning, params: params, result: result, does: does, person: does != ""}
	m.handle = func(ctx context.Context, r *call) (any, *Error) {
		p := new(P)
		if wrong := readParams(m.name, m.check, r.params, p); wrong != nil {
			return nil, wrong
		}
		return handle(r, ctx, p)
	}
	return m
}

// methodTable is every method of this server, besides connect.
func methodTable() []*method {
	none := object()
	answered := "`{id, decision, createdAtMs, expiresAtMs}`"
	pairing := func(field string) shape { return object(need(field, name(128))) }
	token := func(more ...field) shape {
		return object(append([]field{need("deviceId", name(128)), need("role", oneOf("operator", "node"))}, more...)...)
	}
	return []*method{
		on("health", object(may("probe", boolean())), "", (*call).getHealth, "`{ok, trouble?, ts, durationMs, defaultAgentId, agents[], …}`", "whether the gateway works; kept for a minute unless `probe`"),
		on("status", none, "", (*call).getStatus, "`{version, uptimeMs, connections, person, …}`", "the gateway in short; paths for `operator.admin` only"),
		on("system-presence", none, "", (*call).listPresence, "`[{host, mode, platform, …}]`", "who is connected, as of event `presence`"),
		on("tools.catalog", object(may("agentId", text(64)), may("includePlugins", boolean())), "", (*call).catalog, "`{agentId, profiles[], groups[]}`", "the registered tools by section and plug-in"),
		on("tools.invoke", invokeShape(), "", (*call).invokeTool, "`{ok, toolName, output?, error?, decision}`", "one call of a tool through the gate; `dryRun` only decides"),

		on("exec.approval.request", execRequestShape(), "", (*call).askExec, answered+"; with `twoPhase` first `{status:\"accepted\", …}`", "asks people about a command that the caller runs"),
		on("exec.approval.waitDecision", idShape(), "", (*call).wait, answered, "waits for the answer to one's own question"),
		on("exec.approval.resolve", execResolveShape(), desk.AnswerApprovals, (*call).resolve, "`{ok:true}`", "answers"),
		on("exec.approval.list", none, desk.SeeApprovals, (*call).listExec, "`[{id, request, createdAtMs, expiresAtMs}]`", "commands that wait"),
		on("exec.approval.get", idShape(), desk.SeeApprovals, (*call).getExec, "`{id, request, createdAtMs, expiresAtMs}`", "one of them"),

		on("approval.request", toolRequestShape(), "", (*call).askTool, answered+"; with `twoPhase` first `{status:\"accepted\", …}`", "asks people about any call that the caller runs"),
		on("approval.waitDecision", idShape(), "", (*call).wait, answered, "waits for the answer to one's own question"),
		on("approval.resolve", resolveShape(), desk.AnswerApprovals, (*call).resolve, "`{ok, applied, approval}`", "answers; `allow-always` names the `proposal` that is kept"),
		on("approval.list", object(may("state", oneOf("pending"))), desk.SeeApprovals, (*call).listAll, "`{approvals:[{id, kind, request, …}]}`", "all that waits, the next to expire first"),
		on("approval.get", idShape(), desk.SeeApprovals, (*call).getAny, "`{id, kind, request, state, decision, approval, …}`", "one, waiting or past"),
		on("approval.cancel", idShape(), "", (*call).cancel, "`{ok}`", "takes one's own question back; people with `operator.admin`, anybody's"),

		on("exec.approvals.get", none, desk.ReadAllowlist, (*call).getAllowlist, "`{path, exists, hash, file}`", "which commands run without a question"),
		on("exec.approvals.set", object(need("file", anyObject()), may("baseHash", text(128))), desk.ChangeAllowlist, (*call).setAllowlist, "`{path, exists, hash, file}`", "replaces that; `baseHash` is the hash that was read"),

		on("device.pair.list", none, "", (*call).listDevices, "`{pending[], paired[]}`", "devices that wait and that are paired"),
		forPersons(on("device.pair.approve", pairing("requestId"), "", (*call).approveDevice, "`{requestId, device}`", "pairs a device, for a person who holds all that it gets")),
		forPersons(on("device.pair.reject", pairing("requestId"), "", (*call).rejectDevice, "`{requestId, deviceId}`", "declines, for a person")),
		forPersons(on("device.pair.remove", pairing("deviceId"), "", (*call).removeDevice, "`{deviceId}`", "forgets a device, for a person")),
		on("device.token.rotate", token(may("scopes", list(name(128), 64))), "", (*call).rotateToken, "`{deviceId, role, scopes, rotatedAtMs, token?}`", "a new token, for a person or the device itself; told to that device only"),
		on("device.token.revoke", token(), "", (*call).revokeToken, "`{deviceId, role, revokedAtMs}`", "ends a token, for a person or the device itself"),

		on("audit.list", recordsShape(), desk.SeeRecords, (*call).listRecords, "`{records[], cursor?}`", "the record, newest first"),
		on("audit.tail", recordsShape(), desk.SeeRecords, (*call).tailRecords, "`{records[], cursor, truncated}`", "what was recorded since the cursor, oldest first"),

		on("node.list", none, "", (*call).listNodes, "`{ts, nodes[]}`", "nodes; there are none yet"),
		on("node.pair.list", none, "", (*call).listNodePairings, "`{pending[], paired[]}`", "nodes that wait and that are paired; there are none yet"),
	}
}

// forPersons marks a method that checks itself whether a person may do it.
func forPersons(m *method) *method {
	m.person = true
	return m
}

// compileMethods prepares the checks of all parameters.
func compileMethods() (map[string]*method, error) {
	all := map[string]*method{}
	for _, m := range methodTable() {
		check, err := m.params.compile()
		if err != nil {
			return nil, fmt.Errorf("method %s: %w", m.name, err)
		}
		m.check = check
		all[m.name] = m
	}
	return all, nil
}
