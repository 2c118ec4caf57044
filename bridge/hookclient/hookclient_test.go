package hookclient_test

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/toolward/toolward/bridge/hookclient"
	"github.com/toolward/toolward/hostdaemon"
)

// program is the real toolward-hook, built once: what matters is what a client sees of the process.
var program = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "toolward-hook")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "toolward-hook")
	out, err := exec.Command("go", "build", "-o", path, "github.com/toolward/toolward/cmd/toolward-hook").CombinedOutput()
	os.Stderr.Write(out)
	return path, err
})

func TestMain(m *testing.M) {
	status := m.Run()
	if path, err := program(); err == nil {
		os.RemoveAll(filepath.Dir(path))
	}
	os.Exit(status)
}

// seen is what the client sees of a run.
type seen struct {
	exit           int
	stdout, stderr string
}

// run starts the program with the daemon's home and an event.
func run(t *testing.T, home string, stdin io.Reader, env []string, args ...string) seen {
	t.Helper()
	path, err := program()
	if err != nil {
		t.Fatal(err)
	}
	command := exec.Command(path, args...)
	if home != "" {
		command.Args = append(command.Args, "--home", home)
	}
	command.Env = append([]string{"HOME=" + t.TempDir()}, env...)
	command.Stdin = stdin
	var stdout, stderr bytes.Buffer
	command.Stdout, command.Stderr = &stdout, &stderr
	_ = command.Run()
	return seen{command.ProcessState.ExitCode(), stdout.String(), stderr.String()}
}

// daemon answers one connection after the other with what answer does.
func daemon(t *testing.T, answer func(request string, conn net.Conn)) (home string) {
	t.Helper()
	home, err := os.MkdirTemp("", "tw") // short: socket paths hold about 100 bytes
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(home) })
	listener, err := net.Listen("unix", filepath.Join(home, hostdaemon.SocketName))
	if err != nil {
		t.Fatal(err)
	}
	var open sync.WaitGroup
	open.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			open.Go(func() {
				defer conn.Close()
				answer(readRequest(conn), conn)
			})
		}
	})
	t.Cleanup(func() { listener.Close(); open.Wait() })
	return home
}

// readRequest reads head and body of the hook's request.
func readRequest(conn net.Conn) string {
	var all []byte
	buf := make([]byte, 64<<10)
	for {
		n, err := conn.Read(buf)
		all = append(all, buf[:n]...)
		head, body, ok := strings.Cut(string(all), "\r\n\r\n")
		var length int
		if i := strings.Index(head, "Content-Length: "); ok && i >= 0 {
			_, _ = fmt.Sscan(head[i+len("Content-Length: "):], &length)
			if len(body) >= length {
				return string(all)
			}
		}
		if err != nil {
			return string(all)
		}
	}
}

func respond(conn net.Conn, body string) {
	fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
}

func frame(exit int, stdout, stderr string) string {
	return string(hookclient.AppendAnswer(nil, hookclient.Answer{Exit: exit, Stdout: []byte(stdout), Stderr: []byte(stderr)}))
}

func TestAnswersAreCarriedExactly(t *testing.T) {
	big := strings.Repeat("\x00é\n", 200_000)
	for _, test := range []struct {
		name string
		body string
		want seen
	}{
		{"allow", frame(0, `{"a":1}`, ""), seen{0, `{"a":1}`, ""}},
		{"nothing to say", frame(0, "", ""), seen{0, "", ""}},
		{"refusal", frame(2, "", "no\n"), seen{2, "", "no\n"}},
		{"both streams, large", frame(0, big, big), seen{0, big, big}},
		{"refusal without a reason gets one", frame(2, "", ""), seen{2, "", "Toolward refused this call.\n"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			home := daemon(t, func(_ string, conn net.Conn) { respond(conn, test.body) })
			got := run(t, home, strings.NewReader("{}"), nil, "claude-code", "PreToolUse")
			if diff := cmp.Diff(test.want, got, cmp.AllowUnexported(seen{})); diff != "" {
				t.Errorf("(-want +got)\n%.2000s", diff)
			}
		})
	}
}

// TestEveryFailureRefuses: a hook that ends in any other way lets the tool run in most clients.
func TestEveryFailureRefuses(t *testing.T) {
	closes := func(string, net.Conn) {}
	for _, test := range []struct {
		name   string
		answer func(string, net.Conn) // nil: no daemon
		stdin  string
		args   []string
	}{
		{"no daemon", nil, "{}", nil},
		{"daemon dies without a word", closes, "{}", nil},
		{"daemon dies in the head", func(_ string, c net.Conn) { io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-") }, "{}", nil},
		{"daemon dies in the answer", func(_ string, c net.Conn) {
			respond(c, frame(0, `{"permissionDecision":"allow"}`, "")[:30])
		}, "{}", nil},
		{"daemon dies before the last byte", func(_ string, c net.Conn) { f := frame(0, "{}", ""); respond(c, f[:len(f)-1]) }, "{}", nil},
		{"a byte too much", func(_ string, c net.Conn) { respond(c, frame(0, "{}", "")+"x") }, "{}", nil},
		{"another status", func(_ string, c net.Conn) { io.WriteString(c, "HTTP/1.1 404 Not Found\r\n\r\n"+frame(0, "{}", "")) }, "{}", nil},
		{"exit status 1", func(_ string, c net.Conn) { respond(c, frame(1, "{}", "x")) }, "{}", nil},
		{"exit status 3", func(_ string, c net.Conn) { respond(c, frame(3, "{}", "x")) }, "{}", nil},
		{"negative length", func(_ string, c net.Conn) { respond(c, "toolward-hook 1 0 -1 3\n{}") }, "{}", nil},
		{"length that overflows", func(_ string, c net.Conn) { respond(c, "toolward-hook 1 0 18446744073709551615 3\n{}") }, "{}", nil},
		{"another frame", func(_ string, c net.Conn) { respond(c, "toolward-hook 2 0 2 0\n{}") }, "{}", nil},
		{"plain JSON", func(_ string, c net.Conn) { respond(c, `{"permissionDecision":"allow"}`) }, "{}", nil},
		{"not HTTP", func(_ string, c net.Conn) { io.WriteString(c, "SSH-2.0\r\n") }, "{}", nil},
		{"no event", func(_ string, c net.Conn) { respond(c, frame(0, "{}", "")) }, "", nil},
		{"unknown option", closes, "{}", []string{"claude-code", "PreToolUse", "--yes"}},
		{"deadline of nothing", closes, "{}", []string{"claude-code", "PreToolUse", "--deadline", "0"}},
		{"deadline that is no number", closes, "{}", []string{"claude-code", "PreToolUse", "--deadline", "1e9"}},
		{"no client", closes, "{}", []string{}},
		{"client that forges a request", closes, "{}", []string{"x HTTP/1.1\r\nA: b", "PreToolUse"}},
		{"too many words", closes, "{}", []string{"claude-code", "PreToolUse", "x"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			home := "/nonexistent"
			if test.answer != nil {
				home = daemon(t, test.answer)
			}
			args := test.args
			if args == nil {
				args = []string{"claude-code", "PreToolUse"}
			}
			got := run(t, home, strings.NewReader(test.stdin), nil, args...)
			if got.exit != 2 || strings.TrimSpace(got.stderr) == "" || got.stdout != "" {
				t.Errorf("%+v", got)
			}
			if test.answer == nil && !strings.Contains(got.stderr, "toolward up") {
				t.Errorf("it is not said how to start the daemon: %s", got.stderr)
			}
		})
	}
}

// TestHarmlessEvents: refusing the end of a turn would keep the agent going for ever.
func TestHarmlessEvents(t *testing.T) {
	for event, want := range map[string]int{
		"Stop": 0, "SubagentStop": 0, "SessionEnd": 0, "SessionStart": 0,
		"PreToolUse": 2, "PostToolUse": 2, "PermissionRequest": 2, "PreCompact": 2, "UserPromptSubmit": 2, "Unheard": 2,
	} {
		got := run(t, "/nonexistent", strings.NewReader("{}"), nil, "claude-code", event)
		if got.exit != want || got.stdout != "" || got.stderr == "" {
			t.Errorf("%s: %+v, want exit %d", event, got, want)
		}
	}
}

func TestDeadline(t *testing.T) {
	release := make(chan struct{})
	home := daemon(t, func(string, net.Conn) { <-release })
	defer close(release)
	for name, ends := range map[string]bool{"nobody answers": true, "the client never ends its event": false} {
		t.Run(name, func(t *testing.T) {
			stdin, feed, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer stdin.Close()
			defer feed.Close()
			if _, err := feed.WriteString("{}"); err != nil {
				t.Fatal(err)
			}
			if ends {
				feed.Close()
			}
			start := time.Now()
			got := run(t, home, stdin, nil, "claude-code", "PreToolUse", "--deadline", "1")
			if got.exit != 2 || got.stderr == "" || got.stdout != "" {
				t.Errorf("%+v", got)
			}
			if took := time.Since(start); took < time.Second || took > 10*time.Second {
				t.Errorf("gave up after %v", took)
			}
		})
	}
}

func TestRequest(t *testing.T) {
	requests := make(chan string, 1)
	home := daemon(t, func(request string, conn net.Conn) {
		requests <- request
		respond(conn, frame(0, "", ""))
	})
	run(t, home, strings.NewReader(`{"a":1}`), []string{
		"CLAUDE_PROJECT_DIR=/x y\r\nEvil: 1", "CLAUDE_CODE_SESSION_ATTENDED=1", "CLAUDE_CODE_ENTRYPOINT=cli", "SECRET=x",
	}, "claude-code", "PreToolUse", "--deadline", "178")
	want := "POST /v1/hook/claude-code/PreToolUse HTTP/1.1\r\nHost: toolward\r\nConnection: close\r\nContent-Type: application/json\r\n" +
		"Content-Length: 7\r\nToolward-Deadline-Ms: 178000\r\nToolward-Project-Dir: /x%20y%0D%0AEvil%3A%201\r\nToolward-Attended: 1\r\n" +
		"Toolward-Entrypoint: cli\r\n\r\n" + `{"a":1}`
	if diff := cmp.Diff(want, <-requests); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestHome(t *testing.T) {
	home := daemon(t, func(_ string, conn net.Conn) { respond(conn, frame(0, "here", "")) })
	deep := filepath.Join(t.TempDir(), strings.Repeat("long-name-", 15))
	if err := os.MkdirAll(filepath.Dir(deep), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(home, deep); err != nil {
		t.Fatal(err)
	}
	parent := filepath.Dir(home)
	if err := os.Symlink(home, filepath.Join(parent, filepath.Base(home)+"x")); err != nil {
		t.Fatal(err)
	}
	defer os.Remove(filepath.Join(parent, filepath.Base(home)+"x"))
	for _, test := range []struct {
		name string
		home string
		env  []string
	}{
		{"option", home, nil},
		{"option before environment", home, []string{"TOOLWARD_HOME=/nonexistent"}},
		{"environment", "", []string{"TOOLWARD_HOME=" + home}},
		{"longer than a socket address", deep, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := run(t, test.home, strings.NewReader("{}"), test.env, "claude-code", "PreToolUse"); got.stdout != "here" {
				t.Errorf("%+v", got)
			}
		})
	}
}

// TestImports keeps the start-up short: these packages cost more time than the hook has.
func TestImports(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", "github.com/toolward/toolward/cmd/toolward-hook").Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range strings.Fields(string(out)) {
		switch name {
		case "net", "net/http", "fmt", "encoding/json", "reflect", "log", "log/slog", "flag", "context", "strings":
			t.Errorf("the hook imports %s", name)
		}
	}
}

func FuzzParseAnswer(f *testing.F) {
	f.Add([]byte(frame(0, "{}", "")))
	f.Add([]byte(frame(2, "", "no")))
	f.Add([]byte("toolward-hook 1 0 999999999 1\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		a, ok := hookclient.ParseAnswer(data)
		if !ok {
			return
		}
		again, ok := hookclient.ParseAnswer(hookclient.AppendAnswer(nil, a))
		if !ok || !cmp.Equal(a, again, cmpopts.EquateEmpty()) || a.Exit != 0 && a.Exit != 2 {
			t.Errorf("%q was taken as %+v", data, a)
		}
	})
}
