package builtin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/job"
	"github.com/toolward/toolward/place"
	"github.com/toolward/toolward/sandbox"
)

const execSchema = `{
  "type": "object",
  "properties": {
    "command": {"type": "string", "description": "Shell command."},
    "workdir": {"type": "string", "description": "Directory to run in; default is the working directory."},
    "env": {"type": "object", "additionalProperties": {"type": "string"}, "description": "Variables to set for the command."},
    "yieldMs": {"type": "number", "minimum": 0, "description": "Milliseconds after which a command that still runs goes to the background; default 10000."},
    "background": {"type": "boolean", "description": "Go to the background at once; see the process tool."},
    "timeout": {"type": "number", "exclusiveMinimum": 0, "description": "Seconds after which the command is ended; default 1800, none in the background."},
    "pty": {"type": "boolean", "description": "Run on a terminal, for programs that need one."},
    "elevated": {"type": "boolean", "description": "Ask for more rights than the host gives by itself."},
    "host": {"type": "string", "description": "Where to run: sandbox, gateway or node. Only the configured one can be named."},
    "node": {"type": "string", "description": "Which node, with host node."},
    "security": {"type": "string", "description": "Tightens which commands may run: deny, allowlist or full."},
    "ask": {"type": "string", "description": "Tightens when people are asked: always, on-miss or off."}
  },
  "required": ["command"],
  "additionalProperties": false
}`

// maxCommand is the length of a command text in bytes. Linux allows 128 KiB for one argument.
const maxCommand = 65_536

// execTiming is how long a command may run and when it goes to the background.
type execTiming struct {
	yield   time.Duration // 0: at once; negative: never
	timeout time.Duration // 0: none
	warning string
}

const (
	warnNoBackground = "background-disabled"
	warnNoTerminal   = "pty-unavailable"
)

func (b *Toolbox) execTool() *toolward.Tool {
	return &toolward.Tool{
		Name: "exec",
		Description: "Runs a shell command. Output beyond a limit keeps its beginning and end. A command that runs longer than yieldMs goes " +
			"to the background: follow it with process. Processes that a command leaves behind are ended with it.",
		Schema: json.RawMessage(execSchema),
		Facts:  b.execFacts,
		Run:    b.exec,
	}
}

func checkCommand(command string) error {
	switch {
	case strings.TrimSpace(command) == "":
		return &toolward.InvalidArgs{Field: "command", Text: "is empty"}
	case len(command) > maxCommand:
		return &toolward.InvalidArgs{Field: "command", Text: fmt.Sprintf("is longer than %d bytes; put it into a file", maxCommand)}
	case strings.ContainsRune(command, 0):
		// The operating system would end the text there: less would run than was shown.
		return &toolward.InvalidArgs{Field: "command", Text: "contains a NUL character"}
	}
	return nil
}

// commandDir resolves the directory of a command.
func (l located) commandDir(asked string) (place.Resolved, error) {
	if asked == "" {
		asked = l.workDir
	}
	dir, err := l.Resolve(l.workDir, asked)
	if err != nil {
		return dir, pathError("workdir", err)
	}
	if dir.Kind != place.KindDirectory {
		return dir, &toolward.InvalidArgs{Field: "workdir", Text: "is not an existing directory"}
	}
	return dir, nil
}

// timing reads yieldMs, background and timeout. Out-of-range values are brought into range.
func (b *Toolbox) timing(p toolward.Params, backgroundAllowed bool) execTiming {
	t := execTiming{yield: time.Duration(b.cfg.YieldMs) * time.Millisecond}
	background, _ := p.Bool("background")
	yieldMs, hasYield := number(p, "yieldMs")
	if hasYield {
		t.yield = time.Duration(min(max(yieldMs, 10), 120_000) * float64(time.Millisecond))
	}
	if background {
		t.yield = 0
	}
	wanted := background || hasYield
	if wanted && !backgroundAllowed {
		t.warning = warnNoBackground
	}
	if !backgroundAllowed {
		t.yield, wanted = -1, false
	}
	if seconds, ok := number(p, "timeout"); ok {
		t.timeout = time.Duration(min(max(seconds, 0.001), float64(b.cfg.MaxTimeoutSecs)) * float64(time.Second))
	} else if !wanted {
		t.timeout = time.Duration(b.cfg.TimeoutSecs) * time.Second
	}
	return t
}

// wantsTerminal reports whether a call asks for a terminal where one can be had: a sandbox has none.
func wantsTerminal(p toolward.Params, host toolward.Host) bool {
	tty, _ := p.Bool("pty")
	return tty && host != toolward.HostSandbox
}

// number returns a numeric parameter.
func number(p toolward.Params, name string) (float64, bool) {
	n, ok := p.Value(name).(json.Number)
	if !ok {
		return 0, false
	}
	f, err := n.Float64()
	return f, err == nil && !math.IsNaN(f)
}

func (b *Toolbox) backgroundAllowed(caller toolward.Caller) bool {
	return !b.cfg.NoBackground && (b.deps.MayUse == nil || b.deps.MayUse(caller, "process"))
}

// scope is who may see a command: the agent that started it, or only the session.
func (b *Toolbox) scope(r *toolward.Request) string {
	if b.cfg.SessionScope {
		return string(r.Call.Session)
	}
	return r.Call.Caller.Agent
}

func (b *Toolbox) exec(ctx context.Context, r *toolward.Request) (toolward.Result, error) {
	plan, ok := r.Facts.Prepared.(*execPlan)
	if !ok || plan.clientDir != "" || plan.box == nil && len(plan.job.Segments) == 0 {
		return toolward.Result{}, errNotPrepared
	}
	if err := b.unchanged(plan); err != nil {
		return failed("The command was not started: %v. Look at what changed and try again.", err), nil
	}
	if err := b.confineLightly(r, plan); err != nil {
		return failed("The command was not started: %v", err), nil
	}
	if err := ctx.Err(); err != nil {
		return toolward.Result{}, err
	}
	started, err := b.sessions.start(plan.scope, plan.command, b.commandSpec(ctx, plan))
	if err != nil {
		return failed("The command was not started: %v", err), nil
	}
	if plan.listed() {
		b.deps.Commands.RecordUse(plan.ruling.Assessment)
	}
	timing := plan.timing
	if plan.tty && !started.tty {
		timing.warning = strings.TrimPrefix(timing.warning+","+warnNoTerminal, ",")
	}
	return b.follow(ctx, started, timing)
}

func (b *Toolbox) commandSpec(ctx context.Context, plan *execPlan) commandSpec {
	return commandSpec{
		start:   func(streams job.Streams) (running, error) { return plan.start(ctx, streams) },
		dir:     plan.dir.Real,
		stdin:   plan.timing.yield == 0,
		tty:     plan.tty && plan.box == nil && plan.job.Alone(), // a terminal has one program in front
		timeout: plan.timing.timeout,
		grace:   time.Duration(b.cfg.KillGraceMs) * time.Millisecond,
		output:  newTranscript(b.cfg.ResultChars/2, b.cfg.OutputChars, b.cfg.UnreadChars),
		hint:    b.hintFor(plan),
		slow:    plan.slowness(),
	}
}

// unstartedPatience is how long a command without a process may take to say that its program is not there.
const unstartedPatience = time.Second

// follow waits for a command until it ends, goes to the background, or the call is canceled.
func (b *Toolbox) follow(ctx context.Context, started *session, timing execTiming) (toolward.Result, error) {
	if timing.yield == 0 && started.pid == 0 {
		timing.yield = unstartedPatience // nothing runs: it has ended, and says why
	}
	if timing.yield == 0 {
		b.sessions.keep(started)
		return runningResult(started, timing), nil
	}
	var yield <-chan time.Time
	if timing.yield > 0 {
		timer := time.NewTimer(timing.yield)
		defer timer.Stop()
		yield = timer.C
	}
	select {
	case <-started.done:
	case <-started.stuck:
	case <-yield:
		b.sessions.keep(started)
		return runningResult(started, timing), nil
	case <-ctx.Done():
		started.stop(endedByCall)
		b.gone(started)
		b.sessions.forget(started)
		return toolward.Result{}, fmt.Errorf("the command was ended because the call was cancelled: %w", context.Cause(ctx))
	}
	b.sessions.forget(started)
	if !b.gone(started) {
		return failed("The command was sent KILL and still does not end (pid %d): it hangs in the operating system.", started.pid), nil
	}
	return b.finishedResult(started, timing), nil
}

// gone waits until a command that is ending has ended. False: it hangs in the operating system.
func (b *Toolbox) gone(s *session) bool {
	select {
	case <-s.done:
		return true
	case <-s.stuck:
	}
	if !s.running() {
		return true
	}
	b.deps.Log.Warn("a command does not end after KILL", "pid", s.pid, "agent", s.scope)
	return false
}

// runningDetails is the structured result of a command that went to the background.
type runningDetails struct {
	Status    string `json:"status"`
	SessionID string `json:"sessionId"`
	PID       int    `json:"pid"`
	StartedAt int64  `json:"startedAt"` // milliseconds since 1970
	Dir       string `json:"cwd"`
	Tail      string `json:"tail"`
	Warning   string `json:"warning,omitempty"`
	Note      string `json:"note"` // as in the text: clients show their model one of the two
}

// tailChars is how much of the end of an output listings show.
const tailChars = 2000

func runningResult(s *session, timing execTiming) toolward.Result {
	tail := s.output.last(tailChars)
	note := fmt.Sprintf("The command is still running in the background as session %s (pid %d). Use process poll, log, write or kill with this sessionId.", s.id, s.pid)
	text := note
	if tail != "" {
		text += "\n\nOutput so far:\n" + tail
	}
	result := toolward.TextResult(text)
	result.Running = s.done
	return withDetails(result, runningDetails{
		Status: "running", SessionID: s.id, PID: s.pid, StartedAt: s.started.UnixMilli(), Dir: s.dir, Tail: tail, Warning: timing.warning, Note: note,
	})
}

// finishedDetails is the structured result of a command that has ended.
type finishedDetails struct {
	Status     string `json:"status"`
	ExitCode   *int   `json:"exitCode"` // null if a signal ended it
	Signal     string `json:"signal,omitempty"`
	TimedOut   bool   `json:"timedOut"`
	OOM        bool   `json:"oom,omitempty"` // the sandbox ran out of memory
	DurationMs int64  `json:"durationMs"`
	Aggregated string `json:"aggregated"`
	Dir        string `json:"cwd"`
	Warning    string `json:"warning,omitempty"`
	Note       string `json:"note,omitempty"` // how it ended and why, in words, as in the text
}

func (b *Toolbox) finishedResult(s *session, timing execTiming) toolward.Result {
	end := s.result()
	output := s.output.headAndTail(b.cfg.ResultChars)
	details := finishedDetails{
		Status: "completed", TimedOut: end.ending == endedTimeout, OOM: end.outOfMemory(), DurationMs: end.at.Sub(s.started).Milliseconds(),
		Aggregated: output, Dir: s.dir, Warning: timing.warning,
	}
	text := output
	if strings.TrimSpace(text) == "" {
		text = "(no output)"
	}
	if details.Note = s.note(end, end.describe(timing.timeout), output); details.Note != "" {
		text = strings.TrimRight(text, "\n") + "\n\n" + details.Note
	}
	result := toolward.TextResult(text)
	if end.failed() {
		details.Status, result.IsError = "failed", true
	}
	details.ExitCode, details.Signal = end.codeAndSignal()
	result.ExitCode = details.ExitCode
	return withDetails(result, details)
}

// failed reports whether the command could not do its work at all: it was not found or not executable, was ended by
// a signal, a time-out or by us. Any other exit code is the command's own answer.
func (e exit) failed() bool {
	return e.err != nil || e.signal != 0 || e.ending != endedItself || e.code == 126 || e.code == 127
}

// outOfMemory reports whether a program of the command was ended because its sandbox had no memory left.
func (e exit) outOfMemory() bool { return errors.Is(e.err, errMemory) }

// describe says in words how a command ended; "" for success.
func (e exit) describe(timeout time.Duration) string {
	var notes []string
	switch {
	case e.ending == endedTimeout:
		notes = append(notes, fmt.Sprintf("Command timed out after %s and was ended", timeout))
	case e.ending != endedItself:
		notes = append(notes, "Command was ended: "+string(e.ending))
	case e.outOfMemory():
		notes = append(notes, "The sandbox ran out of memory, and a program of the command was ended for it: sandbox.limits.memory")
	case sandbox.CodeOf(e.err) == sandbox.CodeUnavailable:
		notes = append(notes, "Command was ended with its sandbox: "+e.err.Error())
	case e.err != nil:
		notes = append(notes, "A part of the command was not started: "+e.err.Error())
	case e.signal != 0:
		notes = append(notes, "Command was ended by signal "+unix.SignalName(e.signal))
	case e.code == 126:
		notes = append(notes, "Command exited with code 126 (not executable)")
	case e.code == 127:
		notes = append(notes, "Command exited with code 127 (not found)")
	case e.code != 0:
		notes = append(notes, fmt.Sprintf("Command exited with code %d", e.code))
	}
	if e.leftover {
		notes = append([]string{"Processes that the command left running were ended; to keep one running use background"}, notes...)
	}
	if len(notes) == 0 {
		return ""
	}
	return "(" + strings.Join(notes, "; ") + ")"
}

// withDetails adds the structured form of a result.
func withDetails(result toolward.Result, details any) toolward.Result {
	encoded, err := json.Marshal(details)
	if err != nil {
		return failed("internal error: %v", errors.Join(errors.New("encode the result"), err))
	}
	result.Structured = encoded
	return result
}
