package bridge

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/bridge/hookclient"
)

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

// claudeSession is one event in its conversation.
type claudeSession struct {
	guest   *guest
	h       *Handler
	event   *claudeEvent
	env     environment
	key     toolward.SessionKey
	agent   string
	project string
	finder  *factsFinder
}

func (g *guest) claudeSession(e *claudeEvent, env environment) (*claudeSession, error) {
	s := &claudeSession{guest: g, h: g.h, event: e, env: env, agent: g.agent, project: cmp.Or(env.project, e.WorkDir)}
	if !plainID(e.Session) || e.Agent != "" && !plainID(e.Agent) {
		return nil, errors.New("the client's session has no usable id")
	}
	if !filepath.IsAbs(e.WorkDir) || strings.ContainsRune(e.WorkDir, 0) {
		return nil, errors.New("the client's working directory is not absolute")
	}
	var err error
	if s.key, err = toolward.NewSessionKey(s.agent, "hook", g.name, e.Session); err != nil {
		return nil, err
	}
	s.finder, err = g.finders.of(s.project)
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
		Caller: toolward.Caller{
			Agent: s.agent, Owner: s.h.config.Owner, Context: "main", Client: s.guest.title, Workspace: s.finder.workspace,
			Connection: "hook:" + s.guest.name + ":" + e.Session,
		},
	}
	// Only a person in front of the client can answer its prompt; headless it would be refused there anyway. About a confined
	// command Toolward asks by itself: the client would show its person a ticket.
	confined := tool.Name == "exec" && s.finder.confines(c.Caller, s.key)
	c.ClientAsks = s.h.config.Attended == AttendedClient && s.env.attended && !confined
	if e.Agent != "" {
		c.Caller.Depth, c.Caller.Context, c.Caller.Sender = 1, "subagent", e.AgentType
	}
	return c, silent, nil
}

// row is what the table says about the client's tool; nil if it does not know it.
func (s *claudeSession) row() *form {
	return s.guest.forms[cmp.Or(s.guest.aliases[s.event.Tool], s.event.Tool)]
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
	prefix, origin := s.guest.name+"/", s.guest.name
	if strings.HasPrefix(name, "mcp__") {
		prefix, origin = "", s.guest.name+":"+cmp.Or(s.event.MCP.Name, "mcp")
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
