package attacks

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"

	"github.com/toolward/toolward/desk"
	"github.com/toolward/toolward/internal/consoletest"
	"github.com/toolward/toolward/policy"
	"github.com/toolward/toolward/server/protocol"
)

// Credentials of the gateway protocol over a world's parts: the gateway's own, and of an agent that acts for the owner and
// of one that does not.
const (
	gatewaySecret = "the shared secret of the gateway"
	ownerToken    = "the token of an agent that acts for the owner"
	agentToken    = "the token of an agent"
)

// pipes serves connections in memory, which a clock of a test's own does not hold up.
type pipes struct {
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error { p.once.Do(func() { close(p.done) }); return nil }

func (p *pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 7411} }

func (p *pipes) dial(context.Context, string, string) (net.Conn, error) {
	ours, theirs := net.Pipe()
	select {
	case p.conns <- pipe{theirs, p.Addr()}:
		return ours, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

type pipe struct {
	net.Conn
	from net.Addr
}

func (p pipe) RemoteAddr() net.Addr { return p.from }

// serveGateway serves the gateway protocol, and calls over HTTP, on the parts of a world.
func (w *world) serveGateway() *wired {
	t, ctx := w.t, context.Background()
	t.Helper()
	keeper, pairings := w.parts.People, w.parts.Pairings
	counter, err := desk.New(desk.Options{Audit: w.log, Allowlist: w.allowlist, Devices: pairings, Approvals: w.approver, Records: w.log})
	must(t, err)
	main := protocol.Agent{ID: "main", Workspace: w.at("/ws")}
	server, err := protocol.New(protocol.Options{
		Config: protocol.Config{Auth: protocol.Auth{Mode: protocol.ModeToken, Token: gatewaySecret}}, Tokens: keeper, Pairings: pairings,
		Approvals: w.approver, Audit: w.log, Gate: w.gateway, Desk: counter,
		Policy: func() protocol.Policy { return w.policy.Snapshot().(*policy.Snapshot) },
		Agents: func() protocol.AgentList { return protocol.AgentList{Default: "main", All: []protocol.Agent{main}} },
		CallAs: func(_ context.Context, token string) (protocol.Agent, error) {
			agent := main
			agent.TokenID, agent.Owner = "t1", token == ownerToken
			if token != ownerToken && token != agentToken {
				return protocol.Agent{}, protocol.ErrNoAgent
			}
			return agent, nil
		},
		Home: w.stateDir, Version: "test",
	})
	must(t, err)
	mux := http.NewServeMux()
	mux.Handle(protocol.ToolsPath, server.Tools())
	mux.Handle("/", server)
	doors := &http.Server{Handler: mux}
	listener := &pipes{conns: make(chan net.Conn), done: make(chan struct{})}
	served := make(chan struct{})
	go func() { defer close(served); _ = doors.Serve(listener) }()
	client := &http.Client{Transport: &http.Transport{DialContext: listener.dial}}
	t.Cleanup(func() {
		client.CloseIdleConnections()
		must(t, server.Close(ctx))
		must(t, doors.Close())
		<-served
	})
	return &wired{World: &consoletest.World{URL: "http://127.0.0.1:7411"}, t: t, secret: gatewaySecret, log: &bytes.Buffer{}, client: client}
}

// post sends a call over HTTP and returns its status.
func (w *wired) post(token string, body map[string]any, headers map[string]string) (status int, answer string, err error) {
	raw, err := json.Marshal(body)
	must(w.t, err)
	r, err := http.NewRequestWithContext(w.t.Context(), http.MethodPost, w.URL+protocol.ToolsPath, bytes.NewReader(raw))
	if err != nil {
		return 0, "", err
	}
	for name, value := range headers {
		r.Header.Set(name, value)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer "+token)
	var text bytes.Buffer
	w.watch.time(func() {
		var response *http.Response
		if response, err = w.client.Do(r); err == nil {
			status = response.StatusCode
			_, err = text.ReadFrom(response.Body)
			response.Body.Close()
		}
	})
	return status, text.String(), err
}

// forge is a client or a node that reports about a call what only the gateway may find out: frames of events, and every
// method by which such a program could report them.
func (p *approvalPlay) forge(s fields) (outcome, error) {
	if err := s.only("event", "op", "type", "ref", "by"); err != nil {
		return outcome{}, err
	}
	w := p.serveGateway()
	id := p.id(s.text("ref"))
	about := map[string]any{"id": id, "runId": id, "approvalId": id, "decision": "allow-once", "exitCode": 0, "by": s["by"]}
	role, _, _ := strings.Cut(s.text("by"), ":")
	entered := 0
	for _, as := range []string{role, "operator"} {
		ws, err := w.connect(visit{}, func(f map[string]any) {
			params := f["params"].(map[string]any)
			params["role"], params["scopes"] = as, []string{"operator.read", "operator.write"}
		})
		if err != nil {
			continue // it is not even let in
		}
		entered++
		for i, frame := range []map[string]any{
			{"type": "event", "event": s["type"], "payload": about, "seq": 1},
			{"type": "req", "method": s["type"], "params": about},
			{"type": "req", "method": "node.event", "params": map[string]any{"event": s["type"], "payload": about}},
			{"type": "req", "method": "system-event", "params": map[string]any{"text": s["type"], "payload": about}},
			{"type": "req", "method": "approval.resolve", "params": map[string]any{"id": id, "decision": "allow-once"}},
		} {
			frame["id"] = fmt.Sprint("e", i)
			if frame["type"] == "event" {
				raw, err := json.Marshal(frame)
				must(p.t, err)
				_ = w.write(ws, raw) // whether it is ignored or ends the connection
				continue
			}
			if err := w.exchange(ws, frame); err == nil {
				return outcome{answer: allowed, why: fmt.Sprint("taken: ", frame)}, nil
			}
		}
	}
	person, err := op1()
	if err != nil {
		return outcome{}, err
	}
	r, err := p.approver.Get(context.Background(), person, id)
	if err == nil && entered == 0 {
		err = errors.New("nobody was let in, which proves nothing")
	}
	if err == nil && r.ResolvedMs != 0 {
		err = errors.New("the approval is " + string(r.State))
	}
	return outcome{answer: denied}, err
}

// judgeAllowlist is an agent, or a client of the gateway, that tries to put a program on the list of those that run without
// a question. However it tries, it is refused, and the list stays as it was.
func judgeAllowlist(w *world, c *attack) (outcome, error) {
	a := c.Attempt
	if err := a.only("allowlist", "tool", "pattern", "text", "from"); err != nil {
		return outcome{}, err
	}
	pattern := a.text("pattern")
	if a.has("text") {
		words := strings.Fields(a.text("text"))
		if len(words) == 0 {
			return outcome{}, unsupported{"an empty chat command"}
		}
		pattern = words[len(words)-1]
	}
	before := w.allowlist.Current().Hash
	caller, _ := w.main("s1")
	file := w.stateDir + "/exec-approvals.json"
	content := fmt.Sprintf(`{"version":1,"agents":{"*":{"allowlist":[{"pattern":%q}]}}}`, pattern)
	for _, call := range []struct {
		tool string
		args map[string]any
	}{
		{a.text("tool"), map[string]any{"pattern": pattern, "text": a.text("text")}},
		{"exec", map[string]any{"command": "toolward approvals allowlist add '" + pattern + "'"}},
		{"write", map[string]any{"path": file, "content": content}},
	} {
		if tried := w.admit(w.newCall(caller, call.tool, call.args)); tried.answer != denied {
			return outcome{answer: tried.answer, why: call.tool + ": " + tried.why(), took: w.watch.longest}, nil
		}
	}
	if why := w.serveGateway().listed(pattern, content, a.text("text")); why != "" {
		return outcome{answer: allowed, why: why}, nil
	}
	if w.allowlist.Current().Hash != before {
		return outcome{answer: harmful, why: "the list has changed"}, nil
	}
	return outcome{answer: denied, took: w.watch.longest}, nil
}

// listed tries to change the list as a program that may read and write, but not configure; it says what was taken.
func (w *wired) listed(pattern, content, text string) string {
	ws, err := w.connect(visit{}, func(f map[string]any) {
		f["params"].(map[string]any)["scopes"] = []string{"operator.read", "operator.write"}
	})
	must(w.t, err)
	if text == "" {
		text = "/allowlist add " + pattern
	}
	for i, frame := range []map[string]any{
		{"method": "exec.approvals.set", "params": map[string]any{"file": json.RawMessage(content)}},
		{"method": "exec.approvals.allowlist.add", "params": map[string]any{"pattern": pattern}},
		{"method": "config.patch", "params": map[string]any{"raw": content}},
		{"method": "chat.send", "params": map[string]any{"sessionKey": "main", "message": text, "idempotencyKey": "1"}},
		{"method": "tools.invoke", "params": map[string]any{"name": "gateway", "args": map[string]any{"action": "config.patch"}, "dryRun": false}},
	} {
		frame["type"], frame["id"] = "req", fmt.Sprint("l", i)
		if err := w.exchange(ws, frame); err == nil && frame["method"] != "tools.invoke" {
			return fmt.Sprint(frame["method"], " was taken")
		}
	}
	return ""
}
