package gateway

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolward/toolward/internal/baremcp"
	"github.com/toolward/toolward/mcp"
)

// BenchmarkMCPCall is what Toolward adds to a call of a safe tool. A client has the real gateway read a small file,
// with the whole way through policy and session and with its records committed to the real store; in turns it has a
// bare server of the SDK read the file, over a transport of the same kind:
//
//	pipe     all in this process: Toolward's own work, without changes of processes
//	socket   the gateway's local socket, as "toolward mcp" uses it; the bare server is at the end of one like it
//	stdio    programs of the client: "toolward mcp", which hands its pipes to the gateway, and the bare server itself
//	http     the gateway's port with a token, once for the protocols with sessions and once for those without
//
// In all but the first, gateway and bare server are programs of their own.
func BenchmarkMCPCall(b *testing.B) {
	b.Run("pipe", func(b *testing.B) {
		d := benchDaemon(b)
		defer debug.SetGCPercent(debug.SetGCPercent(collectAt(0))) // as the gateway does
		identity := mcp.Identity{Agent: "coder", Workspace: d.benchWorkspace(), TokenID: "local"}
		ours := served(func(conn net.Conn) { _ = d.mcp.ServeConn(context.Background(), conn, identity) })
		theirs := served(func(conn net.Conn) { _ = baremcp.NewServer().Run(context.Background(), streamOf(conn)) })
		addedByToolward(b, d.benchWorkspace(), "", ours, theirs)
	})
	d := startDaemon(b)
	b.Run("socket", func(b *testing.B) {
		bare := filepath.Join(d.home, "bare.sock")
		d.start(b, "baremcp", "unix", bare)
		addedByToolward(b, d.workspace, "", d.stream(b), streamOf(dial(b, bare)))
	})
	b.Run("stdio", func(b *testing.B) {
		ours := d.command("toolward", "mcp", "--agent", "coder", "--workspace", d.workspace)
		addedByToolward(b, d.workspace, "", &sdk.CommandTransport{Command: ours}, &sdk.CommandTransport{Command: exec.Command(d.program("baremcp"))})
	})
	for _, protocol := range []struct{ version, path string }{{"2025-11-25", "/sessions"}, {"2026-07-28", "/stateless"}} {
		b.Run("http "+protocol.version, func(b *testing.B) {
			bare := d.start(b, "baremcp", "http")
			addedByToolward(b, d.workspace, protocol.version,
				&sdk.StreamableClientTransport{Endpoint: d.url + "/mcp", HTTPClient: bearer(d.token)},
				&sdk.StreamableClientTransport{Endpoint: bare + protocol.path, HTTPClient: bearer(d.token)})
		})
	}
}

// addedByToolward calls over both transports in turns, in the same version of the protocol; "" is the newest.
func addedByToolward(b *testing.B, workspace, version string, ours, theirs sdk.Transport) {
	b.Helper()
	path := filepath.Join(workspace, "src", "server", "handlers", "list.go")
	with, without := connect(b, version, ours), connect(b, version, theirs)
	for range 200 {
		readOnce(b, with, path)
		readOnce(b, without, path)
	}
	var guarded, bare []time.Duration
	for b.Loop() {
		guarded = append(guarded, readOnce(b, with, path))
		bare = append(bare, readOnce(b, without, path))
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(micros(quantile(guarded, 0.5))-micros(quantile(bare, 0.5)), "added-µs-p50")
	b.ReportMetric(micros(quantile(guarded, 0.5)), "guarded-µs-p50")
	b.ReportMetric(micros(quantile(bare, 0.5)), "bare-µs-p50")
	b.ReportMetric(micros(quantile(guarded, 0.5))/micros(quantile(bare, 0.5)), "x-bare")
}

func connect(b *testing.B, version string, transport sdk.Transport) *sdk.ClientSession {
	b.Helper()
	client := sdk.NewClient(&sdk.Implementation{Name: "bench", Version: "1"}, nil)
	session, err := client.Connect(context.Background(), transport, &sdk.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { session.Close() })
	return session
}

func readOnce(b *testing.B, session *sdk.ClientSession, path string) time.Duration {
	start := time.Now()
	result, err := session.CallTool(context.Background(), &sdk.CallToolParams{Name: "read", Arguments: map[string]any{"path": path}})
	took := time.Since(start)
	if err != nil || result.IsError || len(result.Content) != 1 {
		b.Fatal(result, err)
	}
	return took
}

// stream is a connection to the gateway's local socket that speaks MCP.
func (d *runningDaemon) stream(b *testing.B) sdk.Transport {
	b.Helper()
	conn := dial(b, filepath.Join(d.home, ".toolward", "toolward.sock"))
	fmt.Fprintf(conn, "GET %s?agent=coder&workspace=%s HTTP/1.1\r\nHost: toolward\r\nConnection: Upgrade\r\nUpgrade: toolward-mcp/1\r\n\r\n",
		mcp.StdioPath, d.workspace)
	in := bufio.NewReader(conn)
	answer, err := http.ReadResponse(in, nil)
	if err != nil || answer.StatusCode != http.StatusSwitchingProtocols {
		b.Fatal(answer, err)
	}
	return streamOf(conn)
}

// served is a transport to a server at the other end of a pipe.
func served(serve func(net.Conn)) sdk.Transport {
	near, far := net.Pipe()
	go serve(far)
	return streamOf(near)
}

func streamOf(conn net.Conn) sdk.Transport { return &sdk.IOTransport{Reader: conn, Writer: conn} }

func dial(b *testing.B, socket string) net.Conn {
	b.Helper()
	conn, err := net.Dial("unix", socket)
	if err != nil {
		b.Fatal(err)
	}
	return conn
}

// bearer is a client that puts a token on every request.
func bearer(token string) *http.Client {
	return &http.Client{Transport: withToken{token}}
}

type withToken struct{ token string }

func (w withToken) RoundTrip(r *http.Request) (*http.Response, error) {
	r.Header.Set("Authorization", "Bearer "+w.token)
	return http.DefaultTransport.RoundTrip(r)
}
