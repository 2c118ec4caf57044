package mcp

import (
	"bufio"
	"encoding/json"
	"net"
	"testing"
	"time"
)

// raw is a client that sends whatever a test wants.
type raw struct {
	t    testing.TB
	conn net.Conn
	in   *bufio.Reader
}

func newRaw(t testing.TB, conn net.Conn) *raw {
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
	return &raw{t: t, conn: conn, in: bufio.NewReaderSize(conn, 1<<20)}
}

func (r *raw) send(line string) {
	r.t.Helper()
	if _, err := r.conn.Write([]byte(line + "\n")); err != nil {
		r.t.Fatalf("send: %v", err)
	}
}

// answer is one message from the server.
type answer struct {
	ID     json.RawMessage
	Method string
	Params json.RawMessage
	Result json.RawMessage
	Error  *struct {
		Code    int
		Message string
	}
	line string
}

func (r *raw) receive() answer {
	r.t.Helper()
	line, err := r.in.ReadString('\n')
	if err != nil {
		r.t.Fatalf("receive: %v", err)
	}
	a := answer{line: line}
	if err := json.Unmarshal([]byte(line), &a); err != nil {
		r.t.Fatalf("receive: %v: %s", err, line)
	}
	return a
}

func (r *raw) initialize(version string) {
	r.t.Helper()
	r.send(`{"jsonrpc":"2.0","id":"init","method":"initialize","params":{"protocolVersion":"` + version +
		`","capabilities":{},"clientInfo":{"name":"raw","version":"1"}}}`)
	if a := r.receive(); a.Result == nil {
		r.t.Fatalf("initialize: %s", a.line)
	}
	r.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
}
