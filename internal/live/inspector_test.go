package live_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/internal/live"
)

// inspector is the MCP Inspector, whose command line is a real client of both transports and of both the old and
// the new protocol.
var inspector = live.Package("inspector", "@modelcontextprotocol/inspector", "2.12.0")

func TestMain(m *testing.M) {
	if program := os.Getenv(agentVariable); program != "" {
		os.Exit(beAgent(program, os.Args[1:]))
	}
	code := m.Run()
	live.RemovePrograms()
	if err := live.StopDocker(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// TestInspector is the Inspector against the real daemon, over both faces and in both eras of the protocol. The answers
// are typed into a signed-in terminal, or clicked in a real Chromium.
func TestInspector(t *testing.T) {
	node := live.Need(t, live.Program("node"))
	program := filepath.Join(live.Need(t, inspector), "clients", "cli", "build", "index.js")
	for _, c := range []struct{ face, era, people string }{
		{"stdio", "legacy", "terminal"},
		{"stdio", "modern", "console"},
		{"http", "legacy", "console"},
		{"http", "modern", "terminal"},
	} {
		t.Run(c.face+" "+c.era+", answered in the "+c.people, func(t *testing.T) {
			t.Parallel()
			var g guarded
			if c.people == "terminal" {
				g = terminalGuarded{newGuardedMachine(t, shortQuestions)}
			} else {
				g = newConsoleGuarded(t)
			}
			testInspector(t, g, []string{node, program, "--protocol-era", c.era}, c.face)
		})
	}
}

// guarded is a running Toolward with the tools read and exec, a workspace with hello.txt in it, and somebody to ask.
type guarded interface {
	target(face string) []string // how the Inspector is told where the server is
	workspace() string
	// answer decides the next question; NoDecision lets it end unanswered. It reports what happened before.
	answer(t *testing.T, d toolward.Decision, marker string)
}

// testInspector lets the Inspector list the tools, call one that runs at once, and call one that waits for a person:
// allowed, denied and unanswered. A marker file proves what ran.
func testInspector(t *testing.T, g guarded, program []string, face string) {
	inspect := func(v any, arguments ...string) {
		t.Helper()
		out := run(t, slices.Concat(program, []string{"--format", "json"}, arguments, g.target(face)))
		if err := json.Unmarshal(out, &struct{ Result any }{v}); err != nil {
			t.Fatalf("%v:\n%s", err, out)
		}
	}
	var list struct{ Tools []struct{ Name string } }
	inspect(&list, "--method", "tools/list")
	for _, name := range []string{"read", "exec"} {
		if !slices.ContainsFunc(list.Tools, func(tool struct{ Name string }) bool { return tool.Name == name }) {
			t.Errorf("there is no %s among the tools: %+v", name, list.Tools)
		}
	}
	call := func(tool, arguments string) toolResult {
		var r toolResult
		inspect(&r, "--method", "tools/call", "--tool-name", tool, "--tool-args-json", arguments)
		return r
	}
	if r := call("read", `{"path":"hello.txt"}`); r.IsError || !strings.Contains(r.text(), "hello from the workspace") {
		t.Errorf("read: %+v", r)
	}
	for _, c := range []struct {
		name     string
		decision toolward.Decision
		code     string
	}{
		{"allowed", toolward.AllowOnce, ""},
		{"denied", toolward.DenyCall, string(toolward.CodeDeniedByUser)},
		{"unanswered", toolward.NoDecision, string(toolward.CodeApprovalTimeout)},
	} {
		marker := filepath.Join(g.workspace(), c.name)
		var answered sync.WaitGroup
		answered.Go(func() { g.answer(t, c.decision, marker) })
		r := call("exec", `{"command":"touch `+c.name+`"}`)
		answered.Wait()
		_, err := os.Stat(marker)
		ran := err == nil
		if c.code == "" && (!ran || r.IsError) {
			t.Errorf("%s: ran %v, %+v", c.name, ran, r)
		}
		if c.code != "" && (ran || !r.IsError || !strings.Contains(r.text(), `"code":"`+c.code+`"`)) {
			t.Errorf("%s: ran %v, %+v; want a refusal with code %s", c.name, ran, r, c.code)
		}
	}
}

type toolResult struct {
	IsError bool
	Content []struct{ Text string }
}

func (r toolResult) text() string {
	var b strings.Builder
	for _, c := range r.Content {
		b.WriteString(c.Text)
	}
	return b.String()
}

// run runs the Inspector in a home of its own and returns what it prints.
func run(t *testing.T, arguments []string) []byte {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	command := exec.CommandContext(ctx, arguments[0], arguments[1:]...)
	command.Env = append(os.Environ(), "HOME="+t.TempDir(), "NO_COLOR=1")
	var out, errs bytes.Buffer
	command.Stdout, command.Stderr = &out, &errs
	err := command.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) { // a result with isError is a failure to the Inspector
		t.Fatalf("%s: %v\n%s%s", arguments, err, out.Bytes(), errs.Bytes())
	}
	if out.Len() == 0 {
		t.Fatalf("%s printed nothing (%v)\n%s", arguments, err, errs.Bytes())
	}
	return out.Bytes()
}
