package protocol

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/approval"
	"github.com/toolward/toolward/command"
	"github.com/toolward/toolward/schema"
)

// execRequest are the parameters of exec.approval.request.
type execRequest struct {
	ID                  *string           `json:"id"`
	Command             string            `json:"command"`
	CommandArgv         []string          `json:"commandArgv"`
	Plan                json.RawMessage   `json:"systemRunPlanV2"`
	Env                 map[string]string `json:"env"`
	Cwd                 *string           `json:"cwd"`
	Host                *string           `json:"host"`
	Security            *string           `json:"security"`
	Ask                 *string           `json:"ask"`
	AgentID             *string           `json:"agentId"`
	ResolvedPath        *string           `json:"resolvedPath"`
	SessionKey          *string           `json:"sessionKey"`
	TurnSourceChannel   *string           `json:"turnSourceChannel"`
	TurnSourceTo        *string           `json:"turnSourceTo"`
	TurnSourceAccountID *string           `json:"turnSourceAccountId"`
	TurnSourceThreadID  any               `json:"turnSourceThreadId"`
	NodeID              *string           `json:"nodeId"`
	TimeoutMs           int64             `json:"timeoutMs"`
	TwoPhase            bool              `json:"twoPhase"`
	AllowedDecisions    []string          `json:"allowedDecisions"`
	Binding             map[string]any    `json:"binding"`
	AllowAlwaysPatterns []string          `json:"allowAlwaysPatterns"`
	Severity            string            `json:"severity"`
	Warnings            []string          `json:"warnings"`
}

// runPlan is systemRunPlanV2: a command as a node has prepared it.
type runPlan struct {
	Argv       []string `json:"argv"`
	Cwd        *string  `json:"cwd"`
	RawCommand *string  `json:"rawCommand"`
	AgentID    *string  `json:"agentId"`
	SessionKey *string  `json:"sessionKey"`
}

var decisionWords = []string{toolward.AllowOnce.String(), toolward.AllowAlways.String(), toolward.DenyCall.String()}

func execRequestShape() shape {
	line := orNull(text(4096))
	return object(
		may("id", name(128)), need("command", name(1<<20)), may("commandArgv", list(text(1<<20), 4096)),
		may("systemRunPlanV2", orNull(object(
			need("version", oneOfNumber(2)), need("argv", someOf(text(1<<20), 4096)), may("cwd", line), may("rawCommand", orNull(text(1<<20))),
			may("agentId", line), may("sessionKey", line),
		))),
		may("env", mapOf(text(1<<17), 1024)), may("cwd", line), may("host", line), may("security", line), may("ask", line),
		may("agentId", line), may("resolvedPath", line), may("sessionKey", line), may("turnSourceChannel", line),
		may("turnSourceTo", line), may("turnSourceAccountId", line),
		may("turnSourceThreadId", orNull(either(text(4096), shape{map[string]any{"type": "number"}, "i"}))),
		may("nodeId", orNull(name(1024))), may("timeoutMs", whole(1)), may("twoPhase", boolean()),
		may("allowedDecisions", list(oneOf(decisionWords...), 3)), may("severity", oneOf("info", "warning", "critical")),
		may("warnings", list(text(1000), 16)), may("binding", anyObject()), may("allowAlwaysPatterns", list(text(4096), 256)),
	)
}

func oneOfNumber(n int) shape { return shape{map[string]any{"const": n}, "i"} }

func (r *call) askExec(ctx context.Context, p *execRequest) (any, *Error) {
	host := trimmed(p.Host)
	if host == "node" {
		switch {
		case trimmed(p.NodeID) == "":
			return nil, invalid("nodeId is required for host=node")
		case len(p.Plan) == 0 && len(p.CommandArgv) == 0:
			return nil, invalid("commandArgv is required for host=node")
		}
	}
	if strings.TrimSpace(p.Command) == "" {
		return nil, invalid("invalid exec.approval.request params: \"command\" must not be blank")
	}
	if wrong := p.agree(); wrong != nil {
		return nil, wrong
	}
	args, err := encode(map[string]any{"command": p.Command})
	if err != nil {
		return nil, invalid("the request has no canonical form: %s", err)
	}
	about := &asked{"exec", args, trimmed(p.Cwd), trimmed(p.NodeID), trimmed(p.AgentID), trimmed(p.SessionKey)}
	if wrong := about.checkIdentity(); wrong != nil {
		return nil, wrong
	}
	d := approval.Details{
		Tool: "exec", Title: "exec: " + firstLine(p.Command), Command: p.Command, WorkDir: trimmed(p.Cwd), Host: toolward.Host(host),
		Agent: trimmed(p.AgentID), Session: toolward.SessionKey(trimmed(p.SessionKey)), Channel: trimmed(p.TurnSourceChannel),
		Sender: trimmed(p.TurnSourceTo), Account: trimmed(p.TurnSourceAccountID), ByClient: true,
		Claims: claimed("severity", p.Severity, "warnings", strings.Join(p.Warnings, "\n"), "security", trimmed(p.Security), "ask", trimmed(p.Ask)),
		Exec: &approval.ExecRequest{
			Argv: p.CommandArgv, EnvKeys: slices.Sorted(maps.Keys(p.Env)), EnvHash: envHash(p.Env), Node: trimmed(p.NodeID),
			Security: trimmed(p.Security), Ask: trimmed(p.Ask), ResolvedPath: trimmed(p.ResolvedPath), Thread: threadOf(p.TurnSourceThreadID),
			Plan: nonNull(p.Plan),
		},
	}
	digest, wrong := digestOf(map[string]any{
		"kind": "exec", "command": p.Command, "argv": p.CommandArgv, "env": d.Exec.EnvHash, "cwd": d.WorkDir, "host": host,
		"node": d.Exec.Node, "agent": d.Agent, "session": string(d.Session), "device": r.admitted.deviceID, "binding": p.Binding,
	})
	if wrong != nil {
		return nil, wrong
	}
	d.Digest = digest
	read := r.read(ctx, about, &d)
	if wrong := dangerousNames(p.Env); len(wrong) > 0 {
		d.Reasons = append(d.Reasons, wrong...)
		if read != nil {
			read.Judgment.Class.Severity = toolward.Critical
		}
	}
	return r.ask(ctx, &question{
		id: trimmed(p.ID), kind: approval.KindExec, details: d, read: read, digest: digest, allowed: p.AllowedDecisions, timeoutMs: p.TimeoutMs,
		twoPhase: p.TwoPhase,
	})
}

// agree refuses a request whose parts contradict each other: people would approve the text that they read, and the argument list, the
// plan or another directory would run. What a plan says and the request leaves out is taken from the plan.
func (p *execRequest) agree() *Error {
	if p.Plan = nonNull(p.Plan); p.Plan != nil {
		var plan runPlan
		if err := json.Unmarshal(p.Plan, &plan); err != nil {
			return invalid("invalid exec.approval.request params: systemRunPlanV2 cannot be read")
		}
		if len(p.CommandArgv) > 0 && !slices.Equal(p.CommandArgv, plan.Argv) {
			return contradicts("commandArgv")
		}
		p.CommandArgv = plan.Argv
		for _, same := range []struct {
			name    string
			request **string
			plan    *string
		}{{"cwd", &p.Cwd, plan.Cwd}, {"agentId", &p.AgentID, plan.AgentID}, {"sessionKey", &p.SessionKey, plan.SessionKey}} {
			says := trimmed(*same.request)
			if says != "" && says != trimmed(same.plan) {
				return contradicts(same.name)
			}
			*same.request = same.plan
		}
		if _, err := command.TextOf(plan.Argv, trimmed(plan.RawCommand)); err != nil {
			return invalid("%v", err)
		}
	}
	if len(p.CommandArgv) == 0 {
		return nil
	}
	text, err := command.TextOf(p.CommandArgv, p.Command)
	if err != nil {
		return invalid("%v", err)
	}
	p.Command = text.Text
	return nil
}

func contradicts(field string) *Error {
	return withDetail(invalid("%s is not that of systemRunPlanV2", field), "CONTRADICTION")
}

// question is what a program asks people.
type question struct {
	id        string
	kind      approval.Kind
	details   approval.Details
	read      *toolward.Question // how the gate reads the call; nil if it cannot
	digest    string
	allowed   []string
	timeoutMs int64
	twoPhase  bool
}

// ask puts a question to people and waits for the answer.
func (r *call) ask(ctx context.Context, q *question) (any, *Error) {
	if q.id == "" {
		q.id = approval.NewID()
	}
	asks, approvals := r.server.asks, r.server.approvals
	if !asks.begin(q.id, r.conn) {
		return nil, r.noRoom(ctx, q.id)
	}
	var allowed []toolward.Decision
	for _, word := range q.allowed {
		if d, err := toolward.ParseDecision(word); err == nil {
			allowed = append(allowed, d)
		}
	}
	record, err := approvals.Submit(ctx, approval.Submission{
		ID: q.id, Kind: q.kind, Details: q.details, Read: q.read, Binding: q.digest, Allowed: allowed,
		Timeout:    min(time.Duration(q.timeoutMs), time.Duration(longestAsk/time.Millisecond)) * time.Millisecond,
		Connection: r.conn.id, Device: r.admitted.deviceID, Client: r.admitted.client.name(),
	})
	if err != nil {
		asks.end(q.id)
		return nil, askError(err)
	}
	if q.twoPhase {
		r.first(map[string]any{"status": "accepted", "id": record.ID, "createdAtMs": record.CreatedMs, "expiresAtMs": record.ExpiresMs})
	}
	// The wait goes on when the connection ends: the question is open, and its asker may come back for the answer.
	over := make(chan answered, 1)
	r.server.busy.Go(func() {
		decision, err := approvals.Wait(r.server.ctx, record.ID)
		asks.end(record.ID)
		over <- answered{decision, err}
	})
	select {
	case a := <-over:
		if a.err != nil {
			return nil, waitError(a.err)
		}
		return decided(record, a.decision), nil
	case <-ctx.Done():
		return nil, unavailable("the connection ended")
	}
}

type answered struct {
	decision toolward.Decision
	err      error
}

// noRoom says why a question is not put.
func (r *call) noRoom(ctx context.Context, id string) *Error {
	r.server.asks.mu.Lock()
	taken := r.server.asks.open[id] != nil
	r.server.asks.mu.Unlock()
	if taken {
		return idTaken()
	}
	return unavailable("too many pending approvals")
}

func idTaken() *Error { return withDetail(invalid("approval id already pending"), "APPROVAL_PENDING") }

func askError(err error) *Error {
	switch {
	case errors.Is(err, approval.ErrIDPending):
		return idTaken()
	case errors.Is(err, approval.ErrTooMany):
		return unavailable("too many pending approvals")
	case errors.Is(err, approval.ErrClosed):
		return unavailable("the gateway is shutting down")
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return unavailable("the question could not be recorded in time")
	}
	return invalid("%s", err)
}

func decided(r *approval.Record, d toolward.Decision) map[string]any {
	return map[string]any{"id": r.ID, "decision": wordOf(d), "createdAtMs": r.CreatedMs, "expiresAtMs": r.ExpiresMs}
}

// wordOf is a decision in words; none is null.
func wordOf(d toolward.Decision) any {
	if d == toolward.NoDecision {
		return nil
	}
	return d.String()
}

// idParams are the parameters of methods about one approval.
type idParams struct {
	ID string `json:"id"`
}

func idShape() shape { return object(may("id", text(1024))) }

// wait waits for the decision of an approval of the asker's own, or of anybody's for a person.
func (r *call) wait(ctx context.Context, p *idParams) (any, *Error) {
	id := strings.TrimSpace(p.ID)
	if id == "" {
		return nil, invalid("id is required")
	}
	record, err := r.server.approvals.Own(ctx, id, r.conn.id, r.admitted.deviceID)
	if err == nil && record.State == approval.StatePending && !record.Request.Lasting {
		r.server.asks.adopt(record.ID, r.conn)
	}
	if err != nil {
		record, err = r.server.desk.Approval(ctx, r.visitor(), id)
	}
	if err != nil || !r.kindFits(record) {
		return nil, waitError(approval.ErrUnknown)
	}
	decision, err := r.server.approvals.Wait(ctx, record.ID)
	if err != nil {
		return nil, waitError(err)
	}
	return decided(record, decision), nil
}

// kindFits keeps the methods that are about commands from other approvals.
func (r *call) kindFits(record *approval.Record) bool {
	return record.Kind == approval.KindExec || !strings.HasPrefix(r.method.name, "exec.")
}

func waitError(err error) *Error {
	if errors.Is(err, approval.ErrRestored) {
		return withDetail(invalid("%s", err), "RESTORED_APPROVAL")
	}
	if errors.Is(err, approval.ErrUnknown) {
		return withDetail(invalid("approval expired or not found"), "UNKNOWN_APPROVAL")
	}
	return unavailable("the gateway cannot wait for the decision any longer")
}

func trimmed(s *string) string {
	if s == nil {
		return ""
	}
	return strings.TrimSpace(*s)
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	return line
}

func nonNull(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 || string(raw) == "null" {
		return nil
	}
	return raw
}

func threadOf(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case nil:
		return ""
	}
	raw, err := encode(v)
	if err != nil {
		return ""
	}
	return string(raw)
}

// envHash is a digest over an environment, so that a question is bound to values that nobody is shown.
func envHash(env map[string]string) string {
	if len(env) == 0 {
		return ""
	}
	h := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(env)) {
		for _, part := range []string{name, env[name]} {
			sum := sha256.Sum256([]byte(part))
			h.Write(sum[:])
		}
	}
	return hex.EncodeToString(h.Sum(nil))
}

// digestOf is the SHA-256 of the canonical form.
func digestOf(v map[string]any) (string, *Error) {
	raw, err := encode(v)
	if err == nil {
		raw, err = schema.Canonicalize(raw)
	}
	if err != nil {
		return "", invalid("the request has no canonical form: %s", err)
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:]), nil
}
