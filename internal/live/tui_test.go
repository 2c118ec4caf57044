package live_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/toolward/toolward/internal/live"
)

// consolePane is a person in front of "toolward tui".
type consolePane struct {
	*live.Pane
	t *testing.T
}

// openConsole opens the terminal console and signs in, by typing.
func openConsole(t *testing.T, m *live.Machine) *consolePane {
	t.Helper()
	p := &consolePane{m.OpenPane(80, 24), t}
	p.Type("toolward tui")
	p.Press("Enter")
	p.signsIn()
	p.See("Toolward [1 Queue", "Nothing waits.", "Signed in as owner")
	return p
}

func (p *consolePane) signsIn() {
	p.t.Helper()
	p.See("Passphrase:")
	p.Type(live.Passphrase)
	if screen := p.Screen(false); strings.Contains(screen, live.Passphrase) {
		p.t.Errorf("the passphrase is on the screen:\n%s", screen)
	}
	p.Press("Enter")
}

// reads waits until a call can be answered.
func (p *consolePane) reads(texts ...string) string {
	p.t.Helper()
	screen := p.See(append(texts, "[ Deny ]")...)
	time.Sleep(2 * unread)
	return screen
}

// allows answers the call in front.
func (p *consolePane) allows() {
	p.t.Helper()
	p.Press("End", "Tab")
	p.See("[ Allow once ]")
	p.Press("Space")
}

// TestTerminalConsole: the terminal console on a real terminal of 80 columns and 24 rows without color, in front of a
// real gateway.
func TestTerminalConsole(t *testing.T) {
	t.Parallel()
	live.Need(t, live.Program("tmux"))
	m := live.NewMachine(t, "")
	m.Configure(`{"teg": {"preset": "workspace", "approval": {"timeoutMs": 120000}}}`)
	m.Start()
	p := openConsole(t, m)
	w := dialStdio(t, m, "coder")
	marker := func(name string) string { return filepath.Join(m.Workspace, name) }

	t.Run("deny", func(t *testing.T) {
		call := asking(t.Context(), w, "exec", touching("denied"))
		screen := p.reads("│ touch denied", "What it would do:", "Queue (1)")
		if !strings.Contains(screen, "Command in "+m.Workspace) {
			t.Errorf("the screen does not say where:\n%s", screen)
		}
		p.Press("d")
		p.Type("not here, please")
		p.See("Deny, because: not here, please")
		p.Press("Enter")
		p.See("Denied by owner (terminal): not here, please", "Nothing waits.")
		if r := answer(t, call); !r.Result.IsError || !strings.Contains(r.said(), "not here, please") {
			t.Errorf("the agent is told %q", r.said())
		}
		mustNotExist(t, marker("denied"))
	})

	t.Run("allow", func(t *testing.T) {
		call := asking(t.Context(), w, "exec", touching("allowed"))
		p.reads("│ touch allowed")
		p.Press("Tab", "Enter", "Enter") // Enter never allows
		p.See("Enter never allows")
		mustNotExist(t, marker("allowed"))
		p.Press("BTab")
		p.See("[ Deny ]")
		p.allows()
		p.See("Allowed once by owner (terminal)", "Nothing waits.")
		if r := answer(t, call); r.Result.IsError {
			t.Errorf("the agent is told %q", r.said())
		}
		if _, err := os.Stat(marker("allowed")); err != nil {
			t.Error(err)
		}
		p.Press("2")
		p.See("[2 Decisions]", "Allowed by owner (terminal)", "Denied by owner (terminal)", "touch allowed")
		p.Press("3")
		p.See("[3 Sessions]", "agent:coder:", "Level normal", "Last call: exec, allow")
		p.Press("6")
		p.See("[6 Undo]", "1 change", "exec touch allowed", "allowed: created a file")
		p.Press("t")
		p.See("Take back exec touch allowed?", "taken back: allowed", "y: take back")
		p.Press("y")
		p.See("Taken back: 1 change", "undo take back ")
		mustNotExist(t, marker("allowed"))
		p.Press("1")
		p.See("[1 Queue]")
	})

	t.Run("always, and revoke", func(t *testing.T) {
		call := asking(t.Context(), w, "write", fmt.Sprintf(`{"path":%q,"content":"x"}`, filepath.Join(m.Home, "outside.txt")))
		p.reads("outside.txt", "Always...")
		p.Press("End", "w")
		p.See("[ Always... ]")
		p.Press("Space")
		p.See("> Nothing: go back")
		p.Press("Down")
		p.See("> 1  repeat exactly")
		p.Press("Space")
		p.See("saved as a grant", "Nothing waits.")
		if r := answer(t, call); r.Result.IsError {
			t.Errorf("the agent is told %q", r.said())
		}
		p.Press("4")
		p.See("[4 Grants]", "repeat exactly this write call", "by owner (terminal)")
		p.Press("x")
		p.See("Revoke this grant?")
		p.Press("y")
		p.See("Revoked.", "There is nothing here.")
		p.Press("1")
	})

	t.Run("always, for less", func(t *testing.T) {
		call := asking(t.Context(), w, "write", fmt.Sprintf(`{"path":%q,"content":"y"}`, filepath.Join(m.Home, "outside.txt")))
		p.reads("outside.txt", "Always...")
		p.Press("End", "w")
		p.See("[ Always... ]")
		p.Press("Space", "Down", "u")
		p.See("For how many more calls:")
		p.Type("2")
		p.Press("Enter", "t")
		p.See("For how long (such as 10m):")
		p.Type("10m")
		p.Press("Enter")
		p.See("only for 10 min, for 2 more calls", "Space: allow and save what is marked >, only for 10 min")
		p.Press("Space")
		p.See("saved as a grant", "Nothing waits.")
		if r := answer(t, call); r.Result.IsError {
			t.Errorf("the agent is told %q", r.said())
		}
		p.Press("4")
		p.See("[4 Grants]", "shortened to 10 min", "or after 2 more uses")
		p.Press("x")
		p.See("Revoke this grant?")
		p.Press("y")
		p.See("Revoked.")
		p.Press("1")
	})

	t.Run("levels", func(t *testing.T) {
		p.Press("3")
		p.See("[3 Sessions]", "e: elevate", "Level normal")
		p.Press("l")
		p.See("Keep agent:coder:", "lockdown, until somebody clears it?", "y: yes   any other key: no")
		p.Press("Enter")
		p.See("e: elevate", "Level normal")
		p.Press("e")
		p.See("Keep agent:coder:", "elevated, until somebody clears it?")
		p.Press("y")
		p.See("At least elevated until somebody clears it", "Level elevated", "set by owner (terminal)")
		p.Press("c")
		p.See("Clear the level of agent:coder:", "Floor: elevated", "y: clear floor and suspicion")
		p.Press("y")
		p.See("Cleared: agent:coder:", "Level normal")
		p.Press("1")
	})

	t.Run("identical calls, one answer", func(t *testing.T) {
		token, status := m.SignedIn().Run("toolward token create --gateway --name asker 2> /dev/null")
		if status != 0 {
			t.Fatalf("token create: %d\n%s", status, token)
		}
		for _, decision := range []string{"deny", "allow-once"} {
			asker := askTwice(t, m.URL, token, "make "+decision)
			p.reads("│ make "+decision, "Queue (2)", "1 identical call waits, too; s: answer both")
			p.Press("s")
			p.See("[ Deny all 2 ]", "Allow all 2, each once")
			time.Sleep(2 * unread)
			if decision == "deny" {
				p.Press("Enter")
			} else {
				p.Press("End", "Tab")
				p.See("[ Allow all 2, each once ]")
				p.Press("Enter")
				p.See("Enter never allows")
				p.Press("Space")
			}
			p.See("2 identical calls: ", "Nothing waits.")
			for range 2 {
				if got := asker.decision(t); got != decision {
					t.Errorf("a call got %q, want %q", got, decision)
				}
			}
		}
	})

	t.Run("two surfaces, one answer", func(t *testing.T) {
		person, err := signInAtConsole(t.Context(), m.URL)
		if err != nil {
			t.Fatal(err)
		}
		stream, err := person.watch(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer stream.Close()
		for _, first := range []string{"console", "terminal"} {
			name := "first-" + first
			call := asking(t.Context(), w, "exec", touching(name))
			p.reads("│ touch " + name)
			var waiting struct{ Approvals []struct{ ID, Seen string } }
			if err := person.api(t.Context(), http.MethodGet, "/v1/approvals", nil, &waiting); err != nil || len(waiting.Approvals) != 1 {
				t.Fatalf("the console sees %+v, %v", waiting, err)
			}
			time.Sleep(unread)
			one := waiting.Approvals[0]
			deny := func() error {
				return person.api(t.Context(), http.MethodPost, "/v1/approvals/"+one.ID, map[string]string{"decision": "deny", "seen": one.Seen}, nil)
			}
			if first == "console" {
				if err := deny(); err != nil {
					t.Fatal(err)
				}
				p.See("Denied by owner (console)", "Nothing waits.")
				p.Press("Enter", "Space")
				if r := answer(t, call); !r.Result.IsError {
					t.Errorf("a denied call was answered %q", r.said())
				}
				mustNotExist(t, marker(name))
				continue
			}
			p.Press("End")
			p.See(one.ID) // both look at the same one
			p.allows()
			p.See("Allowed once by owner (terminal)")
			if err := deny(); err == nil {
				t.Error("a second answer was taken")
			}
			if r := answer(t, call); r.Result.IsError {
				t.Errorf("an allowed call was answered %q", r.said())
			}
			if _, err := os.Stat(marker(name)); err != nil {
				t.Error(err)
			}
		}
	})

	t.Run("hostile text", func(t *testing.T) {
		command := "echo x\x1b[2J\x1b[1;1H\x1b]0;owned\x07\r[ Allow once ]\u202e\u200b 漢字🔥\n[ Deny ]  \n> Nothing waits.\n" + strings.Repeat("漢字かな🔥\u0301é ", 600) + "; touch hostile"
		arguments, err := json.Marshal(map[string]string{"command": command})
		if err != nil {
			t.Fatal(err)
		}
		call := asking(t.Context(), w, "exec", string(arguments))
		p.reads("⟦U+001B⟧", "rows 1 to ")
		for range 3 {
			p.keepsShape(80, 24)
			p.Press("PgDn")
			time.Sleep(100 * time.Millisecond)
		}
		p.keepsShape(80, 24)
		p.Press("Tab", "Space")
		p.See("Not all of this call has been on the screen")
		p.Resize(120, 40)
		p.Press("Home")
		p.See("⟦U+202E⟧", "⟦U+200B⟧")
		p.keepsShape(120, 40)
		p.Resize(50, 12)
		p.See("at least 60 x 16")
		p.Resize(80, 24)
		p.reads("⟦U+001B⟧")
		p.keepsShape(80, 24)
		p.Press("Enter")
		p.See("Denied by owner (terminal)")
		if r := answer(t, call); !r.Result.IsError {
			t.Errorf("a denied call was answered %q", r.said())
		}
		mustNotExist(t, marker("hostile"))
	})

	t.Run("hostile text of 100 KiB", func(t *testing.T) {
		evil := "\x1b[2J\x1b[1;1H\u202e\u200b[ Allow once ]\r\n> Nothing waits.\n"
		arguments := func(name, text string, more ...string) string {
			all := map[string]string{name: text}
			for i := 0; i < len(more); i += 2 {
				all[more[i]] = more[i+1]
			}
			raw, err := json.Marshal(all)
			if err != nil {
				t.Fatal(err)
			}
			return string(raw)
		}
		long := evil + strings.Repeat("padding ", 100<<10/8)
		if r := answer(t, asking(t.Context(), w, "exec", arguments("command", "echo "+long))); !r.refused() {
			t.Errorf("a command that nobody could read was answered %q", r.said())
		}
		p.See("Nothing waits.") // nobody was asked
		// Of a file the beginning is shown, and that there is more.
		outside := filepath.Join(m.Home, "long.txt")
		call := asking(t.Context(), w, "write", arguments("content", long, "path", outside))
		p.reads("long.txt", "Queue (1)")
		p.keepsShape(80, 24)
		seen := ""
		for range 6 {
			seen += p.Screen(false)
			p.Press("PgDn")
			time.Sleep(100 * time.Millisecond)
			p.keepsShape(80, 24)
		}
		p.Press("End")
		time.Sleep(100 * time.Millisecond)
		seen += p.Screen(false)
		p.keepsShape(80, 24)
		for _, want := range []string{"⟦U+001B⟧", "⟦U+202E⟧", "longer than what can"} {
			if !strings.Contains(seen, want) {
				t.Errorf("nowhere on the screen: %q\n%s", want, seen)
			}
		}
		p.Press("Home", "d", "Enter")
		p.See("Denied by owner (terminal)")
		if r := answer(t, call); !r.refused() {
			t.Errorf("a denied call was answered %q", r.said())
		}
		mustNotExist(t, outside)
	})

	t.Run("a restart of the gateway", func(t *testing.T) {
		g := m.SignedIn()
		token, status := g.Run("toolward token create --agent coder --workspace " + m.Workspace + " 2> /dev/null")
		if status != 0 {
			t.Fatalf("token create: %d\n%s", status, token)
		}
		// A question of a client that comes back by itself: it waits through the restart.
		h := newestHTTP(t, m.URL, token)
		first, err := h.call(t.Context(), "exec", touching("restarted"), "")
		if err != nil || first.Result.RequestState == "" {
			t.Fatalf("first round: %v, %+v", err, first)
		}
		p.reads("│ touch restarted")
		m.Stop()
		p.See("THE GATEWAY DOES NOT ANSWER; trying again.", "│ touch restarted")
		p.Press("Enter")
		m.Start()
		p.See("as it does when the gateway restarts")
		p.Lose("touch restarted")
		p.signsIn()
		p.reads("The gateway is back; 1 call waits.", "│ touch restarted")
		p.allows()
		p.See("Allowed once by owner (terminal)", "Nothing waits.")
		again := newestHTTP(t, m.URL, token)
		if r, err := again.call(t.Context(), "exec", touching("restarted"), first.Result.RequestState); err != nil || r.Result.IsError {
			t.Errorf("the call that was allowed after the restart: %v, %+v", err, r)
		}
		if _, err := os.Stat(marker("restarted")); err != nil {
			t.Error(err)
		}
	})

	t.Run("leaving", func(t *testing.T) {
		p.Press("q")
		p.Lose("[1 Queue]")
		p.Type("echo left=$?")
		p.Press("Enter")
		p.See("left=0")
		p.Type("TERM=dumb toolward tui; echo dumb=$?")
		p.Press("Enter")
		p.See("TERM=dumb", "hint: toolward approvals list", "dumb=1")
		if out, status := m.Run("tui"); status != 1 || !strings.Contains(out, "this is no terminal") {
			t.Errorf("without a terminal: %d\n%s", status, out)
		}
	})
}

// keepsShape checks that the rows of the console are where they belong and that nothing has colored or moved anything.
func (p *consolePane) keepsShape(columns, rows int) {
	p.t.Helper()
	screen := strings.Split(strings.TrimSuffix(p.Screen(false), "\n"), "\n")
	if len(screen) != rows || !strings.HasPrefix(strings.TrimPrefix(screen[0], "Toolward "), "[1 Queue (1)]") || !strings.HasSuffix(screen[0], "? help") ||
		screen[3] != strings.Repeat("─", columns) || !strings.HasPrefix(screen[rows-3], "────") || !strings.Contains(screen[rows-2], "Allow once") {
		p.t.Errorf("the screen has lost its shape:\n%s", strings.Join(screen, "\n"))
	}
	for _, text := range screen[4 : rows-3] {
		if strings.HasPrefix(text, "> ") || strings.HasPrefix(text, "[ ") {
			p.t.Errorf("a row of the console was forged: %q", text)
		}
	}
	if raw := p.Screen(true); strings.Contains(raw, "\x1b[") {
		p.t.Errorf("NO_COLOR is set, and the screen has escape sequences:\n%q", raw)
	}
}
