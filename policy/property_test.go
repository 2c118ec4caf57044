package policy

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/toolward/toolward"
	"github.com/toolward/toolward/internal/gatetest"
	"github.com/toolward/toolward/modes"
	"github.com/toolward/toolward/policy/visible"
	"pgregory.net/rapid"
)

var (
	someServers = []*toolward.Tool{
		{Name: "github__issue", Plugin: "github", Schema: json.RawMessage(`{"type":"object"}`)},
		{Name: "github", Plugin: "files", Schema: json.RawMessage(`{"type":"object"}`)},
		{Name: "files__delete", Plugin: "files", Schema: json.RawMessage(`{"type":"object"}`)},
	}
	someTools = append(coreTools(), someServers...)

	someActions = []string{
		"", "list", "kill", "send", "broadcast", "send-keys", "config.get", "config.patch", "camera_snap", "invoke", "act",
		"navigate", "eval", "restart", "nonsense",
	}
	levels = []toolward.Level{toolward.Normal, toolward.Elevated, toolward.Lockdown}
)

func anyTools() *rapid.Generator[visible.Tools] {
	return rapid.Custom(func(t *rapid.T) visible.Tools {
		only := rapid.Bool().Draw(t, "workspaceOnly")
		return visible.Tools{
			Allow: gatetest.AnyList().Draw(t, "allow"), Deny: gatetest.AnyList().Draw(t, "deny"), FS: visible.FS{WorkspaceOnly: &only},
			Exec: visible.Exec{
				Security: rapid.SampledFrom([]string{"", "deny", "allowlist", "full"}).Draw(t, "security"),
				Ask:      rapid.SampledFrom([]string{"", "always", "on-miss", "off"}).Draw(t, "ask"),
			},
		}
	})
}

func anyOverrides() *rapid.Generator[map[string]string] {
	keys := []string{"*", "read", "write", "exec", "web_*", "browser.*", "nodes.camera_snap", "nodes.invoke", "message.broadcast", "message", "github__issue", "process.send-keys", "process", "nodes.invoke:sms.send"}
	return rapid.MapOfN(rapid.SampledFrom(keys), rapid.SampledFrom([]string{"safe", "needs_approval", "blocked"}), 0, 4)
}

func anyConfig() *rapid.Generator[Config] {
	return rapid.Custom(func(t *rapid.T) Config {
		c := Config{
			Tools: anyTools().Draw(t, "tools"),
			TEG: TEG{
				Preset: rapid.SampledFrom([]Preset{PresetStrict, PresetWorkspace}).Draw(t, "preset"),
				Tools:  anyOverrides().Draw(t, "overrides"),
				Rules:  anyRules().Draw(t, "rules"),
				Enable: rapid.SliceOfN(rapid.SampledFrom(enableable()), 0, 3).Draw(t, "enable"),
				Web:    Web{AllowHosts: rapid.SampledFrom([][]string{nil, {"example.org"}}).Draw(t, "hosts")},
				Exec:   TEGExec{Sandbox: rapid.SampledFrom([]string{"", "ask"}).Draw(t, "sandbox")},
			},
		}
		return c
	})
}

// anyRequest draws a call of any tool, as the gateway would hand it to Judge.
func anyRequest() *rapid.Generator[*toolward.Request] {
	return rapid.Custom(func(t *rapid.T) *toolward.Request {
		params := map[string]any{"action": rapid.SampledFrom(someActions).Draw(t, "action")}
		if rapid.IntRange(0, 9).Draw(t, "elevated") == 0 {
			params["elevated"] = true
		}
		facts := toolward.Facts{
			Scope:     rapid.SampledFrom([]string{"", "self", "tree", "other"}).Draw(t, "scope"),
			BrowserOn: rapid.SampledFrom([]string{"", "sandbox", "host"}).Draw(t, "browser"),
			Hosts:     rapid.SampledFrom([][]string{nil, {"https://example.org:443"}, {"https://other.org:443"}}).Draw(t, "hosts"),
		}
		if rapid.Bool().Draw(t, "analysed") {
			facts.Analysis = &toolward.CommandAnalysis{
				Understood: rapid.Bool().Draw(t, "ok"), Covered: rapid.Bool().Draw(t, "satisfied"),
				Findings:  rapid.SliceOfN(rapid.SampledFrom([]string{modes.FindingHeredoc, modes.FindingInlineEval, modes.FindingObfuscation, modes.FindingRule}), 0, 2).Draw(t, "forced"),
				Security:  rapid.SampledFrom([]string{"", "deny", "allowlist", "full", "odd"}).Draw(t, "file security"),
				Ask:       rapid.SampledFrom([]string{"", "always", "on-miss", "off", "odd"}).Draw(t, "file ask"),
				Forbidden: rapid.SampledFrom([]string{"", "", "", "never"}).Draw(t, "forbidden"),
			}
		}
		for range rapid.IntRange(0, 2).Draw(t, "targets") {
			place := rapid.SampledFrom([]string{"workspace", "instructions", "outside", "protected", "secret", "self"}).Draw(t, "place")
			op := rapid.SampledFrom([]toolward.Op{toolward.OpRead, toolward.OpWrite}).Draw(t, "op")
			facts.Targets = append(facts.Targets, target(place, op).Targets...)
		}
		return &toolward.Request{
			Call: toolward.Call{
				Caller: toolward.Caller{Agent: "main", Owner: rapid.Bool().Draw(t, "owner"), Workspace: "/ws"},
				Host:   rapid.SampledFrom([]toolward.Host{toolward.HostGateway, toolward.HostSandbox, "node:1"}).Draw(t, "host"),
			},
			Tool: rapid.SampledFrom(someTools).Draw(t, "tool"), Params: toolward.NewParams(nil, params), Facts: facts,
			Level: rapid.SampledFrom(levels).Draw(t, "level"),
		}
	})
}

func mustCompile(t *rapid.T, c Config) *Snapshot {
	s, _, err := Compile(c, someTools)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// weaker says in which way b lets more through than a, or "".
func weaker(a, b toolward.Judgment) string {
	switch {
	case b.Verdict > a.Verdict:
		return a.Verdict.String() + " became " + b.Verdict.String()
	case a.Verdict == toolward.Ask && b.Verdict == toolward.Ask && !a.GrantOK && b.GrantOK:
		return "a grant became enough"
	case a.Verdict == toolward.Ask && b.Verdict == toolward.Ask && !a.AllowAlways && b.AllowAlways:
		return "an answer for the future became possible"
	}
	return ""
}

func visibleNames(s *Snapshot, agent string, owner bool) []string {
	names := []string{}
	for _, t := range s.Tools(toolward.Caller{Agent: agent, Owner: owner}) {
		names = append(names, t.Name)
	}
	return names
}

// TestALayerNeverAddsATool is law L1 of the tool policy.
func TestALayerNeverAddsATool(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := anyConfig().Draw(t, "config")
		c.Agents = []Agent{{ID: "main", Tools: anyTools().Draw(t, "agent")}}
		s := mustCompile(t, c)
		owner := rapid.Bool().Draw(t, "owner")
		without := visibleNames(s, "another", owner)
		for _, name := range visibleNames(s, "main", owner) {
			if !slices.Contains(without, name) {
				t.Fatalf("the agent's layer added %s", name)
			}
		}
		for _, name := range visibleNames(s, "main", false) {
			if !slices.Contains(visibleNames(s, "main", true), name) {
				t.Fatalf("a stranger sees %s and the owner does not", name)
			}
		}
	})
}

// TestDenyingMoreNeverAllowsMore: one more deny entry, or one allow entry less of several, takes tools away only.
func TestDenyingMoreNeverAllowsMore(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := anyConfig().Draw(t, "config")
		before := visibleNames(mustCompile(t, c), "main", true)
		if len(c.Tools.Allow) > 1 && rapid.Bool().Draw(t, "drop an allow entry") {
			c.Tools.Allow = c.Tools.Allow[1:]
		} else {
			c.Tools.Deny = append(slices.Clone(c.Tools.Deny), gatetest.AnyList().Draw(t, "more")...)
		}
		for _, name := range visibleNames(mustCompile(t, c), "main", true) {
			if !slices.Contains(before, name) {
				t.Fatalf("%s appeared", name)
			}
		}
	})
}

// TestOrderDoesNotMatter: neither in the lists nor in the order of registration.
func TestOrderDoesNotMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := anyConfig().Draw(t, "config")
		r := anyRequest().Draw(t, "request")
		first := mustCompile(t, c)
		c.Tools.Allow = rapid.Permutation(c.Tools.Allow).Draw(t, "allow")
		c.Tools.Deny = rapid.Permutation(c.Tools.Deny).Draw(t, "deny")
		c.TEG.Enable = rapid.Permutation(c.TEG.Enable).Draw(t, "enable")
		second, _, err := Compile(c, rapid.Permutation(someTools).Draw(t, "registered"))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(visibleNames(first, "main", true), visibleNames(second, "main", true)); diff != "" {
			t.Fatalf("(-first +second)\n%s", diff)
		}
		if diff := cmp.Diff(first.Judge(r), second.Judge(r)); diff != "" {
			t.Fatalf("(-first +second)\n%s", diff)
		}
	})
}

// TestATenserLevelNeverAllowsMore is the law of levels.
func TestATenserLevelNeverAllowsMore(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := mustCompile(t, anyConfig().Draw(t, "config"))
		r := *anyRequest().Draw(t, "request")
		for i := range levels[1:] {
			calm, tense := r, r
			calm.Level, tense.Level = levels[i], levels[i+1]
			if how := weaker(s.Judge(&calm), s.Judge(&tense)); how != "" {
				t.Fatalf("%s → %s: %s", calm.Level, tense.Level, how)
			}
		}
	})
}

// TestAFindingNeverAllowsMore is the law of findings.
func TestAFindingNeverAllowsMore(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := mustCompile(t, anyConfig().Draw(t, "config"))
		r := *anyRequest().Draw(t, "request")
		before := s.Judge(&r)
		r.Facts.Findings = append(slices.Clone(r.Facts.Findings), toolward.Finding{
			Code:   rapid.SampledFrom([]string{"command_hidden", "secret_shape", "ssrf", "recipient_new"}).Draw(t, "code"),
			Effect: rapid.SampledFrom([]toolward.Effect{toolward.EffectNote, toolward.EffectAsk, toolward.EffectDeny}).Draw(t, "effect"),
		})
		if how := weaker(before, s.Judge(&r)); how != "" {
			t.Fatal(how)
		}
	})
}

// TestAnAgentsOverridesNeverAllowMore: an agent's own section can only tighten.
func TestAnAgentsOverridesNeverAllowMore(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := anyConfig().Draw(t, "config")
		r := anyRequest().Draw(t, "request")
		before := mustCompile(t, c).Judge(r)
		c.Agents = []Agent{{ID: "main", TEG: AgentTEG{Tools: anyOverrides().Draw(t, "overrides")}}}
		if how := weaker(before, mustCompile(t, c).Judge(r)); how != "" {
			t.Fatal(how)
		}
	})
}

// TestEveryJudgmentIsExplained: a denial has a code, and everything has a reason.
func TestEveryJudgmentIsExplained(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		j := mustCompile(t, anyConfig().Draw(t, "config")).Judge(anyRequest().Draw(t, "request"))
		if len(j.Reasons) == 0 || (j.Verdict == toolward.Deny) != (j.Code != "") || j.Verdict != toolward.Ask && (j.GrantOK || j.AllowAlways) {
			t.Fatalf("%+v", j)
		}
		for _, r := range j.Reasons {
			if r.Layer == "" || r.Text == "" {
				t.Fatalf("%+v", j.Reasons)
			}
		}
		if j.AllowAlways && (!j.GrantOK || j.Class.Grant == toolward.GrantNone || j.Class.Severity == toolward.Critical) {
			t.Fatalf("always is offered: %+v", j)
		}
	})
}
