package live_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/toolward/toolward/internal/live"
)

// reply is a JSON-RPC response.
type reply struct {
	ID     json.RawMessage `json:"id"`
	Error  *wireError      `json:"error"`
	Result struct {
		toolResult
		RequestState string `json:"requestState"`
	} `json:"result"`
}

type wireError struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

// said is everything that the reply says, for comparing with a part of it.
func (r *reply) said() string {
	if r.Error != nil {
		return fmt.Sprintf("%d %s", r.Error.Code, r.Error.Message)
	}
	return r.Result.text()
}

// refused reports whether the reply says that nothing was done.
func (r *reply) refused() bool { return r.Error != nil || r.Result.IsError }

// wire sends hand-made messages over one face.
type wire interface {
	// send sends the bytes of one message and returns the response; ctx ends the connection, and the error says so.
	send(ctx context.Context, message string) (*reply, error)
}

const (
	sessionVersion = "2025-11-25" // with sessions
	newestVersion  = "2026-07-28" // each call by itself
	initialize     = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"` + sessionVersion +
		`","capabilities":{},"clientInfo":{"name":"wire","version":"1"}}}`
	initialized = `{"jsonrpc":"2.0","method":"notifications/initialized"}`
)

// toolCall is the message of a call in a session.
func toolCall(tool, arguments string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":%q,"arguments":%s}}`, tool, arguments)
}

// agentVariable makes this test program behave as an agent, which starts the program that the variable names. Whoever
// starts "toolward mcp" is an agent with all that descends from it, and the test's terminals must not be.
const agentVariable = "TOOLWARD_TEST_AGENT"

func beAgent(program string, arguments []string) int {
	command := exec.Command(program, arguments...)
	command.Stdin, command.Stdout, command.Stderr = os.Stdin, os.Stdout, os.Stderr
	if err := command.Run(); err != nil {
		return 1
	}
	return 0
}

// stdioWire is the real "toolward mcp" with a client at its streams.
type stdioWire struct {
	t      testing.TB
	input  io.WriteCloser
	output *bufio.Reader
	errs   live.Output
	mu     sync.Mutex // one message at a time
	kill   func()
}

func dialStdio(t testing.TB, m *live.Machine, agent string) *stdioWire {
	t.Helper()
	command := m.Command(os.Args[0], "mcp", "--agent", agent)
	command.Env = append(command.Env, agentVariable+"="+m.Program("toolward"))
	command.SysProcAttr.Setpgid = true
	w := &stdioWire{t: t}
	command.Stderr = &w.errs
	var err error
	if w.input, err = command.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	output, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	w.output = bufio.NewReaderSize(output, 64<<10)
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	w.kill = sync.OnceFunc(func() {
		_ = syscall.Kill(-command.Process.Pid, syscall.SIGKILL)
		_ = command.Wait() // killed: that is no news
	})
	t.Cleanup(w.kill)
	if _, err := w.send(t.Context(), initialize); err != nil {
		t.Fatalf("initialize: %v\n%s", err, &w.errs)
	}
	if _, err := io.WriteString(w.input, initialized+"\n"); err != nil {
		t.Fatal(err)
	}
	return w
}

// send implements wire; when ctx ends the client is killed.
func (w *stdioWire) send(ctx context.Context, message string) (*reply, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	stop := context.AfterFunc(ctx, func() { w.kill() })
	defer stop()
	if _, err := io.WriteString(w.input, message+"\n"); err != nil {
		return nil, err
	}
	for {
		line, err := w.output.ReadBytes('\n')
		if err != nil {
			return nil, fmt.Errorf("%w; standard error: %s", err, &w.errs)
		}
		var r reply
		if err := json.Unmarshal(line, &r); err != nil {
			return nil, fmt.Errorf("%w: %.300s", err, line)
		}
		if r.ID != nil {
			return &r, nil
		}
	}
}

// httpWire posts to /mcp.
type httpWire struct {
	url, token string
	session    string // "" for the newest protocol
	client     *http.Client
}

// dialHTTP opens a session over HTTP.
func dialHTTP(t testing.TB, url, token string) *httpWire {
	t.Helper()
	w := newestHTTP(t, url, token)
	response, err := w.post(t.Context(), initialize, func(r *http.Request) { r.Header.Del("Mcp-Protocol-Version") })
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if w.session = response.Header.Get("Mcp-Session-Id"); w.session == "" {
		t.Fatalf("initialize: %s", response.Status)
	}
	return w
}

// newestHTTP speaks the newest protocol, which has no sessions.
func newestHTTP(t testing.TB, url, token string) *httpWire {
	w := &httpWire{url: url + "/mcp", token: token, client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}}
	t.Cleanup(w.client.CloseIdleConnections)
	return w
}

func (w *httpWire) post(ctx context.Context, body string, change func(*http.Request)) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, w.url, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+w.token)
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "application/json, text/event-stream")
	request.Header.Set("Mcp-Protocol-Version", newestVersion)
	if w.session != "" {
		request.Header.Set("Mcp-Protocol-Version", sessionVersion)
		request.Header.Set("Mcp-Session-Id", w.session)
	}
	if change != nil {
		change(request)
	}
	return w.client.Do(request)
}

// send implements wire.
func (w *httpWire) send(ctx context.Context, message string) (*reply, error) {
	return w.exchange(ctx, message, nil)
}

// call makes a call of the newest protocol; state is that of an earlier round, or "".
func (w *httpWire) call(ctx context.Context, tool, arguments, state string) (*reply, error) {
	params := map[string]any{
		"name": tool, "arguments": json.RawMessage(arguments),
		"_meta": map[string]any{
			"io.modelcontextprotocol/protocolVersion":    newestVersion,
			"io.modelcontextprotocol/clientCapabilities": map[string]any{"elicitation": map[string]any{"url": struct{}{}}},
		},
	}
	if state != "" {
		params["requestState"] = state
	}
	body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
	if err != nil {
		return nil, err
	}
	return w.exchange(ctx, string(body), func(r *http.Request) {
		r.Header.Set("Mcp-Method", "tools/call")
		r.Header.Set("Mcp-Name", tool)
	})
}

func (w *httpWire) exchange(ctx context.Context, message string, change func(*http.Request)) (*reply, error) {
	response, err := w.post(ctx, message, change)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, err
	}
	for line := range bytes.Lines(body) {
		data, ok := bytes.CutPrefix(line, []byte("data: "))
		if !ok && bytes.HasPrefix(line, []byte("{")) {
			data, ok = line, true
		}
		var r reply
		if ok && json.Unmarshal(data, &r) == nil && r.ID != nil {
			return &r, nil
		}
	}
	if response.StatusCode < http.StatusBadRequest {
		return nil, fmt.Errorf("no response in the answer %s: %.500s", response.Status, body)
	}
	return &reply{Error: &wireError{response.StatusCode, string(body)}}, nil
}

// record is one line of the exported record.
type record struct {
	Seq     int64  `json:"seq"`
	Type    string `json:"type"`
	Ref     int64  `json:"ref"`
	CallID  string `json:"callId"`
	Tool    string `json:"tool"`
	Session string `json:"sessionKey"`
	Verdict string `json:"verdict"`
	Code    string `json:"code"`
	Via     string `json:"via"`
	Host    string `json:"host"`
	Facts   struct {
		HostWhy string `json:"hostWhy"`
	} `json:"facts"`
	Status  string `json:"status"`
	Preview string `json:"preview"`
	Error   string `json:"error"`
	Inputs  struct {
		External bool `json:"external"`
	} `json:"levelInputs"`
	Data struct {
		Event string `json:"event"`
		ID    string `json:"id"`
	} `json:"data"`
	Approval struct {
		ID       string `json:"id"`
		Decision string `json:"decision"`
	} `json:"approval"`
}

// records reads the whole record in the signed-in terminal, and has it verified.
func (g *guardedMachine) records(t *testing.T) []record {
	t.Helper()
	return recordsIn(t, g.Machine, g.terminal)
}

func recordsIn(t *testing.T, m *live.Machine, terminal *live.Terminal) []record {
	t.Helper()
	if out, status := terminal.Run("toolward audit verify"); status != 0 {
		t.Errorf("audit verify: %d\n%s", status, out)
	}
	path := filepath.Join(m.Home, "export")
	if out, status := terminal.Run("toolward audit export > " + path); status != 0 {
		t.Fatalf("audit export: %d\n%s", status, out)
	}
	return readRecords(t, path)
}

func readRecords(t *testing.T, path string) []record {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var all []record
	for line := range bytes.Lines(data) {
		var r record
		if err := json.Unmarshal(line, &r); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		all = append(all, r)
	}
	return all
}

// decisions are the records of decisions about one tool.
func decisions(all []record, tool string) []record {
	var out []record
	for _, r := range all {
		if r.Type == "decision" && r.Tool == tool {
			out = append(out, r)
		}
	}
	return out
}
