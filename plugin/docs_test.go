package plugin_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tailscale/hujson"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/plugin"
)

// The program of docs/hooks.md is built and run with the configuration of the page, and does what the page says.
func TestHooksPageIsTrue(t *testing.T) {
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("the example is built: that needs the go command")
	}
	raw, err := os.ReadFile("../docs/hooks.md")
	if err != nil {
		t.Fatal(err)
	}
	page := string(raw)
	dir := t.TempDir()
	program := filepath.Join(dir, "house-rules")
	for name, content := range map[string]string{"main.go": block(t, page, "```go\npackage main"), "go.mod": "module example\n\ngo 1.26\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	build := exec.Command("go", "build", "-o", program, ".")
	build.Dir, build.Env = dir, append(os.Environ(), "GOFLAGS=-mod=mod", "GOWORK=off")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var file struct{ Plugins plugin.Config }
	plain, err := hujson.Standardize([]byte(strings.ReplaceAll(block(t, page, "```jsonc\n{"), "/opt/toolward/house-rules", program)))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(plain, &file); err != nil {
		t.Fatal(err)
	}
	entry := file.Plugins.Entries["house-rules"]
	*entry.TimeoutMs = 20_000 // a busy machine may be slow to start it
	entry.Tools = append(entry.Tools, "write")
	g := newGuarded(t, toolward.Allow, nil, plugin.Config{Entries: map[string]plugin.Entry{"house-rules": entry}})
	for _, test := range []struct {
		command string
		code    toolward.Code
		asks    int
		ran     string
	}{
		{`{"command":"ls"}`, "", 0, `{"command":"ls","timeout":60}`},
		{`{"command":"ls","timeout":5}`, "", 0, `{"command":"ls","timeout":5}`},
		{`{"command":"git push --force"}`, toolward.CodeHookBlock, 0, ""},
		{`{"command":"kubectl --context production get pods"}`, "", 1, `{"command":"kubectl --context production get pods"}`},
	} {
		g.ran = nil
		asked := len(g.Approver.Asked())
		err := g.writeAs(t, test.command, test.command)
		if codeOf(err) != test.code || len(g.Approver.Asked())-asked != test.asks || strings.Join(g.ran, " ") != test.ran {
			t.Errorf("%s: %v, ran %q\n%s", test.command, err, g.ran, g.log)
		}
	}
}

// block is the first code block of the page that begins so.
func block(t *testing.T, page, opening string) string {
	t.Helper()
	_, rest, found := strings.Cut(page, opening)
	body, _, closed := strings.Cut(rest, "```")
	if !found || !closed {
		t.Fatalf("the page has no %q", opening)
	}
	_, first, _ := strings.Cut(opening, "\n")
	return first + body
}
