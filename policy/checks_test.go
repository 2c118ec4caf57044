package policy

import (
	"os"
	"regexp"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/toolward/toolward"
	"github.com/toolward/toolward/policy/visible"
)

// TestChecks: what a configuration leaves open against its look is reported, with its place and how bad it is.
func TestChecks(t *testing.T) {
	deny := func(entries ...string) visible.Tools { return visible.Tools{Deny: entries} }
	sandboxed := func(l visible.SandboxLists) Config {
		return Config{Tools: visible.Tools{Sandbox: visible.Sandbox{Tools: l}}}
	}
	models := func(whole, model []string) Config {
		return Config{Tools: visible.Tools{ByProvider: map[string]visible.ProviderTools{"OpenAI": {Deny: whole}, "openai/gpt-5.2": {Deny: model}}}}
	}
	for _, c := range []struct {
		name   string
		config Config
		want   []string
	}{
		{"write and edit", Config{Tools: deny("write", "edit")}, []string{"warning policy.write_denied_patch_open tools.deny"}},
		{"of one agent", Config{Tools: deny("write"), Agents: []Agent{{ID: "a", Tools: deny("edit")}}}, []string{"warning policy.write_denied_patch_open agents.list[0].tools.deny"}},
		{"all of fs", Config{Tools: deny("group:fs")}, nil},
		{"no patches", Config{Tools: visible.Tools{Deny: []string{"write", "edit"}, Exec: visible.Exec{ApplyPatch: visible.ApplyPatch{Enabled: pointer(false)}}}}, nil},
		{"one of them", Config{Tools: deny("write")}, nil},
		{"sandbox deny", sandboxed(visible.SandboxLists{Allow: []string{}, Deny: []string{"browser", "c*", "message"}}), []string{"warning policy.sandbox_deny_replaced tools.sandbox.tools.deny"}},
		{"sandbox deny, nothing open", sandboxed(visible.SandboxLists{Deny: []string{"browser"}}), nil},
		{"sandbox deny, longer", sandboxed(visible.SandboxLists{AlsoDeny: []string{"exec"}}), nil},
		{"sandbox message", sandboxed(visible.SandboxLists{AlsoAllow: []string{"message"}}), []string{"warning policy.sandbox_message_open tools.sandbox.tools"}},
		{"sandbox message denied", sandboxed(visible.SandboxLists{Allow: []string{}, AlsoDeny: []string{"message"}}), nil},
		{"model entry", models([]string{"exec", "group:runtime"}, []string{"exec"}), []string{`warning policy.model_entry_hides_provider_deny tools.byProvider["openai/gpt-5.2"]`}},
		{"model entry, as strict", models([]string{"exec", "web_*"}, []string{"group:runtime", "web_*"}), nil},
		{"stripped in a group", Config{Channels: map[string]visible.Channel{"slack": {Groups: map[string]visible.Group{"g": {Tools: &visible.Lists{Allow: []string{"gone"}}}}}}}, []string{
			"warning policy.unknown_entries channels.slack.groups.g.tools.allow[0]", "critical policy.allowlist_stripped channels.slack.groups.g.tools.allow",
		}},
		{"not there", Config{Agents: []Agent{{ID: "a", Tools: visible.Tools{Allow: []string{"read", "whatsapp_login", "Whatsapp_Login"}, Deny: []string{"whatsapp_login"}}}}}, []string{"info policy.unavailable_tools agents.list[0].tools"}},
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
