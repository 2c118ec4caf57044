package socket

import (
	"bufio"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/approval"
)

// TestClientSendsItsSecretToNobodyElse checks what the client looks at before it connects.
func TestClientSendsItsSecretToNobodyElse(t *testing.T) {
	good := serve(t, Handler{})
	open := directory(t)
	l, err := Listen(filepath.Join(open, "s.sock"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := os.Chmod(open, 0o770); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(directory(t), "l.sock")
	if err := os.Symlink(good.Path, link); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]Client{
		"no path": {"", secret}, "no token": {good.Path, ""}, "relative": {"s.sock", secret}, "absent": {good.Path + "x", secret},
		"open directory": {filepath.Join(open, "s.sock"), secret}, "a link": {link, secret},
	} {
		if c.Reachable(t.Context()) {
			t.Errorf("%s: reachable", name)
		}
		if _, err := c.Command(t.Context(), "a", &CommandRequest{Command: "ls"}); !errors.Is(err, ErrUnreachable) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if !good.Reachable(t.Context()) {
		t.Error("the good one is not")
	}
}

// fakeProgram answers each connection with lines of its own.
func fakeProgram(t *testing.T, answer func(line []byte) string) Client {
	t.Helper()
	path := filepath.Join(directory(t), "s.sock")
	l, err := Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			line, err := readLine(bufio.NewReader(conn))
			if err == nil {
				_, _ = conn.Write([]byte(answer(line)))
			}
			conn.Close()
		}
	}()
	return Client{path, secret}
}

func TestClientSkipsWhatIsNotItsAnswer(t *testing.T) {
	c := fakeProgram(t, func([]byte) string {
		return "hello\n[1]\n" + `{"type":"exec-res","id":"a","ok":true}` + "\n" + `{"type":"decision","id":"b","decision":"allow-once"}` + "\n" +
			`{"type":"decision","id":"a","id":"a","decision":"allow-once"}` + "\n" + `{"type":"decision","id":"a","decision":"deny"}` + "\n"
	})
	if d, err := c.Command(t.Context(), "a", &CommandRequest{Command: "ls"}); d != toolward.DenyCall || err != nil {
		t.Errorf("%v %v", d, err)
	}
	others := fakeProgram(t, func([]byte) string { return `{"type":"decision","id":"b","decision":"allow-once"}` + "\n" })
	if d, err := others.Command(t.Context(), "a", &CommandRequest{Command: "ls"}); d != toolward.NoDecision || !errors.Is(err, ErrNoAnswer) {
		t.Errorf("only another's answer: %v %v", d, err)
	}
	unknown := fakeProgram(t, func([]byte) string { return `{"type":"decision","id":"a","decision":"allow"}` + "\n" })
	if d, err := unknown.Command(t.Context(), "a", &CommandRequest{Command: "ls"}); d != toolward.NoDecision || err == nil {
		t.Errorf("an unknown word: %v %v", d, err)
	}
}

func TestPrompter(t *testing.T) {
	r := &approval.Record{ID: "a", Kind: approval.KindExec, ExpiresMs: time.Now().Add(time.Minute).UnixMilli(), Binding: "b", Request: &approval.Details{
		Tool: "exec", Title: "exec: ls", Command: "ls", Agent: "coder", Session: "agent:coder:main",
	}}
	var got *CallRequest
	c := serve(t, Handler{Call: func(_ context.Context, _ string, q *CallRequest) (string, string) { got = q; return "allow-once", "" }})
	p := Prompter{func() (string, string) { return c.Path, c.Token }}
	if d, _, err := p.Prompt(t.Context(), r); d != "allow-once" || err != nil || got.Command != "ls" || got.Binding != "b" {
		t.Errorf("%q %v %+v", d, err, got)
	}
	// A program that only knows the older frame is asked with it, about commands.
	old := fakeProgram(t, func(line []byte) string {
		if strings.Contains(string(line), `"type":"request"`) && strings.Contains(string(line), `"command":"ls"`) {
			return `{"type":"decision","id":"a","decision":"allow-once"}` + "\n"
		}
		return ""
	})
	p = Prompter{func() (string, string) { return old.Path, old.Token }}
	if d, _, err := p.Prompt(t.Context(), r); d != "allow-once" || err != nil {
		t.Errorf("older program: %q %v", d, err)
	}
	r.Kind = approval.KindTool
	if d, _, err := p.Prompt(t.Context(), r); d != "" || !errors.Is(err, ErrNoAnswer) {
		t.Errorf("older program, a tool: %q %v", d, err)
	}
	if (Prompter{func() (string, string) { return "", "" }}).Reachable(t.Context()) {
		t.Error("nobody is reachable")
	}
}

func TestExpandPath(t *testing.T) {
	t.Setenv("HOME", "/home/dev")
	for path, want := range map[string]string{"~/a/s": "/home/dev/a/s", "/a": "/a", "~x/a": "~x/a", "": ""} {
		if got := ExpandPath(path); got != want {
			t.Errorf("%q: %q", path, got)
		}
	}
}
