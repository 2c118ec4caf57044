package remote_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/toolward/toolward/internal/escape"
	"github.com/toolward/toolward/internal/otheruser"
	"github.com/toolward/toolward/sandbox"
	"github.com/toolward/toolward/sandbox/remote"
)

// output runs a command to its end.
func output(t *testing.T, h sandbox.Handle, c sandbox.Command, stdin []byte) (stdout, stderr string, status sandbox.ExitStatus) {
	t.Helper()
	c.Stdin = stdin != nil
	p, err := h.Start(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	if c.Stdin {
		go func() {
			_, _ = p.Stdin().Write(stdin) // the command may not read it
			_ = p.Stdin().Close()
		}()
	}
	said := make(chan []byte)
	go func() {
		b, _ := io.ReadAll(p.Stderr()) // Wait says what went wrong
		said <- b
	}()
	out, _ := io.ReadAll(p.Stdout()) // as above
	stderr = string(<-said)
	if status, err = p.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	return string(out), stderr, status
}

// TestEscapeBattery: what runs through another process is as confined as what the gateway makes itself.
func TestEscapeBattery(t *testing.T) {
	w := newWorld(t)
	escape.Run(t, escape.Target{Engine: w.engine(), Spec: w.spec, Hidden: []string{w.socket, "/root", "/etc/passwd-", "/var/lib/dpkg"}})
}

// TestCommands: commands have the person's rights, and bytes, statuses and signals come through as they are.
func TestCommands(t *testing.T) {
	w := newWorld(t)
	h := w.sandbox(t)
	odd := "a\xffb\n\x01 ü"
	out, said, status := output(t, h, sandbox.Command{Argv: []string{"sh", "-c", `id -u; printf %s "$1$ODD"; echo wrong >&2; exit 7`, "sh", odd}, Env: []string{"ODD=" + odd}}, nil)
	if out != "64124\n"+odd+odd || said != "wrong\n" || status.Code != 7 {
		t.Errorf("%q, %q, %+v", out, said, status)
	}
	big := bytes.Repeat([]byte("0123456789abcde\n"), 2<<20) // 32 MiB
	if out, _, status = output(t, h, sandbox.Command{Argv: []string{"cat"}}, big); out != string(big) || status.Code != 0 {
		t.Errorf("%d of %d bytes came back, %+v", len(out), len(big), status)
	}
	p, err := h.Start(t.Context(), sandbox.Command{Argv: []string{"sleep", "600"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Signal(syscall.SIGTERM); err != nil {
		t.Error(err)
	}
	if status, err := p.Wait(t.Context()); err != nil || status.Signal != syscall.SIGTERM {
		t.Errorf("%+v, %v", status, err)
	}
	if err := p.Signal(syscall.SIGTERM); err == nil {
		t.Error("a command that has ended got a signal")
	}
	p, err = h.Start(t.Context(), sandbox.Command{Argv: []string{"sh", "-c", "read x; stty size; echo $x"}, Terminal: &sandbox.Size{Cols: 80, Rows: 24}})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Resize(sandbox.Size{Cols: 101, Rows: 33}); err != nil {
		t.Error(err)
	}
	if _, err := io.WriteString(p.Stdin(), "line\n"); err != nil {
		t.Error(err)
	}
	if text, _ := io.ReadAll(p.Stdout()); !strings.Contains(string(text), "33 101") {
		t.Errorf("on a terminal: %q", text)
	}
	if _, err := h.Start(t.Context(), sandbox.Command{}); err == nil {
		t.Error("no command was started")
	}
}

// TestGivenUp: the end of a context is that of its command, and says so.
func TestGivenUp(t *testing.T) {
	w := newWorld(t)
	h := w.sandbox(t)
	ctx, cancel := context.WithCancel(t.Context())
	p, err := h.Start(ctx, sandbox.Command{Shell: "sleep 600 & echo on; yes"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(p.Stdout(), make([]byte, 3)); err != nil {
		t.Fatal(err)
	}
	cancel()
	if status, err := p.Wait(t.Context()); err == nil && status.Code == 0 {
		t.Errorf("it ended with %+v", status)
	}
	if out, _, _ := output(t, h, sandbox.Command{Shell: "ps -e -o comm= 2>/dev/null || cat /proc/*/comm"}, nil); strings.Contains(out, "sleep") || strings.Contains(out, "yes") {
		t.Errorf("it goes on: %s", out)
	}
	ctx, cancel = context.WithTimeout(t.Context(), time.Nanosecond)
	defer cancel()
	if _, err := h.Stat(ctx, "/workspace"); sandbox.CodeOf(err) != sandbox.CodeTimeout {
		t.Errorf("a call whose time is over: %v", err)
	}
}

// TestFiles: each operation comes through, and so does what is refused.
func TestFiles(t *testing.T) {
	w := newWorld(t)
	h := w.sandbox(t)
	ctx, name, text := t.Context(), "/workspace/deep/o\xffdd", []byte("one\x00two\xfe")
	info, err := h.WriteFile(ctx, name, text, sandbox.WriteOptions{Parents: true})
	if err != nil || info.Size != int64(len(text)) {
		t.Fatal(info, err)
	}
	if stat, err := os.Stat(filepath.Join(w.dir, "ws9/deep/o\xffdd")); err != nil || stat.Sys().(*syscall.Stat_t).Uid != person {
		t.Errorf("on the machine: %v, %v", stat, err)
	}
	got, again, err := h.ReadFile(ctx, name, 4, 100)
	if err != nil || string(got) != "two\xfe" || again.Identity != info.Identity {
		t.Errorf("%q, %+v, %v", got, again, err)
	}
	other := info.Identity
	other.Inode++
	for code, do := range map[sandbox.Code]func() error{
		sandbox.CodeChanged: func() error {
			_, err := h.WriteFile(ctx, name, nil, sandbox.WriteOptions{Unchanged: &other})
			return err
		},
		sandbox.CodeExists: func() error {
			_, err := h.WriteFile(ctx, name, nil, sandbox.WriteOptions{Missing: true})
			return err
		},
		sandbox.CodeNotFound: func() error { _, err := h.Lstat(ctx, "/workspace/none"); return err },
		sandbox.CodeEscape:   func() error { _, err := h.Stat(ctx, "/usr/bin"); return err },
	} {
		if err := do(); sandbox.CodeOf(err) != code {
			t.Errorf("%s: %v", code, err)
		}
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Error(err)
		}
	}
	must(h.Mkdir(ctx, "/workspace/dir"))
	must(h.Rename(ctx, name, "/workspace/dir/new"))
	list, more, err := h.List(ctx, "/workspace/dir", sandbox.ListOptions{Limit: 10})
	if err != nil || more || !slices.Equal(list, []sandbox.Entry{{Name: "new", Type: sandbox.TypeRegular}}) {
		t.Error(list, more, err)
	}
	must(h.Remove(ctx, "/workspace/dir", sandbox.RemoveOptions{Recursive: true}))
	if _, err := h.Stats(ctx); err != nil {
		t.Error(err)
	}
	if _, err := h.WriteFile(ctx, name, make([]byte, 70<<20), sandbox.WriteOptions{}); sandbox.CodeOf(err) != sandbox.CodeTooLarge {
		t.Errorf("a file that is too large for one call: %v", err)
	}
}

// TestConnections: a program inside is reached, and each side can say that it has said all.
func TestConnections(t *testing.T) {
	w := newWorld(t)
	h := w.sandbox(t)
	server := `
import socket
s = socket.create_server(("127.0.0.1", 8123))
print("ready", flush=True)
while True:
    c, _ = s.accept()
    data = b""
    while (more := c.recv(65536)): data += more
    c.sendall(data[::-1]); c.close()
    print("served", len(data), flush=True)
`
	p, err := h.Start(t.Context(), sandbox.Command{Argv: []string{"python3", "-c", server}})
	if err != nil {
		t.Fatal(err)
	}
	line := func() string {
		b := make([]byte, 64)
		n, _ := p.Stdout().Read(b) // an empty line fails the test
		return string(b[:n])
	}
	if got := line(); got != "ready\n" {
		t.Fatalf("%q", got)
	}
	if ports, _, err := h.Ports(t.Context()); err != nil || !slices.ContainsFunc(ports, func(p sandbox.Port) bool { return p.Number == 8123 }) {
		t.Errorf("%v, %v", ports, err)
	}
	c, err := h.Connect(t.Context(), 8123)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Repeat("abc", 100000)
	_, err = io.WriteString(c, text)
	back, failed := []byte(nil), error(nil)
	if err = errors.Join(err, c.CloseWrite()); err == nil {
		back, failed = io.ReadAll(c)
	}
	slices.Reverse(back)
	if err = errors.Join(err, failed, c.Close()); err != nil || string(back) != text {
		t.Errorf("%d of %d bytes, %v", len(back), len(text), err)
	}
	if got := line(); got != "served 300000\n" {
		t.Errorf("%q", got)
	}
	if c, err = h.Connect(t.Context(), 8123); err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil { // without a word
		t.Error(err)
	}
	if got := line(); got != "served 0\n" {
		t.Errorf("after the caller has gone: %q", got)
	}
	if c, err := h.Connect(t.Context(), 1); err == nil {
		_ = c.Close()
		t.Error("somebody listens at port 1")
	}
}

// TestTheGatewaysEnd: sandboxes end with their gateway, and the next one is served.
func TestTheGatewaysEnd(t *testing.T) {
	w := newWorld(t)
	h := w.sandbox(t)
	if again, err := w.engine().Ensure(t.Context(), w.spec(t, filepath.Join(w.dir, "ws18"))); err != nil || again.State().EngineID != h.State().EngineID {
		t.Errorf("the same sandbox: %+v, %v", again, err)
	}
	p, err := h.Start(t.Context(), sandbox.Command{Argv: []string{"sleep", "600"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.client.Close(); err != nil {
		t.Fatal(err)
	}
	<-h.Done()
	if status, err := p.Wait(t.Context()); err == nil && status.Code == 0 && status.Signal == 0 {
		t.Error("the command ended well")
	}
	next := w.gateway(t).Engine(sandbox.EngineNative)
	states, err := next.List(t.Context())
	if err != nil || len(states) != 0 {
		t.Errorf("%v, %v", states, err)
	}
	if _, err := next.Lookup(t.Context(), h.State().Name); sandbox.CodeOf(err) != sandbox.CodeNotFound {
		t.Error(err)
	}
	if _, err := h.Stat(t.Context(), "/workspace"); err == nil {
		t.Error("a sandbox of a gateway that has ended answers")
	}
}

// TestTheServersEnd: nothing is taken for running that was another process's.
func TestTheServersEnd(t *testing.T) {
	w := newWorld(t)
	h := w.sandbox(t)
	p, err := h.Start(t.Context(), sandbox.Command{Argv: []string{"sleep", "600"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.server.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-h.Done()
	if _, err := p.Wait(t.Context()); err == nil {
		t.Error("the command ended well")
	}
	if h.Runs() || h.State().Running {
		t.Error("the sandbox runs")
	}
	if _, err := w.engine().Probe(t.Context()); sandbox.CodeOf(err) != sandbox.CodeUnavailable {
		t.Errorf("without a server: %v", err)
	}
	if err := w.engine().Close(); err != nil {
		t.Error(err)
	}
}

// TestWhoMayCall: a program of the person's own user, an agent's for example, makes no sandbox and is told nothing.
func TestWhoMayCall(t *testing.T) {
	w := newWorld(t)
	if _, err := w.engine().Probe(t.Context()); err != nil {
		t.Fatal(err)
	}
	c := exec.Command("/usr/bin/python3", "-c", `
import socket, sys
s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1])
try:
    s.sendall(b"\0\0\0\1x")
    print(s.recv(100))
except ConnectionError:
    print(b"")`, w.socket)
	c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: person, Gid: person}}
	if out, err := c.CombinedOutput(); string(out) != "b''\n" {
		t.Errorf("%s, %v", out, err)
	}
}

// TestWhoIsCalled: nothing is sent to a socket that another user has made, nor to any if nobody said whom to trust.
func TestWhoIsCalled(t *testing.T) {
	dir, err := os.MkdirTemp("", "toolward-remote")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "s")
	sent := otheruser.Listen(t, path)
	for name, o := range map[string]remote.Options{"another user": {Address: path, Trusts: remote.Trusted(0)}, "nobody": {Address: path}} {
		_, err := remote.New(o).Engine(sandbox.EngineNative).Probe(t.Context())
		if got := sent(); sandbox.CodeOf(err) != sandbox.CodeUnavailable || got != "was sent 0" {
			t.Errorf("%s: %v, %s", name, err, got)
		}
	}
}

// TestOddCalls: what no gateway sends ends its own connection and nothing else.
func TestOddCalls(t *testing.T) {
	w := newWorld(t)
	for name, text := range map[string]string{
		"nothing": "", "half a length": "\x00\x00", "too long": "\xff\xff\xff\xff", "no message": "\x00\x00\x00\x04abcd", "an empty one": "\x00\x00\x00\x01\xa0",
		"nested": "\x00\x00\x00\x40" + strings.Repeat("\x81", 64),
	} {
		conn, err := net.Dial("unix", w.socket)
		if err != nil {
			t.Fatal(err)
		}
		_, err = io.WriteString(conn, text)
		if err = errors.Join(err, conn.(*net.UnixConn).CloseWrite()); err != nil {
			t.Error(err)
		}
		if answer, err := io.ReadAll(conn); err != nil || bytes.Contains(answer, []byte("Session")) {
			t.Errorf("%s: %q, %v", name, answer, err)
		}
		_ = conn.Close() // nothing is written
	}
	if _, err := w.engine().Probe(t.Context()); err != nil {
		t.Error(err)
	}
}
