package bridge

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/bridge/ticket"
)

// ClaudeCode is the name of the client in paths, settings and session keys.
const ClaudeCode = "claude-code"

// CanaryTool is a tool that no client has: a call of it is always refused. Doctor makes one through the installed
// hook to see whether it really blocks.
const CanaryTool = "toolward_canary"

// claudeEvents are the events that the hook is installed for, in the order in which they are written.
var claudeEvents = []string{
	"PreToolUse", "PostToolUse", "PostToolUseFailure", "PermissionDenied", "PreCompact", "SessionStart", "SessionEnd",
	"Stop", "SubagentStop",
}

// claudeCode answers one event of Claude Code.
func (g *guest) claudeCode(ctx context.Context, event string, body []byte, env environment) reply {
	return g.h.guarded(ClaudeCode+" "+event, func() reply {
		var e claudeEvent
		if err := json.Unmarshal(body, &e); err != nil {
			return reply{Answer: refuseHook("the client's event is not the JSON that we know: " + err.Error())}
		}
		if event != "" && e.Event != event {
			return reply{Answer: refuseHook(fmt.Sprintf("the hook is installed for %s and got %q", event, e.Event))}
		}
		s, err := g.claudeSession(&e, env)
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
			g.calls.closeAll(ctx, func(c *call) bool { return c.key.session == e.Session && c.agent == "" })
		case "SubagentStop":
			g.calls.closeAll(ctx, func(c *call) bool { return c.key.session == e.Session && c.agent == e.Agent && c.agent != "" })
		case "SessionEnd":
			g.calls.closeAll(ctx, func(c *call) bool { return c.key.session == e.Session })
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

// before decides a call.
func (s *claudeSession) before(ctx context.Context) reply {
	e := s.event
	if e.Tool == CanaryTool {
		return decision("deny", "Toolward blocks: this is its canary.")
	}
	if e.Tool == "" || e.CallID == "" || len(e.CallID) > 256 || len(e.Input) == 0 {
		return decision("deny", "The call did not run: the client did not say what it is.")
	}
	mine, earlier := s.guest.calls.begin(callKey{e.Session, e.CallID}, e.Agent, s.digest())
	if earlier != nil {
		return s.wait(ctx, earlier)
	}
	d := s.decide(ctx)
	s.guest.calls.answered(mine, d)
	if d.pass == nil {
		return reply{Answer: d.answer}
	}
	return reply{Answer: d.answer, lost: func() {
		if s.guest.calls.drop(mine) {
			s.guest.calls.finish(ctx, mine, toolward.OutcomeRecord{Status: toolward.StatusUnused, Error: "the client was gone before the answer"})
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
	if row := s.row(); row != nil {
		var err error
		if d.ticket, d.updated, err = s.rewritten(ctx, row, pass); err != nil {
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

// rewritten is the call that the client makes in the place of its own, and the ticket in it if it has one; nil if it makes its
// own. A confined command without a ticket is an error: the client's shell would run it with everything its user may do.
func (s *claudeSession) rewritten(ctx context.Context, row *form, pass *toolward.Pass) (*ticket.Ticket, json.RawMessage, error) {
	if s.h.config.ByTicket != nil {
		if yes, moves := s.h.config.ByTicket(pass.Request()); yes {
			return s.ticketed(ctx, row, pass, moves)
		}
	}
	if !s.h.config.EnforceText {
		return nil, nil, nil
	}
	updated, err := row.enforced(pass, s.event.Input)
	return nil, updated, err
}

func (s *claudeSession) ticketed(ctx context.Context, row *form, pass *toolward.Pass, moves bool) (*ticket.Ticket, json.RawMessage, error) {
	var office *ticket.Office
	if s.h.config.Tickets != nil {
		office = s.h.config.Tickets()
	}
	if office == nil {
		return nil, nil, errors.New("the command is confined, and nobody issues tickets")
	}
	given, command, err := office.Issue(ctx, pass, moves)
	if err != nil {
		return nil, nil, err
	}
	updated, err := row.withCommand(s.event.Input, claudeNamed(pass.Request().Facts.Command, command, moves))
	if err != nil {
		given.Void()
		return nil, nil, err
	}
	return given, updated, nil
}

// claudeLenient finds the last command of a text if it is one of which the client takes exit status 1 for an answer and not for a
// failure. It goes by the text alone.
var claudeLenient = regexp.MustCompile(`(?:^|[|;&\n])[ \t]*(grep|rg|find|diff|test)[ \t][^|;&\n]*\s*$`)

// claudeNamed is what the client runs in the place of a command, under the name that the client goes by.
func claudeNamed(text, instead string, moves bool) string {
	found := claudeLenient.FindStringSubmatch(text)
	if found == nil || moves {
		return instead
	}
	return found[1] + "() { " + instead + "; }; " + found[1]
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

// claudeCanary is a call of the canary as the client gives it to its hook.
func claudeCanary(workDir string) (event []byte, environ []string, err error) {
	event, err = json.Marshal(map[string]any{
		"hook_event_name": "PreToolUse", "session_id": "toolward-doctor", "transcript_path": "", "cwd": workDir,
		"tool_name": CanaryTool, "tool_input": map[string]any{}, "tool_use_id": "canary",
	})
	return event, []string{"CLAUDE_PROJECT_DIR=" + workDir, "CLAUDE_CODE_SESSION_ATTENDED=0"}, err
}

// claudeBlocks reports whether the client would refuse a call after this answer.
func claudeBlocks(stdout []byte) bool {
	var answer claudeDecision
	return json.Unmarshal(stdout, &answer) == nil && answer.Output.Event == "PreToolUse" && answer.Output.Decision == "deny"
}

// claudeCommand is a call of the client's shell as the client gives it to its hook.
func claudeCommand(workDir, text string) (event []byte, environ []string, err error) {
	event, err = json.Marshal(map[string]any{
		"hook_event_name": "PreToolUse", "session_id": "toolward-doctor", "transcript_path": "", "cwd": workDir,
		"tool_name": "Bash", "tool_input": map[string]any{"command": text}, "tool_use_id": rand.Text(),
	})
	return event, []string{"CLAUDE_PROJECT_DIR=" + workDir, "CLAUDE_CODE_SESSION_ATTENDED=0"}, err
}

// claudeInstead is what the client would run after this answer.
func claudeInstead(stdout []byte) (command string, allowed bool) {
	var answer claudeDecision
	if json.Unmarshal(stdout, &answer) != nil || answer.Output.Decision != "allow" {
		return "", false
	}
	var input struct{ Command string }
	if len(answer.Output.Updated) > 0 && json.Unmarshal(answer.Output.Updated, &input) != nil {
		return "", false
	}
	return input.Command, true
}
