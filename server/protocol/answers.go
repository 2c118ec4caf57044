package protocol

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"strings"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/approval"
	"github.com/toolward/toolward/desk"
	"github.com/toolward/toolward/identity"
	"github.com/toolward/toolward/schema"
)

// toolRequest are the parameters of approval.request.
type toolRequest struct {
	ID                  *string         `json:"id"`
	Kind                string          `json:"kind"`
	Tool                string          `json:"tool"`
	ToolCallID          string          `json:"toolCallId"`
	Title               string          `json:"title"`
	Description         string          `json:"description"`
	Severity            string          `json:"severity"`
	RiskClass           string          `json:"riskClass"`
	RuntimeLevel        string          `json:"runtimeLevel"`
	Reasons             []string        `json:"reasons"`
	Preview             json.RawMessage `json:"preview"`
	ParamsDigest        string          `json:"paramsDigest"`
	Diff                string          `json:"diff"`
	Targets             []string        `json:"targets"`
	AllowedDecisions    []string        `json:"allowedDecisions"`
	AgentID             *string         `json:"agentId"`
	SessionKey          *string         `json:"sessionKey"`
	TurnSourceChannel   *string         `json:"turnSourceChannel"`
	TurnSourceTo        *string         `json:"turnSourceTo"`
	TurnSourceAccountID *string         `json:"turnSourceAccountId"`
	TurnSourceThreadID  any             `json:"turnSourceThreadId"`
	TimeoutMs           int64           `json:"timeoutMs"`
	TwoPhase            bool            `json:"twoPhase"`
}

func toolRequestShape() shape {
	line := orNull(text(4096))
	return object(
		may("id", name(128)), may("kind", oneOf("tool", "plugin")), need("tool", toolName()), may("toolCallId", text(128)), need("title", name(80)),
		may("description", text(4000)), need("severity", oneOf("info", "warning", "critical")),
		need("riskClass", oneOf("safe", "needs_approval", "blocked")), need("runtimeLevel", oneOf("normal", "elevated", "lockdown")),
		need("reasons", list(text(200), 16)), need("preview", anything()), need("paramsDigest", digestShape()), may("diff", text(64<<10)),
		may("targets", list(text(4096), 64)), may("allowedDecisions", list(oneOf(decisionWords...), 3)), may("agentId", line),
		may("sessionKey", line), may("turnSourceChannel", line), may("turnSourceTo", line), may("turnSourceAccountId", line),
		may("turnSourceThreadId", orNull(either(text(4096), shape{map[string]any{"type": "number"}, "i"}))),
		may("timeoutMs", whole(1)), may("twoPhase", boolean()),
	)
}

// toolName has no white space: it stands in the gate's own words, and must not go on as a sentence of the program's.
func toolName() shape {
	return shape{map[string]any{"type": "string", "minLength": 1, "maxLength": 64, "pattern": "^[!-~]+$"}, "s"}
}

func digestShape() shape {
	return shape{map[string]any{"type": "string", "minLength": 1, "maxLength": 128, "pattern": "^[0-9a-f]+$"}, "hex"}
}

func (r *call) askTool(ctx context.Context, p *toolRequest) (any, *Error) {
	if len(p.Preview) > 16<<10 {
		return nil, invalid("invalid approval.request params: \"preview\" is larger than 16 KiB")
	}
	about := &asked{tool: p.Tool, agent: trimmed(p.AgentID), session: trimmed(p.SessionKey)}
	if wrong := about.checkIdentity(); wrong != nil {
		return nil, wrong
	}
	d := approval.Details{
		Tool: p.Tool, CallID: p.ToolCallID, Title: p.Tool, Digest: p.ParamsDigest, Agent: about.agent, Session: toolward.SessionKey(about.session),
		Channel: trimmed(p.TurnSourceChannel), Sender: trimmed(p.TurnSourceTo), Account: trimmed(p.TurnSourceAccountID), ByClient: true,
		Claims: claimed("title", p.Title, "description", p.Description, "severity", p.Severity, "class", p.RiskClass, "level", p.RuntimeLevel,
			"reasons", strings.Join(p.Reasons, "\n"), "targets", strings.Join(p.Targets, "\n"), "change", p.Diff),
	}
	if p.bound(about) {
		about.args = p.Preview // all of the arguments, and the digest proves it
	} else {
		d.Claims = append(d.Claims, claimed("arguments", readable(p.Preview))...)
	}
	digest, wrong := digestOf(map[string]any{
		"kind": "tool", "tool": p.Tool, "params": p.ParamsDigest, "agent": d.Agent, "session": string(d.Session), "title": p.Title,
		"preview": p.Preview, "diff": p.Diff, "targets": p.Targets, "device": r.admitted.deviceID,
	})
	if wrong != nil {
		return nil, wrong
	}
	return r.ask(ctx, &question{
		id: trimmed(p.ID), kind: approval.KindTool, details: d, read: r.read(ctx, about, &d), digest: digest, allowed: p.AllowedDecisions, timeoutMs: p.TimeoutMs,
		twoPhase: p.TwoPhase,
	})
}

// bound reports whether what the program shows of the arguments is all of them: the digest that the question is bound to is theirs.
func (p *toolRequest) bound(about *asked) bool {
	canonical, err := schema.Canonicalize(p.Preview)
	if err != nil {
		return false
	}
	params := toolward.NewParams(canonical, nil)
	return params.Digest(p.Tool, about.agent, toolward.SessionKey(about.session)) == p.ParamsDigest
}

// readable is JSON over several lines.
func readable(raw json.RawMessage) string {
	var b bytes.Buffer
	if json.Indent(&b, raw, "", "  ") != nil {
		return string(raw)
	}
	return b.String()
}

// resolveParams are the parameters of the methods that answer.
type resolveParams struct {
	ID       string `json:"id"`
	Decision string `json:"decision"`
	Reason   string `json:"reason"`
	Kind     string `json:"kind"`
	Proposal *int   `json:"proposal"`
	Digest   string `json:"bindingDigest"`
}

func execResolveShape() shape {
	return object(need("id", name(1024)), need("decision", name(64)), may("bindingDigest", digestShape()))
}

func resolveShape() shape {
	return object(
		need("id", name(1024)), need("decision", name(64)), may("reason", text(2000)), may("kind", oneOf("exec", "plugin", "tool")),
		may("proposal", whole(0)), may("bindingDigest", digestShape()), may("reviewer", anything()), may("grantExpiresInDays", shape{map[string]any{"type": "number"}, "i"}),
	)
}

// resolve answers an approval. An answer that would be kept for later calls must name what is kept: a client that
// cannot show it cannot save it.
func (r *call) resolve(ctx context.Context, p *resolveParams) (any, *Error) {
	decision, err := toolward.ParseDecision(p.Decision)
	if err != nil {
		return nil, invalid("invalid decision")
	}
	if decision == toolward.AllowAlways && p.Proposal == nil {
		return nil, withDetail(invalid("decision not available: name the proposal that is to be kept (approval.resolve), or answer in the console"), "NOT_OFFERED")
	}
	record, err := r.server.desk.Approval(ctx, r.visitor(), strings.TrimSpace(p.ID))
	if err != nil || !r.kindFits(record) || !kindNamed(record, p.Kind) || record.State != approval.StatePending {
		return nil, unknownApproval()
	}
	answer := desk.Answer{ID: record.ID, Decision: p.Decision, Reason: p.Reason, Binding: p.Digest, Typed: true}
	if p.Proposal != nil {
		answer.Proposal = *p.Proposal
	}
	if r.presence != nil {
		r.presence.Active()
	}
	resolved, err := r.server.desk.Answer(ctx, r.visitor(), answer)
	if err != nil {
		return nil, resolveError(err)
	}
	if strings.HasPrefix(r.method.name, "exec.") {
		return map[string]any{"ok": true}, nil
	}
	resolved.Request = record.Request
	return map[string]any{"ok": true, "applied": true, "approval": summaryOf(resolved)}, nil
}

func kindNamed(record *approval.Record, kind string) bool {
	if kind == "plugin" {
		kind = string(approval.KindTool)
	}
	return kind == "" || kind == string(record.Kind)
}

func resolveError(err error) *Error {
	switch desk.CodeOf(err) {
	case desk.Unknown, desk.Resolved:
		return unknownApproval()
	case desk.NotOffered:
		return withDetail(invalid("decision not available"), "NOT_OFFERED")
	case desk.Changed:
		return withDetail(invalid("%s", err), "DIGEST_MISMATCH")
	case desk.TooSoon:
		return withDetail(&Error{Code: codeUnavailable, Message: err.Error(), Retryable: true, RetryAfterMs: 500}, "TOO_SOON")
	case desk.OwnQuestion:
		return withDetail(invalid("%s", err), "SELF_APPROVAL")
	}
	return invalid("the answer was not taken: %s", err)
}

func unknownApproval() *Error { return withDetail(invalid("unknown approval id"), "UNKNOWN_APPROVAL") }

// listExec lists the commands that wait, for exec.approval.list.
func (r *call) listExec(ctx context.Context, _ *struct{}) (any, *Error) {
	list, failed := r.pending(ctx)
	if failed != nil {
		return nil, failed
	}
	out := []any{}
	for _, record := range list {
		if record.Kind == approval.KindExec {
			out = append(out, execEntry(record))
		}
	}
	return out, nil
}

// listAll lists everything that waits, the next to expire first.
func (r *call) listAll(ctx context.Context, _ *struct{ State string }) (any, *Error) {
	list, failed := r.pending(ctx)
	if failed != nil {
		return nil, failed
	}
	out := []any{}
	for _, record := range list {
		out = append(out, anyEntry(record))
	}
	return map[string]any{"approvals": out}, nil
}

func (r *call) pending(ctx context.Context) ([]*approval.Record, *Error) {
	list, err := r.server.desk.Waiting(ctx, r.visitor())
	if err != nil {
		r.server.log.Error("approvals could not be listed", "err", err)
		return nil, unavailable("approvals cannot be listed now")
	}
	return list, nil
}

func (r *call) getExec(ctx context.Context, p *idParams) (any, *Error) {
	record, failed := r.lookUp(ctx, p)
	if failed != nil || record.State != approval.StatePending {
		return nil, unknownApproval()
	}
	return execEntry(record), nil
}

func (r *call) getAny(ctx context.Context, p *idParams) (any, *Error) {
	record, failed := r.lookUp(ctx, p)
	if failed != nil {
		return nil, failed
	}
	entry := anyEntry(record)
	entry["state"], entry["decision"], entry["resolvedBy"] = record.State, wordOf(record.Decision), cmp.Or(record.ResolvedBy, "")
	if record.ResolvedMs > 0 {
		entry["resolvedAtMs"], entry["reason"] = record.ResolvedMs, record.Reason
	}
	entry["approval"] = summaryOf(record)
	return entry, nil
}

func (r *call) lookUp(ctx context.Context, p *idParams) (*approval.Record, *Error) {
	record, err := r.server.desk.Approval(ctx, r.visitor(), strings.TrimSpace(p.ID))
	if err != nil || !r.kindFits(record) {
		return nil, unknownApproval()
	}
	return record, nil
}

// cancel takes a question back, for whoever asked it; a person with operator.admin ends anybody's.
func (r *call) cancel(_ context.Context, p *idParams) (any, *Error) {
	id := strings.TrimSpace(p.ID)
	err := r.server.approvals.Cancel(id, r.conn.id, r.admitted.deviceID)
	mayEnd := r.by.MayAnswer() == nil && identity.Covers(r.scopes(), identity.ScopeAdmin)
	if err != nil && !(mayEnd && r.server.approvals.Expire(id, approval.ByCanceled)) {
		return nil, unknownApproval()
	}
	return map[string]any{"ok": true}, nil
}

// execEntry is an approval as the methods and events about commands show it.
func execEntry(record *approval.Record) map[string]any {
	return map[string]any{"id": record.ID, "request": execWire(record.Request), "createdAtMs": record.CreatedMs, "expiresAtMs": record.ExpiresMs}
}

// anyEntry is an approval as the generic methods and events show it.
func anyEntry(record *approval.Record) map[string]any {
	return map[string]any{
		"id": record.ID, "kind": record.Kind, "request": record.Request, "createdAtMs": record.CreatedMs, "expiresAtMs": record.ExpiresMs,
		"allowedDecisions": words(record.Allowed), "bindingDigest": record.Binding,
	}
}

func words(list []toolward.Decision) []string {
	out := make([]string, 0, len(list))
	for _, d := range list {
		out = append(out, d.String())
	}
	return out
}

// execWire is the object "request" of approvals of commands. What is not known is null.
func execWire(d *approval.Details) any {
	if d == nil {
		return nil
	}
	e := approval.ExecRequest{}
	if d.Exec != nil {
		e = *d.Exec
	}
	wire := map[string]any{
		"command": d.Command, "commandArgv": orNil(e.Argv), "envKeys": orNil(e.EnvKeys), "systemRunPlanV2": rawOrNil(e.Plan),
		"systemRunBindingV1": nil, "cwd": textOrNil(d.WorkDir), "nodeId": textOrNil(e.Node), "host": textOrNil(string(d.Host)),
		"security": textOrNil(e.Security), "ask": textOrNil(e.Ask), "agentId": textOrNil(d.Agent), "resolvedPath": textOrNil(e.ResolvedPath),
		"sessionKey": textOrNil(string(d.Session)), "turnSourceChannel": textOrNil(d.Channel), "turnSourceTo": textOrNil(d.Sender),
		"turnSourceAccountId": textOrNil(d.Account), "turnSourceThreadId": textOrNil(e.Thread),
	}
	if len(e.Argv) > 0 {
		wire["systemRunBindingV1"] = map[string]any{
			"version": 1, "argv": e.Argv, "cwd": textOrNil(d.WorkDir), "agentId": textOrNil(d.Agent),
			"sessionKey": textOrNil(string(d.Session)), "envHash": textOrNil(e.EnvHash),
		}
	}
	return wire
}

func orNil(list []string) any {
	if len(list) == 0 {
		return nil
	}
	return list
}

func textOrNil(s string) any {
	if s == "" {
		return nil
	}
	return s
}

func rawOrNil(raw json.RawMessage) any {
	if len(raw) == 0 {
		return nil
	}
	return raw
}

// summaryOf is an approval as clients of version 4 show it.
func summaryOf(record *approval.Record) map[string]any {
	status := "pending"
	switch {
	case record.State == approval.StatePending:
	case record.Decision.Allows():
		status = "allowed"
	case record.Decision == toolward.DenyCall:
		status = "denied"
	case record.ResolvedBy == approval.ByCanceled:
		status = "cancelled"
	default:
		status = "expired"
	}
	presentation := map[string]any{"kind": "plugin", "allowedDecisions": words(record.Allowed)}
	if d := record.Request; d != nil {
		presentation["title"] = d.Title
		if record.Kind == approval.KindExec {
			presentation["kind"], presentation["commandText"] = "exec", d.Command
		}
		if d.Host != "" {
			presentation["host"] = d.Host
		}
		if d.Agent != "" {
			presentation["agentId"] = d.Agent
		}
	}
	out := map[string]any{
		"id": record.ID, "urlPath": "/approvals/" + record.ID, "createdAtMs": record.CreatedMs, "expiresAtMs": record.ExpiresMs,
		"status": status, "presentation": presentation,
	}
	if record.ResolvedMs > 0 {
		out["resolvedAtMs"], out["decision"], out["reason"] = record.ResolvedMs, wordOf(record.Decision), textOrNil(record.Reason)
	}
	return out
}
