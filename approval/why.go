package approval

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/toolward/toolward"
)

// mostReasons is how many reasons a call itself has; one more may offer the way out of lockdown.
const mostReasons = maxReasons - 1

// why is why people are asked: what was seen in the arguments, the worst first, where addresses lead that seem to lead
// elsewhere, and the rules. The findings are those of the first reasons, in the same order. They quote arguments, so they are
// redacted too.
//
// What does not fit is counted in the last reason. Notes go first, since they explain and decide nothing, then rules, then
// findings, from the end: a caller that fills its arguments with oddities must not push the one that matters out of sight.
func (m *Manager) why(found []toolward.Finding, addresses, rules []string) ([]toolward.Finding, []string) {
	found = slices.Clone(found)
	slices.SortStableFunc(found, func(a, b toolward.Finding) int { return cmp.Compare(a.Effect, b.Effect) })
	var last []string
	if over := len(found) + len(addresses) + len(rules) - mostReasons; over > 0 {
		over++ // the line that counts needs room as well
		last = []string{fmt.Sprintf("… and %d more", over)}
		for over > 0 && len(found) > 0 && found[len(found)-1].Effect == toolward.EffectNote {
			found, over = found[:len(found)-1], over-1
		}
		n := min(over, len(rules))
		rules = rules[:len(rules)-n]
		found = found[:len(found)-(over-n)] // addresses are few, see maxMisleading
	}
	var reasons []string
	for i := range found {
		f := &found[i]
		reasons = append(reasons, cut(m.redact(strings.TrimSuffix(f.Code+": "+f.Detail, ": ")), maxReasonText))
		f.Detail = cut(m.redact(f.Detail), maxReasonText)
	}
	reasons = append(reasons, addresses...) // they are redacted
	for _, rule := range rules {
		reasons = append(reasons, cut(m.redact(rule), maxReasonText))
	}
	return found, append(reasons, last...)
}

// rulesOf are what the policy says in words.
func rulesOf(j toolward.Judgment) []string {
	var out []string
	for _, r := range j.Reasons {
		out = append(out, cmp.Or(r.Text, r.Layer+" "+r.Rule))
	}
	return out
}

// redacted hides what looks like a secret in each text.
func (m *Manager) redacted(texts []string) []string {
	var out []string
	for _, text := range texts {
		out = append(out, m.redact(text))
	}
	return out
}
