package live_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/internal/live"
)

// TestInspectorAndDaemon is the Inspector against the real daemon. The answers are typed into a signed-in terminal,
// or clicked in a real Chromium.
func TestInspectorAndDaemon(t *testing.T) {
	node := live.Need(t, live.Program("node"))
	program := filepath.Join(live.Need(t, inspector), "clients", "cli", "build", "index.js")
	for _, c := range []struct{ face, era, people string }{
		{"stdio", "legacy", "terminal"},
		{"stdio", "modern", "console"},
		{"http", "legacy", "console"},
		{"http", "modern", "terminal"},
	} {
		t.Run(c.face+" "+c.era+", answered in the "+c.people, func(t *testing.T) {
			t.Parallel()
			var g guarded
			if c.people == "terminal" {
				g = terminalGuarded{newGuardedMachine(t)}
			} else {
				g = newConsoleGuarded(t)
			}
			testInspector(t, g, []string{node, program, "--protocol-era", c.era}, c.face)
		})
	}
}

// guardedMachine is a machine with an agent's token and a signed-in terminal.
type guardedMachine struct {
	*live.Machine
	terminal *live.Terminal
	token    string
}

// shortQuestions is the configuration under which a question ends soon.
const shortQuestions = `{"teg": {"approval": {"timeoutMs": 6000}}}`

func newGuardedMachine(t *testing.T) *guardedMachine {
	t.Helper()
	m := live.NewMachine(t, shortQuestions)
	writeFile(t, filepath.Join(m.Workspace, "hello.txt"), "hello from the workspace")
	m.Start()
	g := &guardedMachine{Machine: m, terminal: m.SignedIn()}
	token, status := g.terminal.Run("toolward token create --agent coder --workspace " + m.Workspace + " 2> /dev/null")
	if status != 0 {
		t.Fatalf("token create: %d\n%s", status, token)
	}
	g.token = token
	return g
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func (g *guardedMachine) workspace() string { return g.Workspace }

func (g *guardedMachine) target(face string) []string {
	if face == "http" {
		return []string{"--server-url", g.URL + "/mcp", "--transport", "http", "--header", "Authorization: Bearer " + g.token}
	}
	return []string{"--", g.Program("toolward"), "--home", g.State, "mcp", "--agent", "coder", "--workspace", g.Workspace}
}

// pending waits for a question that nobody has answered and returns its id, as the terminal lists it.
func (g *guardedMachine) pending(t *testing.T) string {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); {
		out, status := g.terminal.Run("toolward approvals list --json")
		var list struct{ Approvals []struct{ ID string } }
		if err := json.Unmarshal([]byte(out), &list); err != nil || status != 0 {
			t.Fatalf("approvals list: %d, %v\n%s", status, err, out)
		}
		if len(list.Approvals) > 0 {
			return list.Approvals[0].ID
		}
	}
	t.Fatal("no question came")
	return ""
}

func mustNotExist(t *testing.T, marker string) {
	t.Helper()
	if _, err := os.Stat(marker); err == nil {
		t.Errorf("%s was there before anybody had answered", marker)
	}
}

// unread is how long an answer is not taken yet, because nobody can have read the question.
const unread = 550 * time.Millisecond

// terminalGuarded is answered by commands typed into the signed-in terminal.
type terminalGuarded struct{ *guardedMachine }

func (g terminalGuarded) answer(t *testing.T, decision toolward.Decision, marker string) {
	g.terminal.Run("toolward approvals watch --json > /dev/null 2>&1 &")
	defer g.terminal.Run("kill %%; wait")
	id := g.pending(t)
	time.Sleep(unread)
	mustNotExist(t, marker)
	command := map[toolward.Decision]string{toolward.AllowOnce: "allow ", toolward.DenyCall: "deny "}[decision]
	if command == "" {
		for g.pendingCount(t) > 0 {
			time.Sleep(100 * time.Millisecond)
		}
		return
	}
	if out, status := g.terminal.Run("toolward approvals " + command + id[:8]); status != 0 {
		t.Errorf("approvals %s: %d\n%s", command, status, out)
	}
}

func (g *guardedMachine) pendingCount(t *testing.T) int {
	t.Helper()
	out, status := g.terminal.Run("toolward approvals list --json")
	if status != 0 {
		t.Fatalf("approvals list: %d\n%s", status, out)
	}
	return strings.Count(out, `"binding"`)
}

// consoleGuarded is answered in a real Chromium.
type consoleGuarded struct {
	*guardedMachine
	tab *tab
}

func newConsoleGuarded(t *testing.T) consoleGuarded {
	t.Helper()
	open := chromium(t)
	g := consoleGuarded{newGuardedMachine(t), open(t)}
	g.tab.open(g.URL)
	g.tab.do(chromedp.SendKeys(chromedp.CSS("input[name=passphrase]"), live.Passphrase+"\r"))
	g.tab.until(liveNow)
	return g
}

func (g consoleGuarded) answer(t *testing.T, decision toolward.Decision, marker string) {
	g.tab.until(`document.querySelectorAll(".card:not(.gone)").length == 1`)
	g.tab.until(ready)
	mustNotExist(t, marker)
	switch decision {
	case toolward.AllowOnce:
		g.tab.do(chromedp.Click(chromedp.CSS(`button[value="allow-once"]`)))
	case toolward.DenyCall:
		g.tab.do(chromedp.Click(chromedp.CSS("[data-deny]")))
	}
	g.tab.until(`!document.querySelector(".card:not(.gone)")`)
}
