package live_test

import (
	"encoding/json"
	"os"
	"os/user"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/toolward/toolward/sandbox/settings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolward/toolward/internal/live"
	"github.com/toolward/toolward/sandbox/fleet"
)

// needNative ends a test on machines on which the native engine cannot make whole sandboxes. Where live tests must all
// run, it can: what it lacks then fails the test.
func needNative(t *testing.T, m *live.Machine) {
	t.Helper()
	out, _ := m.Run("--json", "sandbox", "probe")
	var probed struct {
		Engines []struct{ Engine, Level string }
	}
	if err := json.Unmarshal([]byte(out[:strings.LastIndex(out, "}")+1]), &probed); err != nil {
		t.Fatalf("sandbox probe: %v\n%s", err, out)
	}
	for _, e := range probed.Engines {
		if e.Engine == "native" && e.Level == "everything" {
			return
		}
	}
	if live.All() {
		t.Fatalf("TOOLWARD_LIVE=all, but this machine cannot make native sandboxes:\n%s", out)
	}
	t.Skipf("not run: this machine cannot make native sandboxes:\n%s", out)
}

// kept is what the home keeps of the machine.
func kept(t *testing.T, m *live.Machine) fleet.Machine {
	t.Helper()
	found, known, err := fleet.ReadMachine(m.State)
	if err != nil || !known {
		t.Fatalf("nothing is kept: %v", err)
	}
	return found
}

// asAgent is an MCP client that speaks to the gateway as people configure it.
func asAgent(t *testing.T, m *live.Machine, workspace string) *sdk.ClientSession {
	t.Helper()
	client := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil)
	session, err := client.Connect(t.Context(), &sdk.CommandTransport{
		Command: m.Command("toolward", "mcp", "--agent", "coder", "--workspace", workspace),
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = session.Close() })
	return session
}

// says runs a command and returns the text of the result.
func says(t *testing.T, session *sdk.ClientSession, command string) (text string, failed bool) {
	t.Helper()
	result, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: "exec", Arguments: map[string]any{"command": command}})
	if err != nil {
		t.Fatalf("%s: %v", command, err)
	}
	for _, c := range result.Content {
		if part, ok := c.(*sdk.TextContent); ok {
			text += part.Text
		}
	}
	return text, result.IsError
}

// TestFirstStart: whoever starts a gateway for the first time and points a client at a project has commands run in the
// project, confined and without a question; that stays so.
func TestFirstStart(t *testing.T) {
	m := live.NewMachine(t, "")
	m.Undecided()
	needNative(t, m)
	writeFile(t, filepath.Join(m.Home, ".gitconfig"), "[user]\nname = Ann\nemail = ann@example.org\n[core]\nhooksPath = /evil\n")
	m.Start()
	decided := kept(t, m)
	if decided.Mode != settings.ModeNonMain || decided.Engine != "native" || decided.Due {
		t.Fatalf("decided %+v", decided)
	}
	if log := m.Log(); !strings.Contains(log, "agents.defaults.sandbox.mode") {
		t.Errorf("the log does not say what was decided:\n%s", log)
	}
	if out, _ := m.Run("doctor"); !strings.Contains(out, "sandbox: mode non-main since ") || !strings.Contains(out, "the engine native works") {
		t.Errorf("doctor:\n%s", out)
	}
	out, status := m.Run("sandbox", "explain", "--agent", "coder", "--session", "agent:coder:mcp:x", "--workspace", m.Workspace)
	for _, want := range []string{"is sandboxed", "mode         non-main (probe: agents.defaults.sandbox.mode)", "workspace    rw"} {
		if status != 0 || !strings.Contains(out, want) {
			t.Errorf("explain: %d, no %q in\n%s", status, want, out)
		}
	}
	writeFile(t, filepath.Join(m.Home, "diary"), "private")
	writeFile(t, filepath.Join(m.Workspace, "main.txt"), "of the project\n")
	session := asAgent(t, m, m.Workspace)
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ command, want string }{
		{"cat main.txt; echo made > made.txt; pwd", "of the project\n" + m.Workspace + "\n"},
		{"tr '\\0' ' ' < /proc/1/cmdline", "toolward-inside"},
		{"cat " + filepath.Join(m.Home, "diary"), "No such file"},
		{"ls -A " + m.State, "No such file"},
		{"getent hosts example.com || echo unreachable", "unreachable"},
		{"cd " + m.Workspace + " && cd / && cd " + m.Workspace + "/. && ls", "main.txt"},
		{"echo $HOME; ls -A $HOME", m.Home + "\n.cache\n"},
		{"mkdir -p ~/.config/x && touch ~/.config/x/y && ls -A $HOME", ".cache\n.config\n"},
		{"id -un; getent passwd $(id -u) | cut -d: -f6", me.Username + "\n" + m.Home + "\n"},
		{"git init -q /tmp/r && cd /tmp/r && git commit -q --allow-empty -m x && git log --format=%an:%ae; git config core.hooksPath || echo none", "Ann:ann@example.org\nnone\n"},
		{"printf '#!/bin/sh\necho $0\n' > /tmp/t; chmod +x /tmp/t; /tmp/t", "/tmp/t\n"},
		{"echo '#!/bin/sh\necho runs' > $GOTMPDIR/t; chmod +x $GOTMPDIR/t; $GOTMPDIR/t", "runs"},
	} {
		if got, _ := says(t, session, c.command); !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", c.command, got, c.want)
		}
	}
	entries, _ := os.ReadDir(m.Workspace)
	for _, e := range entries {
		if e.Name() != "main.txt" && e.Name() != "made.txt" {
			t.Errorf("%s was left in the project", e.Name())
		}
	}

	// Whatever engines there are at a later start, it is not decided again.
	m.Stop()
	decided.Engine, decided.Why = "docker", "the engine docker works on this machine"
	text, err := json.Marshal(decided)
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(m.State, "sandbox", "machine.json"), string(text))
	m.Start()
	if again := kept(t, m); !reflect.DeepEqual(again, decided) {
		t.Errorf("it became %+v", again)
	}
}

// withoutEngine is a machine whose only engine is a container engine that is not there.
func withoutEngine(t *testing.T, mode string) *live.Machine {
	t.Helper()
	m := live.NewMachine(t, `{"teg": {"approval": {"timeoutMs": 1000}}, "agents": {"defaults": {"sandbox": {`+mode+`"engine": "docker"}}}}`)
	m.Undecided()
	m.Extra = []string{"DOCKER_HOST=unix://" + filepath.Join(m.Home, "none.sock")}
	m.Start()
	return m
}

// TestNoEngine: a session that is to be sandboxed is refused where that cannot be, with what to do about it; nothing runs
// on the machine instead.
func TestNoEngine(t *testing.T) {
	m := withoutEngine(t, `"mode": "non-main", `)
	got, failed := says(t, asAgent(t, m, m.Workspace), "touch outside")
	for _, want := range []string{"not run outside", "agents.defaults.sandbox.mode", "toolward sandbox probe"} {
		if !failed || !strings.Contains(got, want) {
			t.Errorf("without an engine: %v, no %q in %q", failed, want, got)
		}
	}
	if _, err := os.Stat(filepath.Join(m.Workspace, "outside")); err == nil {
		t.Error("the command ran on the machine")
	}
	if found := kept(t, m); found.Mode != "" || !found.Due {
		t.Errorf("nobody had asked, but this was decided: %+v", found)
	}
}

// TestNoImage: a container engine that works, without the image that sandboxes are of, is told when the gateway starts and by
// doctor, and not only to an agent whose commands are refused.
func TestNoImage(t *testing.T) {
	m := live.NewMachine(t, `{"agents": {"defaults": {"sandbox": {"engine": "docker", "docker": {"image": "nobody/has-this:1"}}}}}`)
	m.Undecided()
	m.Extra = []string{"DOCKER_HOST=" + live.Docker(t)}
	m.Start()
	const lacks = "there is no image nobody/has-this:1"
	if !strings.Contains(m.Log(), lacks) {
		t.Errorf("the log says nothing of it:\n%s", m.Log())
	}
	if out, _ := m.Run("doctor"); !strings.Contains(out, lacks) || !strings.Contains(out, "toolward sandbox image build") {
		t.Errorf("doctor:\n%s", out)
	}
	if got, failed := says(t, asAgent(t, m, m.Workspace), "true"); !failed || !strings.Contains(got, lacks) {
		t.Errorf("a command: %v %q", failed, got)
	}
}

// TestNoEngineAtFirstStart: a machine that can make no sandboxes says so, and how to change it.
func TestNoEngineAtFirstStart(t *testing.T) {
	m := withoutEngine(t, "")
	if found := kept(t, m); found.Mode != settings.ModeOff || !strings.Contains(found.Why, "docker") {
		t.Errorf("decided %+v", found)
	}
	if out, _ := m.Run("doctor"); !strings.Contains(out, "mode off since ") || !strings.Contains(out, `{"sandbox": {"mode": "non-main"}}`) {
		t.Errorf("doctor does not say how to have sandboxes:\n%s", out)
	}
}

// TestSandboxesSwitchedOff: whoever wants no sandbox has none, on whatever machine, from the first start on.
func TestSandboxesSwitchedOff(t *testing.T) {
	m := live.NewMachine(t, `{"teg": {"approval": {"timeoutMs": 1000}}, "agents": {"defaults": {"sandbox": {"mode": "off"}}}}`)
	m.Undecided()
	m.Start()
	if got, failed := says(t, asAgent(t, m, m.Workspace), "touch made"); !failed || !strings.Contains(got, "approv") {
		t.Errorf("a command of this machine that nobody has allowed: %v %q", failed, got)
	}
	out, _ := m.Run("sandbox", "explain", "--session", "agent:coder:mcp:x")
	if !strings.Contains(out, "is not sandboxed") || !strings.Contains(out, "off (global: agents.defaults.sandbox.mode)") {
		t.Errorf("explain:\n%s", out)
	}
}

// TestOlderHome: a home of a version that did not decide goes on running commands where it did, and says so.
func TestOlderHome(t *testing.T) {
	m := live.NewMachine(t, "")
	m.Undecided()
	m.Start()
	m.Stop()
	if err := os.RemoveAll(filepath.Join(m.State, "sandbox")); err != nil { // it had none
		t.Fatal(err)
	}
	m.Start()
	if found := kept(t, m); found.Mode != settings.ModeOff || found.Engine != "" {
		t.Errorf("decided %+v", found)
	}
	if out, _ := m.Run("doctor"); !strings.Contains(out, "before sandboxes were the default") {
		t.Errorf("doctor:\n%s", out)
	}
}
