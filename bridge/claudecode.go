package bridge

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/bridge/hookclient"
)

// ClaudeCode is the name of the client in paths, settings and session keys.
const ClaudeCode = "claude-code"

// CanaryTool is a tool that no client has: a call of it is always refused. Doctor makes one through the installed
// hook to see whether it really blocks.
const CanaryTool = "toolward_canary"

// claudeEvent is what the client writes to a hook. Which fields are there depends on the event.
type claudeEvent struct {
	Event      string          `json:"hook_event_name"`
	Session    string          `json:"session_id"`
	Transcript string          `json:"transcript_path"`
	WorkDir    string          `json:"cwd"`
	Prompt     string          `json:"prompt_id"`
	Agent      string          `json:"agent_id"`
	AgentType  string          `json:"agent_type"`
	Tool       string          `json:"tool_name"`
	Input      json.RawMessage `json:"tool_input"`
	CallID     string          `json:"tool_use_id"`
	Response   json.RawMessage `json:"tool_response"`
	DurationMs float64         `json:"duration_ms"`
	Error      string          `json:"error"`
	Interrupt  bool            `json:"is_interrupt"`
	Reason     string          `json:"reason"`
	Source     string          `json:"source"`
	MCP        struct {
		Name string `json:"name"`
	} `json:"mcp_server"`
}

// Answers of the client's contract. Nothing else may be printed: a wrong byte lets the tool run.
type (
	claudeDecision struct {
		Output struct {
			Event    string          `json:"hookEventName"`
			Decision string          `json:"permissionDecision,omitempty"` // allow, deny, ask
			Reason   string          `json:"permissionDecisionReason,omitempty"`
			Updated  json.RawMessage `json:"updatedInput,omitempty"` // what the client runs instead
		} `json:"hookSpecificOutput"`
	}
	claudeResult struct {
		Message string        `json:"systemMessage,omitempty"`
		Output  *claudeOutput `json:"hookSpecificOutput,omitempty"`
	}
	claudeOutput struct {
		Event   string          `json:"hookEventName"`
		Updated json.RawMessage `json:"updatedToolOutput,omitempty"`
	}
)

// claudeCode answers one event of Claude Code.
func (h *Handler) claudeCode(ctx context.Context, event string, body []byte, env environment) reply {
	return h.guarded(ClaudeCode+" "+event, func() reply {
		var e claudeEvent
		if err := json.Unmarshal(body, &e); err != nil {
			return reply{Answer: refuseHook("the client's event is not the JSON that we know: " + err.Error())}
		}
		if event != "" && e.Event != event {
			return reply{Answer: refuseHook(fmt.Sprintf("the hook is installed for %s and got %q", event, e.Event))}
		}
		s, err := h.claudeSession(&e, env)
		if err != nil {
			return reply{Answer: refuseHook(err.Error())}
		}
		switch e.Event {
		case "PreToolUse":
			return s.before(ctx)
		case "PostToolUse":
			return s.after(ctx)
		case "PostToolUseFailure":
			return s.failed(ctx)
		case "PermissionDenied":
			s.finish(ctx, toolward.OutcomeRecord{Status: toolward.StatusUnused, Error: s.clean("the client refused it: " + e.Reason)})
		case "Stop":
			h.calls.closeAll(ctx, func(c *call) bool { return c.key.session == e.Session && c.agent == "" })
		case "SubagentStop":
			h.calls.closeAll(ctx, func(c *call) bool { return c.key.session == e.Session && c.agent == e.Agent && c.agent != "" })
		case "SessionEnd":
			h.calls.closeAll(ctx, func(c *call) bool { return c.key.session == e.Session })
		case "PreCompact":
			return s.compacted(ctx)
		case "SessionStart":
			if e.Source == "compact" {
				return s.compacted(ctx)
			}
		}
		return reply{}
	})
}

// claudeSession is one event in its conversation.
type claudeSession struct {
	h       *Handler
	event   *claudeEvent
	env     environment
	key     toolward.SessionKey
	agent   string
	project string
	finder  *factsFinder
}

func (h *Handler) claudeSession(e *claudeEvent, env environment) (*claudeSession, error) {
	s := &claudeSession{h: h, event: e, env: env, agent: cmp.Or(h.config.Agent, ClaudeCode), project: cmp.Or(env.project, e.WorkDir)}
	if !plainID(e.Session) || e.Agent != "" && !plainID(e.Agent) {
		return nil, errors.New("the client's session has no usable id")
	}
	if !filepath.IsAbs(e.WorkDir) || strings.ContainsRune(e.WorkDir, 0) {
		return nil, errors.New("the client's working directory is not absolute")
	}
	var err error
	if s.key, err = toolward.NewSessionKey(s.agent, "hook", ClaudeCode, e.Session); err != nil {
		return nil, err
	}
	s.finder, err = h.finders.of(s.project)
	return s, err
}

// plainID admits ids that can be part of a session key and a file name.
func plainID(id string) bool {
	if id == "" || len(id) > 128 {
		return false
	}
	for _, c := range []byte(id) {
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '-' && c != '_' {
			return false
		}
	}
	return true
}

// before decides a call.
func (s *claudeSession) before(ctx context.Context) reply {
	e := s.event
	if e.Tool == CanaryTool {
		return decision("deny", "Toolward blocks: this is its canary.")
	}
	if e.Tool == "" || e.CallID == "" || len(e.CallID) > 256 || len(e.Input) == 0 {
		return decision("deny", "The call did not run: the client did not say what it is.")
	}
	mine, earlier := s.h.calls.begin(callKey{e.Session, e.CallID}, e.Agent, s.digest())
	if earlier != nil {
		return s.wait(ctx, earlier)
	}
	d := s.decide(ctx)
	s.h.calls.answered(mine, d)
	if d.pass == nil {
		return reply{Answer: d.answer}
	}
	return reply{Answer: d.answer, lost: func() {
		if s.h.calls.drop(mine) {
			s.h.calls.finish(ctx, mine, toolward.OutcomeRecord{Status: toolward.StatusUnused, Error: "the client was gone before the answer"})
		}
	}}
}

// wait gives the answer of another hook that asks about the same call.
func (s *claudeSession) wait(ctx context.Context, earlier *call) reply {
	select {
	case <-earlier.ready:
		return reply{Answer: earlier.answer}
	case <-ctx.Done():
		return decision("deny", "The call did not run: nobody answered in time. Do not repeat it now.")
	}
}

// digest is over everything of the call that its answer depends on.
func (s *claudeSession) digest() [32]byte {
	e := s.event
	parts, _ := json.Marshal([]string{e.Tool, e.WorkDir, e.Agent, s.project, string(e.Input)})
	return sha256.Sum256(parts)
}

// decided is what became of a call.
type decided struct {
	answer  hookclient.Answer
	pass    *toolward.Pass  // only with an answer that lets the call run
	updated json.RawMessage // the arguments that the client is told to run; nil: its own
}

// refused is the answer that the model is told why in these words.
func refused(why string) decided { return decided{answer: decision("deny", why).Answer} }

// decide puts the call to the gateway.
func (s *claudeSession) decide(ctx context.Context) decided {
	if err := s.reportUsage(ctx); err != nil {
		s.h.log.Error("the use of a client's context could not be noted", "session", s.key, "err", err)
		return refused("The call did not run: an internal error stopped it.")
	}
	call, silent, err := s.call()
	if err != nil {
		return refused("The call did not run: " + err.Error() + ".")
	}
	pass, err := s.h.config.Gateway.Admit(ctx, call)
	if err != nil {
		return refused(refusalText(err))
	}
	if err := pass.Start(); err != nil {
		return refused("The call did not run: it changed while it was decided. Repeat it.")
	}
	if !pass.ClientAsks() {
		s.h.started(pass)
	}
	switch {
	case pass.ClientAsks():
		return decided{answer: decision("ask", "Toolward asks for your decision.").Answer, pass: pass}
	case silent:
		// The client asks its person about this tool; "allow" would answer in the person's place.
		return decided{answer: decision("", "").Answer, pass: pass}
	}
	return s.allowed(ctx, pass)
}

// started tells that a call runs.
func (h *Handler) started(pass *toolward.Pass) {
	if h.config.Started != nil {
		h.config.Started(pass.Request())
	}
}

// allowed lets the client run a call, by the text that was judged where that is wanted.
func (s *claudeSession) allowed(ctx context.Context, pass *toolward.Pass) decided {
	d := decided{pass: pass}
	if row := s.row(); row != nil && s.h.config.EnforceText {
		var err error
		if d.updated, err = row.enforced(pass, s.event.Input); err != nil {
			s.h.log.Error("a client's call could not be rewritten", "session", s.key, "call", s.event.CallID, "err", err)
			unused := toolward.OutcomeRecord{Status: toolward.StatusUnused, Error: "it could not be rewritten to what was judged"}
			if err := pass.Close(context.WithoutCancel(ctx), unused); err != nil {
				s.h.log.Error("the outcome of a client's call could not be recorded", "call", s.event.CallID, "err", err)
			}
			return refused("The call did not run: an internal error stopped it.")
		}
	}
	var answer claudeDecision
	answer.Output.Event, answer.Output.Decision, answer.Output.Updated = "PreToolUse", "allow", d.updated
	d.answer = jsonReply(answer).Answer
	return d
}

// refusalText is what the model is told.
func refusalText(err error) string {
	if refusal, ok := errors.AsType[*toolward.Refusal](err); ok {
		return refusal.Message()
	}
	if pending, ok := errors.AsType[*toolward.Pending](err); ok {
		return pending.Message()
	}
	return "The call did not run: an internal error stopped it."
}

// decision builds the answer to PreToolUse.
func decision(word, reason string) reply {
	var d claudeDecision
	d.Output.Event, d.Output.Decision, d.Output.Reason = "PreToolUse", word, reason
	return jsonReply(d)
}

func jsonReply(v any) reply {
	out, err := json.Marshal(v)
	if err != nil {
		return reply{Answer: refuseHook("an internal error stopped it")}
	}
	return reply{Answer: hookclient.Answer{Stdout: out}}
}

// call translates the client's call.
func (s *claudeSession) call() (c toolward.Call, silent bool, err error) {
	e := s.event
	tool, silent, err := s.form()
	if err != nil {
		return c, false, err
	}
	c = toolward.Call{
		ID: e.CallID, Run: cmp.Or(e.Prompt, e.Session), Tool: tool.Name, NativeName: e.Tool, Arguments: e.Input,
		Session: s.key, Surface: toolward.SurfaceHook, WorkDir: e.WorkDir, Host: toolward.HostGateway,
		ByClient: true, Form: tool,
		// Only a person in front of the client can answer its prompt; headless it would be refused there anyway.
		ClientAsks: s.h.config.Attended == AttendedClient && s.env.attended,
		Caller: toolward.Caller{
			Agent: s.agent, Owner: s.h.config.Owner, Context: "main", Client: "Claude Code", Workspace: s.finder.workspace,
			Connection: "hook:" + ClaudeCode + ":" + e.Session,
		},
	}
	if e.Agent != "" {
		c.Caller.Depth, c.Caller.Context, c.Caller.Sender = 1, "subagent", e.AgentType
	}
	return c, silent, nil
}

// row is what the table says about the client's tool; nil if it does not know it.
func (s *claudeSession) row() *form {
	return s.h.forms[cmp.Or(claudeAliases[s.event.Tool], s.event.Tool)]
}

// form finds what the client's tool is in our words.
func (s *claudeSession) form() (tool *toolward.Tool, silent bool, err error) {
	row := s.row()
	if row == nil || !row.knows(s.event.Input) {
		tool, err := s.foreign(s.event.Tool)
		return tool, false, err
	}
	made := row.tool
	made.Facts = s.finder.facts(row)
	if row.native.diff != nil {
		made.Diff = func(_ context.Context, r *toolward.Request) (string, error) { return row.native.diff(s.finder, r) }
	}
	return &made, row.native.silent, nil
}

// foreign is the form of a tool that the table does not know. MCP tools keep their name; others get the client's
// name in front, so that none passes for a tool of Toolward.
func (s *claudeSession) foreign(name string) (*toolward.Tool, error) {
	prefix, origin := ClaudeCode+"/", ClaudeCode
	if strings.HasPrefix(name, "mcp__") {
		prefix, origin = "", ClaudeCode+":"+cmp.Or(s.event.MCP.Name, "mcp")
	}
	normal, ok := foreignName(prefix, name)
	if !ok {
		return nil, fmt.Errorf("%q is not a tool name", name)
	}
	tool := foreign(normal, origin, s.h.open)
	tool.Facts = func(context.Context, *toolward.Request) (toolward.Facts, error) {
		// The native name is bound, because ours ignores case and two tools may differ in nothing else.
		return toolward.Facts{Mutates: true, Bound: []string{"native " + name}}, nil
	}
	return &tool, nil
}

// reportUsage tells the session how full the client's context is.
func (s *claudeSession) reportUsage(ctx context.Context) error {
	e := s.event
	if !filepath.IsAbs(e.Transcript) {
		return nil
	}
	use, ok := s.h.usage.of(e.Transcript)
	if e.Agent != "" {
		// The fuller of both counts: the sub-agent acts on its own context, and its result ends in the other.
		own, have := s.h.usage.of(agentTranscript(e.Transcript, e.Session, e.Agent))
		if have && own.tokens >= 0 && own.tokens > use.tokens {
			own.compacted = own.compacted || use.compacted
			use, ok = own, true
		}
	}
	if !ok {
		return nil // the first call of a session: what was reported before, or the configured level, stays
	}
	if use.compacted {
		if err := s.h.config.Sessions.Compacted(ctx, s.key); err != nil {
			return err
		}
	}
	return s.h.config.Sessions.Usage(ctx, s.key, use.tokens, windowOf(use.model, s.h.config.Windows))
}

// compacted notes that the client summarizes its history.
func (s *claudeSession) compacted(ctx context.Context) reply {
	if err := s.h.config.Sessions.Compacted(ctx, s.key); err != nil {
		return reply{Answer: refuseHook("the compaction could not be noted")}
	}
	return reply{}
}
