package bridge_test

import (
	"encoding/json"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/bridge"
)

// decided sends a call and returns the record of its decision.
func (r *rig) decided(tool, input string) toolward.DecisionRecord {
	r.t.Helper()
	before := len(r.Auditor.Decisions())
	body := r.event("PreToolUse-Bash.json", map[string]any{
		"tool_name": tool, "tool_input": json.RawMessage(strings.NewReplacer("{{project}}", r.project, "{{home}}", r.home).Replace(input)),
		"tool_use_id": "toolu_" + string(rune('a'+before)),
	})
	a := r.post("PreToolUse", body)
	all := r.Auditor.Decisions()
	if len(all) == before {
		r.t.Fatalf("%s %s was not recorded: %s %s", tool, input, a.Stdout, a.Stderr)
	}
	return all[before]
}

func TestTools(t *testing.T) {
	workspace := func(name, op, kind string) toolward.Target {
		return toolward.Target{Path: "{{project}}/" + name, Real: "{{project}}/" + name, Op: toolward.Op(op), Zone: "workspace", Kind: toolward.Kind(kind)}
	}
	for _, test := range []struct {
		name, tool, input string
		want              string // canonical tool
		params            string
		facts             toolward.Facts
	}{
		{
			"command", "Bash", `{"command":"ls -l","timeout":5000,"description":"list","run_in_background":true}`, "exec",
			`{"background":true,"command":"ls -l","description":"list","timeoutMs":5000}`,
			toolward.Facts{Command: "ls -l", Mutates: true},
		},
		{
			"command without the client's sandbox", "Bash", `{"command":"ls","dangerouslyDisableSandbox":true}`, "exec",
			`{"command":"ls","dangerouslyDisableSandbox":true}`,
			toolward.Facts{
				Command: "ls", Mutates: true,
				Findings: []toolward.Finding{{Code: "sandbox_off", Effect: toolward.EffectAsk, Detail: "the command would run outside the client's own sandbox"}},
			},
		},
		{
			"monitor is a command", "Monitor", `{"command":"tail -f x","description":"d","timeout_ms":1000}`, "exec",
			`{"command":"tail -f x","description":"d","timeoutMs":1000}`,
			toolward.Facts{Command: "tail -f x", Mutates: true},
		},
		{
			"read", "Read", `{"file_path":"{{project}}/a.txt","offset":1,"limit":2}`, "read",
			`{"limit":2,"offset":1,"path":"{{project}}/a.txt"}`,
			toolward.Facts{Targets: []toolward.Target{workspace("a.txt", "read", "missing")}},
		},
		{
			"read of a secret", "Read", `{"file_path":"{{home}}/.ssh/id_rsa"}`, "read", `{"path":"{{home}}/.ssh/id_rsa"}`,
			toolward.Facts{Targets: []toolward.Target{{Path: "{{home}}/.ssh/id_rsa", Real: "{{home}}/.ssh/id_rsa", Op: "read", Zone: "secret", Kind: "missing"}}},
		},
		{
			"write", "Write", `{"file_path":"{{project}}/new.txt","content":"x"}`, "write", `{"content":"x","path":"{{project}}/new.txt"}`,
			toolward.Facts{Mutates: true, Targets: []toolward.Target{workspace("new.txt", "write", "missing")}},
		},
		{
			"edit", "Edit", `{"file_path":"{{project}}/.git/config","old_string":"a","new_string":"b","replace_all":false}`, "edit",
			`{"newText":"b","oldText":"a","path":"{{project}}/.git/config","replace_all":false}`,
			toolward.Facts{Mutates: true, Targets: []toolward.Target{{Path: "{{project}}/.git/config", Real: "{{project}}/.git/config", Op: "write", Zone: "protected", Kind: "missing"}}},
		},
		{
			"notebook", "NotebookEdit", `{"notebook_path":"{{project}}/n.ipynb","new_source":"x","edit_mode":"delete"}`, "edit",
			`{"edit_mode":"delete","newText":"x","path":"{{project}}/n.ipynb"}`,
			toolward.Facts{Mutates: true, Targets: []toolward.Target{workspace("n.ipynb", "write", "missing")}},
		},
		{
			"search without a path is in the working directory", "Grep", `{"pattern":"x","-n":true,"-i":false,"output_mode":"content"}`, "read",
			`{"-i":false,"-n":true,"action":"grep","output_mode":"content","pattern":"x"}`,
			toolward.Facts{Action: "grep", Targets: []toolward.Target{{Path: "{{project}}", Real: "{{project}}", Op: "read", Zone: "workspace", Kind: "directory"}}},
		},
		{
			"search from home reads keys on its way", "Grep", `{"pattern":"x","path":"{{home}}"}`, "read", `{"action":"grep","path":"{{home}}","pattern":"x"}`,
			toolward.Facts{Action: "grep", Targets: []toolward.Target{
				{Path: "{{home}}", Real: "{{home}}", Op: "read", Zone: "outside", Kind: "directory"},
				{Path: "{{home}}", Real: "{{home}}/.toolward", Op: "read", Zone: "self", Kind: "directory"},
			}},
		},
		{
			"fetch", "WebFetch", `{"url":"https://example.org/a?b=c","prompt":"p"}`, "web_fetch", `{"prompt":"p","url":"https://example.org/a?b=c"}`,
			toolward.Facts{URLs: []string{"https://example.org/a?b=c"}, Hosts: []string{"https://example.org:443"}, Outbound: []string{"https://example.org/a?b=c"}},
		},
		{"web search", "WebSearch", `{"query":"q","allowed_domains":["a"]}`, "web_search", `{"allowed_domains":["a"],"query":"q"}`, toolward.Facts{Outbound: []string{"q"}}},
		{
			"sub-agent", "Agent", `{"description":"d","prompt":"p","subagent_type":"Explore"}`, "sessions_spawn", `{"agentId":"Explore","label":"d","task":"p"}`,
			toolward.Facts{Mutates: true, TargetID: "Explore"},
		},
		{
			"sub-agent under its old name, elsewhere", "Task", `{"description":"d","prompt":"p","isolation":"remote"}`, "sessions_spawn", `{"isolation":"remote","label":"d","task":"p"}`,
			toolward.Facts{Mutates: true, TargetID: "general-purpose", Findings: []toolward.Finding{{
				Code: "unguarded", Effect: toolward.EffectAsk,
				Detail: "the agent would work elsewhere (remote), where its calls are not guarded",
			}}},
		},
		{"timer", "CronCreate", `{"cron":"* * * * *","prompt":"p"}`, "cron", `{"action":"add","cron":"* * * * *","prompt":"p"}`, toolward.Facts{Action: "add", Mutates: true}},
		{"own shell", "KillShell", `{"shell_id":"s"}`, "process", `{"action":"kill","shell_id":"s"}`, toolward.Facts{Action: "kill", Scope: "self", TargetID: "s"}},
		{"to-do list", "TaskCreate", `{"subject":"s","description":"d"}`, "client", `{"action":"task_create","description":"d","subject":"s"}`, toolward.Facts{Action: "taskcreate"}},
		{"argument hides the action", "ExitWorktree", `{"action":"remove"}`, "client", `{"action":"exit_worktree","choice":"remove"}`, toolward.Facts{Action: "exitworktree", Mutates: true}},

		{
			"argument that the table does not know", "Bash", `{"command":"ls","shell":"/bin/evil"}`, "claude-code/bash", `{"command":"ls","shell":"/bin/evil"}`,
			toolward.Facts{Mutates: true, Bound: []string{"native Bash"}},
		},
		{"argument under our name", "Read", `{"path":"{{project}}/x"}`, "claude-code/read", `{"path":"{{project}}/x"}`, toolward.Facts{Mutates: true, Bound: []string{"native Read"}}},
		{"argument that differs in case only", "Read", `{"File_Path":"/etc/shadow"}`, "claude-code/read", `{"File_Path":"/etc/shadow"}`, toolward.Facts{Mutates: true, Bound: []string{"native Read"}}},
		{
			"monitor that opens a connection", "Monitor", `{"description":"d","timeout_ms":1,"ws":{"url":"wss://x"}}`, "claude-code/monitor",
			`{"description":"d","timeout_ms":1,"ws":{"url":"wss://x"}}`,
			toolward.Facts{Mutates: true, Bound: []string{"native Monitor"}},
		},
		{"tool of a newer client", "Teleport", `{"to":"x"}`, "claude-code/teleport", `{"to":"x"}`, toolward.Facts{Mutates: true, Bound: []string{"native Teleport"}}},
		{"tool that calls itself exec", "exec", `{"command":"x"}`, "claude-code/exec", `{"command":"x"}`, toolward.Facts{Mutates: true, Bound: []string{"native exec"}}},
		{"MCP tool", "mcp__Srv__Look", `{"q":"x"}`, "mcp__srv__look", `{"q":"x"}`, toolward.Facts{Mutates: true, Bound: []string{"native mcp__Srv__Look"}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := newRig(t, toolward.Allow)
			d := r.decided(test.tool, test.input)
			back := func(s string) string {
				return strings.NewReplacer(r.project, "{{project}}", r.home, "{{home}}").Replace(s)
			}
			if d.Tool != test.want || back(string(d.Params.Canonical())) != test.params {
				t.Errorf("%s %s\nwant %s %s", d.Tool, back(string(d.Params.Canonical())), test.want, test.params)
			}
			for i := range d.Facts.Targets {
				target := &d.Facts.Targets[i]
				target.Path, target.Real = back(target.Path), back(target.Real)
			}
			if diff := cmp.Diff(test.facts, d.Facts, cmpopts.IgnoreFields(toolward.Target{}, "Links")); diff != "" {
				t.Errorf("facts (-want +got)\n%s", diff)
			}
			if d.Call.NativeName != test.tool {
				t.Errorf("native name %q", d.Call.NativeName)
			}
		})
	}
}

// TestTableKnowsTheClient holds the table against the tools and arguments of the real client, version 2.1.329.
func TestTableKnowsTheClient(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join("testdata", "claude-code", "tools.json"))
	if err != nil {
		t.Fatal(err)
	}
	var tools map[string][]string
	if err := json.Unmarshal(raw, &tools); err != nil {
		t.Fatal(err)
	}
	// These send something away or run something elsewhere: people are asked about the client's own words.
	asks := []string{
		"Artifact", "ClaudeDesign", "Projects", "ReadMcpResourceTool", "ReadMcpResourceDirTool", "RemoteTrigger",
		"SendFeedback",
	}
	unknown := map[string][]string{"Monitor": {"ws"}}
	for tool, arguments := range tools {
		for _, missing := range bridge.UnknownClaudeArguments(tool, arguments) {
			if !slices.Contains(asks, tool) && !slices.Contains(unknown[tool], missing) {
				t.Errorf("%s has %q, which the table does not know", tool, missing)
			}
		}
	}
}

func TestSkills(t *testing.T) {
	off, on := `{"disableSkillShellExecution":true}`, `{"disableSkillShellExecution":false}`
	plain := "---\nname: x\n---\ntext\n"
	skill := func(name, head string) map[string]string {
		return map[string]string{"home/.claude/settings.json": off, path.Join("project/.claude", name): "---\n" + head + "---\ntext\n"}
	}
	for _, test := range []struct {
		name  string
		files map[string]string
		skill string
		asks  bool
	}{
		{"inline shell is on by default", nil, "x", true},
		{"switched off by the person", map[string]string{"home/.claude/settings.json": off}, "x", false},
		{"switched on again by the project", map[string]string{"home/.claude/settings.json": off, "project/.claude/settings.json": on}, "x", true},
		{"and by the project's local file", map[string]string{"home/.claude/settings.json": off, "project/.claude/settings.local.json": on}, "x", true},
		{"settings that cannot be read", map[string]string{"home/.claude/settings.json": off, "project/.claude/settings.json": "{"}, "x", true},
		{"skill without hooks", map[string]string{"home/.claude/settings.json": off, "project/.claude/skills/x/SKILL.md": plain}, "x", false},
		{"skill with hooks", map[string]string{"home/.claude/settings.json": off, "project/.claude/skills/x/SKILL.md": "---\nhooks:\n  Stop: []\n---\n"}, "x", true},
		{"hooks in quotes", skill("skills/x/SKILL.md", "\"hooks\":\n  Stop: []\n"), "x", true},
		{"hooks before a space", skill("skills/x/SKILL.md", "hooks :\n  Stop: []\n"), "x", true},
		{"hooks with an escape", skill("skills/x/SKILL.md", "\"ho\\x6fks\":\n  Stop: []\n"), "x", true},
		{"hooks as an explicit key", skill("skills/x/SKILL.md", "? hooks\n: {Stop: []}\n"), "x", true},
		{"hooks behind another end of a line", skill("skills/x/SKILL.md", "name: x\rhooks :\r  Stop: []\n"), "x", true},
		{"head in braces", skill("skills/x/SKILL.md", "{\"hooks\" : {Stop: []}}\n"), "x", true},
		{"command in a directory", skill("commands/sub/x.md", "hooks:\n  Stop: []\n"), "x", true},
		{"skill of a directory below", skill("../web/.claude/skills/x/SKILL.md", "hooks:\n  Stop: []\n"), "x", true},
		{"skill of a directory above", skill("../../.claude/skills/x/SKILL.md", "hooks:\n  Stop: []\n"), "x", true},
		{"skill that names itself", skill("skills/y/SKILL.md", "name: x\nhooks:\n  Stop: []\n"), "x", true},
		{"file name in small letters", skill("skills/x/skill.md", "hooks:\n  Stop: []\n"), "x", true},
		{"another skill with hooks", skill("skills/y/SKILL.md", "name: other\nhooks:\n  Stop: []\n"), "x", false},
		{"lists and long texts", skill("skills/x/SKILL.md", "name: x\ndescription: >\n  a text: of \"two\"\n  lines\nallowed-tools:\n- Read\n  - Grep\n\n# note\n"), "x", false},
		{"the setting in other letters does not count", map[string]string{
			"home/.claude/settings.json": off, "project/.claude/settings.json": `{"disableSkillShellExecution":false,"DisableSkillShellExecution":true}`,
		}, "x", true},
		{"in small letters neither", map[string]string{"home/.claude/settings.json": `{"disableskillshellexecution":true}`}, "x", true},
		{"skill of a plug-in", map[string]string{"home/.claude/settings.json": off}, "plugin:x", true},
		{"skill that is a path", map[string]string{"home/.claude/settings.json": off}, "../../x", true},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := newRig(t, toolward.Allow)
			r.files(test.files)
			d := r.decided("Skill", `{"skill":"`+test.skill+`"}`)
			if asks := len(d.Facts.Findings) == 1 && d.Facts.Findings[0].Effect == toolward.EffectAsk; asks != test.asks {
				t.Errorf("findings %v, want a question: %t", d.Facts.Findings, test.asks)
			}
		})
	}
}

// files writes files beside the rig's project and home.
func (r *rig) files(files map[string]string) {
	r.t.Helper()
	for name, text := range files {
		path := filepath.Join(filepath.Dir(r.project), filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			r.t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			r.t.Fatal(err)
		}
	}
}

// TestAgentDefinitions: a project's definition of an agent starts programs that no hook sees, and the answer to a call of its name
// would cover them.
func TestAgentDefinitions(t *testing.T) {
	for _, test := range []struct {
		name, file, head, agent string
		asks                    bool
	}{
		{"none", "agents/other.md", "name: other\nhooks:\n  Stop: []\n", "x", false},
		{"plain", "agents/x.md", "name: x\ntools: Read, Grep\n", "x", false},
		{"hooks", "agents/x.md", "name: x\nhooks:\n  Stop: []\n", "x", true},
		{"servers", "agents/x.md", "name: x\nmcpServers:\n  - s: {command: ./run}\n", "x", true},
		{"servers in quotes", "agents/deep/y.md", "name: x\n'mcpServers' :\n  - s: {command: ./run}\n", "x", true},
		{"in place of the client's own", "agents/general-purpose.md", "hooks:\n  Stop: []\n", "", true},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := newRig(t, toolward.Allow)
			r.files(map[string]string{path.Join("project/.claude", test.file): "---\n" + test.head + "---\ntext\n"})
			d := r.decided("Agent", `{"prompt":"p","description":"d","subagent_type":"`+test.agent+`"}`)
			if asks := len(d.Facts.Findings) == 1 && d.Facts.Findings[0].Effect == toolward.EffectAsk; asks != test.asks {
				t.Errorf("findings %v, want a question: %t", d.Facts.Findings, test.asks)
			}
		})
	}
}

// TestDialogsStayWithThePerson: "allow" for a tool by which the client asks its person would answer for them.
func TestDialogsStayWithThePerson(t *testing.T) {
	r := newRig(t, toolward.Allow)
	for _, tool := range []string{"ExitPlanMode", "EnterPlanMode"} {
		body := r.event("PreToolUse-Bash.json", map[string]any{"tool_name": tool, "tool_input": map[string]any{}, "tool_use_id": tool})
		if d, reason := said(t, r.post("PreToolUse", body)); d != "" {
			t.Errorf("%s: %q (%s), want no opinion", tool, d, reason)
		}
	}
}

func TestDifferences(t *testing.T) {
	r := newRig(t, toolward.Ask)
	lines := "1\n2\n3\n4\n5\n6\n7\n8\n9\n"
	if err := os.WriteFile(filepath.Join(r.project, "a.txt"), []byte(lines), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ name, tool, input, want string }{
		{
			"edit", "Edit", `{"file_path":"a.txt","old_string":"5","new_string":"five\nand a half"}`,
			"--- a.txt\n+++ a.txt\n@@ -2,7 +2,8 @@\n 2\n 3\n 4\n-5\n+five\n+and a half\n 6\n 7\n 8\n",
		},
		{
			"edit at the end, no line end", "Edit", `{"file_path":"a.txt","old_string":"9\n","new_string":"9"}`,
			"--- a.txt\n+++ a.txt\n@@ -6,4 +6,4 @@\n 6\n 7\n 8\n-9\n+9\n\\ No newline at end of file\n",
		},
		{"new file", "Write", `{"file_path":"b.txt","content":"x\n"}`, "--- b.txt\n+++ b.txt\n@@ -0,0 +1 @@\n+x\n"},
		{"nothing changes", "Write", `{"file_path":"a.txt","content":"1\n2\n3\n4\n5\n6\n7\n8\n9\n"}`, ""},
		{"text that is not there", "Edit", `{"file_path":"a.txt","old_string":"x","new_string":"y"}`, "The difference cannot be shown: the text to replace is not in the file"},
	} {
		t.Run(test.name, func(t *testing.T) {
			r.decided(test.tool, test.input)
			asked := r.Approver.Asked()
			if diff := cmp.Diff(test.want, asked[len(asked)-1].Diff); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}
