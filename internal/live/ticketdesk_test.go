package live_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/toolward/toolward/internal/live"
)

// ticketDesk is a machine on which commands of guarded agents run in a sandbox. In the place of a client, tests start its hook, and what
// it is told to run.
type ticketDesk struct {
	*live.Machine
	t testing.TB
	n atomic.Int64
}

func newTicketDesk(t testing.TB, config string) *ticketDesk {
	t.Helper()
	m := &ticketDesk{Machine: live.NewQuickMachine(t, config), t: t}
	m.Start()
	return m
}

// bashEvent is what a client tells its hook about one of its commands.
func (m *ticketDesk) bashEvent(event, id, text string, more map[string]any) map[string]any {
	e := map[string]any{
		"hook_event_name": event, "session_id": "desk", "cwd": m.Workspace, "tool_name": "Bash", "tool_input": map[string]any{"command": text}, "tool_use_id": id,
	}
	for k, v := range more {
		e[k] = v
	}
	return e
}

// hook runs the hook program.
func (m *ticketDesk) hook(ctx context.Context, event map[string]any) ([]byte, error) {
	in, err := json.Marshal(event)
	if err != nil {
		return nil, err
	}
	hook := exec.CommandContext(ctx, m.Program("toolward-hook"), "claude-code", event["hook_event_name"].(string), "--home", m.State)
	hook.Env, hook.Stdin = append(m.Environment(), "CLAUDE_PROJECT_DIR="+m.Workspace), bytes.NewReader(in)
	return hook.Output()
}

// decide has a command decided and returns what the client is told to run in its place.
func (m *ticketDesk) decide(ctx context.Context, id, text string) (command string, err error) {
	said, err := m.hook(ctx, m.bashEvent("PreToolUse", id, text, nil))
	if err != nil {
		return "", err
	}
	var answer struct {
		HookSpecificOutput struct{ UpdatedInput struct{ Command string } }
	}
	if err := json.Unmarshal(said, &answer); err != nil || answer.HookSpecificOutput.UpdatedInput.Command == "" {
		return "", fmt.Errorf("%w: %s", err, said)
	}
	return answer.HookSpecificOutput.UpdatedInput.Command, nil
}

// told is decide for a command that is let run.
func (m *ticketDesk) told(text string) string {
	m.t.Helper()
	command, err := m.decide(m.t.Context(), "call"+strconv.FormatInt(m.n.Add(1), 10), text)
	if err != nil {
		m.t.Fatal(err)
	}
	return command
}

// seen is what a client's shell sees of a command.
type seen struct {
	out, err string
	code     int
}

// refused reports whether nothing ran, and one line with this says why.
func (s seen) refused(why string) bool {
	return s.code == 126 && s.out == "" && strings.HasPrefix(s.err, "toolward: ") && strings.Count(s.err, "\n") == 1 && strings.Contains(s.err, why)
}

// shell runs a text as a client does. After a minute it is killed.
func (m *ticketDesk) shell(text string, change ...func(*exec.Cmd)) seen {
	ctx, cancel := context.WithTimeout(m.t.Context(), time.Minute)
	defer cancel()
	var out, err bytes.Buffer
	c := exec.CommandContext(ctx, "bash", "-c", text)
	c.Dir, c.Env, c.Stdout, c.Stderr = m.Workspace, m.Environment(), &out, &err
	for _, f := range change {
		f(c)
	}
	_ = c.Run() // its status says it
	return seen{out.String(), err.String(), c.ProcessState.ExitCode()}
}
