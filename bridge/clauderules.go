package bridge

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/toolward/toolward"
)

// claudeRules are the client's own permission rules about commands, which it holds against the text that it runs. A confined command runs
// as "toolward-run TICKET", so the client no longer sees what its person has forbidden: we hold them against the command in its place.
type claudeRules struct{ Deny, Ask []string }

// settingsFiles are the client's settings, nearest first.
func (l *factsFinder) settingsFiles() []string {
	return []string{
		l.managed,
		filepath.Join(l.project, ".claude", "settings.local.json"),
		filepath.Join(l.project, ".claude", "settings.json"),
		filepath.Join(l.config, "settings.json"),
	}
}

// rules are the rules of all settings together, as the client takes them. A file that cannot be read hides none of the others; ok is
// false then, because nobody knows what it forbids.
func (l *factsFinder) rules() (all claudeRules, ok bool) {
	ok = true
	for _, path := range l.settingsFiles() {
		data, err := os.ReadFile(path)
		if os.IsNotExist(err) {
			continue
		}
		permissions := json.RawMessage("{}")
		var deny, ask []string
		if err != nil || member(data, "permissions", &permissions) != nil ||
			member(permissions, "deny", &deny) != nil || member(permissions, "ask", &ask) != nil {
			ok = false
			continue
		}
		all.Deny, all.Ask = append(all.Deny, deny...), append(all.Ask, ask...)
	}
	return all, ok
}

// member reads one value of an object as the client does: by a name's exact letters, where encoding/json would let a second name that
// differs in case overrule it. What is absent leaves into as it is.
func member(data []byte, name string, into any) error {
	var object map[string]json.RawMessage
	if err := json.Unmarshal(data, &object); err != nil {
		return err
	}
	value, has := object[name]
	if !has {
		return nil
	}
	return json.Unmarshal(value, into)
}

// betweenCommands is where one command of a text ends and another begins, as far as the client looks.
var betweenCommands = regexp.MustCompile(`&&|\|\||[;&|\n(){}]`)

// holds is the first of some rules that is about a command of the text; "" if none is.
func holds(rules []string, text string) string {
	parts := append(betweenCommands.Split(text, -1), text)
	for _, rule := range rules {
		pattern, ok := commandPattern(rule)
		if !ok {
			continue
		}
		for _, part := range parts {
			if pattern.MatchString(strings.TrimSpace(part)) {
				return rule
			}
		}
	}
	return ""
}

// commandPattern is what a rule such as Bash(git push:*) or Bash(rm *) says of a command.
func commandPattern(rule string) (*regexp.Regexp, bool) {
	inner, ok := strings.CutPrefix(rule, "Bash(")
	inner, closed := strings.CutSuffix(inner, ")")
	if !ok || !closed {
		return nil, false
	}
	tail := ""
	if prefix, ok := strings.CutSuffix(inner, ":*"); ok {
		inner, tail = prefix, `(?:\s.*)?`
	}
	var b strings.Builder
	for i, fixed := range strings.Split(inner, "*") {
		if i > 0 {
			b.WriteString(".*")
		}
		b.WriteString(regexp.QuoteMeta(fixed))
	}
	pattern, err := regexp.Compile(`(?s)\A(?:[A-Za-z_][A-Za-z0-9_]*=\S*\s+)*` + b.String() + tail + `\z`)
	return pattern, err == nil
}

// lookAtOwnRules adds what the client's own rules say of a command that it will not see.
func (l *factsFinder) lookAtOwnRules(facts *toolward.Facts) {
	rules, ok := l.rules()
	if denied := holds(rules.Deny, facts.Command); denied != "" {
		facts.Findings = append(facts.Findings, toolward.Finding{
			Code: "client_rule", Effect: toolward.EffectDeny, Detail: "the client's own settings deny " + denied,
		})
		return
	}
	asked := holds(rules.Ask, facts.Command)
	switch {
	case asked != "":
		asked = "the client's own settings ask about " + asked
	case !ok:
		asked = "the client's own settings cannot be read, and may forbid it"
	default:
		return
	}
	facts.Findings = append(facts.Findings, toolward.Finding{Code: "client_rule", Effect: toolward.EffectAsk, Detail: asked})
}
