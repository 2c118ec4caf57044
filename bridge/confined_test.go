//go:build unix

package bridge_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/bridge"
	"github.com/toolward/toolward/bridge/ticket"
	"github.com/toolward/toolward/sandbox"
)

// ranInside is a command that has ended well.
type ranInside struct{ sandbox.Process }

func (ranInside) Stdin() io.WriteCloser                            { return nil }
func (ranInside) Stdout() io.Reader                                { return strings.NewReader("out") }
func (ranInside) Stderr() io.Reader                                { return strings.NewReader("") }
func (ranInside) Signal(syscall.Signal) error                      { return nil }
func (ranInside) Wait(context.Context) (sandbox.ExitStatus, error) { return sandbox.ExitStatus{}, nil }

func (ranInside) Ended(sandbox.ExitStatus, error, []byte) (note, dir string) {
	return "", ""
}

// confinedRig is a handler whose commands are all for a sandbox.
type confinedRig struct {
	*shellRig
	office *ticket.Office
	ran    []string // what was started by tickets
}

func newConfinedRig(t *testing.T) *confinedRig {
	t.Helper()
	r := &confinedRig{}
	var err error
	r.office, err = ticket.Open(ticket.Options{
		Program: "toolward-run --home /h", UserOf: func(context.Context) (int, bool) { return 1, true },
		Start: func(_ context.Context, pass *toolward.Pass, _ ticket.Terms) (ticket.Command, error) {
			r.ran = append(r.ran, pass.Request().Facts.Command)
			return ranInside{}, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	r.shellRig = newShellRig(t, func(c *bridge.Config) {
		c.Confines = func(toolward.Caller) bool { return true }
		c.ByTicket = func(q *toolward.Request) (bool, bool) {
			return q.Facts.Command != "", strings.Contains(q.Facts.Command, "cd ")
		}
		c.Tickets = func() *ticket.Office { return r.office }
	})
	return r
}

// before has a command decided and returns what the client is to run.
func (r *confinedRig) before(id, text string, more map[string]any) (input map[string]any, command string) {
	r.t.Helper()
	input = map[string]any{"command": text}
	for k, v := range more {
		input[k] = v
	}
	a := r.post("PreToolUse", r.command("PreToolUse-Bash.json", id, input, nil))
	var out struct {
		HookSpecificOutput struct {
			PermissionDecision string
			UpdatedInput       map[string]any
		}
	}
	if err := json.Unmarshal(a.Stdout, &out); err != nil || out.HookSpecificOutput.PermissionDecision != "allow" {
		r.t.Fatalf("%v: %s", err, a.Stdout)
	}
	command, _ = out.HookSpecificOutput.UpdatedInput["command"].(string)
	return out.HookSpecificOutput.UpdatedInput, command
}

// redeem shows a ticket as toolward-run does.
func (r *confinedRig) redeem(command string) {
	r.t.Helper()
	dir, err := os.MkdirTemp("", "tw")
	if err != nil {
		r.t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	listener, err := net.Listen("unix", filepath.Join(dir, "s"))
	if err != nil {
		r.t.Fatal(err)
	}
	server := &http.Server{Handler: r.office}
	go func() { _ = server.Serve(listener) }()
	defer server.Close()
	conn, err := net.Dial("unix", filepath.Join(dir, "s"))
	if err != nil {
		r.t.Fatal(err)
	}
	defer conn.Close()
	out, end, err := os.Pipe()
	if err != nil {
		r.t.Fatal(err)
	}
	defer out.Close()
	words := strings.Fields(command)
	_, err = io.WriteString(conn, "POST /v1/run HTTP/1.1\r\nHost: x\r\nToolward-Ticket: "+words[3]+"\r\nToolward-Directory: /\r\nToolward-Streams: m\r\nContent-Length: 0\r\n\r\n")
	reader := bufio.NewReader(conn)
	_, err2 := http.ReadResponse(reader, nil)
	_, err3 := reader.ReadByte() // it wants the streams
	if err := errors.Join(err, err2, err3); err != nil {
		r.t.Fatal(err)
	}
	if _, _, err := conn.(*net.UnixConn).WriteMsgUnix([]byte{0}, syscall.UnixRights(int(end.Fd())), nil); err != nil {
		r.t.Fatal(err)
	}
	_ = end.Close()
	_, _ = io.ReadAll(reader) // it ends with the command
}

// TestConfinedCommands: the client gets a ticket in the place of its command, and the record says what became of it.
func TestConfinedCommands(t *testing.T) {
	r := newConfinedRig(t)
	input, command := r.before("toolu_1", "ls", map[string]any{"timeout": 5000, "description": "look"})
	if !strings.HasPrefix(command, "toolward-run --home /h ") || input["timeout"] != 5000.0 || input["description"] != "look" {
		t.Fatalf("the client is to run %v", input)
	}
	r.redeem(command)
	r.post("PostToolUse", r.command("PostToolUse-Bash.json", "toolu_1", input, nil))
	if o, _ := r.Auditor.Outcome(1); o.Status != toolward.StatusOK || o.Error != "" || len(r.ran) != 1 || r.ran[0] != "ls" {
		t.Errorf("%+v, ran %q", o, r.ran)
	}
	if _, command := r.before("toolu_2", "cd sub", nil); !strings.Contains(command, `cd -- "$toolward_dir"`) {
		t.Errorf("the shell does not follow: %s", command)
	}
	if _, command := r.before("toolu_3", "ls | grep x", nil); !strings.HasPrefix(command, "grep() { ") || !strings.HasSuffix(command, "; grep") {
		t.Errorf("the client cannot tell what it runs: %s", command)
	}
}

// TestEvasion: a client that does not run a confined command through its ticket is seen, and nothing more of its session runs unasked.
func TestEvasion(t *testing.T) {
	for name, test := range map[string]struct {
		event  string
		input  func(given map[string]any) map[string]any
		redeem bool
		want   toolward.Status
	}{
		"its own text":           {"PostToolUse", func(map[string]any) map[string]any { return map[string]any{"command": "ls"} }, false, toolward.StatusEvaded},
		"its own text, failing":  {"PostToolUseFailure", func(map[string]any) map[string]any { return map[string]any{"command": "ls"} }, false, toolward.StatusEvaded},
		"its own text and ours":  {"PostToolUse", func(map[string]any) map[string]any { return map[string]any{"command": "ls"} }, true, toolward.StatusEvaded},
		"ours, but not started":  {"PostToolUse", func(in map[string]any) map[string]any { return in }, false, toolward.StatusEvaded},
		"it could not start":     {"PostToolUseFailure", func(in map[string]any) map[string]any { return in }, false, toolward.StatusError},
		"as it should, it fails": {"PostToolUseFailure", func(in map[string]any) map[string]any { return in }, true, toolward.StatusError},
	} {
		t.Run(name, func(t *testing.T) {
			r := newConfinedRig(t)
			given, command := r.before("toolu_1", "ls", nil)
			if test.redeem {
				r.redeem(command)
			}
			r.post(test.event, r.command("PostToolUse-Bash.json", "toolu_1", test.input(given), map[string]any{"hook_event_name": test.event, "error": "x"}))
			o, _ := r.Auditor.Outcome(1)
			level, _, err := r.tracker.Level(t.Context(), &toolward.Call{Session: sessionKey})
			evaded := test.want == toolward.StatusEvaded
			if err != nil || o.Status != test.want || (level == toolward.Lockdown) != evaded {
				t.Errorf("%+v, level %v, %v", o, level, err)
			}
		})
	}
}

// TestBackgroundCommands: a client tells that a command in the background went well before it has begun. It may begin a little later.
func TestBackgroundCommands(t *testing.T) {
	t.Run("it begins", func(t *testing.T) {
		r := newConfinedRig(t)
		given, command := r.before("toolu_1", "ls", map[string]any{"run_in_background": true})
		r.post("PostToolUse", r.command("PostToolUse-Bash.json", "toolu_1", given, nil))
		if o, there := r.Auditor.Outcome(1); there {
			t.Fatalf("it was concluded before it began: %+v", o)
		}
		r.redeem(command)
		for range 1000 {
			if o, there := r.Auditor.Outcome(1); there {
				if o.Status != toolward.StatusOK {
					t.Errorf("%+v", o)
				}
				return
			}
			time.Sleep(time.Millisecond)
		}
		t.Error("it was never concluded")
	})
	synctest.Test(t, func(t *testing.T) {
		r := newConfinedRig(t)
		given, _ := r.before("toolu_1", "ls", map[string]any{"run_in_background": true})
		r.post("PostToolUse", r.command("PostToolUse-Bash.json", "toolu_1", given, nil))
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if o, _ := r.Auditor.Outcome(1); o.Status != toolward.StatusEvaded {
			t.Errorf("it never began: %+v", o)
		}
	})
}

// TestNoTickets: a command that is for a sandbox is refused where nobody can start it there: its client would run it outside.
func TestNoTickets(t *testing.T) {
	r := newConfinedRig(t)
	r.config.Tickets = func() *ticket.Office { return nil }
	r.config.ByTicket = func(*toolward.Request) (bool, bool) { return true, false }
	r.restart()
	if word, reason := said(t, r.post("PreToolUse", r.command("PreToolUse-Bash.json", "toolu_1", map[string]any{"command": "ls"}, nil))); word != "deny" {
		t.Errorf("%s %s", word, reason)
	}
	if o, _ := r.Auditor.Outcome(1); o.Status != toolward.StatusUnused {
		t.Errorf("%+v", o)
	}
}
