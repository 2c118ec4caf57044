package builtin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/toolward/toolward"
)

const processSchema = `{
  "type": "object",
  "properties": {
    "action": {"type": "string", "enum": ["list", "poll", "log", "write", "submit", "send-keys", "paste", "kill", "remove", "clear"]},
    "sessionId": {"type": "string", "description": "Needed by every action but list."},
    "timeout": {"type": ["number", "string"], "description": "poll: milliseconds to wait for the end, at most 120000."},
    "offset": {"type": "integer", "minimum": 0, "description": "log: first line, from 0."},
    "limit": {"type": "integer", "minimum": 0, "description": "log: how many lines; without offset the last ones."},
    "data": {"type": "string", "description": "write, submit: text for the standard input."},
    "eof": {"type": "boolean", "description": "write: close the standard input afterwards."},
    "literal": {"type": "string", "description": "send-keys: text to type; sent first."},
    "hex": {"type": "array", "items": {"type": "string"}, "description": "send-keys: single bytes such as \"03\"; sent second."},
    "keys": {"type": "array", "items": {"type": "string"}, "description": "send-keys: keys such as Enter, Up, F5, C-c, M-x, S-Tab, ^D; sent last."},
    "text": {"type": "string", "description": "paste: text to paste."},
    "bracketed": {"type": "boolean", "description": "paste: mark it as pasted; default true. False for programs that do not know such marks."}
  },
  "required": ["action"],
  "additionalProperties": false
}`

const (
	maxInput  = 64 << 10        // bytes of one write
	inputWait = 5 * time.Second // for a command to take its input
	maxPoll   = 120_000         // milliseconds
)

// processPlan is what process hands from Facts to Run.
type processPlan struct {
	action string
	scope  string
	id     string
	found  *session // nil if there is no such command in the scope
	input  commandInput
}

func (b *Toolbox) processTool() *toolward.Tool {
	return &toolward.Tool{
		Name: "process",
		Description: "Follows commands that exec left in the background: list them, poll for new output and the end, log to read lines, " +
			"write, submit (with a line end), send-keys or paste to their input, kill, remove (kill and forget), clear (forget a finished one).",
		Schema: json.RawMessage(processSchema),
		Facts:  b.processFacts,
		Diff:   b.processDiff,
		Run:    b.process,
	}
}

func (b *Toolbox) processFacts(_ context.Context, r *toolward.Request) (toolward.Facts, error) {
	plan := processPlan{action: r.Params.Text("action"), id: r.Params.Text("sessionId"), scope: b.scope(r)}
	facts := toolward.Facts{Action: plan.action, TargetID: plan.id}
	switch plan.action {
	case "list":
		facts.TargetID, facts.Prepared = "", plan
		return facts, nil
	case "write", "submit", "send-keys", "paste":
		var err error
		if plan.input, err = readInput(plan.action, r.Params); err != nil {
			return facts, err
		}
		facts.Mutates, facts.Outbound = true, plan.input.typed
	case "kill", "remove", "clear":
		facts.Mutates = true
	}
	if plan.id == "" {
		return facts, &toolward.InvalidArgs{Field: "sessionId", Text: "is missing"}
	}
	if found, err := b.sessions.find(plan.scope, plan.id); err == nil {
		plan.found = found
		// Names are used again. An approval to write to one command must not reach a later one of the same name.
		facts.Bound = []string{"process " + strconv.Itoa(found.pid) + " " + strconv.FormatInt(found.started.UnixNano(), 10)}
	}
	facts.Prepared = plan
	return facts, nil
}

func (b *Toolbox) process(ctx context.Context, r *toolward.Request) (toolward.Result, error) {
	plan, ok := r.Facts.Prepared.(processPlan)
	if !ok {
		return toolward.Result{}, errNotPrepared
	}
	if plan.action == "list" {
		return b.listProcesses(plan.scope), nil
	}
	s := plan.found
	if s == nil {
		// Foreign and unknown ids get the same answer.
		return failed("There is no session %s.", quoteShort(plan.id)), nil
	}
	switch plan.action {
	case "poll":
		return b.poll(ctx, s, r.Params.Value("timeout"))
	case "log":
		return processLog(s, r.Params), nil
	case "write", "submit", "send-keys", "paste":
		return plan.input.send(s), nil
	case "kill":
		return b.killProcess(ctx, s, false)
	case "remove":
		return b.killProcess(ctx, s, true)
	case "clear":
		if s.running() {
			return failed("Session %s: %v.", s.id, errStillRunning), nil
		}
		b.sessions.forget(s)
		return toolward.TextResult(fmt.Sprintf("Session %s is cleared.", s.id)), nil
	}
	return failed("process has no action %s.", quoteShort(plan.action)), nil
}

// processSummary is one background command in a list.
type processSummary struct {
	SessionID string `json:"sessionId"`
	Status    string `json:"status"`
	PID       int    `json:"pid"`
	StartedAt int64  `json:"startedAt"`
	RuntimeMs int64  `json:"runtimeMs"`
	Dir       string `json:"cwd"`
	Command   string `json:"command"`
	Tail      string `json:"tail"`
	ExitCode  *int   `json:"exitCode"`
	Signal    string `json:"signal,omitempty"`
}

func (s *session) summary() processSummary {
	sum := processSummary{
		SessionID: s.id, Status: s.status(), PID: s.pid, StartedAt: s.started.UnixMilli(), Dir: s.dir, Command: s.text, Tail: s.output.last(tailChars),
	}
	end := time.Now()
	if !s.running() {
		result := s.result()
		end = result.at
		sum.ExitCode, sum.Signal = result.codeAndSignal()
	}
	sum.RuntimeMs = end.Sub(s.started).Milliseconds()
	return sum
}

// status is "running", "completed" for exit code 0, else "failed".
func (s *session) status() string {
	if s.running() {
		return "running"
	}
	if end := s.result(); end.code == 0 && !end.failed() {
		return "completed"
	}
	return "failed"
}

func (e exit) codeAndSignal() (code *int, signal string) {
	if e.signal != 0 {
		return nil, unix.SignalName(e.signal)
	}
	if e.code >= 0 {
		return &e.code, ""
	}
	return nil, ""
}

func (b *Toolbox) listProcesses(scope string) toolward.Result {
	list := b.sessions.list(scope)
	summaries := make([]processSummary, 0, len(list))
	var out strings.Builder
	for _, s := range list {
		sum := s.summary()
		summaries = append(summaries, sum)
		fmt.Fprintf(&out, "%s  %-9s  %s  %s\n", sum.SessionID, sum.Status,
			(time.Duration(sum.RuntimeMs) * time.Millisecond).Round(time.Second), quoteShort(sum.Command))
	}
	if len(list) == 0 {
		out.WriteString("No background commands.\n")
	}
	return withDetails(toolward.TextResult(out.String()), struct {
		Sessions []processSummary `json:"sessions"`
	}{summaries})
}

// pollDetails is the structured result of poll.
type pollDetails struct {
	Status     string `json:"status"`
	SessionID  string `json:"sessionId"`
	ExitCode   *int   `json:"exitCode"`
	Signal     string `json:"exitSignal,omitempty"`
	Output     string `json:"aggregated"`
	RetryInMs  int64  `json:"retryInMs,omitempty"`
	TimedOut   bool   `json:"timedOut,omitempty"`
	OOM        bool   `json:"oom,omitempty"`
	TotalChars int64  `json:"totalChars"`
	Note       string `json:"note"` // as in the text: clients show their model one of the two
}

func (b *Toolbox) poll(ctx context.Context, s *session, timeout any) (toolward.Result, error) {
	if wait := pollWait(timeout); wait > 0 {
		timer := time.NewTimer(wait)
		defer timer.Stop()
		select {
		case <-s.done:
		case <-timer.C:
		case <-ctx.Done():
			return toolward.Result{}, ctx.Err()
		}
	}
	running := s.running()
	output := s.output.drain()
	_, _, total := s.output.aggregated()
	details := pollDetails{Status: s.status(), SessionID: s.id, Output: output, TotalChars: total}
	text := output
	if strings.TrimSpace(text) == "" {
		text = "(no new output)"
	}
	text = strings.TrimRight(text, "\n") + "\n\n"
	if running {
		pause := s.nextPoll(output != "")
		details.Status, details.RetryInMs = "running", pause.Milliseconds()
		details.Note = fmt.Sprintf("The command is still running; poll again in %s.", pause)
		return withDetails(toolward.TextResult(text+details.Note), details), nil
	}
	end := s.result()
	details.ExitCode, details.Signal = end.codeAndSignal()
	details.TimedOut, details.OOM = end.ending == endedTimeout, end.outOfMemory()
	note := end.describe(s.spec.timeout)
	if note == "" {
		note = "(Command exited with code 0)"
	}
	details.Note = s.note(end, note, s.output.last(tailChars))
	return withDetails(toolward.TextResult(text+details.Note), details), nil
}

// pollWait reads how long poll waits for the end: milliseconds as a number or a text, at most two minutes; anything
// else is no wait.
func pollWait(timeout any) time.Duration {
	var text string
	switch timeout := timeout.(type) {
	case json.Number:
		text = string(timeout)
	case string:
		text = strings.TrimSpace(timeout)
	}
	ms, err := strconv.ParseFloat(text, 64)
	if err != nil || !(ms > 0) {
		return 0
	}
	return time.Duration(min(ms, maxPoll)) * time.Millisecond
}

func processLog(s *session, p toolward.Params) toolward.Result {
	text, truncated, total := s.output.aggregated()
	var offset, limit *int
	if n, ok := p.Int("offset"); ok {
		value := int(min(max(n, 0), 1<<30))
		offset = &value
	}
	if n, ok := p.Int("limit"); ok {
		value := int(min(max(n, 0), 1<<30))
		limit = &value
	}
	slice, lines := shownLog(text, offset, limit)
	if slice == "" {
		slice = "(no output)"
	}
	if truncated {
		slice = fmt.Sprintf("[the first %d characters are no longer kept]\n", total-int64(s.output.tail.limit)) + slice
	}
	details := struct {
		Status     string `json:"status"`
		SessionID  string `json:"sessionId"`
		TotalLines int    `json:"totalLines"`
		TotalChars int64  `json:"totalChars"`
		Truncated  bool   `json:"truncated"`
		ExitCode   *int   `json:"exitCode"`
		Signal     string `json:"exitSignal,omitempty"`
	}{Status: s.status(), SessionID: s.id, TotalLines: lines, TotalChars: total, Truncated: truncated}
	if !s.running() {
		details.ExitCode, details.Signal = s.result().codeAndSignal()
	}
	return withDetails(toolward.TextResult(slice), details)
}

// killProcess ends a command and waits until it is gone.
func (b *Toolbox) killProcess(ctx context.Context, s *session, forget bool) (toolward.Result, error) {
	wasRunning := s.running()
	s.stop(endedByKill)
	select {
	case <-s.done:
	case <-s.stuck:
		return failed("Session %s does not end; it was sent the signals TERM and KILL.", s.id), nil
	case <-ctx.Done():
		return toolward.Result{}, errors.Join(errors.New("the command was told to end"), ctx.Err())
	}
	verb := "has ended already"
	if wasRunning {
		verb = "was ended"
	}
	if forget {
		b.sessions.forget(s)
		verb += " and is removed"
	}
	return withDetails(toolward.TextResult(fmt.Sprintf("Session %s %s.", s.id, verb)), struct {
		Status    string `json:"status"`
		SessionID string `json:"sessionId"`
	}{s.status(), s.id}), nil
}
