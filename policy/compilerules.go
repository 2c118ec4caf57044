package policy

import (
	"fmt"
	"slices"
	"strings"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/display"
	"github.com/toolward/toolward/policy/report"
	"github.com/toolward/toolward/policy/rule"
	"github.com/toolward/toolward/policy/visible"
)

// Limits of teg.rules.
const (
	maxRules      = 10_000
	maxRuleName   = 100 // characters
	maxRuleReason = 500 // characters
)

// Codes of warnings about rules.

// compileRules compiles teg.rules.
func (b *builder) compileRules(entries []Rule, at report.Path) {
	set := &b.snapshot.rulesOf
	set.byTool = map[toolKey]*toolRules{}
	if len(entries) > maxRules {
		b.Fail(at, "there are %d rules; at most %d are possible", len(entries), maxRules)
		return
	}
	first := map[string]int{}
	for i, entry := range entries {
		if earlier, twice := first[entry.Name]; twice {
			b.Fail(at.At(i, "name"), "%q is the name of %s too; records name the rule that decided, so give each its own", entry.Name, at.At(earlier))
			continue
		}
		first[entry.Name] = i
		if r := b.compileRule(entry, at.At(i)); r != nil {
			set.all = append(set.all, r)
		}
	}
	if len(set.all) == 0 {
		return
	}
	slices.SortFunc(set.all, func(x, y *compiledRule) int { return strings.Compare(x.Name, y.Name) })
	for _, t := range b.snapshot.Registered() {
		key := toolKey{t.Name, t.Plugin}
		set.byTool[key] = set.index(key)
	}
	for tool := range b.snapshot.table {
		key := toolKey{name: tool}
		set.byTool[key] = set.index(key)
	}
}

// compileRule returns nil if the entry is wrong.
func (b *builder) compileRule(entry Rule, at report.Path) *compiledRule {
	mistakes := len(b.Errs)
	b.ruleText(entry.Name, at.At("name"), maxRuleName, "records and people name the rule by it")
	b.ruleText(entry.Reason, at.At("reason"), maxRuleReason, "people who are asked read it")
	r := &compiledRule{Rule: entry, action: squashKey(entry.Action), key: "teg.rules: " + entry.Name}
	if err := r.then.UnmarshalText([]byte(entry.Then)); err != nil {
		b.Fail(at.At("then"), "%q is unknown; use ask, deny or allow", entry.Then)
	}
	if strings.TrimSpace(entry.Tool) == "" {
		b.Fail(at.At("tool"), `no tool is named; name a tool, a glob or a group, or "*" for all`)
	}
	if strings.TrimSpace(entry.Action) != "" && r.action == "" {
		b.Fail(at.At("action"), "%q is not the name of an action", entry.Action)
	}
	var err error
	if r.condition, err = rule.Compile(entry.When); err != nil {
		b.Fail(at.At("when"), "%v", err)
	}
	switch {
	case entry.WaitMs != 0 && r.then != ThenAsk:
		b.Fail(at.At("waitMs"), "only a rule that asks lets a question wait; take it out, or use then: ask")
	case entry.WaitMs != 0:
		b.checkWait(entry.WaitMs, at.At("waitMs"))
	}
	if len(b.Errs) > mistakes {
		return nil
	}
	r.contents = contentsOf(r.condition)
	r.tools = visible.NewNames([]string{entry.Tool}, b.words.IsPlugin)
	r.reason = toolward.Reason{
		Layer: "teg.rules", Rule: entry.Name, Matched: visible.NormalizeName(entry.Tool),
		Text: fmt.Sprintf("rule %q: %s: %s", entry.Name, thenWords[r.then], entry.Reason),
	}
	b.warnRule(r, at)
	return r
}

var thenWords = [thenCount]string{ThenDeny: "refused", ThenAsk: "a person decides, each time anew", ThenAllow: "no question at level normal"}

func (b *builder) ruleText(text string, at report.Path, most int, why string) {
	switch {
	case strings.TrimSpace(text) == "":
		b.Fail(at, "it is blank; %s", why)
	case len([]rune(text)) > most:
		b.Fail(at, "it is longer than %d characters", most)
	case strings.ContainsFunc(text, func(c rune) bool { return c == '\n' || c == '\t' || display.Invisible(c) }):
		b.Fail(at, "it holds line breaks or characters that nobody sees: %s", printable(text))
	}
}

// warnRule reports rules that probably do not do what they seem to say.
func (b *builder) warnRule(r *compiledRule, at report.Path) {
	tool := visible.NormalizeName(r.Tool)
	if !b.words.Matches(tool) {
		b.Warn(report.Warning{
			Path: at.At("tool"), Code: report.CheckUnknownEntries,
			Text: fmt.Sprintf("%q matches no tool, group or plug-in%s", r.Tool, report.DidYouMean(tool, b.words.Names())),
		})
	}
	var rows []row
	known := b.snapshot.table[tool]
	if known != nil {
		rows = known.rows
	}
	if action, _, _ := strings.Cut(r.action, ":"); known != nil && action != "" && !hasAction(tool, rows, action) {
		b.Warn(report.Warning{
			Path: at.At("action"), Code: report.CheckUnknownEntries,
			Text: fmt.Sprintf("%q is no action of %s that the class table knows", r.Action, tool),
		})
	}
	if r.then != ThenAllow {
		return
	}
	if len(rows) > 0 && !slices.ContainsFunc(rows, func(w row) bool {
		return w.Class == toolward.NeedsApproval && w.Severity != toolward.Critical && !w.runsCommand()
	}) {
		b.Warn(report.Warning{
			Path: at, Code: report.CheckRuleAllowsNothing,
			Text: fmt.Sprintf("no call of %s can be allowed by a rule: only those that people decide, that are not critical, and that are no commands", tool),
		})
		return
	}
	b.loosened(tool, report.Warning{
		Path: at, Code: report.CheckLoosened, Text: fmt.Sprintf("rule %q lets calls of %s run without a question at level normal", r.Name, r.Tool),
	})
}

func hasAction(tool string, rows []row, action string) bool {
	return tool == "exec" && action == "elevated" || slices.ContainsFunc(rows, func(w row) bool { return slices.Contains(w.actions, action) })
}
