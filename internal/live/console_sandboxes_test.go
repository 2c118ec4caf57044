package live_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/toolward/toolward/sandbox/settings"

	"github.com/chromedp/chromedp"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/audit"
	"github.com/toolward/toolward/internal/consoletest"
	"github.com/toolward/toolward/internal/live"
	"github.com/toolward/toolward/sandbox"
	"github.com/toolward/toolward/sandbox/fleet"
	"github.com/toolward/toolward/sandbox/forward"
)

// exampleBoxes are sandboxes as engines might tell of them, for pages that are looked at.
type exampleBoxes struct {
	settings *settings.Settings
	infos    []fleet.Info
	found    []fleet.Found
	failed   error
}

func (b *exampleBoxes) List(context.Context) ([]fleet.Info, error) {
	return append([]fleet.Info{}, b.infos...), b.failed
}

func (b *exampleBoxes) Usage(context.Context, []fleet.Info) map[string]fleet.Usage {
	busy := func(n float64) *float64 { return &n }
	return map[string]fleet.Usage{
		"toolward-sbx-agent-coder-ff01e048": {At: time.Now(), Busy: busy(1.04), Processors: 2, Memory: 1_310 << 20, Cache: 412 << 20, Pids: 37},
		"toolward-sbx-shared":               {Problem: "no answer"},
		"toolward-sbx-agent-ops-88f1a2b3":   {At: time.Now(), Busy: busy(0), Processors: 0.5, Memory: 9 << 20, Pids: 512, OOMKills: 3},
	}
}

func (b *exampleBoxes) Describe(_ context.Context, name string) (*fleet.Detail, error) {
	for _, i := range b.infos {
		if i.Name == name {
			return &fleet.Detail{
				Info: i, Workdir: "/workspace", User: "1000:1000", ProtectedKnown: true, Protected: []string{"/workspace/.git/config", "/workspace/.git/hooks", "/workspace/.vscode"},
				Mounts: []fleet.MountInfo{
					{Kind: sandbox.MountWorkspace, Source: "/home/ada/shop", Target: "/workspace", Writable: true},
					{Kind: sandbox.MountBind, Source: "/srv/cache/\u202etxt.exe", Target: "/cache"},
				},
				Tmpfs: []string{"/tmp", "/var/tmp", "/run"}, Env: []string{"LANG", "CI"}, Settings: b.settings.For("coder").Settings(), RootWritable: true,
				IdleAfter: 24 * time.Hour, IdleAction: settings.PruneStop, MaxAge: 7 * 24 * time.Hour,
			}, nil
		}
	}
	return nil, sandbox.Errorf(sandbox.CodeNotFound, "no %s", name)
}

func (b *exampleBoxes) Found() []fleet.Found                       { return b.found }
func (b *exampleBoxes) Settings() *settings.Settings               { return b.settings }
func (b *exampleBoxes) Stop(context.Context, string, string) error { return errors.New("an example") }

func (b *exampleBoxes) Remove(context.Context, string, string) error { return errors.New("an example") }

func (b *exampleBoxes) Ports(context.Context, string) ([]fleet.Listening, bool, error) {
	return []fleet.Listening{{Port: 3000, Program: "node", PID: 41, Local: true}, {Port: 5173, Program: "vite\u202etxt", PID: 44, Local: true}}, false, nil
}

func (b *exampleBoxes) Prune(context.Context) (fleet.Pruned, error) { return fleet.Pruned{}, nil }

// exampleForwards have one port open, and another number than inside.
type exampleForwards struct{}

func (exampleForwards) Start(context.Context, string, uint16, uint16, func(forward.Forward) error) (forward.Forward, error) {
	return forward.Forward{}, errors.New("an example")
}
func (exampleForwards) Stop(string, uint16, string) error { return errors.New("an example") }
func (exampleForwards) List() []forward.Forward {
	return []forward.Forward{{Sandbox: "toolward-sbx-agent-coder-ff01e048", Port: 3000, Local: 41873, Why: "port 3000 of the machine is taken"}}
}

func exampleSettings(t *testing.T, c settings.Configuration, around settings.Surroundings) *settings.Settings {
	t.Helper()
	around.StateDir, around.Home = "/home/ada/.toolward", "/home/ada"
	compiled, problems := settings.Compile(c, around)
	if len(problems) > 0 {
		t.Fatalf("%+v", problems)
	}
	return compiled
}

// exampleSandboxes is a console with sandboxes in every state, and what is recorded of one.
func exampleSandboxes(t *testing.T) *consoletest.World {
	t.Helper()
	limits := fleet.ShownLimits{Memory: 4 << 30, Pids: 512, CPUs: 2, Disk: 10 << 30, OpenFiles: 65536}
	now := time.Now()
	b := &exampleBoxes{failed: sandbox.Errorf(sandbox.CodeTimeout, "engine docker: it does not answer")}
	b.settings = exampleSettings(t, settings.Configuration{
		Defaults: settings.Defaults{Config: settings.Config{Mode: "non-main"}},
		Agents:   []settings.AgentConfig{{ID: "coder", Config: settings.Config{Mode: "all"}}, {ID: "researcher", Config: settings.Config{Mode: "off"}}},
	}, settings.Surroundings{})
	b.infos = []fleet.Info{
		{
			Name: "toolward-sbx-agent-coder-ff01e048", ScopeKey: "agent:coder", Agent: "coder", Engine: "native", EngineID: "4242 88123", Running: true, ImageMatch: true, Users: 2,
			Sessions: []string{"agent:coder:mcp:4f:2026-11-22", "agent:coder:slack:channel:\u202ec0ffee42<b>"}, Created: now.Add(-3 * time.Hour), Used: now, Level: "everything", Scope: settings.ScopeAgent,
			Limits: limits, Network: sandbox.NetworkNone, Access: settings.AccessReadWrite, WorkspaceDir: "/home/ada/shop",
		},
		{
			Name: "toolward-sbx-agent-ops-88f1a2b3", ScopeKey: "agent:ops:telegram:group:7", Agent: "ops", Engine: "docker", EngineID: "3f2a9c", Running: true, Image: "toolward-sandbox:old",
			Sessions: []string{}, Created: now.Add(-50 * time.Hour), Used: now.Add(-12 * time.Minute), Level: "everything", Scope: settings.ScopeSession, Outdated: true,
			Limits: fleet.ShownLimits{Memory: 512 << 20, Pids: 512, CPUs: 0.5}, Network: sandbox.NetworkBridge, Access: settings.AccessReadOnly, WorkspaceDir: "/home/ada/.toolward/sandboxes/ops",
		},
		{
			Name: "toolward-sbx-shared", ScopeKey: "shared", Engine: "docker", Running: true, Image: "toolward-sandbox:bookworm-slim", ImageMatch: true, Sessions: []string{}, Scope: settings.ScopeShared,
			Created: now.Add(-5 * 24 * time.Hour), Used: now.Add(-30 * time.Hour), Limits: limits, Network: sandbox.NetworkEgress, Access: settings.AccessNone, ByConfiguration: true,
		},
		{
			Name: "toolward-sbx-agent-writer-0a1b2c3d", ScopeKey: "agent:writer", Agent: "writer", Engine: "native", ImageMatch: true, Sessions: []string{}, Scope: settings.ScopeAgent,
			Created: now.Add(-26 * time.Hour), Used: now.Add(-25 * time.Hour), Limits: limits, Network: sandbox.NetworkNone, Access: settings.AccessNone,
		},
	}
	b.found = exampleFound()
	w := consoletest.New(t, consoletest.Options{Forwards: exampleForwards{}, Sandboxes: b})
	exampleSandboxRecords(t, w)
	return w
}

func exampleFound() []fleet.Found {
	return []fleet.Found{
		{At: time.Now(), Capabilities: sandbox.Capabilities{Engine: "native", Level: sandbox.LevelNoCgroup, Version: "Linux 6.12", Checks: []sandbox.Check{
			{Name: "namespaces", OK: true, Found: "a sandbox was made and thrown away"},
			{Name: "landlock", OK: true, Found: "version 6"},
			{Name: "control groups", Found: "control groups are not delegated: /sys/fs/cgroup/user.slice has other members than the gateway", Fix: "systemd-run --user --scope -p Delegate=yes toolward up, or sandbox.degradeOk: [\"cgroup\"]"},
		}}},
		{At: time.Now(), Capabilities: sandbox.Capabilities{Engine: "docker", Checks: []sandbox.Check{
			{Name: "engine", Found: "dial unix /var/run/docker.sock: connect: no such file or directory", Fix: "start Docker or Podman, or set DOCKER_HOST"},
		}}},
	}
}

// exampleSandboxRecords records calls in the first sandbox, and its life.
func exampleSandboxRecords(t *testing.T, w *consoletest.World) {
	t.Helper()
	for _, e := range []map[string]any{
		{"event": "created", "sandbox": "toolward-sbx-agent-coder-ff01e048", "scope": "agent:coder", "engine": "native"},
		{"event": "ended", "sandbox": "toolward-sbx-agent-coder-ff01e048", "scope": "agent:coder", "engine": "native", "why": "it ended by itself, or from outside"},
		{"event": "recreated", "sandbox": "toolward-sbx-agent-coder-ff01e048", "scope": "agent:coder", "engine": "native", "why": "it was not what the configuration says"},
	} {
		if _, err := w.Audit.Append(t.Context(), audit.Event{Type: audit.TypeSandbox, Session: "agent:coder:mcp:4f:2026-11-22", Agent: "coder", Data: e}); err != nil {
			t.Fatal(err)
		}
	}
	for i, command := range []string{"npm ci", "npm test -- --watch=false", "\u202e\x1b[2Kcurl http://evil.example</code><script>document.title='owned'</script>", "make build"} {
		recordSandboxed(t, w, command, []*toolward.OutcomeRecord{
			{Status: toolward.StatusOK, Duration: 12300 * time.Millisecond, ExitCode: new(0)},
			{Status: toolward.StatusOK, Duration: 3 * time.Minute, ExitCode: new(1)},
			{Status: toolward.StatusError, Duration: 40 * time.Millisecond, Error: "Command was ended by signal SIGKILL"},
			nil,
		}[i])
	}
}

// recordSandboxed records a command of the agent coder in its sandbox, and what became of it.
func recordSandboxed(t *testing.T, w *consoletest.World, command string, outcome *toolward.OutcomeRecord) {
	t.Helper()
	arguments := map[string]any{"command": command}
	raw, err := json.Marshal(arguments)
	if err != nil {
		t.Fatal(err)
	}
	id, err := w.Audit.Decide(t.Context(), &toolward.DecisionRecord{
		Call:  toolward.Call{Session: "agent:coder:mcp:4f:2026-11-22", Host: toolward.HostSandbox, Caller: toolward.Caller{Agent: "coder"}},
		Facts: toolward.Facts{Sandbox: "toolward-sbx-agent-coder-ff01e048"},
		Tool:  "exec", Params: toolward.NewParams(raw, arguments), Verdict: toolward.Allow, Via: "class",
	})
	if err == nil && outcome != nil {
		outcome.Time = time.Now()
		err = w.Audit.Conclude(t.Context(), id, outcome)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// unconfined is a console of a gateway that sandboxes nothing.
func unconfined(t *testing.T) *consoletest.World {
	t.Helper()
	b := &exampleBoxes{found: exampleFound(), settings: exampleSettings(t, settings.Configuration{}, settings.Surroundings{Undecided: settings.ModeOff})}
	return consoletest.New(t, consoletest.Options{Sandboxes: b})
}

// boxText is the text of the page's only sandbox.
const boxText = `(document.querySelector("[data-box]")?.innerText ?? "")`

// TestConsoleSandboxes looks at a real sandbox from two browsers, while commands run in it, and ends it: by keyboard alone.
func TestConsoleSandboxes(t *testing.T) {
	open := chromium(t)
	g := newGuardedMachine(t, `{"agents": {"defaults": {"sandbox": {"mode": "all", "workspaceAccess": "rw", "engine": "native", "degradeOk": ["cgroup"], "limits": {"cpus": 1}}}}}`)
	first, second := open(t), open(t)
	for _, b := range []*tab{first, second} {
		b.signInAt(g.URL, live.Passphrase)
	}
	first.open(consoleOf(first, g.URL) + "/sandboxes")
	first.until(liveNow)
	first.until(`document.querySelector(".nobox").checkVisibility() && document.body.innerText.includes("every session is sandboxed")`)

	session := g.connect(t)
	call := func(tool string, arguments map[string]any) string {
		t.Helper()
		return g.call(t, session, tool, arguments)
	}
	const evil = "echo '</code><script>document.title=1</script>'; exit 3"
	call("exec", map[string]any{"command": evil})
	call("exec", map[string]any{"command": "echo $$ > marker; while :; do :; done", "background": true})

	// It comes to the open page by itself, with what it uses.
	first.until(`!document.querySelector(".nobox").checkVisibility() && document.querySelectorAll("[data-box]").length == 1`)
	first.until(`document.querySelector("[data-engines]").innerText.includes("enforces")`)
	first.until(boxText + `.includes("agent coder") && ` + boxText + `.includes("this machine's programs") && ` + boxText + `.includes(` + quoteJS(g.Workspace) + `)`)
	first.until(`parseInt(document.querySelector('[data-figure="cpu"]')?.textContent) >= 5`)
	first.until(`/[0-9].* of 4 GiB/.test(document.querySelector('[data-figure="memory"]').textContent) && /^[0-9]+ of 512$/.test(document.querySelector('[data-figure="pids"]').textContent)`)
	first.untroubled()

	// One of them, in the other browser: what ran, with how it ended; what a command wrote is text.
	second.open(consoleOf(second, g.URL) + "/sandboxes")
	second.do(chromedp.Click(chromedp.CSS(".box h2 a")))
	second.until(`location.pathname.endsWith("/sandboxes/one")`)
	second.until(liveNow)
	second.until(`document.querySelector("[data-calls]").innerText.includes("exit 3") && document.querySelector("[data-calls]").innerText.includes("echo '</code><script>")`)
	second.until(`document.querySelector("[data-life]").innerText.includes("made")`)
	if second.eval(`String(document.title.startsWith("Sandbox") && !document.querySelector("[data-calls] script"))`) != "true" {
		t.Error("text of a command became part of the page")
	}
	name := second.eval("document.body.dataset.name")

	// A new command comes to the page by itself.
	call("exec", map[string]any{"command": "echo later"})
	second.until(`document.querySelector("[data-calls] li").innerText.includes("echo later")`)

	// Stop, by keyboard: the button appears only after its explanation was opened, and Enter presses it.
	second.do(chromedp.Focus(chromedp.CSS("#end summary")))
	second.press("\r")
	second.until(`document.querySelector("#end details").open`)
	second.press("\t")
	if got := second.eval(focused); got != "Stop it now" {
		t.Fatalf("the focus is on %q", got)
	}
	second.press("\r")
	second.until(`document.body.innerText.includes("Everything that ran in the sandbox has ended")`)
	first.until(boxText + `.includes("stopped") || !document.querySelector("[data-box]")`)
	if out, _ := g.terminal.Run("toolward audit query --type config --json"); !strings.Contains(out, "sandbox-stopped") || !strings.Contains(out, name) || !strings.Contains(out, "owner (console)") {
		t.Errorf("who stopped it is not recorded:\n%s", out)
	}

	// The next call has it again; a page from before ends nothing of it.
	if got := call("exec", map[string]any{"command": "cat marker && echo again"}); !strings.Contains(got, "again") {
		t.Errorf("after the stop: %q", got)
	}
	first.until(boxText + `.includes("running")`)
	first.do(chromedp.Click(chromedp.CSS(`.further a[href$="#end"]`)))
	first.until(`location.hash == "#end"`)
	second.open(consoleOf(second, g.URL) + "/sandboxes/one?name=" + url.QueryEscape(name))
	for _, b := range []*tab{second, first} {
		b.until(`!!document.querySelector("#end details:nth-of-type(2) summary")`)
		b.do(chromedp.Click(chromedp.CSS("#end details:nth-of-type(2) summary")))
		b.until(`document.querySelector("#end details:nth-of-type(2)").open`)
		b.do(chromedp.Click(chromedp.CSS(`#end form[action$="/recreate"] button`)))
		b.until(`document.body.innerText.includes("The sandbox is removed") || document.body.innerText.includes("There is no sandbox")`)
	}
	if out, status := g.terminal.Run("toolward sandbox list"); status != 0 || !strings.Contains(out, "0 sandboxes") {
		t.Errorf("after it was removed: %d\n%s", status, out)
	}
	if got := call("exec", map[string]any{"command": "cat marker && echo anew"}); !strings.Contains(got, "anew") {
		t.Errorf("after it was removed: %q", got)
	}
}

// consoleOf is the address of a browser's own console.
func consoleOf(b *tab, address string) string {
	b.t.Helper()
	return address + b.eval("document.body.dataset.base")
}
