package live_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/internal/gatetest"
	"github.com/toolward/toolward/internal/live"
	"github.com/toolward/toolward/mcp"
)

// inspector is the MCP Inspector, whose command line is a real client of both transports and of both the old and
// the new protocol.
var inspector = live.Package("inspector", "@modelcontextprotocol/inspector", "2.12.0")

// socketVariable makes this test program behave as "toolward mcp": a pipe between its standard streams and the
// socket that the variable names.
const socketVariable = "TOOLWARD_TEST_SOCKET"

func TestMain(m *testing.M) {
	if socket := os.Getenv(socketVariable); socket != "" {
		if err := mcp.Pipe(context.Background(), socket, mcp.Hello{Agent: "coder"}, os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, "toolward mcp:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if program := os.Getenv(agentVariable); program != "" {
		os.Exit(beAgent(program, os.Args[1:]))
	}
	code := m.Run()
	live.RemovePrograms()
	os.Exit(code)
}

// TestInspector lets the Inspector list the tools, call one that runs at once, and call one that waits for a person:
// allowed, denied and unanswered. A marker file proves what ran.
func TestInspector(t *testing.T) {
	node := live.Need(t, live.Program("node"))
	program := filepath.Join(live.Need(t, inspector), "clients", "cli", "build", "index.js")
	for _, face := range []string{"stdio", "http"} {
		for _, era := range []string{"legacy", "modern"} {
			t.Run(face+" "+era, func(t *testing.T) {
				t.Parallel()
				testInspector(t, newGate(t), []string{node, program, "--protocol-era", era}, face)
			})
		}
	}
}

// guarded is a running Toolward with the tools read and exec, a workspace with hello.txt in it, and somebody to ask.
type guarded interface {
	target(face string) []string // how the Inspector is told where the server is
	workspace() string
	// answer decides the next question; NoDecision lets it end unanswered. It reports what happened before.
	answer(t *testing.T, d toolward.Decision, marker string)
}

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

// gate is a gateway with both faces, and people who can be told what to answer.
type gate struct {
	dir    string
	socket string
	url    string

	mu      sync.Mutex
	waiting map[string]chan toolward.Decision
	arrived chan string
}

func (g *gate) workspace() string { return g.dir }

func newGate(t *testing.T) *gate {
	t.Helper()
	g := &gate{dir: t.TempDir(), waiting: map[string]chan toolward.Decision{}, arrived: make(chan string, 8)}
	if err := os.WriteFile(filepath.Join(g.dir, "hello.txt"), []byte("hello from the workspace"), 0o600); err != nil {
		t.Fatal(err)
	}
	harness := gatetest.New(t, toolward.Deny, g.read(), g.exec())
	harness.Policy.JudgeFunc = func(r *toolward.Request) toolward.Judgement {
		if r.Tool.Name == "read" {
			return toolward.Judgement{Verdict: toolward.Allow}
		}
		return toolward.Judgement{Verdict: toolward.Ask}
	}
	harness.Approver.AskFunc = g.ask
	server, err := mcp.NewServer(mcp.Config{
		Gateway: harness.Gateway, Policy: harness.Policy, StateKey: make([]byte, 32),
		ApprovalURL: func(id string) string { return "http://127.0.0.1:7411/approvals/" + id },
	})
	if err != nil {
		t.Fatal(err)
	}
	g.serve(t, server)
	return g
}

func (g *gate) read() *toolward.Tool {
	return &toolward.Tool{
		Name: "read", Schema: json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}`),
		Run: func(_ context.Context, r *toolward.Request) (toolward.Result, error) {
			data, err := os.ReadFile(filepath.Join(g.dir, filepath.Base(r.Params.Text("path"))))
			return toolward.TextResult(string(data)), err
		},
	}
}

func (g *gate) exec() *toolward.Tool {
	return &toolward.Tool{
		Name: "exec", Schema: json.RawMessage(`{"type":"object","properties":{"command":{"type":"string"}},"required":["command"]}`),
		Run: func(_ context.Context, r *toolward.Request) (toolward.Result, error) {
			marker := strings.TrimPrefix(r.Params.Text("command"), "touch ")
			err := os.WriteFile(filepath.Join(g.dir, filepath.Base(marker)), nil, 0o600)
			return toolward.TextResult("ran"), err
		},
	}
}

func (g *gate) serve(t *testing.T, server *mcp.Server) {
	t.Helper()
	web := httptest.NewServer(server.Handler(func(_ context.Context, token string, _ *http.Request) (mcp.Identity, error) {
		if token != "secret" {
			return mcp.Identity{}, errors.New("no such token")
		}
		return mcp.Identity{Agent: "coder", Workspace: g.dir, TokenID: "t1"}, nil
	}))
	t.Cleanup(func() {
		web.CloseClientConnections()
		web.Close()
	})
	g.url = web.URL + "/mcp"

	dir, err := os.MkdirTemp("", "tw") // socket paths must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	g.socket = filepath.Join(dir, "s")
	listener, err := net.Listen("unix", g.socket)
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle(mcp.StdioPath, server.StdioHandler(t.Context(), func(_ *http.Request, hello mcp.Hello) (mcp.Identity, error) {
		return mcp.Identity{Agent: hello.Agent, Workspace: g.dir}, nil
	}))
	local := &http.Server{Handler: mux}
	go func() { _ = local.Serve(listener) }()
	t.Cleanup(func() { local.Close() })
}

func (g *gate) target(face string) []string {
	if face == "http" {
		return []string{"--server-url", g.url, "--transport", "http", "--header", "Authorization: Bearer secret"}
	}
	return []string{"-e", socketVariable + "=" + g.socket, "--", os.Args[0]}
}

// ask keeps the question until somebody answers.
func (g *gate) ask(ctx context.Context, q *toolward.Question) (toolward.Answer, error) {
	id := q.Request.Call.Approval
	g.mu.Lock()
	if id == "" {
		id = fmt.Sprintf("a%d", len(g.waiting)+1)
		g.waiting[id] = make(chan toolward.Decision, 1)
		g.arrived <- id
	}
	answer := g.waiting[id]
	g.mu.Unlock()
	if q.Request.Call.Detach {
		return toolward.Answer{}, &toolward.Pending{ID: id, ExpiresAt: time.Now().Add(time.Minute)}
	}
	select {
	case decision := <-answer:
		return toolward.Answer{ApprovalID: id, Decision: decision}, nil
	case <-ctx.Done():
		return toolward.Answer{ApprovalID: id}, nil
	}
}

func (g *gate) answer(t *testing.T, decision toolward.Decision, marker string) {
	id := <-g.arrived
	time.Sleep(200 * time.Millisecond) // time enough for a call that does not wait to run
	if _, err := os.Stat(marker); err == nil {
		t.Errorf("%s was there before anybody had answered", marker)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.waiting[id] <- decision
}
