package live_test

import (
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// bearing sends a token with every request.
type bearing string

func (b bearing) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(b))
	return http.DefaultTransport.RoundTrip(r)
}

// connect is an MCP client of the daemon's.
func (g *guardedMachine) connect(t *testing.T) *sdk.ClientSession {
	t.Helper()
	client := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil)
	session, err := client.Connect(t.Context(), &sdk.StreamableClientTransport{
		Endpoint: g.URL + "/mcp", HTTPClient: &http.Client{Transport: bearing(g.token)},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = session.Close() })
	return session
}

// call calls a tool, and returns the text of its result.
func (g *guardedMachine) call(t *testing.T, session *sdk.ClientSession, tool string, arguments map[string]any) string {
	t.Helper()
	result, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: tool, Arguments: arguments})
	if err != nil {
		t.Fatalf("%s %v: %v\n%s", tool, arguments, err, g.Log())
	}
	var text strings.Builder
	for _, c := range result.Content {
		if part, ok := c.(*sdk.TextContent); ok {
			text.WriteString(part.Text)
		}
	}
	return text.String()
}

// TestSandboxedSession: where the configuration wants sandboxes, what an MCP client has done is done in one: commands run
// unasked, see the workspace and nothing else of the machine, and have no network; the record says where they ran.
func TestSandboxedSession(t *testing.T) {
	g := newGuardedMachine(t, `{"agents": {"defaults": {"sandbox": {"mode": "all", "workspaceAccess": "rw", "engine": "native", "degradeOk": ["cgroup"]}}}}`)
	session := g.connect(t)
	call := func(tool string, arguments map[string]any) string {
		t.Helper()
		return g.call(t, session, tool, arguments)
	}
	secret := filepath.Join(g.State, "toolward.jsonc")
	for command, want := range map[string]string{
		"pwd; cat hello.txt":                           g.Workspace + "\nhello from the workspace",
		"cat " + secret + " || echo hidden":            "hidden",
		"cat /proc/net/dev | tail -n +3 | cut -d: -f1": "lo",
		"touch made && echo done":                      "done",
		"cat /etc/shadow || echo none":                 "none",
	} {
		if got := call("exec", map[string]any{"command": command}); !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", command, got, want)
		}
	}
	if _, err := os.Stat(filepath.Join(g.Workspace, "made")); err != nil {
		t.Error(err)
	}
	if got := call("read", map[string]any{"path": g.Workspace + "/hello.txt"}); !strings.Contains(got, "hello from the workspace") {
		t.Errorf("read: %q", got)
	}
	if got := call("read", map[string]any{"path": "/etc/passwd"}); !strings.Contains(got, "sandbox") {
		t.Errorf("a file of the machine: %q", got)
	}
	if ids := g.questions(t); len(ids) > 0 {
		t.Errorf("people were asked: %v", ids)
	}
	list, status := g.terminal.Run("toolward sandbox list")
	if status != 0 || !strings.Contains(list, "running") {
		t.Errorf("sandbox list: %d\n%s", status, list)
	}
	if out, status := g.terminal.Run("toolward audit query --json | grep -c '\"host\":\"sandbox\"'"); status != 0 {
		t.Errorf("the record does not say where calls ran: %d\n%.2000s", status, out)
	}

	// What git would run later, outside, is told, and the session is elevated from then on. A repository alone is not.
	call("exec", map[string]any{"command": "mkdir -p fine/.git/hooks && echo '[core]' > fine/.git/config"})
	key := g.recorded(t, `"`+g.Workspace+`/fine/.git/config"`)
	if out, status := g.terminal.Run("toolward level get " + key); status != 0 || strings.Contains(out, "elevated") {
		t.Errorf("a repository elevates the session: %d\n%s", status, out)
	}
	if got := call("exec", map[string]any{"command": "echo id > fine/.git/hooks/post-merge"}); !strings.Contains(got, "fine/.git/hooks (it is now hooks.quarantined-") {
		t.Errorf("the result does not say what became of hooks: %q", got)
	}
	g.recorded(t, `"runs":true`)
	if _, err := os.Lstat(filepath.Join(g.Workspace, "fine/.git/hooks")); err == nil {
		t.Error("hooks that a command made are where git looks for them")
	}
	if out, status := g.terminal.Run("toolward level get " + key); status != 0 || !strings.Contains(out, "elevated") {
		t.Errorf("the level is not raised: %d\n%s", status, out)
	}
}

var sessionOf = regexp.MustCompile(`"session(?:Key)?":"([^"]+)"`)

// recorded waits until the record has a text, and returns the session that it is about.
func (g *guardedMachine) recorded(t *testing.T, text string) (session string) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		out, _ := g.terminal.Run("toolward audit query --json --type sandbox")
		for line := range strings.Lines(out) {
			if key := sessionOf.FindStringSubmatch(line); key != nil && strings.Contains(line, text) {
				return key[1]
			}
		}
		if time.Now().After(end) {
			t.Fatalf("the record has no %s:\n%s", text, out)
		}
	}
}
