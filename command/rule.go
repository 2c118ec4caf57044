package command

import (
	"path"
	"slices"
	"strings"
)

// Rule says what happens to commands that begin with certain words. All rules that fit apply; the strictest decides.
type Rule struct {
	Prefix        []Alternatives `json:"prefix" jsonschema:"the words that the command begins with: each one word, or a list of alternatives"`
	Decision      Decision       `json:"decision" jsonschema:"allow: as an entry for all that the program does; prompt: a person is asked; forbidden: refused in every mode"`
	Justification string         `json:"justification,omitempty" jsonschema:"why, for people"`
	// Examples, checked when the configuration is read: a rule that does not mean what its author thinks is worse than
	// none.
	Match    []string `json:"match,omitempty" jsonschema:"commands that the rule is about"`
	NotMatch []string `json:"notMatch,omitempty" jsonschema:"commands that it is not about"`
}

// Alternatives are words of which one must stand in a place.
type Alternatives []string

// Decision is what a rule says. The zero value is no decision and refused when rules are checked.
type Decision string

// The decisions, strictest first.
const (
	Forbidden Decision = "forbidden" // in every mode
	Prompt    Decision = "prompt"    // a person is asked, whatever else is said
	Allow     Decision = "allow"     // as an entry for all that the program does; not for guarded files
)

// begins reports whether a command begins with the prefix. The program may be named by its base name or by one of its
// paths.
func (r *Rule) begins(argv []string, prog *Program) bool {
	if len(argv) < len(r.Prefix) {
		return false
	}
	for i, words := range r.Prefix {
		switch {
		case slices.Contains(words, argv[i]):
		case i == 0 && (slices.Contains(words, path.Base(argv[0])) || prog != nil && slices.ContainsFunc(words, func(w string) bool {
			return w == prog.Path || w == prog.Real || !strings.Contains(w, "/") && w == path.Base(prog.Real)
		})):
		default:
			return false
		}
	}
	return true
}

// decide gives the strictest decision of the rules that fit, and the rule; nil if none does.
func decide(rules []Rule, argv []string, prog *Program) *Rule {
	var strictest *Rule
	order := []Decision{Forbidden, Prompt, Allow}
	for i := range rules {
		if rules[i].begins(argv, prog) && (strictest == nil ||
			slices.Index(order, rules[i].Decision) < slices.Index(order, strictest.Decision)) {
			strictest = &rules[i]
		}
	}
	return strictest
}

// reason tells people why the rule is there.
func (r *Rule) reason() string {
	if r.Justification != "" {
		return r.Justification
	}
	return "a rule about " + r.text() + " says " + string(r.Decision)
}

// text is the prefix for people.
func (r *Rule) text() string {
	words := make([]string, len(r.Prefix))
	for i, alternatives := range r.Prefix {
		words[i] = strings.Join(alternatives, "|")
	}
	return strings.Join(words, " ")
}
