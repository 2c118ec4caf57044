package importer_test

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/config"
	"github.com/toolward/toolward/importer"
	"github.com/toolward/toolward/policy"
	"github.com/toolward/toolward/policy/visible"
	"pgregory.net/rapid"
)

// TestMain makes fewer random imports than is usual, unless told: each compiles dozens of policies.
func TestMain(m *testing.M) {
	flag.Parse()
	if checks := flag.Lookup("rapid.checks"); checks.Value.String() == checks.DefValue {
		if err := checks.Value.Set("40"); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}

// names is what lists of random files name.
var names = []string{
	"exec", "read", "write", "web_fetch", "message", "cron", "browser", "memory_get", "session_status", "group:fs", "group:runtime",
	"group:messaging", "group:plugins", "web_*", "*", "lobster", "no_such_tool", "mcp__a__b", "mcp__*", "apply_patch", "bash",
}

func anyNames(t *rapid.T, label string) []string {
	return rapid.SliceOfN(rapid.SampledFrom(names), 0, 4).Draw(t, label)
}

// anyTools draws a section "tools" as both OpenClaw and Toolward write it.
func anyTools(t *rapid.T, label string) map[string]any {
	some := func(what string) bool { return rapid.Bool().Draw(t, label+" has "+what) }
	tools := map[string]any{}
	if some("profile") {
		tools["profile"] = rapid.SampledFrom([]string{"minimal", "coding", "messaging", "full"}).Draw(t, label+" profile")
	}
	if some("allow") {
		tools["allow"] = anyNames(t, label+" allow")
	} else if some("alsoAllow") {
		tools["alsoAllow"] = anyNames(t, label+" alsoAllow")
	}
	if some("deny") {
		tools["deny"] = anyNames(t, label+" deny")
	}
	return tools
}

// anyFile draws a configuration that OpenClaw and Toolward both understand.
func anyFile(t *rapid.T, label string) map[string]any {
	some := func(what string) bool { return rapid.Bool().Draw(t, label+" has "+what) }
	global := anyTools(t, label)
	if some("provider") {
		global["byProvider"] = map[string]any{
			rapid.SampledFrom([]string{"openai", "openai/m", "google"}).Draw(t, label+" provider"): anyTools(t, label+" provider"),
		}
	}
	if some("exec") {
		global["exec"] = map[string]any{
			"security": rapid.SampledFrom([]string{"deny", "allowlist", "full"}).Draw(t, label+" security"),
			"ask":      rapid.SampledFrom([]string{"off", "on-miss", "always"}).Draw(t, label+" ask"),
		}
	}
	if some("sandbox") {
		global["sandbox"] = map[string]any{"tools": map[string]any{"allow": anyNames(t, label+" sandbox"), "deny": anyNames(t, label+" sandbox deny")}}
	}
	if some("subagents") {
		global["subagents"] = map[string]any{"tools": map[string]any{"allow": anyNames(t, label+" subagents"), "deny": anyNames(t, label+" subagents deny")}}
	}
	file := map[string]any{"tools": global}
	if some("agent") {
		file["agents"] = map[string]any{"list": []any{map[string]any{"id": "work", "tools": anyTools(t, label+" agent")}}}
	}
	if some("group") {
		group := map[string]any{"tools": anyLists(t, label+" group")}
		if some("sender") {
			group["toolsBySender"] = map[string]any{"id:5": anyLists(t, label+" sender")}
		}
		id := rapid.SampledFrom([]string{"g", "*", "h"}).Draw(t, label+" group id")
		file["channels"] = map[string]any{"slack": map[string]any{"groups": map[string]any{id: group}}}
	}
	return file
}

func anyLists(t *rapid.T, label string) map[string]any {
	tools := anyTools(t, label)
	delete(tools, "profile")
	return tools
}

// anyone draws a caller without regard to what the guard looks at.
func anyone(t *rapid.T) toolward.Caller {
	pick := func(label string, of ...string) string { return rapid.SampledFrom(of).Draw(t, label) }
	c := toolward.Caller{
		Agent: pick("agent", "work", "other", "claude-code", "codex", "gemini"), Owner: rapid.Bool().Draw(t, "owner"), Provider: pick("caller's provider", "", "openai", "google"), Model: pick("model", "", "m", "n"),
		Sandboxed: rapid.Bool().Draw(t, "sandboxed"), Depth: rapid.IntRange(0, 3).Draw(t, "depth"),
		Surface: toolward.Surface(pick("surface", "agent", "http")),
	}
	if c.Depth > 0 {
		c.Context = "subagent"
	}
	if group := pick("group", "", "g", "h", "i"); group != "" {
		c.Channel, c.Group, c.Sender = "slack", group, pick("sender", "", "5", "6")
	}
	return c
}

// notLooser compares two configuration files by what a caller may do under each.
func notLooser(t *rapid.T, tools []*toolward.Tool, before, after string) {
	compile := func(source string) *policy.Snapshot {
		loaded, err := config.Parse("toolward.jsonc", []byte(source))
		if err != nil {
			t.Fatalf("%v in\n%s", err, source)
		}
		c := loaded.File.Policy()
		c.Around = around
		snapshot, _, err := policy.Compile(c, tools)
		if err != nil {
			t.Fatalf("%v in\n%s", err, source)
		}
		return snapshot
	}
	was, is := compile(before), compile(after)
	for range 20 {
		c := anyone(t)
		seen := was.Tools(c)
		for _, tool := range is.Tools(c) {
			if !slices.Contains(seen, tool) {
				t.Fatalf("%+v gets %s by the import\nbefore:\n%s\nafter:\n%s", c, tool.Name, before, after)
			}
		}
		for _, name := range []string{"exec", "read", "web_fetch", "mcp__a__b", "mcp__c__d"} {
			form := formOf(name)
			now, _ := is.Adopt(c, form)
			then, _ := was.Adopt(c, form)
			if now != nil && then == nil {
				t.Fatalf("%+v gets %s by the import\nbefore:\n%s\nafter:\n%s", c, name, before, after)
			}
			r := &toolward.Request{
				Call: toolward.Call{Tool: name, Caller: c, Host: toolward.HostGateway}, Tool: form,
				Params: toolward.NewParams([]byte("{}"), map[string]any{}), Level: rapid.SampledFrom([]toolward.Level{toolward.Normal, toolward.Elevated, toolward.Lockdown}).Draw(t, "level"),
			}
			if x, y := was.Judge(r).Verdict, is.Judge(r).Verdict; toolward.Stricter(x, y) != y {
				t.Fatalf("%+v: %s is %s instead of %s\nbefore:\n%s\nafter:\n%s", c, name, y, x, before, after)
			}
		}
	}
}

// formOf is a client's tool as the bridge puts it: known ones under Toolward's names, others under the client's.
func formOf(name string) *toolward.Tool {
	form := &toolward.Tool{Name: name, Schema: json.RawMessage(`{"type":"object"}`)}
	if strings.ContainsAny(name, "/") || strings.HasPrefix(name, "mcp__") {
		form.Plugin = "client"
	}
	return form
}

// lawTools are the gateway's tools, those of the catalog, and some of plug-ins.
func lawTools(t testing.TB) []*toolward.Tool {
	var tools []*toolward.Tool
	for _, tool := range gatewayTools(t) {
		tools = append(tools, &toolward.Tool{Name: tool.Name, Schema: json.RawMessage(`{"type":"object"}`)})
	}
	schema := json.RawMessage(`{"type":"object"}`)
	for _, name := range visible.CoreTools() {
		if !slices.ContainsFunc(tools, func(t *toolward.Tool) bool { return t.Name == name }) {
			tools = append(tools, &toolward.Tool{Name: name, Schema: schema})
		}
	}
	return append(tools, &toolward.Tool{Name: "fish", Plugin: "lobster", Schema: schema}, &toolward.Tool{Name: "web_thing", Plugin: "other", Schema: schema})
}

// TestImportOnlyTightens: whatever the source and whatever stands in the file, nobody may do more after an import.
func TestImportOnlyTightens(t *testing.T) {
	tools := lawTools(t)
	home := t.TempDir()
	path := filepath.Join(home, ".openclaw", "openclaw.json")
	writeFile(t, path, "{}")
	rapid.Check(t, func(t *rapid.T) {
		before := "{}"
		if rapid.Bool().Draw(t, "into a file") {
			raw, err := json.Marshal(anyFile(t, "file"))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := config.Parse("x", raw, config.CheckPolicy(tools, around)); err == nil {
				before = string(raw)
			}
		}
		source, err := json.Marshal(anyFile(t, "source"))
		if err != nil {
			t.Fatal(err)
		}
		importInto(t, tools, importer.OpenClaw, home, path, string(source), before)
	})
}

func importInto(t *rapid.T, tools []*toolward.Tool, product, home, path, source, before string) {
	if err := os.WriteFile(path, []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	plan, err := importer.Read(product, "", importer.Where{Home: home, System: home})
	if err != nil {
		t.Fatal(err)
	}
	merged, err := plan.Merge("toolward.jsonc", []byte(before), gatewayToolsOf(tools), around)
	if err != nil {
		t.Fatalf("%v\nsource: %s\nbefore: %s", err, source, before)
	}
	notLooser(t, tools, before, string(merged.Source))
}

// gatewayToolsOf leaves the plug-ins out: an import does not know them.
func gatewayToolsOf(tools []*toolward.Tool) []*toolward.Tool {
	return slices.DeleteFunc(slices.Clone(tools), func(t *toolward.Tool) bool { return t.Plugin != "" })
}

// TestClientImportsOnlyTighten is the same for the products that Toolward stands in front of.
func TestClientImportsOnlyTighten(t *testing.T) {
	tools := lawTools(t)
	home := t.TempDir()
	rules := []string{"Bash", "Read", "Edit(src/**)", "WebFetch", "mcp__a", "mcp__a__b", "mcp__*", "mcp__a__b*", "CronDelete", "Other", "*", "Task", "Glob"}
	rapid.Check(t, func(t *rapid.T) {
		list := func(label string) []string { return rapid.SliceOfN(rapid.SampledFrom(rules), 0, 4).Draw(t, label) }
		settings, err := json.Marshal(map[string]any{
			"permissions":       map[string]any{"allow": list("allow"), "ask": list("ask"), "deny": list("deny"), "defaultMode": "bypassPermissions"},
			"allowedMcpServers": []any{map[string]any{"serverName": rapid.SampledFrom([]string{"a", "c"}).Draw(t, "server")}},
		})
		if err != nil {
			t.Fatal(err)
		}
		class := rapid.SampledFrom([]string{"safe", "needs_approval", "blocked"})
		key := rapid.SampledFrom([]string{"mcp__*", "mcp__a__*", "mcp__a__b", "read.grep", "exec", "web_*", "cron.remove"})
		classes := rapid.MapOfN(key, class, 0, 3)
		before, err := json.Marshal(map[string]any{
			"teg":    map[string]any{"tools": classes.Draw(t, "classes")},
			"agents": map[string]any{"list": []any{map[string]any{"id": "claude-code", "teg": map[string]any{"tools": classes.Draw(t, "agent's classes")}, "tools": anyTools(t, "agent")}}},
		})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := config.Parse("x", before, config.CheckPolicy(gatewayToolsOf(tools), around)); err != nil {
			t.Skip("not a sound file")
		}
		path := filepath.Join(home, ".claude", "settings.json")
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		importInto(t, tools, importer.ClaudeCode, home, path, string(settings), string(before))
	})
}

// TestDenied: what a source denies nobody gets after the import, and what it asks about is asked about.
func TestDenied(t *testing.T) {
	merged, err := merge(t, importer.ClaudeCode, filepath.Join("testdata", "claude-code"), "")
	if err != nil {
		t.Fatal(err)
	}
	loaded, err := config.Parse("x", merged.Source)
	if err != nil {
		t.Fatal(err)
	}
	c := loaded.File.Policy()
	c.Around = around
	snapshot, _, err := policy.Compile(c, gatewayTools(t))
	if err != nil {
		t.Fatal(err)
	}
	caller := toolward.Caller{Agent: "claude-code", Owner: true}
	for name, want := range map[string]string{
		"exec": "hidden", "web_fetch": "hidden", "claude-code/webfetch": "hidden", "mcp__mail__send": "hidden", "mcp__files__delete_all": "hidden",
		"mcp__files__list": "ask", "mcp__github__merge": "ask", "mcp__unknown__tool": "deny", "web_search": "ask", "read": "ask", "claude-code/somethingnew": "hidden",
	} {
		form := formOf(name)
		got := "hidden"
		if tool, _ := snapshot.Adopt(caller, form); tool != nil {
			got = snapshot.Judge(&toolward.Request{
				Call: toolward.Call{Tool: name, Caller: caller, Host: toolward.HostGateway}, Tool: tool, Params: toolward.NewParams([]byte("{}"), map[string]any{}),
			}).Verdict.String()
		}
		if got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}
