package execpolicy

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/toolward/toolward/shell"
)

// Rule says what happens to commands that begin with certain words. All rules that fit apply; the strictest decides.
type Rule struct {
	Prefix        []Alternatives `json:"prefix"`
	Decision      Decision       `json:"decision"`
	Justification string         `json:"justification,omitempty"`
	// Examples, checked when the configuration is read: a rule that does not mean what its author thinks is worse than
	// none.
	Match    []string `json:"match,omitempty"`
	NotMatch []string `json:"notMatch,omitempty"`
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

// CheckRules tries the examples of rules. index tells which rule the error is about.
func CheckRules(rules []Rule) (index int, err error) {
	for i := range rules {
		if err := rules[i].check(); err != nil {
			return i, err
		}
	}
	return 0, nil
}

func (r *Rule) check() error {
	switch {
	case len(r.Prefix) == 0:
		return fmt.Errorf("prefix: name at least the program")
	case !slices.Contains([]Decision{Forbidden, Prompt, Allow}, r.Decision):
		return fmt.Errorf("decision: invalid value %q: use one of allow, prompt, forbidden", r.Decision)
	}
	for i, words := range r.Prefix {
		if len(words) == 0 || slices.Contains(words, "") && i == 0 {
			return fmt.Errorf("prefix[%d]: a word or a list of words is missing", i)
		}
	}
	for i, example := range r.Match {
		if ok, err := r.covers(example); err != nil || !ok {
			return fmt.Errorf("match[%d]: the rule does not cover %q%s", i, example, because(err))
		}
	}
	for i, example := range r.NotMatch {
		if ok, err := r.covers(example); err != nil || ok {
			return fmt.Errorf("notMatch[%d]: the rule covers %q%s", i, example, because(err))
		}
	}
	return nil
}

func because(err error) string {
	if err == nil {
		return ""
	}
	return ": " + err.Error()
}

// covers reports whether any command of an example begins with the prefix.
func (r *Rule) covers(example string) (bool, error) {
	command, err := shell.Analyse(example)
	if err != nil {
		return false, err
	}
	return slices.ContainsFunc(command.Segments, func(s shell.Segment) bool { return r.begins(s.Argv(), nil) }), nil
}

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
