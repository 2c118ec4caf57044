package mcp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolward/toolward/hostdaemon"
)

// requestTime is how long the daemon of a test waits for requests. A busy machine must make them in that time.
const requestTime = 2 * time.Second

// daemon serves a world on a local socket.
type daemon struct {
	socket string
	stop   func()
}

func (w *world) daemon(t testing.TB, welcome Welcome) *daemon {
	t.Helper()
	dir, err := os.MkdirTemp("", "tw") // socket paths must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	socket := filepath.Join(dir, "s")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	mux := http.NewServeMux()
	mux.Handle(StdioPath, w.server.StdioHandler(ctx, welcome))
	server := &http.Server{Handler: mux, ReadTimeout: requestTime, WriteTimeout: requestTime}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(listener)
	}()
	stop := func() {
		cancel()
		server.Close()
		<-done
	}
	t.Cleanup(stop)
	return &daemon{socket, stop}
}

// own is a daemon of this user at a socket.
func own(socket string) hostdaemon.Daemon {
	return hostdaemon.Daemon{UID: uint32(os.Geteuid()), Socket: socket}
}

func welcomeAll(_ *http.Request, hello Hello) (Identity, error) {
	return Identity{Agent: hello.Agent, Workspace: hello.Workspace, Owner: true}, nil
}

// pipe runs Pipe as "toolward mcp" would, with a real SDK client on real pipes.
func (d *daemon) pipe(t testing.TB, ctx context.Context, version string) (*sdk.ClientSession, <-chan error) {
	t.Helper()
	inRead, inWrite, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	outRead, outWrite, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		err := Pipe(ctx, own(d.socket), Hello{Agent: "coder", Workspace: "/work"}, inRead, outWrite)
		inRead.Close() // as the end of the process would
		outWrite.Close()
		ended <- err
	}()
	client := sdk.NewClient(&sdk.Implementation{Name: "tester", Version: "1"}, nil)
	session, err := client.Connect(context.Background(), &sdk.IOTransport{Reader: outRead, Writer: inWrite}, &sdk.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		t.Fatal(err)
	}
	return session, ended
}

func TestPipeCarriesCalls(t *testing.T) {
	for _, version := range versions {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			session, ended := w.daemon(t, welcomeAll).pipe(t, context.Background(), version)
			time.Sleep(requestTime + 100*time.Millisecond) // the server's time-outs for requests must not end the stream
			result, err := session.CallTool(context.Background(), &sdk.CallToolParams{Name: "echo", Arguments: map[string]any{"text": "hi"}})
			if err != nil || text(t, result) != "hi" {
				t.Fatalf("got %+v, %v", result, err)
			}
			call := w.Auditor.Decisions()[0].Call
			if call.Caller.Owner {
				t.Error("the local socket made an owner")
			}
			if call.Caller.Agent != "coder" || call.WorkDir != "/work" || !strings.HasPrefix(string(call.Session), "agent:coder:mcp:local:") {
				t.Errorf("call %+v", call)
			}
			session.Close()
			if err := <-ended; err != nil {
				t.Errorf("after the client's end: %v", err)
			}
		})
	}
}

func TestPipeEndsWithTheDaemon(t *testing.T) {
	w := newWorld(t)
	d := w.daemon(t, welcomeAll)
	session, ended := d.pipe(t, context.Background(), version20251125)
	done := callInBackground(context.Background(), session, actParams())
	w.people.until(t, "a1", func(*entry) bool { return true })
	d.stop()
	if err := <-ended; !errors.Is(err, ErrDaemonGone) {
		t.Errorf("got %v, want ErrDaemonGone", err)
	}
	if got := <-done; got.err == nil {
		t.Errorf("the pending call ended with %+v", got.result)
	}
	w.people.withdrawn(t, "a1")
	w.neverRan(t)
}

func TestPipeCanceledByContext(t *testing.T) {
	w := newWorld(t)
	ctx, cancel := context.WithCancel(context.Background())
	_, ended := w.daemon(t, welcomeAll).pipe(t, ctx, version20251125)
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestPipeWithoutDaemon(t *testing.T) {
	dir := t.TempDir()
	dead := filepath.Join(dir, "dead")
	listener, err := net.Listen("unix", dead)
	if err != nil {
		t.Fatal(err)
	}
	listener.(*net.UnixListener).SetUnlinkOnClose(false)
	listener.Close()
	for name, socket := range map[string]string{"no socket": filepath.Join(dir, "none"), "dead socket": dead} {
		t.Run(name, func(t *testing.T) {
			err := Pipe(context.Background(), own(socket), Hello{Agent: "coder"}, strings.NewReader(""), io.Discard)
			if !errors.Is(err, ErrNoDaemon) || !strings.Contains(err.Error(), "toolward up") {
				t.Errorf("got %v, want how to start the daemon", err)
			}
		})
	}
}

func TestPipeRefused(t *testing.T) {
	w := newWorld(t)
	cases := []struct {
		name    string
		welcome Welcome
		want    string
	}{
		{"by the daemon", func(*http.Request, Hello) (Identity, error) {
			return Identity{}, fmt.Errorf(`no agent "coder" here`)
		}, `no agent "coder" here`},
		{"unusable identity", func(*http.Request, Hello) (Identity, error) { return Identity{}, nil }, "agent id"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			err := Pipe(context.Background(), own(w.daemon(t, c.welcome).socket), Hello{Agent: "coder"}, strings.NewReader(""), io.Discard)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

func TestPipeAnswersWhatIsLeftAtTheEndOfInput(t *testing.T) {
	w := newWorld(t)
	var out bytes.Buffer
	err := Pipe(context.Background(), own(w.daemon(t, welcomeAll).socket), Hello{Agent: "coder"}, strings.NewReader("nonsense"), &out)
	if err != nil || !strings.Contains(out.String(), "-32700") {
		t.Errorf("got %q, %v", out.String(), err)
	}
}

func TestStdioHandlerNeedsItsProtocol(t *testing.T) {
	w := newWorld(t)
	d := w.daemon(t, welcomeAll)
	client := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", d.socket)
	}}}
	response, err := client.Post("http://toolward"+StdioPath+"?agent=coder", "", nil)
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if response.StatusCode != http.StatusUpgradeRequired {
		t.Errorf("status %d", response.StatusCode)
	}
}

// Two streams of the same agent are two conversations: what one has been exposed to, and what it may resume, is
// nothing of the other's.
func TestStreamsAreSessions(t *testing.T) {
	w := newWorld(t)
	d := w.daemon(t, welcomeAll)
	for range 2 {
		session, _ := d.pipe(t, context.Background(), version20251125)
		if _, err := session.CallTool(context.Background(), &sdk.CallToolParams{Name: "echo"}); err != nil {
			t.Fatal(err)
		}
		session.Close()
	}
	first, second := w.Auditor.Decisions()[0].Call, w.Auditor.Decisions()[1].Call
	if first.Session == second.Session || first.Caller.Connection == second.Caller.Connection {
		t.Errorf("both are %q over %q", first.Session, first.Caller.Connection)
	}
}
