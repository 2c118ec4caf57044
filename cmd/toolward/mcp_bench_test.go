package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolward/toolward/device"
	"github.com/toolward/toolward/mcp"
)

// BenchmarkMCPCall is what Toolward adds to a call of a safe tool: a client has the daemon read a small file, with
// the whole way through policy and session and with both records committed, and in turns has the bare SDK read it.
//
//	stream   the daemon's local socket; the bare server is at the end of a socket of the same kind
//	http     the daemon's port and a token; the bare server is at a port of its own
//	process  programs: "toolward mcp", which adds a pipe and a socket on the way to the daemon, and a bare server
func BenchmarkMCPCall(b *testing.B) {
	b.Run("stream", func(b *testing.B) {
		d := servedDaemon(b)
		addedByToolward(b, d.benchWorkspace(), streamTo(b, d), bareStream(b))
	})
	b.Run("http", func(b *testing.B) {
		d := servedDaemon(b)
		bare := httptest.NewServer(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return bareServer() }, nil))
		b.Cleanup(bare.Close)
		ours := &sdk.StreamableClientTransport{Endpoint: d.server.URL() + "/mcp", HTTPClient: &http.Client{Transport: bearer(benchToken(b, d))}}
		theirs := &sdk.StreamableClientTransport{Endpoint: bare.URL, HTTPClient: &http.Client{Transport: bearer("none")}}
		addedByToolward(b, d.benchWorkspace(), ours, theirs)
	})
	b.Run("process", func(b *testing.B) {
		daemon := startDaemon(b)
		client := exec.Command(daemon.program("toolward"), "mcp", "--agent", "coder", "--workspace", daemon.workspace)
		client.Env = daemon.environment()
		bare := exec.Command(daemon.program("baremcp"))
		addedByToolward(b, daemon.workspace, &sdk.CommandTransport{Command: client}, &sdk.CommandTransport{Command: bare})
	})
}

// addedByToolward calls over both transports in turns.
func addedByToolward(b *testing.B, workspace string, ours, theirs sdk.Transport) {
	b.Helper()
	path := filepath.Join(workspace, "src", "server", "handlers", "list.go")
	with, without := connect(b, ours), connect(b, theirs)
	for range 100 {
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
}

func connect(b *testing.B, transport sdk.Transport) *sdk.ClientSession {
	b.Helper()
	client := sdk.NewClient(&sdk.Implementation{Name: "bench", Version: "1"}, nil)
	session, err := client.Connect(context.Background(), transport, nil)
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

// bareServer is a tool that reads a file behind nothing but the SDK.
func bareServer() *sdk.Server {
	server := sdk.NewServer(&sdk.Implementation{Name: "bare", Version: "1"}, nil)
	server.AddTool(&sdk.Tool{Name: "read", InputSchema: json.RawMessage(`{"type":"object"}`)},
		func(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			var arguments struct{ Path string }
			if err := json.Unmarshal(r.Params.Arguments, &arguments); err != nil {
				return nil, err
			}
			text, err := os.ReadFile(arguments.Path)
			return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: string(text)}}}, err
		})
	return server
}

// bareStream is a transport to a bareServer at the end of a local socket.
func bareStream(b *testing.B) sdk.Transport {
	b.Helper()
	socket := filepath.Join(benchHome(b), "bare.sock")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { listener.Close() })
	go func() {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		_ = bareServer().Run(context.Background(), &sdk.IOTransport{Reader: conn, Writer: conn})
	}()
	conn, err := net.Dial("unix", socket)
	if err != nil {
		b.Fatal(err)
	}
	return &sdk.IOTransport{Reader: conn, Writer: conn}
}

// streamTo is a transport to the daemon's local socket, without the pipe of "toolward mcp" in between.
func streamTo(b *testing.B, d *daemon) sdk.Transport {
	b.Helper()
	conn, err := net.Dial("unix", filepath.Join(d.home, "toolward.sock"))
	if err != nil {
		b.Fatal(err)
	}
	fmt.Fprintf(conn, "GET %s?agent=coder&workspace=%s HTTP/1.1\r\nHost: toolward\r\nConnection: Upgrade\r\nUpgrade: toolward-mcp/1\r\n\r\n",
		mcp.StdioPath, d.benchWorkspace())
	in := bufio.NewReader(conn)
	answer, err := http.ReadResponse(in, nil)
	if err != nil || answer.StatusCode != http.StatusSwitchingProtocols {
		b.Fatal(answer, err)
	}
	return &sdk.IOTransport{Reader: readCloser{in, conn}, Writer: conn}
}

type readCloser struct {
	*bufio.Reader
	net.Conn
}

func (r readCloser) Read(p []byte) (int, error) { return r.Reader.Read(p) }

// bearer puts a token on every request.
type bearer string

func (token bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r.Header.Set("Authorization", "Bearer "+string(token))
	return http.DefaultTransport.RoundTrip(r)
}

const benchPassphrase = "correct horse battery staple"

func benchToken(b *testing.B, d *daemon) string {
	b.Helper()
	ctx := b.Context()
	if err := d.people.SetUp(ctx, "bench", d.people.SetupCode(), benchPassphrase); err != nil {
		b.Fatal(err)
	}
	person, err := d.people.SignInForeground(ctx, benchPassphrase)
	if err != nil {
		b.Fatal(err)
	}
	secret, _, err := d.people.CreateToken(ctx, person, device.TokenSpec{Agent: "coder", Workspace: d.benchWorkspace()})
	if err != nil {
		b.Fatal(err)
	}
	return secret
}

// servedDaemon is a benchDaemon whose doors are open.
func servedDaemon(b *testing.B) *daemon {
	b.Helper()
	d := benchDaemon(b)
	ctx, stop := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- d.serve(ctx) }()
	b.Cleanup(func() {
		stop()
		if err := <-served; err != nil {
			b.Error(err)
		}
	})
	return d
}
