package attacks

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/toolward/toolward/identity"
	"github.com/toolward/toolward/internal/consoletest"
	"github.com/toolward/toolward/mcp"
	"github.com/toolward/toolward/server/protocol"
)

// judgeHTTP sends one request to the real server, byte for byte as the case says. It runs in real time: sockets have no
// other.
func judgeHTTP(t *testing.T, c *attack) (outcome, error) {
	if err := setupOnly(c, "bind", "auth"); err != nil {
		return outcome{}, err
	}
	request := c.Attempt.object("http")
	if err := request.only("http", "method", "path", "headers", "body"); err != nil {
		return outcome{}, err
	}
	toDefault(request)
	w := newWorld(t)
	var console *consoletest.World
	server, err := mcp.NewServer(mcp.Config{Gateway: w.gateway, Policy: w.policy, StateKey: make([]byte, 32)})
	must(t, err)
	t.Cleanup(server.Close)
	console = consoletest.New(t, consoletest.Options{Protocol: &protocol.Config{}, Refuse: true, MCP: server.Handler(
		func(ctx context.Context, secret string, _ *http.Request) (mcp.Identity, error) {
			token, err := console.People.Token(ctx, secret)
			if err != nil {
				return mcp.Identity{}, err
			}
			return mcp.Identity{Agent: token.Agent, Workspace: token.Workspace, TokenID: token.ID}, nil
		})})
	secret, _, err := console.People.CreateToken(t.Context(), console.Person(), identity.TokenSpec{Agent: "main", Workspace: w.at("/ws")}, nil)
	must(t, err)
	status := 0
	var watch stopwatch
	watch.time(func() { status, err = sendRaw(strings.TrimPrefix(console.URL, "http://"), request, secret) })
	o := outcome{answer: denied, why: fmt.Sprint("status ", status), took: watch.longest}
	switch {
	case err != nil:
		o.why = err.Error() // the door was shut
	case status < 300:
		o.answer = allowed
	}
	return o, nil
}

// toDefault fills in what a case leaves out: it is about the endpoint for tools then. Whoever claims to be somebody by a
// header shows no token.
func toDefault(request fields) {
	if !request.has("method") {
		request["method"] = http.MethodPost
	}
	if !request.has("path") {
		request["path"] = protocol.ToolsPath
	}
	if request.text("path") != "/mcp" && !request.has("body") {
		request["body"] = `{"tool":"list"}`
	}
	headers := request.object("headers")
	for _, claim := range []string{"Forwarded", "Tailscale-User-Login", "X-Forwarded-For", "X-Real-Ip"} {
		if headers.has(claim) {
			headers["Authorization"] = ""
		}
	}
}

// sendRaw writes a request by hand, so that no client mends what is wrong with it.
func sendRaw(address string, request fields, secret string) (status int, err error) {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		return 0, err
	}
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return 0, err
	}
	body := `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`
	if request.has("body") {
		body = request.text("body")
	}
	headers := map[string]string{
		"Host": "127.0.0.1:PORT", "Content-Type": "application/json", "Accept": "application/json, text/event-stream",
		"Content-Length": fmt.Sprint(len(body)), "Authorization": "Bearer VALID",
	}
	for name, value := range request.object("headers") {
		headers[name] = fmt.Sprint(value)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\n", request.text("method"), request.text("path"))
	for _, name := range sorted(headers) {
		value := strings.NewReplacer("PORT", port, "VALID", secret).Replace(headers[name])
		if value == "" {
			continue // a missing Host, or no credential
		}
		fmt.Fprintf(&b, "%s: %s\r\n", name, value)
	}
	if _, err := conn.Write([]byte(b.String() + "\r\n" + body)); err != nil {
		return 0, err
	}
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return 0, errors.Join(errors.New("no answer"), err)
	}
	return response.StatusCode, response.Body.Close()
}
