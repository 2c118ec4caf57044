package command

import (
	"reflect"
	"slices"
)

// Stricter reports whether commands of an agent are judged more strictly than by another configuration, in any respect.
// What cannot be ordered, such as two places to run, counts as stricter if it differs. Who may have elevated commands
// is left out: that is asked at each of them.
func (c *Configuration) Stricter(than *Configuration, agent string) bool {
	now, then := c.For(agent), than.For(agent)
	return than.Writes && !c.Writes || now.Host != then.Host ||
		then.Preset == Developer && now.Preset != Developer ||
		then.looseInlineEval() && !now.looseInlineEval() ||
		lacks(now.SafeBinTrustedDirs, then.SafeBinTrustedDirs) || lacks(now.safeBins(), then.safeBins()) ||
		!reflect.DeepEqual(then.SafeBinProfiles, now.SafeBinProfiles) ||
		adds(then.Rules, now.Rules, Forbidden, Prompt) || adds(now.Rules, then.Rules, Allow)
}

// lacks reports whether a list lacks something of another.
func lacks(list, other []string) bool {
	return slices.ContainsFunc(other, func(s string) bool { return !slices.Contains(list, s) })
}

// adds reports whether rules with one of the decisions came to others.
func adds(others, rules []Rule, decisions ...Decision) bool {
	return slices.ContainsFunc(rules, func(r Rule) bool {
		return slices.Contains(decisions, r.Decision) && !slices.ContainsFunc(others, func(o Rule) bool {
			return o.Decision == r.Decision && reflect.DeepEqual(o.Prefix, r.Prefix)
		})
	})
}
