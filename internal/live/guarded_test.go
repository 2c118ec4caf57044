package live_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/internal/live"
)

// guardedMachine is a machine with an agent's token and a signed-in terminal.
type guardedMachine struct {
	*live.Machine
	terminal *live.Terminal
	token    string
}

// shortQuestions is the configuration under which a question ends soon, and not before a busy machine has shown and answered it.
const shortQuestions = `{"teg": {"approval": {"timeoutMs": 20000}}}`

func newGuardedMachine(t *testing.T, config string) *guardedMachine {
	t.Helper()
	return newGuardedMachineOn(t, config, func(*live.Machine) {})
}

// newGuardedMachineOn is newGuardedMachine on a machine that is prepared before its first start.
func newGuardedMachineOn(t *testing.T, config string, prepare func(*live.Machine)) *guardedMachine {
	t.Helper()
	m := live.NewMachine(t, "")
	prepare(m)
	return guard(t, m, config)
}

// guard starts a machine with a configuration.
func guard(t *testing.T, m *live.Machine, config string) *guardedMachine {
	t.Helper()
	m.Configure(config)
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

// questions are the ids of what waits, as the terminal lists it.
func (g *guardedMachine) questions(t *testing.T) []string {
	t.Helper()
	out, status := g.terminal.Run("toolward approvals list --json")
	var list struct{ Approvals []struct{ ID string } }
	if err := json.Unmarshal([]byte(out), &list); err != nil || status != 0 {
		t.Fatalf("approvals list: %d, %v\n%s", status, err, out)
	}
	var ids []string
	for _, a := range list.Approvals {
		ids = append(ids, a.ID)
	}
	return ids
}

// pending waits for a question that is none of the known ones and returns its id.
func (g *guardedMachine) pending(t *testing.T, known ...string) string {
	t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); {
		for _, id := range g.questions(t) {
			if !slices.Contains(known, id) {
				return id
			}
		}
	}
	t.Fatal("no question came")
	return ""
}

// mustEnd waits until nothing is pending.
func (g *guardedMachine) mustEnd(t *testing.T) {
	t.Helper()
	for end := time.Now().Add(time.Minute); len(g.questions(t)) > 0; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("a question is still open")
		}
	}
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
	g.terminal.Watch()
	defer g.terminal.Run("kill %%; wait %%")
	id := g.pending(t)
	time.Sleep(unread)
	mustNotExist(t, marker)
	command := map[toolward.Decision]string{toolward.AllowOnce: "allow ", toolward.DenyCall: "deny "}[decision]
	if command == "" {
		g.mustEnd(t)
		return
	}
	if out, status := g.terminal.Run("toolward approvals " + command + id[:8]); status != 0 {
		t.Errorf("approvals %s: %d\n%s", command, status, out)
	}
}

// consoleGuarded is answered in a real Chromium.
type consoleGuarded struct {
	*guardedMachine
	tab *tab
}

func newConsoleGuarded(t *testing.T) consoleGuarded {
	t.Helper()
	open := chromium(t)
	g := consoleGuarded{newGuardedMachine(t, shortQuestions), open(t)}
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
