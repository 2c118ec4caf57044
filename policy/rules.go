package policy

import (
	"fmt"
	"slices"
	"time"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/policy/memo"
	"github.com/toolward/toolward/policy/rule"
	"github.com/toolward/toolward/policy/visible"
)

// Then is what a rule does with a call for which its condition holds. The values are ordered as they are tried: a
// stricter one makes the others pointless.
type Then uint8

// The values of Then.
const (
	ThenDeny  Then = iota // refuse
	ThenAsk               // a person decides, each time anew
	ThenAllow             // run at level normal what a person or a grant would have to decide
	thenCount
)

var thenNames = []string{"deny", "ask", "allow"}

func (t Then) String() string {
	if t < thenCount {
		return thenNames[t]
	}
	return thenNames[ThenDeny]
}

// MarshalText writes "deny", "ask" or "allow".
func (t Then) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// UnmarshalText reads what MarshalText writes; anything else is an error and leaves deny.
func (t *Then) UnmarshalText(text []byte) error {
	if i := slices.Index(thenNames, string(text)); i >= 0 {
		*t = Then(i)
		return nil
	}
	*t = ThenDeny
	return fmt.Errorf("invalid then %q: use one of %q", text, thenNames)
}

// compiledRule is one entry of teg.rules.
type compiledRule struct {
	Rule
	then      Then
	action    string // squashed; "": whatever the action
	tools     visible.Names
	condition *rule.Condition
	contents  []string        // variables of the condition that records do not keep
	reason    toolward.Reason // what is said when the condition holds
	key       string          // for Judgment.Overrides
}

// toolRules are the rules that concern one tool, in the order of their names: which rule is named must not depend on
// the order in the file.
type toolRules struct {
	any      *actionRules            // whatever the action
	byAction map[string]*actionRules // by squashed action
	byLevel  bool                    // a rule that asks or denies looks at the level
}

// actionRules are rules for one action, or for all.
type actionRules [thenCount]struct {
	rules []*compiledRule
	index *rule.Index // of their conditions
}

// newActionRules prepares rules that are in order.
func newActionRules(rules []*compiledRule) *actionRules {
	a := &actionRules{}
	for _, r := range rules {
		a[r.then].rules = append(a[r.then].rules, r)
	}
	for i := range a {
		conditions := make([]*rule.Condition, len(a[i].rules))
		for j, r := range a[i].rules {
			conditions[j] = r.condition
		}
		a[i].index = rule.NewIndex(conditions)
	}
	return a
}

// of lists the rules of a kind.
func (a *actionRules) of(then Then) []*compiledRule {
	if a == nil {
		return nil
	}
	return a[then].rules
}

// toolKey names a tool for rules. Two plug-ins may bring tools of one name.
type toolKey struct{ name, plugin string }

// ruleSet is a compiled teg.rules.
type ruleSet struct {
	all    []*compiledRule        // by name
	byTool map[toolKey]*toolRules // tools that are known when the configuration is read
	others memo.Map[toolKey, *toolRules]
}

// of returns the rules for a tool; nil if there are none.
func (s *ruleSet) of(name, plugin string) *toolRules {
	if len(s.all) == 0 {
		return nil
	}
	key := toolKey{name, plugin}
	if t, ok := s.byTool[key]; ok {
		return t
	}
	return s.others.Of(key, func() *toolRules { return s.index(key) })
}

// index collects the rules for a tool.
func (s *ruleSet) index(key toolKey) *toolRules {
	byAction := map[string][]*compiledRule{}
	byLevel := false
	for _, r := range s.all {
		if _, concerns := r.tools.Match(key.name, visible.NormalizeName(key.plugin)); concerns {
			byAction[r.action] = append(byAction[r.action], r)
			byLevel = byLevel || r.then != ThenAllow && slices.Contains(r.condition.Reads(), "level")
		}
	}
	if len(byAction) == 0 {
		return nil
	}
	t := &toolRules{byAction: map[string]*actionRules{}, byLevel: byLevel}
	for action, rules := range byAction {
		t.byAction[action] = newActionRules(rules)
	}
	t.any = t.byAction[""]
	delete(t.byAction, "")
	return t
}

// rulings is what the rules for a tool say about one call.
type rulings struct {
	rules *toolRules
	call  *rule.Call
	keys  [2]string // names of the call's action; "" for none
}

// first returns the first rule of a kind that hits. A condition that cannot be evaluated hits where the rule asks or
// denies, and misses where it allows: a call must not get out of a rule by making it fail, nor into one.
func (r *rulings) first(then Then) (hit *compiledRule, failure error) {
	if hit, failure = r.rules.any.first(then, r.call); hit != nil {
		return hit, failure
	}
	for _, key := range r.keys {
		if hit, failure = r.rules.byAction[key].first(then, r.call); hit != nil {
			return hit, failure
		}
	}
	return nil, nil
}

// firstAt is first for rules that raise. One that hits at a calm level hits at every tenser one too, whatever it says
// about levels: a session that gets tense must not get out of a rule.
func (r *rulings) firstAt(then Then, level toolward.Level) (hit *compiledRule, failure error) {
	if hit, failure = r.first(then); hit != nil || !r.rules.byLevel {
		return hit, failure
	}
	defer r.call.At(level)
	for calmer := level + 1; calmer <= toolward.Normal; calmer++ {
		r.call.At(calmer)
		if hit, failure = r.first(then); hit != nil {
			return hit, failure
		}
	}
	return nil, nil
}

func (a *actionRules) first(then Then, call *rule.Call) (*compiledRule, error) {
	if a == nil || len(a[then].rules) == 0 {
		return nil, nil
	}
	i, failure := a[then].index.First(call, then != ThenAllow)
	if i < 0 {
		return nil, nil
	}
	return a[then].rules[i], failure
}

// rule applies teg.rules to a classified call that no finding refuses, and returns how strict they are: EffectDeny,
// EffectAsk, or EffectNote for nothing to raise.
func (s *Snapshot) rule(r *toolward.Request, level toolward.Level, c *classified) toolward.Effect {
	rules := s.rulesOf.of(r.Tool.Name, r.Tool.Plugin)
	if rules == nil || c.Class == toolward.Blocked && !c.enabled {
		return toolward.EffectNote
	}
	sub := subject{tool: r.Tool.Name, params: r.Params, elevated: r.Facts.Elevated}
	sub.readParams(r.Facts.Action)
	call := rule.Look(r, sub.action, level)
	defer call.Release()
	rulings := rulings{rules: rules, call: call}
	if len(rules.byAction) > 0 {
		rulings.keys[0], rulings.keys[1] = sub.actionKeys()
	}
	if hit, failure := rulings.firstAt(ThenDeny, level); hit != nil {
		c.ruledBy(hit, failure)
		return toolward.EffectDeny
	}
	if hit, failure := rulings.firstAt(ThenAsk, level); hit != nil {
		c.ruledBy(hit, failure)
		c.wait = time.Duration(hit.WaitMs) * time.Millisecond
		return toolward.EffectAsk
	}
	if c.lowerable() {
		if hit, failure := rulings.first(ThenAllow); hit != nil {
			c.ruledBy(hit, failure)
			c.Class, c.From = toolward.Safe, toolward.Elevated
		}
	}
	return toolward.EffectNote
}

// lowerable reports whether a rule may let the call run without a question: people decide about it, it is not
// critical, no section of its agent insists on the question, and it is no command. What a command does cannot be seen
// by its text; the allowlist for commands is made for that.
func (c *classified) lowerable() bool {
	return c.Class == toolward.NeedsApproval && c.Severity != toolward.Critical && !c.agentInsists && !c.row.runsCommand()
}

// ruledBy says in the record and to people which rule decided.
func (c *classified) ruledBy(r *compiledRule, failure error) {
	reason := r.reason
	if failure != nil {
		reason.Text += " (whether it applies is not known: " + printable(failure.Error()) + ")"
	}
	c.overrides = append(c.overrides, r.key)
	c.explain(reason)
}
