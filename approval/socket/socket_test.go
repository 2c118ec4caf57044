package socket

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/toolward/toolward"
)

func newReader(text string) *bufio.Reader { return bufio.NewReader(strings.NewReader(text)) }

// directory makes a directory of mode 0700 whose paths are short enough for a socket on every system.
func directory(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "tw")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

const secret = "tok-123"

// serve starts a server and returns its client.
func serve(t *testing.T, h Handler) Client {
	t.Helper()
	path := filepath.Join(directory(t), "s.sock")
	l, err := Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	s := NewServer(secret, h, nil)
	done := make(chan error, 1)
	go func() { done <- s.Serve(l) }()
	t.Cleanup(func() {
		s.Close()
		if err := <-done; err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	return Client{Path: path, Token: secret}
}

func TestExchange(t *testing.T) {
	code := 3
	c := serve(t, Handler{
		Command: func(_ context.Context, id string, q *CommandRequest) string {
			if id != "q1" || q.Command != "ls <a>" || q.Agent != "main" {
				t.Errorf("asked %s %+v", id, q)
			}
			return "allow-once"
		},
		Call: func(_ context.Context, _ string, q *CallRequest) (string, string) {
			if q.Title == "unsure" {
				return "perhaps", ""
			}
			return "deny", "not today"
		},
		Exec: func(_ context.Context, _ string, e *ExecRequest) (*ExecResult, error) {
			switch e.Command[0] {
			case "no":
				return nil, &Refusal{"UNAVAILABLE", "denied", "user-denied"}
			case "broken":
				return nil, errors.New("internal words")
			case "long":
				return &ExecResult{Stdout: strings.Repeat("x", maxLine)}, nil
			}
			return &ExecResult{ExitCode: &code, Stdout: "out"}, nil
		},
	})
	if d, err := c.Command(t.Context(), "q1", &CommandRequest{Command: "ls <a>", Agent: "main"}); d != toolward.AllowOnce || err != nil {
		t.Errorf("command: %v %v", d, err)
	}
	if d, reason, err := c.Call(t.Context(), "a1", &CallRequest{Kind: "tool", Title: "write"}); d != toolward.DenyCall || reason != "not today" || err != nil {
		t.Errorf("call: %v %q %v", d, reason, err)
	}
	if d, _, err := c.Call(t.Context(), "a2", &CallRequest{Kind: "tool", Title: "unsure"}); d != toolward.DenyCall || err != nil {
		t.Errorf("a word that is no decision: %v %v", d, err)
	}
	r, err := c.Exec(t.Context(), "e1", &ExecRequest{Command: []string{"ls"}})
	if err != nil || r.ExitCode == nil || *r.ExitCode != 3 || r.Stdout != "out" {
		t.Errorf("exec: %+v %v", r, err)
	}
	for program, reason := range map[string]string{"no": "user-denied", "broken": "internal", "long": "output"} {
		var refusal *Refusal
		if _, err := c.Exec(t.Context(), "e", &ExecRequest{Command: []string{program}}); !errors.As(err, &refusal) || refusal.Reason != reason {
			t.Errorf("exec %s: %v, want reason %s", program, err, reason)
		}
	}
	wrong := Client{c.Path, "other"}
	if d, err := wrong.Command(t.Context(), "q1", &CommandRequest{Command: "ls"}); d != toolward.DenyCall || err != nil {
		t.Errorf("wrong secret: %v %v", d, err)
	}
	var refusal *Refusal
	if _, _, err := wrong.Call(t.Context(), "a", &CallRequest{Kind: "tool", Title: "t"}); !errors.As(err, &refusal) || refusal.Reason != "hmac" {
		t.Errorf("wrong secret: %v", err)
	}
}

// TestUnansweredFrames are lines that close the connection.
func TestUnansweredFrames(t *testing.T) {
	good := `{"type":"request","id":"a","token":"tok-123","request":{"command":"ls"}}`
	for name, line := range map[string]string{
		"unknown type":       `{"type":"run","id":"a"}`,
		"no type":            `{"id":"a"}`,
		"no id":              strings.Replace(good, `"id":"a",`, ``, 1),
		"id is a number":     strings.Replace(good, `"a"`, `7`, 1),
		"no token":           strings.Replace(good, `"token":"tok-123",`, ``, 1),
		"token is null":      strings.Replace(good, `"tok-123"`, `null`, 1),
		"Token":              strings.Replace(good, `"token"`, `"Token"`, 1),
		"a name twice":       strings.Replace(good, `"id":"a"`, `"id":"a","id":"b"`, 1),
		"no command":         strings.Replace(good, `"command"`, `"Command"`, 1),
		"command is a list":  strings.Replace(good, `"ls"`, `["ls"]`, 1),
		"two objects":        good + good,
		"not UTF-8":          strings.Replace(good, "ls", "l\xff", 1),
		"null":               `null`,
		"ts is a text":       `{"type":"exec","id":"a","nonce":"00112233445566778899aabbccddeeff","ts":"1","hmac":"","requestJson":"{}"}`,
		"ts is a fraction":   `{"type":"exec","id":"a","nonce":"00112233445566778899aabbccddeeff","ts":1.5,"hmac":"","requestJson":"{}"}`,
		"nonce with a colon": `{"type":"exec","id":"a","nonce":"00112233445566778899aabbccdd:1","ts":1,"hmac":"","requestJson":"{}"}`,
	} {
		if v := newGuard(secret).examine([]byte(line), true, time.UnixMilli(1)); !v.closed {
			t.Errorf("%s: %+v", name, v)
		}
	}
	if v := newGuard(secret).examine([]byte(good), true, time.Now()); v.frame == nil {
		t.Error("the good one is refused, too")
	}
	if v := newGuard("").examine([]byte(good), true, time.Now()); v.answer == nil {
		t.Error("an empty secret lets in")
	}
	if v := newGuard(secret).examine([]byte(good), false, time.Now()); v.answer == nil || v.answer.(decisionAnswer).Decision != "deny" {
		t.Errorf("another user: %+v", v)
	}
}

func sealedLine(t *testing.T, ts int64, nonce, payload string) []byte {
	t.Helper()
	raw, err := json.Marshal(map[string]any{
		"type": "exec", "id": "e", "nonce": nonce, "ts": ts, "hmac": sign(secret, nonce, ts, payload), "requestJson": payload,
	})
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func reasonOf(v view) string {
	if a, ok := v.answer.(execAnswer); ok {
		return a.Error.Reason
	}
	return ""
}

// TestAFrameCountsOnce repeats a frame for as long as its time is good, and a little more.
func TestAFrameCountsOnce(t *testing.T) {
	g, start := newGuard(secret), time.UnixMilli(1_700_000_000_000)
	line := sealedLine(t, start.Add(window).UnixMilli(), newNonce(), `{"command":["ls"]}`)
	if v := g.examine(line, true, start); v.exec == nil {
		t.Fatalf("first: %+v", v)
	}
	for after := time.Duration(0); after <= 2*window; after += time.Second {
		for range 3 { // others pass meanwhile, and let old nonces be forgotten
			g.first(newNonce(), start.Add(after))
		}
		if got := reasonOf(g.examine(line, true, start.Add(after))); got != "replay" {
			t.Errorf("after %s: %q", after, got)
		}
	}
	if got := reasonOf(g.examine(line, true, start.Add(2*window+time.Millisecond))); got != "ttl" {
		t.Errorf("when it is old: %q", got)
	}
	late := start.Add(time.Minute)
	g.first(newNonce(), late)
	if len(g.seen) != 1 {
		t.Errorf("%d nonces are remembered after their time", len(g.seen))
	}
}

func TestNoncesAreBounded(t *testing.T) {
	g, now := newGuard(secret), time.Now()
	for i := range maxNonces {
		g.first(fmt.Sprint(i), now)
	}
	if g.first("one more", now) {
		t.Error("a full memory takes more")
	}
	if g.first("0", now) {
		t.Error("a full memory forgets")
	}
	if !g.first("later", now.Add(nonceMemory+time.Second)) {
		t.Error("it stays full for ever")
	}
}

func TestLines(t *testing.T) {
	if line, err := readLine(newReader(strings.Repeat("x", maxLine) + "\n")); err != nil || len(line) != maxLine {
		t.Errorf("the longest line: %d, %v", len(line), err)
	}
	for name, text := range map[string]string{"too long": strings.Repeat("x", maxLine+1) + "\n", "no end": "{}", "nothing": ""} {
		if _, err := readLine(newReader(text)); err == nil {
			t.Errorf("%s: read", name)
		}
	}
}

func TestListenRefuses(t *testing.T) {
	dir := directory(t)
	path := filepath.Join(dir, "s.sock")
	l, err := Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if _, err := Listen(path); !errors.Is(err, ErrInUse) {
		t.Errorf("in use: %v", err)
	}
	if _, err := Listen("/" + strings.Repeat("x", maxPath)); !errors.Is(err, ErrPathTooLong) {
		t.Errorf("long path: %v", err)
	}
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Listen(file); err == nil || !strings.Contains(err.Error(), "in the way") {
		t.Errorf("a file: %v", err)
	}
	open := directory(t)
	if err := os.Chmod(open, 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := Listen(filepath.Join(open, "s.sock")); err == nil || !strings.Contains(err.Error(), "chmod 700") {
		t.Errorf("an open directory: %v", err)
	}
}

// TestDeadlines: without an answer there is no decision, and a connection that sends nothing is closed.
func TestDeadlines(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	asked := make(chan context.Context, 1)
	c := serve(t, Handler{Call: func(ctx context.Context, _ string, _ *CallRequest) (string, string) {
		asked <- ctx
		<-ctx.Done()
		return "allow-once", ""
	}})
	if d, _, err := c.Call(ctx, "a", &CallRequest{Kind: "tool", Title: "t"}); d != toolward.NoDecision || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v %v", d, err)
	}
	select {
	case <-(<-asked).Done(): // the question ends with its asker
	case <-time.After(time.Minute):
		t.Error("a question whose asker has gone stays")
	}
	path := filepath.Join(directory(t), "s.sock")
	l, err := Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	s := NewServer(secret, Handler{}, nil)
	s.patience = 20 * time.Millisecond
	go func() { _ = s.Serve(l) }()
	defer s.Close()
	silent, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	_ = silent.SetReadDeadline(time.Now().Add(time.Minute))
	if n, err := silent.Read(make([]byte, 1)); n != 0 || !errors.Is(err, io.EOF) {
		t.Errorf("a connection that says nothing: %d bytes, %v", n, err)
	}
}

func TestServerLeavesNothingBehind(t *testing.T) {
	before := runtime.NumGoroutine()
	path := filepath.Join(directory(t), "s.sock")
	l, err := Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	s := NewServer(secret, Handler{}, nil)
	done := make(chan error, 1)
	go func() { done <- s.Serve(l) }()
	var open []net.Conn
	for range backlog + 4 { // some are silent, more than there are places
		conn, err := net.Dial("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		open = append(open, conn)
	}
	s.Close()
	if err := <-done; err != nil {
		t.Error(err)
	}
	for _, conn := range open {
		conn.Close()
	}
	for range 100 {
		if runtime.NumGoroutine() <= before {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("%d goroutines, %d before", runtime.NumGoroutine(), before)
}

func FuzzExamine(f *testing.F) {
	f.Add([]byte(`{"type":"request","id":"a","token":"tok-123","request":{"command":"ls"}}`))
	f.Add([]byte(`{"type":"exec","id":"e","nonce":"00112233445566778899aabbccddeeff","ts":1,"hmac":"","requestJson":"{}"}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		v := newGuard(secret).examine(line, true, time.UnixMilli(1))
		if v.exec != nil || v.call != nil {
			t.Errorf("a frame without the secret was accepted: %q", line)
		}
		if v.frame != nil && !strings.Contains(string(line), secret[:1]) && !strings.Contains(string(line), `\u`) {
			t.Errorf("a question without the secret was accepted: %q", line)
		}
	})
}
