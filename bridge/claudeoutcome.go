package bridge

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"
	"time"

	"github.com/toolward/toolward"
)

// after takes the outcome of a call that ran.
func (s *claudeSession) after(ctx context.Context) reply {
	e := s.event
	sum := sha256.Sum256(e.Response)
	outcome := toolward.OutcomeRecord{
		Status: toolward.StatusOK, Duration: s.duration(), ResultBytes: len(e.Response), ResultDigest: hex.EncodeToString(sum[:]),
		External: s.external(),
	}
	updated, problem := s.redacted()
	var messages []string
	if problem != "" {
		messages = append(messages, problem)
	}
	if warning := s.finish(ctx, outcome); warning != "" {
		messages = append(messages, warning)
	}
	if updated == nil && len(messages) == 0 {
		return reply{}
	}
	result := claudeResult{Message: strings.Join(messages, " ")}
	if updated != nil {
		result.Output = &claudeOutput{Event: "PostToolUse", Updated: updated}
	}
	return jsonReply(result)
}

// failed takes the outcome of a call that failed.
func (s *claudeSession) failed(ctx context.Context) reply {
	e := s.event
	outcome := toolward.OutcomeRecord{
		Status: toolward.StatusError, Duration: s.duration(), Error: s.clean(e.Error), ResultBytes: len(e.Error), External: s.external(),
	}
	if e.Interrupt {
		outcome.Status = toolward.StatusAborted
	}
	var messages []string
	if s.h.config.Redact != nil {
		if _, found := s.h.config.Redact(e.Error); found {
			messages = append(messages, "Toolward: the error text of "+e.Tool+" holds a secret, and the client does not let it be hidden from the model.")
		}
	}
	if warning := s.finish(ctx, outcome); warning != "" {
		messages = append(messages, warning)
	}
	if len(messages) == 0 {
		return reply{}
	}
	return jsonReply(claudeResult{Message: strings.Join(messages, " ")})
}

// finish records the outcome of the event's call and says what a person should know about it. An exposure counts
// even if the call is not known, because the daemon was restarted in between.
func (s *claudeSession) finish(ctx context.Context, outcome toolward.OutcomeRecord) (warning string) {
	e := s.event
	known := s.guest.calls.take(callKey{e.Session, e.CallID})
	if known != nil {
		select {
		case <-known.ready:
		default:
			known = nil // an outcome before the answer: not of this call
		}
	}
	switch {
	case known == nil || known.pass == nil:
		if outcome.Status != toolward.StatusUnused {
			outcome.External = append(outcome.External, s.sources(ctx)...)
		}
		if len(outcome.External) > 0 {
			if err := s.h.config.Sessions.Expose(context.WithoutCancel(ctx), s.key, toolward.Exposure{External: outcome.External}); err != nil {
				s.h.log.Error("what a session saw could not be noted", "session", s.key, "err", err)
			}
		}
		if known != nil && outcome.Status == toolward.StatusOK {
			// The client ran what was refused: the hook does not block, or somebody speaks in the client's name.
			s.h.log.Error("a client ran a refused call", "session", s.key, "call", e.CallID, "tool", e.Tool)
			return "Toolward refused this call, but the client reports that it ran. Run: toolward doctor"
		}
		return ""
	case known.startsLater(outcome.Status) && known.ran(e.Input):
		go s.awaitStart(context.WithoutCancel(ctx), known, outcome)
		return ""
	case known.evaded(e.Input, outcome.Status):
		// The client ran something with everything its user may do that was let run only inside: it ignores what its hook
		// answers, or another hook has the last word. Nothing more of this session runs unasked.
		s.noteEvasion(ctx, &outcome)
		warning = "Toolward: " + e.Tool + " was to run confined, and the client ran it outside. From now on everything in this session asks. Run: toolward doctor"
	case len(e.Input) > 0 && !known.ran(e.Input):
		outcome.Error = join(outcome.Error, "the client ran other arguments than were admitted")
		s.h.log.Error("a client ran other arguments than were admitted", "session", s.key, "call", e.CallID, "tool", e.Tool)
		warning = "Toolward: " + e.Tool + " ran with other arguments than were admitted. Another hook may have changed them."
	}
	if known.asks && outcome.Status != toolward.StatusUnused {
		s.h.started(known.pass) // its person agreed
	}
	s.guest.calls.finish(ctx, known, outcome)
	return warning
}

// startTime is how long a command in the background may take to begin.
const startTime = time.Minute

// startsLater reports whether a client may have told of a call that went well before its command has even begun.
func (c *call) startsLater(status toolward.Status) bool {
	background, _ := c.pass.Request().Params.Bool("background")
	return background && c.ticket != nil && status == toolward.StatusOK && !c.ticket.Redeemed()
}

// awaitStart concludes a call whose command goes to the background once it has begun, or has not for too long.
func (s *claudeSession) awaitStart(ctx context.Context, known *call, outcome toolward.OutcomeRecord) {
	timer := time.NewTimer(startTime)
	defer timer.Stop()
	select {
	case <-known.ticket.Begun():
	case <-timer.C:
		if known.ticket.Void() {
			s.noteEvasion(ctx, &outcome)
		}
	}
	s.guest.calls.finish(ctx, known, outcome)
}

// noteEvasion makes the outcome of a call that of one that got out of its sandbox, and puts its session into lockdown.
func (s *claudeSession) noteEvasion(ctx context.Context, outcome *toolward.OutcomeRecord) {
	outcome.Status, outcome.Error = toolward.StatusEvaded, join(outcome.Error, "the client did not run the command through Toolward")
	s.h.log.Error("a client evaded its sandbox", "session", s.key, "call", s.event.CallID, "tool", s.event.Tool)
	if err := s.h.config.Sessions.RaiseFloor(context.WithoutCancel(ctx), s.key, toolward.Lockdown, evadedFloor, "evaded"); err != nil {
		s.h.log.Error("the level of a session could not be raised", "session", s.key, "err", err)
	}
}

// evadedFloor is how long a session is in lockdown at least whose client ran a confined command outside.
const evadedFloor = 24 * time.Hour

// evaded reports whether a confined call was not run through its ticket: the client reports other arguments than it was given,
// or that all went well where nothing was started.
func (c *call) evaded(input json.RawMessage, status toolward.Status) bool {
	if c.ticket == nil || status == toolward.StatusUnused {
		return false
	}
	return len(input) > 0 && !c.ran(input) || status == toolward.StatusOK && !c.ticket.Redeemed()
}

// sources names what a command may have brought from strangers whose decision is not known any more: the gateway was
// started anew while it ran. In doubt it has.
func (s *claudeSession) sources(ctx context.Context) []string {
	row := s.row()
	if row == nil || !row.native.posix || s.finder.commands == nil {
		return nil
	}
	unknown := []string{s.event.Tool}
	if !row.knows(s.event.Input) {
		return unknown
	}
	params, err := row.decode(s.event.Input)
	if err != nil {
		return unknown
	}
	call, _, err := s.call()
	if err != nil {
		return unknown
	}
	facts, err := s.finder.command(ctx, &toolward.Request{Call: call, Tool: call.Form, Params: params}, row)
	if err != nil {
		return unknown
	}
	return facts.External
}

// external names where a result came from, if strangers may have written it.
func (s *claudeSession) external() []string {
	e := s.event
	switch {
	case strings.HasPrefix(e.Tool, "mcp__"):
		return []string{"mcp:" + cmp.Or(e.MCP.Name, e.Tool)}
	case e.Tool == "WebFetch":
		var input struct {
			URL string `json:"url"`
		}
		if json.Unmarshal(e.Input, &input) == nil && hostOf(input.URL) != "" {
			return []string{hostOf(input.URL)}
		}
		return []string{"WebFetch"}
	case claudeExternal[e.Tool]:
		return []string{e.Tool}
	}
	return nil
}

// redacted gives the result without secrets, nil if it has none. Results that the client would not take back are
// reported, never guessed at.
func (s *claudeSession) redacted() (updated json.RawMessage, problem string) {
	e := s.event
	if len(e.Response) == 0 {
		return nil, ""
	}
	hide := func(key, value string) (string, bool) {
		if key == "base64" {
			return value, false // an image or document; a change would only break it
		}
		clean, found := value, false
		if s.h.config.Redact != nil {
			clean, found = s.h.config.Redact(value)
		}
		if key == "content" && e.Tool == "Grep" {
			without, hidden := s.finder.hideSecretLines(e.WorkDir, clean)
			return without, found || hidden
		}
		return clean, found
	}
	out, changed, err := rewriteStrings(e.Response, hide)
	switch {
	case err != nil:
		return nil, "Toolward could not read the result of " + e.Tool + ", so secrets in it are not hidden."
	case !changed:
		return nil, ""
	case !strings.HasPrefix(e.Tool, "mcp__") && !claudeTakesBack[e.Tool]:
		return nil, "Toolward: the result of " + e.Tool + " holds a secret, and it is not known whether the client lets it be hidden."
	}
	return out, ""
}

// claudeTakesBack names the tools whose replaced result the client was seen to use, when it has the same shape.
var claudeTakesBack = map[string]bool{
	"Bash": true, "Read": true, "Write": true, "Edit": true, "Grep": true, "Glob": true, "NotebookEdit": true,
	"WebFetch": true, "WebSearch": true,
}

func (s *claudeSession) duration() time.Duration {
	return time.Duration(max(s.event.DurationMs, 0) * float64(time.Millisecond))
}

// clean bounds a text for the record and takes secrets out of it.
func (s *claudeSession) clean(text string) string {
	if s.h.config.Redact != nil {
		text, _ = s.h.config.Redact(text)
	}
	return strings.ToValidUTF8(text[:min(len(text), 1024)], "")
}

func join(a, b string) string {
	if a == "" {
		return b
	}
	return a + "; " + b
}
