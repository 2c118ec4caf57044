package live_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/toolward/toolward"
	"github.com/toolward/toolward/internal/consoletest"
	"github.com/toolward/toolward/policy"
	"github.com/toolward/toolward/policy/visible"
)

// fiveAgents is a policy of five agents and thirty tools: those that Toolward ships, and those of four MCP servers.
func fiveAgents(t *testing.T) *policy.Snapshot {
	t.Helper()
	var tools []*toolward.Tool
	add := func(plugin string, names ...string) {
		for _, name := range names {
			tools = append(tools, &toolward.Tool{Name: name, Plugin: plugin, Schema: json.RawMessage(`{"type":"object"}`)})
		}
	}
	add("", "read", "write", "edit", "apply_patch", "exec", "process", "list", "search", "message", "cron")
	add("github", "github__create_issue", "github__create_pull_request", "github__delete_branch", "github__get_file", "github__list_issues", "github__merge", "github__search_code")
	add("postgres", "postgres__execute", "postgres__explain", "postgres__list_tables", "postgres__query")
	add("slack", "slack__history", "slack__post_message", "slack__search", "slack__upload")
	add("browser-tools", "browser-tools__click", "browser-tools__open", "browser-tools__screenshot", "browser-tools__type", "browser-tools__wait_for_network_idle")
	if len(tools) != 30 {
		t.Fatalf("%d tools", len(tools))
	}
	s, _, err := policy.Compile(policy.Config{
		Tools: visible.Tools{Deny: []string{"*__delete_*"}},
		TEG: policy.TEG{
			Preset: policy.PresetWorkspace, MCP: map[string]policy.MCPServer{"github": {}},
			Tools: map[string]string{"postgres__execute": "blocked", "postgres__list_tables": "safe", "github__get_file": "safe", "message.broadcast": "blocked"},
		},
		Agents: []policy.Agent{
			{ID: "coder", Tools: visible.Tools{Profile: "coding", AlsoAllow: []string{"github", "list", "search"}, SelfLimit: []string{"github__merge"}}},
			{ID: "release-manager", Tools: visible.Tools{Allow: []string{"group:fs", "exec", "github", "slack__post_message", "not_a_tool"}, Deny: []string{"write"}}},
			{ID: "analyst", Tools: visible.Tools{Allow: []string{"read", "list", "search", "postgres"}}},
			{ID: "support", Tools: visible.Tools{Profile: "messaging", AlsoAllow: []string{"slack"}}, TEG: policy.AgentTEG{Tools: map[string]string{"slack__*": "needs_approval", "message.send": "blocked"}}},
			{ID: "intern", Tools: visible.Tools{Allow: []string{"read"}, Exec: visible.Exec{Security: "deny"}}},
		},
	}, tools)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// screens are the two widths in both color schemes.
func screens(visit func(name string, width, height int64, scheme string)) {
	for _, scheme := range []string{"light", "dark"} {
		visit("phone-"+scheme, 390, 844, scheme)
		visit("desktop-"+scheme, 1440, 900, scheme)
	}
}

// policyPages are the pages about the tool policy, with five agents and thirty tools.
func policyPages(t *testing.T, open func(*testing.T) *tab) (pages []consolePage) {
	t.Helper()
	w := consoletest.New(t, consoletest.Options{Policy: fiveAgents(t)})
	b := open(t)
	b.signIn(w)
	base := w.URL + b.eval("document.body.dataset.base")
	for _, p := range []struct{ name, path string }{
		{"matrix", "/tools"},
		{"matrix-lockdown", "/tools?level=lockdown&agent=support"},
		{"cell", "/tools/one?agent=coder&tool=write"},
		{"cell-hidden", "/tools/one?agent=release-manager&tool=write"},
		{"cell-message", "/tools/one?agent=support&tool=message"},
		{"layers", "/tools/layers?agent=release-manager"},
		{"layers-sandbox", "/tools/layers?agent=coder&as=sandbox"},
	} {
		pages = append(pages, consolePage{p.name, base + p.path, b})
	}
	return pages
}

// TestConsolePolicyLooks opens the pages about the tool policy at both widths, light and dark.
func TestConsolePolicyLooks(t *testing.T) {
	pages := policyPages(t, chromium(t))
	screens(func(name string, width, height int64, scheme string) {
		for _, p := range pages {
			p.tab.size(width, height, scheme)
			p.tab.open(p.address)
			p.tab.do(chromedp.WaitVisible(chromedp.CSS("main")))
			p.tab.shoot(p.name + "-" + name)
			if faults := p.tab.eval(measure); faults != "" {
				t.Errorf("%s-%s:\n%s", p.name, name, faults)
			}
		}
	})
	pages[0].tab.untroubled()
}

// TestConsoleMatrix reads the matrix in a real browser: what the cells say is what the policy says, and each leads to
// the trace of that very agent and tool.
func TestConsoleMatrix(t *testing.T) {
	open := chromium(t)
	snapshot := fiveAgents(t)
	w := consoletest.New(t, consoletest.Options{Policy: snapshot})
	b := open(t)
	b.signIn(w)
	base := w.URL + b.eval("document.body.dataset.base")

	t.Run("every cell says what the policy says", func(t *testing.T) {
		b.open(base + "/tools")
		var shown map[string][]string
		text := b.eval(`JSON.stringify(Object.fromEntries([...document.querySelectorAll("tr[data-find]")].map((row) => [
			row.querySelector("th .mono").textContent,
			[...row.querySelectorAll("td")].map((cell) => [...cell.querySelectorAll(".mark")].map((mark) => mark.lastChild.textContent).join(" "))])))`)
		if err := json.Unmarshal([]byte(text), &shown); err != nil {
			t.Fatal(err)
		}
		agents := append(snapshot.AgentIDs(), "")
		cells := 0
		for _, known := range snapshot.KnownTools() {
			for i, agent := range agents {
				o := snapshot.Forecast(toolward.Caller{Agent: agent}, known.Name, toolward.Normal)
				var want []string
				for _, end := range []struct {
					word     string
					possible bool
				}{{"hidden", !o.Visible}, {"allowed", o.Possible.Allow}, {"asks", o.Possible.Ask}, {"denied", o.Possible.Deny}} {
					if end.possible {
						want = append(want, end.word)
					}
				}
				if got := shown[known.Name]; len(got) != len(agents) || got[i] != strings.Join(want, " ") {
					t.Errorf("%s for %q: shown %v, want %v", known.Name, agent, got, want)
				}
				cells++
			}
		}
		if cells < 5*30 {
			t.Errorf("only %d cells", cells)
		}
	})
	t.Run("head and first column stay", func(t *testing.T) {
		b.size(1000, 700, "light")
		b.open(base + "/tools")
		b.eval(`document.querySelector(".grid").scrollTo(300, 900)`)
		where := b.eval(`(() => { const box = document.querySelector(".grid").getBoundingClientRect(), head = document.querySelector("thead th:nth-child(3)").getBoundingClientRect(),
			tool = [...document.querySelectorAll("tbody th.tool")].at(-1).getBoundingClientRect();
			return [document.querySelector(".grid").scrollTop > 0, Math.abs(head.top - box.top) < 3, Math.abs(tool.left - box.left) < 3].join(" ") })()`)
		if where != "true true true" {
			t.Errorf("scrolled, head, column: %s", where)
		}
		b.size(1440, 900, "light")
	})
	t.Run("by keyboard: find, open the trace, go back", func(t *testing.T) {
		b.open(base + "/tools")
		b.do(chromedp.Focus(chromedp.CSS("input[data-find]")))
		b.press("postgres__exec")
		b.until(`document.querySelector("[data-shown]").textContent == "1"`)
		b.until(`[...document.querySelectorAll("tr[data-find]")].filter((row) => row.checkVisibility()).length == 1`)
		for range 40 {
			if b.eval(`document.activeElement.classList.contains("cell")`) == "true" {
				break
			}
			b.press("\t")
		}
		href := b.eval(`document.activeElement.getAttribute("href")`)
		if !strings.HasSuffix(href, "/tools/one?agent=analyst&tool=postgres__execute") {
			t.Fatalf("the first cell leads to %s", href)
		}
		b.press("\r")
		b.until(`document.querySelector("h1")?.textContent == "postgres__execute for analyst"`)
		if row := b.eval(`document.querySelector(".case").textContent`); !strings.Contains(row, "denied") || !strings.Contains(row, "postgres__execute") || !strings.Contains(row, "teg.tools") {
			t.Errorf("the row does not say what changed it: %s", row)
		}
	})
	t.Run("the trace names the first remover and the key", func(t *testing.T) {
		b.open(base + "/tools/one?agent=release-manager&tool=write")
		if got := b.eval(`document.querySelector(".trace .first .label").textContent`); got != "tools.agent (release-manager)" {
			t.Errorf("first remover %q", got)
		}
		if got := b.eval(`document.querySelector(".notice").textContent`); !strings.Contains(got, "edit agents.list[1].tools.deny") {
			t.Errorf("the key: %q", got)
		}
	})
	t.Run("on a phone one agent at a time", func(t *testing.T) {
		b.size(390, 844, "light")
		b.open(base + "/tools")
		for _, agent := range []string{"analyst", "support", "any other agent"} {
			b.do(chromedp.Click(chromedp.Search(fmt.Sprintf(`//nav[@class="pick"]/a[normalize-space()=%q]`, agent))))
			b.until(fmt.Sprintf(`document.querySelector(".pick [aria-current]")?.textContent == %q`, agent))
			if n := b.eval(`[...document.querySelectorAll("tr[data-find]:first-of-type td, tr[data-find] td")].filter((cell) => cell.checkVisibility()).length / document.querySelectorAll("tr[data-find]").length`); n != "1" {
				t.Errorf("%s: %s cells a tool", agent, n)
			}
		}
		b.size(1440, 900, "light")
	})
	b.untroubled()
}

// TestConsoleMatrixWithoutScript finds a tool by the form and opens its trace with script switched off.
func TestConsoleMatrixWithoutScript(t *testing.T) {
	open := chromium(t)
	w := consoletest.New(t, consoletest.Options{Policy: fiveAgents(t)})
	b := open(t)
	b.signIn(w)
	base := w.URL + b.eval("document.body.dataset.base")
	if _, err := chromedp.Call(b.ctx, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true}); err != nil {
		t.Fatal(err)
	}
	b.open(base + "/tools")
	b.do(chromedp.SendKeys(chromedp.CSS("input[name=q]"), "slack__post\r"))
	b.do(chromedp.WaitVisible(chromedp.Search(`//span[@data-shown][text()="1"]`)))
	b.do(chromedp.Click(chromedp.CSS(`tr[data-find]:not([hidden]) td:nth-child(6) a`)))
	b.do(chromedp.WaitVisible(chromedp.Search(`//h1[contains(., "slack__post_message for support")]`)))
}

// TestConsoleHostileNames lets names of agents, tools, plug-ins' descriptions and sessions try to run script in a real
// browser, on every page that shows them.
func TestConsoleHostileNames(t *testing.T) {
	open := chromium(t)
	const script = `"><script>pwned=1</script><img/src=x/onerror=pwned=2>`
	snapshot, _, err := policy.Compile(policy.Config{
		Tools:  visible.Tools{Deny: []string{script}},
		Agents: []policy.Agent{{ID: script, Tools: visible.Tools{Allow: []string{"read", script}}, TEG: policy.AgentTEG{Tools: map[string]string{"read." + script: "blocked"}}}},
	}, []*toolward.Tool{{Name: "read", Description: script, Schema: json.RawMessage(`{"type":"object"}`)}, {Name: "a__b", Plugin: "a", Description: script, Schema: json.RawMessage(`{"type":"object"}`)}})
	if err != nil {
		t.Fatal(err)
	}
	w := consoletest.New(t, consoletest.Options{Policy: snapshot})
	key := toolward.SessionKey("agent:coder:" + script)
	if err := w.Levels.Expose(t.Context(), key, toolward.Exposure{External: []string{script}}); err != nil {
		t.Fatal(err)
	}
	b := open(t)
	b.signIn(w)
	base := w.URL + b.eval("document.body.dataset.base")
	q := url.Values{"agent": {script}, "tool": {"read"}, "model": {script}, "session": {string(key)}, "q": {script}, "text": {script}}.Encode()
	for _, path := range []string{"/tools", "/tools?" + q, "/tools/one?" + q, "/tools/layers?" + q, "/sessions", "/sessions/one?" + q, "/anomalies?" + q} {
		b.open(base + path)
		b.do(chromedp.WaitVisible(chromedp.CSS("main h1")))
		if got := b.eval(`[typeof pwned, document.querySelectorAll("main script, main img").length].join(" ")`); got != "undefined 0" {
			t.Errorf("%s: %s", path, got)
		}
		if !strings.Contains(b.eval(`document.body.innerText + document.body.innerHTML`), "pwned") && path != "/anomalies?"+q {
			t.Errorf("%s does not show the name, so that nothing was tried", path)
		}
	}
	b.untroubled()
}

// TestConsoleClearByKeyboard makes a session forget what it has seen, without a mouse: the browser itself insists on
// the tick.
func TestConsoleClearByKeyboard(t *testing.T) {
	open := chromium(t)
	w := consoletest.New(t, consoletest.Options{})
	key := toolward.SessionKey("agent:coder:main")
	if err := w.Levels.Expose(t.Context(), key, toolward.Exposure{External: []string{"https://example.org/page"}}); err != nil {
		t.Fatal(err)
	}
	b := open(t)
	b.signIn(w)
	b.open(w.URL + b.eval("document.body.dataset.base") + "/sessions")
	b.do(chromedp.Focus(chromedp.CSS("table a")))
	b.press("\r")
	b.until(`!!document.querySelector("input[name=read]")`)
	b.do(chromedp.Focus(chromedp.CSS("input[name=read]")))
	b.press("\t\r") // the button, without the tick
	if o, err := w.Levels.Overview(t.Context(), key); err != nil || !o.External {
		t.Fatalf("cleared without the tick: %+v, %v", o, err)
	}
	b.do(chromedp.Focus(chromedp.CSS("input[name=read]")))
	b.press(" \t\r")
	b.until(`!!document.querySelector(".signals") && !document.querySelector("input[name=read]")`)
	if o, err := w.Levels.Overview(t.Context(), key); err != nil || o.External {
		t.Errorf("not cleared: %+v, %v", o, err)
	}
	b.untroubled()
}
