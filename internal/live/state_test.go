package live_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/toolward/toolward/internal/live"
)

// TestSecondDaemon: a home has one daemon. The second says which one has it and changes nothing.
func TestSecondDaemon(t *testing.T) {
	t.Parallel()
	m := live.NewMachine(t, "")
	m.Start()
	pid := strings.TrimSpace(readFile(t, filepath.Join(m.State, "lock")))
	address := strings.TrimPrefix(m.URL, "http://")
	out, status := m.Run("up", "--listen", "127.0.0.1:0")
	if status != 1 || !strings.Contains(out, "another daemon, pid "+pid+", is running with it") {
		t.Errorf("a second daemon: %d\n%s", status, out)
	}
	out, status = m.Run("--home", filepath.Join(m.Home, "other"), "up", "--listen", address)
	if status != 1 || !strings.Contains(out, address) || !strings.Contains(out, "in use") {
		t.Errorf("a daemon on the same port: %d\n%s", status, out)
	}
	if terminal := m.SignedIn(); terminal == nil || m.Stop() != 0 {
		t.Error("the first daemon did not go on, or did not end well")
	}
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// TestWrongHomes: a home that cannot be used is told, with what to do, and nothing starts.
func TestWrongHomes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		prepare func(t *testing.T, m *live.Machine)
		said    string
	}{
		{"a file", func(t *testing.T, m *live.Machine) {
			if err := os.RemoveAll(m.State); err != nil {
				t.Fatal(err)
			}
			writeFile(t, m.State, "")
		}, "not a directory"},
		{"a database that is a link", func(t *testing.T, m *live.Machine) {
			if err := os.Symlink("/etc/passwd", filepath.Join(m.State, "state.db")); err != nil {
				t.Fatal(err)
			}
		}, "is not a plain file"},
		{"a database that is none", func(t *testing.T, m *live.Machine) {
			writeFile(t, filepath.Join(m.State, "state.db"), strings.Repeat("not a database\n", 100))
		}, "state.db"},
		{"a path too long for a socket", func(t *testing.T, m *live.Machine) {
			m.State = filepath.Join(m.State, strings.Repeat("x", 100))
		}, "choose a shorter TOOLWARD_HOME"},
		{"another user's", func(t *testing.T, m *live.Machine) {
			if err := os.Chown(m.State, 1, 1); err != nil {
				t.Skip("not run: giving a directory away needs root")
			}
		}, "belongs to uid 1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := live.NewMachine(t, "")
			c.prepare(t, m)
			out, status := m.Run("up", "--listen", "127.0.0.1:0")
			if status != 1 || !strings.Contains(out, c.said) || strings.Contains(out, "Toolward is up") || strings.Contains(out, "panic") {
				t.Errorf("%d, want 1 and %q:\n%s", status, c.said, out)
			}
		})
	}
}

// TestWrongConfigurationAtStart: a daemon does not start on a guess.
func TestWrongConfigurationAtStart(t *testing.T) {
	t.Parallel()
	m := live.NewMachine(t, "")
	for _, c := range []struct{ name, file, where, said string }{
		{"syntax", "{\n  \"teg\": {\n    \"preset\" \"workspace\"\n  }\n}", "toolward.jsonc:3:", ""},
		{"unknown key", "{\n  // typing error\n  \"teg\": {\"pre_set\": \"workspace\"}\n}", "toolward.jsonc:3:", "preset"},
		{"wrong value", `{"teg": {"preset": "workspce"}}`, "toolward.jsonc:1:", "workspace"},
		{"wrong type", `{"limits": {"pending": "many"}}`, "toolward.jsonc:1:", "limits.pending"},
		{"out of bounds", `{"limits": {"pending": -1}}`, "toolward.jsonc:1:", "limits.pending"},
		{"key twice", `{"teg": {"preset": "strict", "preset": "workspace"}}`, "toolward.jsonc:1:", "preset"},
		{"not an object", `[]`, "toolward.jsonc:1:", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			m.Configure(c.file)
			for _, arguments := range [][]string{{"up", "--listen", "127.0.0.1:0"}, {"config", "check"}} {
				out, status := m.Run(arguments...)
				if status != 65 || !strings.Contains(out, c.where) || !strings.Contains(out, c.said) || !strings.Contains(out, "hint:") {
					t.Errorf("%s: %d, want 65, %q and %q:\n%s", arguments[0], status, c.where, c.said, out)
				}
			}
		})
	}
}

// verdict is what would happen to a write in the workspace.
func (g *guardedMachine) verdict(t *testing.T) string {
	t.Helper()
	out, status := g.terminal.Run(`toolward explain write --json --agent coder --args '{"path":"f","content":"x"}'`)
	var trace struct{ Verdict string }
	if err := json.Unmarshal([]byte(out), &trace); err != nil || status != 0 {
		t.Fatalf("explain: %d %v\n%s", status, err, out)
	}
	return trace.Verdict
}

// TestConfigurationWhileRunning: a wrong file changes nothing, a right one waits for a person and then counts.
func TestConfigurationWhileRunning(t *testing.T) {
	t.Parallel()
	g := newGuardedMachine(t, freeWrites)
	if v := g.verdict(t); v != "allow" {
		t.Fatalf("a write is %q at first", v)
	}
	g.Configure(`{"teg": {"preset": "strict"}, "tool": {}}`)
	g.mustLog(t, "the old one stays in force")
	if v := g.verdict(t); v != "allow" {
		t.Errorf("under a wrong file a write is %q", v)
	}
	if out, status := g.terminal.Run("toolward config apply --yes"); status == 0 {
		t.Errorf("a wrong file was applied:\n%s", out)
	}

	g.Configure("{\n  // stricter\n  \"teg\": {\"preset\": \"strict\"}\n}")
	g.mustLog(t, "the change waits for you")
	if v := g.verdict(t); v != "allow" {
		t.Errorf("before anybody agreed a write is %q", v)
	}
	if out, status := g.Run("config", "apply", "--yes"); status != 77 {
		t.Errorf("applied by somebody who is not signed in: %d\n%s", status, out)
	}
	out, status := g.terminal.Run("toolward config apply --yes")
	if status != 0 || !strings.Contains(out, "stricter") || !strings.Contains(out, "Applied") {
		t.Errorf("config apply: %d\n%s", status, out)
	}
	if v := g.verdict(t); v != "ask" {
		t.Errorf("after that a write is %q", v)
	}
	var history []string
	for _, r := range g.records(t) {
		// That it is signed is written at once, the rest behind it: the order between the two is not fixed.
		if r.Type == "config" && r.Data.Event != "token-created" && r.Data.Event != "authority signed" {
			history = append(history, r.Data.Event)
		}
	}
	if want := []string{"in force at start", "authority key made", "refused", "proposed", "approved", "in force"}; !slices.Equal(history, want) {
		t.Errorf("the record tells of the configuration %q, want %q", history, want)
	}
	g.Restart()
	g.terminal.SignIn()
	if v := g.verdict(t); v != "ask" {
		t.Errorf("after a restart a write is %q", v)
	}
}

// mustLog waits until the daemon has said something.
func (g *guardedMachine) mustLog(t *testing.T, text string) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !strings.Contains(g.Log(), text); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("the daemon does not say %q", text)
		}
	}
}

// TestRestartWithQuestions: a question outlives the daemon until its deadline. A caller that can come back goes on;
// the question of one that cannot is taken back.
func TestRestartWithQuestions(t *testing.T) {
	t.Parallel()
	for _, way := range []string{"stopped", "killed"} {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			g := newGuardedMachine(t, `{"teg": {"approval": {"timeoutMs": 180000}}}`)
			g.terminal.Watch()
			returning := newestHTTP(t, g.URL, g.token)
			first, err := returning.call(t.Context(), "exec", touching("returning"), "")
			if err != nil || first.Result.RequestState == "" {
				t.Fatalf("first round: %v, %+v", err, first)
			}
			id := g.pending(t)
			lost := asking(t.Context(), dialStdio(t, g.Machine, "coder"), "exec", touching("lost"))
			lostID := g.pending(t, id)
			deadline := g.question(t, id).ExpiresMs

			if way == "stopped" {
				g.Stop()
			} else {
				g.Kill()
			}
			if a := <-lost; a.err == nil && !a.refused() {
				t.Errorf("the call of a lost client was answered %+v", a.reply)
			}
			g.Start()
			g.terminal.SignIn()
			g.terminal.Watch()
			if a := g.question(t, id); a.State != "pending" || a.ExpiresMs != deadline {
				t.Errorf("after the restart: %+v, want pending until %d", a, deadline)
			}
			returning.url = g.URL + "/mcp"
			time.Sleep(unread)
			if out, status := g.terminal.Run("toolward approvals allow " + id); status != 0 {
				t.Errorf("allow: %d\n%s", status, out)
			}
			second, err := returning.call(t.Context(), "exec", touching("returning"), first.Result.RequestState)
			if err != nil || second.refused() {
				t.Errorf("second round: %v, %+v", err, second)
			}
			if _, err := os.Stat(filepath.Join(g.Workspace, "returning")); err != nil {
				t.Error(err)
			}
			if way == "killed" { // the other way takes as long, and ends alike
				g.mustEnd(t) // by itself: nobody comes back for the other
				if a := g.question(t, lostID); a.ResolvedBy != "requester-gone" {
					t.Errorf("the question of the lost client: %+v", a)
				}
			}
			mustNotExist(t, filepath.Join(g.Workspace, "lost"))
			ran := 0
			for _, r := range decisions(g.records(t), "exec") {
				if r.Verdict == "allow" {
					ran++
				}
			}
			if ran != 1 {
				t.Errorf("the record has %d allowed commands, want 1", ran)
			}
		})
	}
}

// question is an approval as the API shows it.
type question struct {
	ID, State, Decision, ResolvedBy string
	ExpiresMs                       int64
}

func (g *guardedMachine) question(t *testing.T, id string) question {
	t.Helper()
	for _, flag := range []string{"", " --recent"} {
		out, status := g.terminal.Run("toolward approvals list --json" + flag)
		var list struct{ Approvals []question }
		if err := json.Unmarshal([]byte(out), &list); err != nil || status != 0 {
			t.Fatalf("approvals list: %d, %v\n%s", status, err, out)
		}
		for _, a := range list.Approvals {
			if a.ID == id {
				return a
			}
		}
	}
	return question{State: fmt.Sprintf("%s is unknown", id)}
}
