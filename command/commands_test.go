package command

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/command/allowlist"
	"github.com/toolward/toolward/internal/gatetest"
)

// commandDesk is Commands over a file in a directory of its own.
func commandDesk(t *testing.T, content string, config Configuration) (*Commands, string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "state")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if content != "" {
		if err := os.WriteFile(filepath.Join(dir, allowlist.FileName), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	file := allowlist.Open(dir, allowlist.Options{Ledger: gatetest.AsItStands(filepath.Join(dir, allowlist.FileName))})
	t.Cleanup(file.Close)
	c := NewCommands(file, t.TempDir(), false)
	if _, err := c.Configure(config); err != nil {
		t.Fatal(err)
	}
	return c, filepath.Join(dir, allowlist.FileName)
}

func desktopRequest(command, dir string) *Request {
	return &Request{Command: command, Dir: dir, Level: toolward.Normal, Getenv: func(name string) (string, bool) {
		return map[string]string{"PATH": DefaultPath, "HOME": "/root"}[name], name == "PATH" || name == "HOME"
	}}
}

func TestCommandsFollowTheFile(t *testing.T) {
	c, path := commandDesk(t, "", Configuration{})
	coder := toolward.Caller{Agent: "coder"}
	judge := func(caller toolward.Caller) *toolward.CommandAnalysis {
		t.Helper()
		ruling, err := c.Judge(caller, HostParams{}, desktopRequest("uname -a", t.TempDir()))
		if err != nil {
			t.Fatal(err)
		}
		return ruling.Analysis()
	}
	before := judge(coder)
	if !before.Understood || before.Covered || len(before.Always) != 1 {
		t.Fatalf("without a file: %+v", before)
	}
	if err := c.Allow(context.Background(), "coder", before.Always); err != nil {
		t.Fatal(err)
	}
	if after := judge(coder); !after.Covered || len(after.Always) != 0 {
		t.Errorf("after always: %+v", after)
	}
	if other := judge(toolward.Caller{Agent: "other"}); other.Covered {
		t.Error("an agent runs by another's entry")
	}
	if err := os.WriteFile(path, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if broken := judge(coder); broken.Covered || broken.Security != "deny" || !strings.Contains(broken.Forbidden, "corrupt") {
		t.Errorf("with a corrupt file: %+v", broken)
	}
}

func TestCallsOnlyTighten(t *testing.T) {
	c, _ := commandDesk(t, `{"version":1,"defaults":{"security":"allowlist","ask":"on-miss","askFallback":"allowlist"}}`, Configuration{})
	for _, test := range []struct{ security, ask, wantSecurity, wantAsk string }{
		{"", "", "allowlist", "on-miss"},
		{"full", "off", "allowlist", "on-miss"},
		{"deny", "always", "deny", "always"},
	} {
		ruling, err := c.Judge(toolward.Caller{Agent: "a"}, HostParams{Security: test.security, Ask: test.ask}, desktopRequest("ls", "/"))
		if err != nil {
			t.Fatal(err)
		}
		if a := ruling.Analysis(); a.Security != test.wantSecurity || a.Ask != test.wantAsk || !a.Unanswered {
			t.Errorf("%s %s: %+v", test.security, test.ask, a)
		}
	}
	if _, err := c.Judge(toolward.Caller{Agent: "a"}, HostParams{Ask: "sometimes"}, desktopRequest("ls", "/")); err == nil {
		t.Error("an unknown word of a call was taken")
	}
}

func TestAgentSectionsStandOverTheGateways(t *testing.T) {
	loose := false
	config := Configuration{
		Gateway: Config{Preset: Developer, SafeBins: []string{"wc"}, Rules: []Rule{{Prefix: []Alternatives{{"rm"}}, Decision: Forbidden}}},
		Agents:  map[string]Config{"a": {Preset: Strict, SafeBins: []string{}, StrictInlineEval: &loose, Rules: []Rule{{Prefix: []Alternatives{{"ls"}}, Decision: Prompt}}}},
	}
	got := config.For("a")
	if got.Preset != Strict || got.SafeBins == nil || len(got.SafeBins) != 0 || len(got.Rules) != 2 || *got.StrictInlineEval {
		t.Errorf("agent: %+v", got)
	}
	if other := config.For("b"); other.Preset != Developer || len(other.SafeBins) != 1 || len(other.Rules) != 1 {
		t.Errorf("another: %+v", other)
	}
	c, _ := commandDesk(t, "", config)
	ruling, err := c.Judge(toolward.Caller{Agent: "b"}, HostParams{}, desktopRequest("rm x", "/"))
	if err != nil {
		t.Fatal(err)
	}
	if ruling.Analysis().Forbidden == "" {
		t.Error("a forbidding rule says nothing")
	}
}

func TestWrongConfigurationChangesNothing(t *testing.T) {
	c, _ := commandDesk(t, "", Configuration{Gateway: Config{Preset: Developer}})
	if _, err := c.Configure(Configuration{Gateway: Config{Preset: "lax"}}); err == nil {
		t.Fatal("an unknown preset was taken")
	}
	if got := c.config.For("a").Preset; got != Developer {
		t.Errorf("preset %q", got)
	}
}
