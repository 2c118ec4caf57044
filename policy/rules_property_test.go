package policy

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/toolward/toolward"
	"pgregory.net/rapid"
)

// anyRules draws rules whose conditions hold, do not hold, or cannot be evaluated.
func anyRules() *rapid.Generator[[]Rule] {
	one := rapid.Custom(func(t *rapid.T) Rule {
		return Rule{
			Tool:   rapid.SampledFrom([]string{"*", "read", "write", "exec", "message", "nodes", "process", "group:fs", "web_*", "github", "github__issue"}).Draw(t, "tool"),
			Action: rapid.SampledFrom([]string{"", "", "", "send", "list", "invoke", "elevated", "camera_snap"}).Draw(t, "action"),
			When: rapid.SampledFrom([]string{
				"true", "false", "params.nothing == 1", `level == "normal"`, `level != "normal"`, `facts.scope == "self"`,
				`facts.paths.exists(p, pathUnder(p, "/ws"))`, `facts.action == "send" && caller.owner`, `facts.hosts.exists(h, hostIn(h, ["example.org"]))`,
			}).Draw(t, "when"),
			Then: rapid.SampledFrom(thenNames).Draw(t, "then"), Reason: "because",
		}
	})
	return rapid.Custom(func(t *rapid.T) []Rule {
		rules := rapid.SliceOfN(one, 0, 4).Draw(t, "rules")
		for i := range rules {
			rules[i].Name = fmt.Sprint("r", i)
		}
		return rules
	})
}

// TestARaisingRuleNeverAllowsMore: one more rule that asks or denies.
func TestARaisingRuleNeverAllowsMore(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := anyConfig().Draw(t, "config")
		r := anyRequest().Draw(t, "request")
		before := mustCompile(t, c).Judge(r)
		more := anyRules().Filter(func(rules []Rule) bool { return len(rules) > 0 }).Draw(t, "more")[0]
		more.Name, more.Then = "more", rapid.SampledFrom([]string{"ask", "deny"}).Draw(t, "then")
		c.TEG.Rules = append(slices.Clone(c.TEG.Rules), more)
		if how := weaker(before, mustCompile(t, c).Judge(r)); how != "" {
			t.Fatal(how)
		}
	})
}

// TestTheOrderOfRulesDoesNotMatter: neither for the verdict nor for the rule that is named.
func TestTheOrderOfRulesDoesNotMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := anyConfig().Draw(t, "config")
		r := anyRequest().Draw(t, "request")
		first := mustCompile(t, c).Judge(r)
		c.TEG.Rules = rapid.Permutation(c.TEG.Rules).Draw(t, "order")
		if diff := cmp.Diff(first, mustCompile(t, c).Judge(r)); diff != "" {
			t.Fatal(diff)
		}
	})
}

// TestAnAllowingRuleLowersNothingElse: what rules that allow change is asked at level normal without them, by a row that
// people decide and that is not critical, with no finding and no rule that raises, and is no command.
func TestAnAllowingRuleLowersNothingElse(t *testing.T) {
	lowered := 0
	rapid.Check(t, func(t *rapid.T) {
		c := anyConfig().Draw(t, "config")
		r := anyRequest().Draw(t, "request")
		if rapid.Bool().Draw(t, "finding") {
			r.Facts.Findings = []toolward.Finding{{Code: "command_hidden", Effect: rapid.SampledFrom([]toolward.Effect{toolward.EffectNote, toolward.EffectAsk, toolward.EffectDeny}).Draw(t, "effect")}}
		}
		c.TEG.Rules = slices.DeleteFunc(c.TEG.Rules, func(r Rule) bool { return r.Then == "allow" })
		without := mustCompile(t, c).Judge(r)
		c.TEG.Rules = append(slices.Clone(c.TEG.Rules), Rule{Name: "z", Tool: "*", When: "true", Then: "allow", Reason: "because"})
		with := mustCompile(t, c).Judge(r)
		if weaker(without, with) == "" {
			return
		}
		lowered++
		raised := slices.ContainsFunc(without.Findings, func(f toolward.Finding) bool { return f.Effect != toolward.EffectNote }) ||
			slices.ContainsFunc(without.Overrides, func(key string) bool { return strings.HasPrefix(key, "teg.rules") })
		if without.Verdict != toolward.Ask || r.Level != toolward.Normal || without.Class.Class != toolward.NeedsApproval ||
			without.Class.Severity == toolward.Critical || raised || without.Class.Grant == byExec {
			t.Fatalf("lowered: %+v", without)
		}
	})
	if lowered == 0 {
		t.Error("no rule ever allowed anything")
	}
}
