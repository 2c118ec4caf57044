package importer_test

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/bridge"
	"github.com/toolward/toolward/builtin"
	"github.com/toolward/toolward/importer"
	"github.com/toolward/toolward/place"
	"github.com/toolward/toolward/policy"
)

var update = flag.Bool("update", false, "write the golden files anew")

var products = []string{importer.OpenClaw, importer.ClaudeCode, importer.Codex, importer.Gemini}

func gatewayTools(t testing.TB) []*toolward.Tool {
	t.Helper()
	tools, err := builtin.New(builtin.Config{}, builtin.Deps{Places: func(toolward.Caller) (*place.Classifier, error) { return nil, errors.New("not needed") }})
	if err != nil {
		t.Fatal(err)
	}
	return tools.Tools()
}

var around = policy.Surroundings{ClientTools: bridge.ToolNames()}

// merge imports the files of a home into a configuration.
func merge(t testing.TB, product, home, source string) (*importer.Merged, error) {
	t.Helper()
	plan, err := importer.Read(product, "", importer.Where{Home: home, System: filepath.Join(home, "etc")})
	if err != nil {
		return nil, err
	}
	return plan.Merge("toolward.jsonc", []byte(source), gatewayTools(t), around)
}

// TestProducts imports a home of each product that uses everything that is read.
func TestProducts(t *testing.T) {
	for _, product := range products {
		t.Run(product, func(t *testing.T) {
			merged, err := merge(t, product, filepath.Join("testdata", product), "")
			if err != nil {
				t.Fatal(err)
			}
			var got bytes.Buffer
			got.Write(merged.Source)
			for _, change := range merged.Changes {
				fmt.Fprintf(&got, "\ncarried over: %s: %s → %s = %v", change.From, change.Says, change.Key, change.Value)
			}
			got.WriteByte('\n')
			for _, loss := range merged.Losses {
				fmt.Fprintf(&got, "\nnot carried over: %s", loss)
			}
			got.WriteByte('\n')
			for _, secret := range []string{"not-for-reports", "kept-secret", "sk-ant-api03"} {
				if strings.Contains(got.String(), secret) {
					t.Errorf("the report shows the secret %q", secret)
				}
			}
			compareGolden(t, filepath.Join("testdata", product+".golden"), got.Bytes())

			again, err := merge(t, product, filepath.Join("testdata", product), string(merged.Source))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(merged.Source), string(again.Source)); diff != "" {
				t.Errorf("importing the same again changes the file (-once +twice):\n%s", diff)
			}
		})
	}
}

func compareGolden(t *testing.T, path string, got []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}

// TestMalformed: a source that cannot be read gives nothing but its place.
func TestMalformed(t *testing.T) {
	for _, test := range []struct{ product, file, content, want string }{
		{importer.ClaudeCode, ".claude/settings.json", "{\n  \"permissions\": {,}\n}", ":2:19: "},
		{importer.ClaudeCode, ".claude/settings.json", "[1]", ":1:1: the file is not an object"},
		{importer.ClaudeCode, ".claude/settings.json", "{\"a\": 1,\n \"a\": 2}", `:2:2: the name "a" stands twice in one object`},
		{importer.OpenClaw, ".openclaw/openclaw.json", "{\n  tools: {deny: ['a' 'b']}\n}", ":2:22: "},
		{importer.OpenClaw, ".openclaw/openclaw.json", "{tools: {}", ":1:"},
		{importer.OpenClaw, ".openclaw/openclaw.json", strings.Repeat("[", 100) + strings.Repeat("]", 100), ":1:"},
		{importer.Codex, ".codex/config.toml", "model = 1\nmodel = 2\n", ":2:1: "},
		{importer.Codex, ".codex/config.toml", "a = \"x\n", ":1:"},
		{importer.Gemini, ".gemini/settings.json", "{\"tools\": nope}", ":1:11: "},
		{importer.Gemini, ".gemini/policies/p.toml", "\n[[rule]\n", ":2:"},
	} {
		home := t.TempDir()
		path := filepath.Join(home, test.file)
		writeFile(t, path, test.content)
		_, err := merge(t, test.product, home, "")
		if _, ok := errors.AsType[*importer.Malformed](err); !ok || !strings.HasPrefix(err.Error(), path+test.want) {
			t.Errorf("%s %q: got %v, want %s%s…", test.product, test.content, err, path, test.want)
		}
	}
}

func writeFile(t testing.TB, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestNothingThere(t *testing.T) {
	for _, product := range products {
		if _, err := importer.Read(product, "", importer.Where{Home: t.TempDir()}); err == nil || !strings.Contains(err.Error(), "no settings of "+product) {
			t.Errorf("%s: %v", product, err)
		}
	}
	if _, err := importer.Read("cursor", "", importer.Where{}); err == nil {
		t.Error("an unknown product was read")
	}
}

// TestProject reads the settings of a project besides the user's, and one file alone.
func TestProject(t *testing.T) {
	home, project := t.TempDir(), t.TempDir()
	writeFile(t, filepath.Join(home, ".claude/settings.json"), `{"permissions": {"deny": ["WebFetch"]}}`)
	writeFile(t, filepath.Join(project, ".claude/settings.json"), `{"permissions": {"deny": ["WebSearch"]}}`)
	local := filepath.Join(project, ".claude/settings.local.json")
	writeFile(t, local, `{"permissions": {"deny": ["Agent"]}}`)
	for path, files := range map[string]int{"": 1, project: 3, filepath.Join(project, ".claude"): 3, local: 1} {
		plan, err := importer.Read(importer.ClaudeCode, "", importer.Where{Home: home, Path: path})
		if err != nil || len(plan.Files) != files {
			t.Errorf("%q: %v, %v; want %d files", path, plan, err, files)
		}
	}
}

// TestIntoAFile merges into files that say something already.
func TestIntoAFile(t *testing.T) {
	for _, test := range []struct{ name, product, file, settings, source, want, lost string }{
		{
			"comments stay, lists grow", importer.ClaudeCode, ".claude/settings.json", `{"permissions": {"deny": ["WebFetch", "WebSearch"]}}`,
			"{\n\t// mine\n\t\"agents\": {\n\t\t\"list\": [\n\t\t\t{\n\t\t\t\t\"id\":    \"Claude-Code\", // as in the hook\n\t\t\t\t\"tools\": {\"deny\": [\"web_fetch\" /* no */]},\n\t\t\t},\n\t\t],\n\t},\n}\n",
			"{\n\t// mine\n\t\"agents\": {\n\t\t\"list\": [\n\t\t\t{\n\t\t\t\t\"id\": \"Claude-Code\", // as in the hook\n\t\t\t\t\"tools\": {\n\t\t\t\t\t\"deny\": [\"web_fetch\", \"claude-code/webfetch\", \"web_search\", \"claude-code/websearch\" /* no */ ],\n\t\t\t\t},\n\t\t\t},\n\t\t],\n\t},\n}\n", "",
		},
		{
			"an allow list gets narrower", importer.OpenClaw, ".openclaw/openclaw.json", `{tools: {allow: ['group:fs', 'web_*']}}`,
			`{"tools": {"allow": ["read", "exec", "web_fetch", "message"]}}`, `{"tools": {"allow": ["read", "web_fetch", "apply_patch"]}}` + "\n", "", // who may use exec may use apply_patch
		},
		{
			"nothing in common", importer.OpenClaw, ".openclaw/openclaw.json", `{tools: {allow: ['message']}}`,
			`{"tools": {"allow": ["read"]}}`, `{"tools": {"allow": ["read"]}}`, "nothing in common",
		},
		{
			"a wider profile", importer.OpenClaw, ".openclaw/openclaw.json", `{tools: {profile: 'coding'}}`,
			`{"tools": {"profile": "minimal"}}`, `{"tools": {"profile": "minimal"}}`, "would get",
		},
		{
			"more than the profile", importer.OpenClaw, ".openclaw/openclaw.json", `{tools: {alsoAllow: ['exec']}}`,
			`{"tools": {"profile": "minimal"}}`, `{"tools": {"profile": "minimal"}}`, "would get apply_patch",
		},
		{
			"a group that hides the entry for all others", importer.OpenClaw, ".openclaw/openclaw.json", `{channels: {slack: {groups: {g: {tools: {deny: ['cron']}}}}}}`,
			`{"channels": {"slack": {"groups": {"*": {"tools": {"allow": ["read"]}}}}}}`, `{"channels": {"slack": {"groups": {"*": {"tools": {"allow": ["read"]}}}}}}`, "in group g of slack would get",
		},
		{
			"a model that hides its provider", importer.OpenClaw, ".openclaw/openclaw.json", `{tools: {byProvider: {'openai/x': {deny: ['cron']}}}}`,
			`{"tools": {"byProvider": {"openai": {"deny": ["exec"]}}}}`, `{"tools": {"byProvider": {"openai": {"deny": ["exec"]}}}}`, "with openai/x would get exec",
		},
		{
			"a key more precise than a block", importer.ClaudeCode, ".claude/settings.json", `{"permissions": {"ask": ["mcp__a__b"]}}`,
			`{"agents": {"list": [{"id": "claude-code", "teg": {"tools": {"mcp__*": "blocked"}}}]}}`,
			`{"agents": {"list": [{"id": "claude-code", "teg": {"tools": {"mcp__*": "blocked"}}}]}}`, "ask instead of deny",
		},
		{
			"commands", importer.OpenClaw, ".openclaw/openclaw.json", `{tools: {exec: {security: 'full', ask: 'always'}}}`,
			`{"tools": {"exec": {"ask": "on-miss"}}}`, `{"tools": {"exec": {"ask": "always"}}}` + "\n", "security full instead of allowlist",
		},
		{
			"stream filters", importer.OpenClaw, ".openclaw/openclaw.json", `{tools: {exec: {safeBins: ['jq', 'wc'], strictInlineEval: true, safeBinTrustedDirs: ['/opt']}}}`,
			`{"tools": {"exec": {"strictInlineEval": false}}}`, `{"tools": {"exec": {"strictInlineEval": true, "safeBins": ["wc"]}}}` + "\n", "safeBins: jq",
		},
		{
			"stream filters that are off", importer.OpenClaw, ".openclaw/openclaw.json", `{tools: {exec: {safeBins: ['wc'], strictInlineEval: false}}}`,
			`{"tools": {"exec": {"safeBins": []}}}`, `{"tools": {"exec": {"safeBins": []}}}`, "commands of agent someone-else would run that ask",
		},
		{
			"half of a list", importer.OpenClaw, ".openclaw/openclaw.json", `{tools: {subagents: {tools: {allow: ['read', 'memory_get']}}}}`,
			`{}`, `{"tools": {"subagents": {"tools": {"allow": ["read"]}}}}` + "\n", "memory_get",
		},
		{
			"an open sandbox", importer.OpenClaw, ".openclaw/openclaw.json", `{tools: {sandbox: {tools: {allow: [], deny: []}}}}`,
			`{}`, `{}`, "an empty list would open",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			home := t.TempDir()
			writeFile(t, filepath.Join(home, test.file), test.settings)
			merged, err := merge(t, test.product, home, test.source)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, string(merged.Source)); diff != "" {
				t.Errorf("file (-want +got):\n%s", diff)
			}
			lost := fmt.Sprint(merged.Losses)
			if test.lost == "" && len(merged.Losses) > 0 || !strings.Contains(lost, test.lost) {
				t.Errorf("not carried over: %s; want %q", lost, test.lost)
			}
		})
	}
}

// TestUnsoundConfiguration: an import never touches a file that is wrong.
func TestUnsoundConfiguration(t *testing.T) {
	home := t.TempDir()
	writeFile(t, filepath.Join(home, ".claude/settings.json"), `{"permissions": {"deny": ["WebFetch"]}}`)
	if _, err := merge(t, importer.ClaudeCode, home, `{"tools": {"profile": "nope"}}`); err == nil || !strings.Contains(err.Error(), "toolward.jsonc:1:") {
		t.Errorf("got %v", err)
	}
}

// Whoever wrote a project's settings must not keep the import busy for hours. No clock stops it here, which would only measure
// the machine: a reader that takes the square of the length does not end within the time that tests have.
func TestWideAndDeepFilesAreReadInTime(t *testing.T) {
	t.Parallel()
	const wide, deep = 1 << 18, 4<<20 - 100
	path := filepath.Join(t.TempDir(), "settings.json")
	writeFile(t, path, `{"permissions": {"deny": [`+strings.Repeat("1,", wide)+`"WebFetch"]}}`)
	plan, err := importer.Read(importer.ClaudeCode, "", importer.Where{Path: path})
	if err != nil || len(plan.Losses) != wide {
		t.Errorf("a wide file: %d settings are listed, %v", len(plan.Losses), err)
	}
	writeFile(t, path, `{"permissions": `+strings.Repeat("[", deep))
	if _, err := importer.Read(importer.ClaudeCode, "", importer.Where{Path: path}); err == nil || !strings.Contains(err.Error(), "levels of objects and lists") {
		t.Errorf("a deep file: %v", err)
	}
}

// What is written in another form than its product knows may be meant as a rule all the same: it is listed.
func TestSettingsOfAnotherKindAreListed(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ product, file, source, setting string }{
		{importer.ClaudeCode, "settings.json", `{"permissions": {"deny": "WebFetch"}}`, "permissions.deny"},
		{importer.ClaudeCode, "settings.json", `{"permissions": "none"}`, "permissions"},
		{importer.ClaudeCode, "settings.json", `{"permissions": {"blockReadsOutsideWorkingDirectories": "true"}}`, "permissions.blockReadsOutsideWorkingDirectories"},
		{importer.OpenClaw, "openclaw.json", `{tools: {deny: "exec"}}`, "tools.deny"},
		{importer.OpenClaw, "openclaw.json", `{tools: {fs: {workspaceOnly: "yes"}}}`, "tools.fs.workspaceOnly"},
		{importer.Gemini, "settings.json", `{"tools": {"exclude": "run_shell_command"}}`, "tools.exclude"},
		{importer.Codex, "config.toml", "[mcp_servers]\nx = \"off\"\n[tools]\nweb_search = \"off\"\n", "tools.web_search"},
	} {
		path := filepath.Join(t.TempDir(), c.file)
		if err := os.WriteFile(path, []byte(c.source), 0o600); err != nil {
			t.Fatal(err)
		}
		plan, err := importer.Read(c.product, "", importer.Where{Path: path})
		if err != nil {
			t.Fatalf("%s: %v", c.source, err)
		}
		if !slices.ContainsFunc(plan.Losses, func(l importer.Loss) bool { return strings.HasPrefix(l.Setting, c.setting) }) {
			t.Errorf("%s: %s is not listed: %v", c.source, c.setting, plan.Losses)
		}
	}
}
