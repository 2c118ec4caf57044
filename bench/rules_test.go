package bench

import (
	"fmt"

	"github.com/toolward/toolward"
)

// rule is one rule that every engine holds in its own words. What no rule is about asks; deny beats allow.
type rule struct {
	agent  string // "" for every agent
	tool   string
	action string // "" for every action
	then   toolward.Verdict
}

// someRules spreads n rules over tools, agents and actions.
func someRules(n int) []rule {
	rules := make([]rule, n)
	for i := range rules {
		tool := fmt.Sprintf("server__tool_%d", i)
		switch i % 4 {
		case 0:
			rules[i] = rule{tool: tool, then: toolward.Allow}
		case 1:
			rules[i] = rule{tool: tool, then: toolward.Deny}
		case 2:
			rules[i] = rule{agent: "coder", tool: tool, then: toolward.Deny}
		default:
			rules[i] = rule{tool: "message", action: fmt.Sprintf("action%d", i), then: toolward.Deny}
		}
	}
	return rules
}

// call is what is decided.
type call struct {
	agent, tool, action string
	want                toolward.Verdict
}

// someCalls hit the first, the middle and no rule of n.
func someCalls(n int) []call {
	middle := n / 2 / 4 * 4
	name := func(i int) string { return fmt.Sprintf("server__tool_%d", i) }
	return []call{
		{"coder", name(0), "", toolward.Allow},
		{"coder", name(middle), "", toolward.Allow},
		{"coder", name(middle + 1), "", toolward.Deny},
		{"coder", name(middle + 2), "", toolward.Deny},
		{"main", name(middle + 2), "", toolward.Ask},
		{"main", "message", fmt.Sprintf("action%d", middle+3), toolward.Deny},
		{"main", "message", "send", toolward.Ask},
	}
}

// engine decides one of the calls that it was prepared for. Everything that a program can do before the call arrives
// is done: rules are compiled, and the call has the engine's own form.
type engine struct {
	name   string
	decide func(i int) toolward.Verdict
}
