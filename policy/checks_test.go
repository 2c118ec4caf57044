package policy

import (
	"os"
	"regexp"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/toolward/toolward"
)

// TestChecks: what a configuration leaves open against its look is reported, with its place and how bad it is.
func TestChecks(t *testing.T) {
	deny := func(entries ...string) Tools { return Tools{Deny: entries} }
	sandboxed := func(l SandboxLists) Config { return Config{Tools: Tools{Sandbox: Sandbox{Tools: l}}} }
	models := func(whole, model []string) Config {
		return Config{Tools: Tools{ByProvider: map[string]ProviderTools{"OpenAI": {Deny: whole}, "openai/gpt-5.2": {Deny: model}}}}
	}
	for _, c := range []struct {
		name   string
		config Config
		want   []string
	}{
		{"write and edit", Config{Tools: deny("write", "edit")}, []string{"warning policy.write_denied_patch_open tools.deny"}},
		{"of one agent", Config{Tools: deny("write"), Agents: []Agent{{ID: "a", Tools: deny("edit")}}}, []string{"warning policy.write_denied_patch_open agents.list[0].tools.deny"}},
		{"all of fs", Config{Tools: deny("group:fs")}, nil},
		{"no patches", Config{Tools: Tools{Deny: []string{"write", "edit"}, Exec: Exec{ApplyPatch: ApplyPatch{Enabled: pointer(false)}}}}, nil},
		{"one of them", Config{Tools: deny("write")}, nil},
		{"sandbox deny", sandboxed(SandboxLists{Allow: []string{}, Deny: []string{"browser", "c*", "message"}}), []string{"warning policy.sandbox_deny_replaced tools.sandbox.tools.deny"}},
		{"sandbox deny, nothing open", sandboxed(SandboxLists{Deny: []string{"browser"}}), nil},
		{"sandbox deny, longer", sandboxed(SandboxLists{AlsoDeny: []string{"exec"}}), nil},
		{"sandbox message", sandboxed(SandboxLists{AlsoAllow: []string{"message"}}), []string{"warning policy.sandbox_message_open tools.sandbox.tools"}},
		{"sandbox message denied", sandboxed(SandboxLists{Allow: []string{}, AlsoDeny: []string{"message"}}), nil},
		{"model entry", models([]string{"exec", "group:runtime"}, []string{"exec"}), []string{`warning policy.model_entry_hides_provider_deny tools.byProvider["openai/gpt-5.2"]`}},
		{"model entry, as strict", models([]string{"exec", "web_*"}, []string{"group:runtime", "web_*"}), nil},
		{"stripped in a group", Config{Channels: map[string]Channel{"slack": {Groups: map[string]Group{"g": {Tools: &Lists{Allow: []string{"gone"}}}}}}}, []string{
			"warning policy.unknown_entries channels.slack.groups.g.tools.allow[0]", "critical policy.allowlist_stripped channels.slack.groups.g.tools.allow",
		}},
		{"not there", Config{Agents: []Agent{{ID: "a", Tools: Tools{Allow: []string{"read", "whatsapp_login", "Whatsapp_Login"}, Deny: []string{"whatsapp_login"}}}}}, []string{"info policy.unavailable_tools agents.list[0].tools"}},
		{"loosened", Config{TEG: TEG{Tools: map[string]string{"tts": "needs_approval", "web_fetch": "needs_approval", "sessions_spawn": "safe", "message.send": "safe"}}}, []string{
			`critical teg.loosened teg.tools["message.send"]`, "warning teg.loosened teg.tools.sessions_spawn",
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			tools := slices.DeleteFunc(coreTools(), func(t *toolward.Tool) bool { return t.Name == "whatsapp_login" })
			_, warnings, err := Compile(c.config, tools)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, w := range warnings {
				if entry := w.Severity.String() + " " + w.Code + " " + w.Path.String(); !slices.Contains(got, entry) {
					got = append(got, entry)
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s\n%v", diff, warnings)
			}
		})
	}
}

// TestOptionalTools are there once somebody asks for them by name.
func TestOptionalTools(t *testing.T) {
	optional := &toolward.Tool{Name: "github__merge", Plugin: "github", Optional: true, Schema: []byte(`{"type":"object"}`)}
	for _, c := range []struct {
		name string
		want bool
		Tools
	}{
		{"nothing", false, Tools{}},
		{"a glob", false, Tools{Allow: []string{"github__*"}}},
		{"everything", false, Tools{Allow: []string{"*"}}},
		{"its name", true, Tools{Allow: []string{"read", "GitHub__Merge"}}},
		{"its name besides", true, Tools{AlsoAllow: []string{"github__merge"}}},
		{"its plug-in", true, Tools{Allow: []string{"github"}}},
		{"all plug-ins", true, Tools{Profile: "coding", AlsoAllow: []string{"group:plugins"}}},
		{"its name in a deny list", false, Tools{Deny: []string{"github__merge"}}},
		{"its name, denied too", false, Tools{Allow: []string{"github__merge"}, Deny: []string{"github"}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := compile(t, Config{Tools: c.Tools}, append(coreTools(), optional)...)
			found, reason := s.Find(toolward.Caller{Agent: "a"}, optional.Name)
			if (found != nil) != c.want || slices.Contains(s.Tools(toolward.Caller{Agent: "a"}), optional) != c.want {
				t.Errorf("there: %t, want %t (%v)", found != nil, c.want, reason)
			}
		})
	}
}

// TestAnUnknownDepthIsReadFromTheKey: a face that does not say how deep a sub-agent is must not make it shallow.
func TestAnUnknownDepthIsReadFromTheKey(t *testing.T) {
	s := compile(t, Config{Subagents: SubagentDefaults{MaxSpawnDepth: pointer(2.0)}}, coreTools()...)
	for key, want := range map[toolward.SessionKey]bool{"agent:a:subagent:1": true, "agent:a:subagent:1:subagent:2": false} {
		if found, _ := s.Find(toolward.Caller{Agent: "a", Session: key}, "sessions_spawn"); (found != nil) != want {
			t.Errorf("%s may spawn: %t, want %t", key, found != nil, want)
		}
	}
}

// TestAChildGetsNoOptionalToolThatItsParentLacks: its own lists can name what those of its parent do not.
func TestAChildGetsNoOptionalToolThatItsParentLacks(t *testing.T) {
	optional := &toolward.Tool{Name: "github__merge", Plugin: "github", Optional: true, Schema: []byte(`{"type":"object"}`)}
	named := Tools{AlsoAllow: []string{"github"}}
	s := compile(t, Config{Agents: []Agent{{ID: "asks", Tools: named}, {ID: "asks-too", Tools: named}}}, append(coreTools(), optional)...)
	for _, c := range []struct {
		generations []string // agents, each spawned by the one before
		want        bool
	}{
		{[]string{"asks"}, true},
		{[]string{"asks", "asks-too"}, true},
		{[]string{"plain", "asks"}, false},
		{[]string{"asks", "plain", "asks-too"}, false},
	} {
		caller := toolward.Caller{}
		for depth, agent := range c.generations {
			ceiling := toolward.Ceiling("")
			if depth > 0 {
				ceiling = s.Ceiling(caller)
			}
			caller = toolward.Caller{Agent: agent, Depth: depth, Ceiling: ceiling}
		}
		if found, _ := s.Find(caller, optional.Name); (found != nil) != c.want {
			t.Errorf("%s: there: %t, want %t", c.generations, found != nil, c.want)
		}
	}
}

// TestChecksAreDocumented: the table of docs/policy.md has every code, and no other.
func TestChecksAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../docs/policy.md")
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile("report/report.go")
	if err != nil {
		t.Fatal(err)
	}
	find := func(text []byte, pattern string) (found []string) {
		for _, m := range regexp.MustCompile(pattern).FindAllSubmatch(text, -1) {
			found = append(found, string(m[1]))
		}
		slices.Sort(found)
		return found
	}
	codes := find(source, `Check\w+ += "([^"]+)"`)
	if diff := cmp.Diff(codes, find(page, "(?m)^\\| `((?:policy|teg)\\.[a-z_]+)` \\|")); diff != "" || len(codes) < 17 {
		t.Errorf("(-code +page)\n%s", diff)
	}
}
