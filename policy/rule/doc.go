// Package rule is the language of teg.rules: conditions on a call, written in CEL (https://cel.dev).
//
// A condition is compiled once, when the configuration is read: it is parsed, type-checked, and refused if it could
// cost too much. At a call it sees the canonical parameters, the facts that decisions are made on, the caller and the
// level, through a [Call] that looks nothing up before it is asked for.
//
//	condition, err := rule.Compile(`hostIn(facts.urls[0], ["*.example.org"]) && level == "normal"`)
//	call := rule.Look(request, action, level)
//	defer call.Release()
//	holds, err := condition.Holds(call)
//
// An error means that nobody knows whether the condition holds. What then counts is up to the caller: policy takes it
// for yes where the rule asks or denies, and for no where it allows.
package rule
