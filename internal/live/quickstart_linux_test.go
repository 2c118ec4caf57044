package live_test

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/toolward/toolward/internal/live"
	"github.com/toolward/toolward/internal/live/scriptedmodel"
)

var updateQuickstart = flag.Bool("update-quickstart", false, "write what was seen into docs/quickstart.md")

// quickstartFile is the page that shows the session.
const quickstartFile = "../../docs/quickstart.md"

// TestQuickstart is what docs/quickstart.md shows: a newcomer with Claude Code, at a real terminal, after toolward up. The page has
// exactly what was on the screen, but for names, times and numbers of this machine.
func TestQuickstart(t *testing.T) {
	t.Parallel()
	client := live.Need(t, claudeCode)
	m := &desk{live.NewMachine(t, ""), t}
	m.Undecided() // a first start: nothing is configured
	needNative(t, m.Machine)
	for _, dir := range []string{filepath.Join(m.Home, ".ssh"), filepath.Join(m.Workspace, "notes")} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	writeFile(t, filepath.Join(m.Home, ".ssh", "id_ed25519"), "PRIVATE KEY\n")
	for name, text := range map[string]string{"notes/plan.md": "# Plan\n\n- ship it\n", "notes/ideas.md": "- sleep\n", "main.py": "print(6 * 7)\n"} {
		writeFile(t, filepath.Join(m.Workspace, name), text)
	}
	m.Start()
	model := scriptedmodel.Start(scriptedmodel.Steps(
		call("toolu_1", "Bash", map[string]any{"command": "python3 main.py && rm -rf notes && ls"}),
		call("toolu_2", "Bash", map[string]any{"command": "cat ~/.ssh/id_ed25519 || echo no key here"}),
	))
	t.Cleanup(model.Close)

	p := m.SignedIn()
	p.Run("export PATH=" + client + ":$PATH ANTHROPIC_BASE_URL=" + model.URL + " ANTHROPIC_API_KEY=none CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1")
	var screen strings.Builder
	enter := func(line string) string {
		t.Helper()
		out, status := p.Run(line)
		screen.WriteString("$ " + line + "\n" + out + "\n")
		if status != 0 {
			t.Errorf("%s: status %d\n%s", line, status, out)
		}
		return out
	}
	enter("toolward install claude-code --yes 2>&1 | tail -5")
	enter("toolward config apply --yes")
	enter("toolward doctor | grep -e hook -e confined -e sandbox")
	enter("ls")
	enter(`claude -p "Run main.py, then tidy up"`)
	enter("ls")
	listed := enter("toolward undo")
	id := regexp.MustCompile(`(?m)^(\S+) .*rm -rf notes`).FindStringSubmatch(listed)
	if id == nil {
		t.Fatalf("the call that deleted is not listed:\n%s", listed)
	}
	enter("toolward undo show " + id[1])
	enter("toolward undo " + id[1])
	enter("ls notes")

	if kept, err := os.ReadFile(filepath.Join(m.Workspace, "notes", "plan.md")); err != nil || string(kept) != "# Plan\n\n- ship it\n" {
		t.Errorf("%q, %v", kept, err)
	}
	r, _ := model.Result("toolu_1")
	key, _ := model.Result("toolu_2")
	if r.IsError || !strings.Contains(r.Text, "42") || !strings.Contains(key.Text, "no key here") || strings.Contains(key.Text, "PRIVATE") {
		t.Errorf("the model was told %+v and %+v", r, key)
	}
	page := screen.String()
	for i, made := range regexp.MustCompile(`(?:toolward undo |\n)([a-z2-7]{10})\b`).FindAllStringSubmatch(page, -1) {
		page = strings.ReplaceAll(page, made[1], []string{"k3vp6wq2ha", "x7m4tz9cde"}[min(i, 1)])
	}
	m.compareWithPage(page)
}

// of this machine: what is different each time.
var ofThisMachine = []struct {
	pattern *regexp.Regexp
	instead string
}{
	{regexp.MustCompile(`\d{4}-\d\d-\d\d \d\d:\d\d:\d\d`), "2026-11-23 09:00:00"},
	{regexp.MustCompile(`\d{4}-\d\d-\d\d`), "2026-11-23"},
	{regexp.MustCompile(`127\.0\.0\.1:\d+`), "127.0.0.1:7411"},
	{regexp.MustCompile(`[ \t]+\n`), "\n"},
	{regexp.MustCompile(`\x1b\[[?0-9;]*[a-zA-Z]\n?`), ""}, // what the client does to the cursor
	{regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]{22,27}`), "65fd3ed1-871a-48ba-8622-b2692adeb5e5"},
}

// compareWithPage holds the screen against the block of the page, or writes it there.
func (m *desk) compareWithPage(screen string) {
	m.t.Helper()
	screen = strings.ReplaceAll(strings.ReplaceAll(screen, m.Workspace, "/home/you/project"), m.Home, "/home/you")
	for _, one := range ofThisMachine {
		screen = one.pattern.ReplaceAllString(screen, one.instead)
	}
	page, err := os.ReadFile(quickstartFile)
	if err != nil {
		m.t.Fatal(err)
	}
	const begin, end = "<!-- the session, written by TestQuickstart -->\n```console\n", "```\n<!-- end of the session -->"
	before, rest, ok := strings.Cut(string(page), begin)
	shown, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		m.t.Fatalf("%s has no place for the session", quickstartFile)
	}
	if shown == screen {
		return
	}
	if *updateQuickstart {
		if err := os.WriteFile(quickstartFile, []byte(before+begin+screen+end+after), 0o644); err != nil {
			m.t.Fatal(err)
		}
		return
	}
	m.t.Errorf("docs/quickstart.md shows another session than\n%s\nif that is right: go test ./internal/live -run TestQuickstart -update-quickstart", screen)
}
