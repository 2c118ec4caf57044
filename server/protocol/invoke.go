package protocol

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/identity"
	"github.com/toolward/toolward/policy/visible"
)

// Policy is what is asked about tools.
type Policy interface {
	View(toolward.Caller) []visible.ToolView
}

// Agent is as whom a call runs.
type Agent struct {
	ID        string
	Workspace string // "" if it has none
	Owner     bool   // the token says that its calls count as the owner's
	TokenID   string // "" if no token of the agent's own was shown
}

// AgentList is the agents of the configuration.
type AgentList struct {
	Default string
	All     []Agent
}

func (l AgentList) find(id string) (Agent, bool) {
	for _, a := range l.All {
		if a.ID == id {
			return a, true
		}
	}
	return Agent{ID: l.Default}, id == "" || id == l.Default
}

// invocation is one call of a tool by a program of an operator, or by an agent over HTTP.
type invocation struct {
	tool       string
	action     string
	args       json.RawMessage
	sessionKey string
	agentID    string // wanted; "" for the one of the session, else the default
	agent      *Agent // of the token; nil if it was no agent's
	dryRun     bool

	channel, account, sender, thread string
	client, connection, device       string
}

// invocationError is an invocation that gave no result.
type invocationError struct {
	status  int
	kind    string // error.type
	message string
	code    toolward.Code // of a refusal
	pending *toolward.Pending
}

func (e *invocationError) Error() string { return e.message }

// Types of errors over HTTP.
const (
	typeUnauthorized = "unauthorized"
	typeLimited      = "rate_limited"
	typeInvalid      = "invalid_request_error"
	typeNotFound     = "not_found"
	typeForbidden    = "forbidden"
	typeDenied       = "approval_denied"
	typePending      = "approval_pending"
	typeBlocked      = "policy_blocked"
	typeTool         = "tool_error"
	typeMethod       = "method_not_allowed"
)

func badCall(message string) *invocationError {
	return &invocationError{status: http.StatusBadRequest, kind: typeInvalid, message: message}
}

// invocationResult is what a call gave.
type invocationResult struct {
	result   map[string]any
	decision map[string]any
}

// invoke sends a call through the gate that every other call goes through: there is no side door here.
func (s *Server) invoke(ctx context.Context, v *invocation) (*invocationResult, *invocationError) {
	call, wrong := s.callOf(v)
	if wrong != nil {
		return nil, wrong
	}
	if v.dryRun {
		trace := s.gate.Explain(ctx, *call, toolward.ExplainOptions{})
		if trace.Code == toolward.CodeUnknownTool {
			return nil, refusedCall(&toolward.Refusal{Tool: call.Tool, Code: trace.Code})
		}
		// Which rule it was is for people: it would teach how to get around it.
		decision := map[string]any{"verdict": trace.Verdict, "class": trace.Class, "level": trace.Level}
		if trace.Code != "" {
			decision["code"] = trace.Code
		}
		return &invocationResult{decision: decision}, nil
	}
	result, err := s.gate.Call(ctx, *call)
	var refusal *toolward.Refusal
	var pending *toolward.Pending
	switch {
	case errors.As(err, &refusal):
		return nil, refusedCall(refusal)
	case errors.As(err, &pending):
		// No status of success: a client that does not know the type must not take it for a result.
		return nil, &invocationError{status: http.StatusForbidden, kind: typePending, message: pending.Message(), pending: pending}
	case err != nil:
		s.log.Error("a call over the gateway protocol failed", "tool", call.Tool, "err", err)
		return nil, &invocationError{status: http.StatusInternalServerError, kind: typeTool, message: "tool execution failed"}
	case result.IsError:
		return nil, &invocationError{status: http.StatusInternalServerError, kind: typeTool, message: "tool execution failed"}
	}
	return &invocationResult{result: resultWire(&result), decision: map[string]any{"verdict": toolward.Allow}}, nil
}

// refusedCall is a refusal as clients see it. A tool that is not there and one that is not offered look alike.
func refusedCall(r *toolward.Refusal) *invocationError {
	e := &invocationError{status: http.StatusForbidden, kind: typeBlocked, message: r.Message(), code: r.Code}
	switch r.Code {
	case toolward.CodeUnknownTool:
		e.status, e.kind, e.message, e.code = http.StatusNotFound, typeNotFound, "tool not available", ""
	case toolward.CodeInvalidArgs:
		e.status, e.kind = http.StatusBadRequest, typeTool
	case toolward.CodeNoApprovalChannel, toolward.CodeApprovalTimeout, toolward.CodeApproverAway, toolward.CodeDeniedByUser, toolward.CodeDeniedBefore:
		e.kind = typeDenied
	case toolward.CodeNoSandbox:
		e.status, e.kind = http.StatusServiceUnavailable, typeTool
	case toolward.CodeAuditUnavailable, toolward.CodeInternal:
		e.status, e.kind, e.message = http.StatusInternalServerError, typeTool, "tool execution failed"
	}
	return e
}

// callOf says who calls, and in which conversation.
func (s *Server) callOf(v *invocation) (*toolward.Call, *invocationError) {
	agent, session, wrong := s.identityOf(v)
	if wrong != nil {
		return nil, wrong
	}
	args := v.args
	if len(args) == 0 {
		args = json.RawMessage("{}")
	}
	caller := toolward.Caller{
		Agent: agent.ID, Owner: agent.Owner, Context: "main", Channel: v.channel, Account: v.account, Sender: v.sender,
		Client: v.client, Workspace: agent.Workspace, Connection: v.connection, Device: v.device, Session: session,
		Surface: toolward.SurfaceHTTP,
	}
	name := toolward.NormalToolName(v.tool)
	if v.action != "" {
		args = s.withAction(caller, name, v.action, args)
	}
	return &toolward.Call{
		Tool: name, NativeName: v.tool, Arguments: args, Caller: caller, Session: session, Surface: toolward.SurfaceHTTP,
		WorkDir: agent.Workspace, Host: toolward.HostGateway,
	}, nil
}

// identityOf is the agent and the conversation. A token of an agent's own names both, and a conversation that it asks
// for lies below its token: it cannot step into another's. Whoever has the gateway's secret may name them, but is the
// owner only if a token says so.
func (s *Server) identityOf(v *invocation) (Agent, toolward.SessionKey, *invocationError) {
	fail := func(status int, kind, message string) (Agent, toolward.SessionKey, *invocationError) {
		return Agent{}, "", &invocationError{status: status, kind: kind, message: message}
	}
	key := strings.TrimSpace(v.sessionKey)
	if v.agent != nil {
		if v.agentID != "" && v.agentID != v.agent.ID {
			return fail(http.StatusForbidden, typeForbidden, "the token belongs to another agent")
		}
		if named := toolward.SessionKey(key).Agent(); named != "" && named != v.agent.ID {
			return fail(http.StatusForbidden, typeForbidden, "sessionKey belongs to another agent than the token")
		}
		if key == "" || key == "main" {
			key = time.Now().UTC().Format(time.DateOnly)
		}
		session, err := toolward.NewSessionKey(v.agent.ID, "http", v.agent.TokenID, key)
		if err != nil {
			return fail(http.StatusBadRequest, typeInvalid, "sessionKey: "+err.Error())
		}
		return *v.agent, session, nil
	}
	list := s.agents()
	id := v.agentID
	named := toolward.SessionKey(key).Agent()
	if id == "" {
		id = named
	}
	agent, known := list.find(id)
	switch {
	case !known:
		return fail(http.StatusNotFound, typeNotFound, "no such agent")
	case named != "" && named != agent.ID:
		return fail(http.StatusBadRequest, typeInvalid, "sessionKey belongs to another agent")
	case key == "":
		key = "main"
	}
	if named != "" {
		_, key, _ = strings.Cut(strings.TrimPrefix(key, "agent:"), ":")
	}
	session, err := toolward.NewSessionKey(agent.ID, key)
	if err != nil {
		return fail(http.StatusBadRequest, typeInvalid, "sessionKey: "+err.Error())
	}
	return agent, session, nil
}

// withAction puts the action among the arguments, if the tool has one and they do not. It only ever adds; what is
// decided and run are the arguments with it.
func (s *Server) withAction(caller toolward.Caller, tool, action string, args json.RawMessage) json.RawMessage {
	i := slices.IndexFunc(s.policy().View(caller), func(v visible.ToolView) bool { return v.Tool.Name == tool })
	if i < 0 {
		return args
	}
	var schema struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	if json.Unmarshal(s.policy().View(caller)[i].Tool.Schema, &schema) != nil || schema.Properties["action"] == nil {
		return args
	}
	fields, err := splitObject(args)
	if err != nil || fields["action"] != nil {
		return args // wrong arguments are refused by the gate, with the reason
	}
	fields["action"], _ = json.Marshal(action)
	merged, err := json.Marshal(fields)
	if err != nil {
		return args
	}
	return merged
}

// resultWire is a result as clients of this protocol read it.
func resultWire(r *toolward.Result) map[string]any {
	content := []any{}
	for _, c := range r.Content {
		switch {
		case c.MIME == "":
			content = append(content, map[string]any{"type": "text", "text": c.Text})
		case strings.HasPrefix(c.MIME, "image/"):
			content = append(content, map[string]any{"type": "image", "mimeType": c.MIME, "data": base64.StdEncoding.EncodeToString(c.Data)})
		default:
			content = append(content, map[string]any{"type": "resource", "mimeType": c.MIME, "data": base64.StdEncoding.EncodeToString(c.Data)})
		}
	}
	out := map[string]any{"content": content}
	if r.Structured != nil {
		out["details"] = r.Structured
	}
	return out
}

// invokeParams are the parameters of tools.invoke.
type invokeParams struct {
	Name           string          `json:"name"`
	Args           json.RawMessage `json:"args"`
	SessionKey     string          `json:"sessionKey"`
	AgentID        string          `json:"agentId"`
	IdempotencyKey string          `json:"idempotencyKey"`
	DryRun         bool            `json:"dryRun"`
}

func invokeShape() shape {
	return object(
		need("name", name(128)), may("args", anyObject()), may("sessionKey", text(512)), may("agentId", text(64)),
		may("idempotencyKey", name(256)), may("dryRun", boolean()),
	)
}

// pendingAnswer is an answer that says that people have not answered yet.
type pendingAnswer map[string]any

// invokeTool is the endpoint /tools/invoke as a method.
func (r *call) invokeTool(ctx context.Context, p *invokeParams) (any, *Error) {
	run := func() (any, *Error) {
		result, failed := r.server.invoke(ctx, &invocation{
			tool: p.Name, args: p.Args, sessionKey: p.SessionKey, agentID: p.AgentID, dryRun: p.DryRun,
			client: r.admitted.client.name(), connection: r.conn.id, device: r.admitted.deviceID,
		})
		if failed != nil {
			out := map[string]any{"ok": false, "toolName": p.Name, "error": map[string]any{"code": failed.kind, "message": failed.message}}
			if p := failed.pending; p != nil {
				out["requiresApproval"], out["approvalId"], out["expiresAtMs"] = true, p.ID, p.ExpiresAt.UnixMilli()
				return pendingAnswer(out), nil
			}
			if failed.code != "" {
				out["decision"] = map[string]any{"verdict": toolward.Deny, "code": failed.code}
			}
			return out, nil
		}
		out := map[string]any{"ok": true, "toolName": p.Name, "decision": result.decision}
		if result.result != nil {
			out["output"] = result.result
		}
		return out, nil
	}
	if p.IdempotencyKey == "" {
		return run()
	}
	who := r.admitted.deviceID
	if who == "" {
		who = "shared " + r.admitted.user
	}
	return r.server.repeats.do(ctx, repeatKey{who, r.method.name, p.IdempotencyKey}, r.params, run)
}

// mayInvoke is the scope that a call over HTTP needs where a proxy says which scopes its user has.
const mayInvoke = identity.ScopeWrite
