package approval

import (
	"errors"
	"slices"
	"strings"

	"github.com/toolward/toolward"
)

// errHidden is the reason of a question that is not asked, because its screen would not show what runs.
var errHidden = errors.New("what looks like a secret in the command holds characters that a shell acts on")

// checkHidden refuses a command, or input for a process, in which hiding secrets would hide something that a shell acts
// on. "https://user:a;rm -rf x@host" looks like an address with a password; on the screen it would be a harmless
// address, and the person would approve what they could not see.
func (m *Manager) checkHidden(q *toolward.Question) error {
	runs := q.Request.Facts.Command != "" || q.Judgment.Class.Grant == toolward.GrantProcess
	if runs && (m.hides(q.Request.Facts.Command) || m.hides(q.Request.Params.Object())) {
		return refuseHidden(q.Request)
	}
	return nil
}

func refuseHidden(r *toolward.Request) error {
	return &toolward.Refusal{
		Tool: r.Tool.Name, Code: toolward.CodeValidation, Cause: errHidden,
		Detail: "a secret in the command cannot be hidden without hiding what would run; hand it over in a file",
	}
}

// hides looks at every text of a command's parameters: its environment runs as well, in a pager or an editor.
func (m *Manager) hides(v any) bool {
	switch v := v.(type) {
	case string:
		return hidesSyntax(v, m.redact(v))
	case []any:
		return slices.ContainsFunc(v, m.hides)
	case map[string]any:
		for name, below := range v {
			if m.hides(name) || m.hides(below) {
				return true
			}
		}
	}
	return false
}

// hidesSyntax reports whether the hidden parts of a text hold anything but what words are made of. Wherever they lie,
// together they are what the text has and the shown text has not.
func hidesSyntax(text, shown string) bool {
	if text == shown {
		return false
	}
	var missing [256]int
	for _, c := range []byte(withoutMarks(text)) {
		missing[c]++
	}
	for _, c := range []byte(withoutMarks(shown)) {
		missing[c]--
	}
	for c, n := range missing {
		if n > 0 && !inWord(byte(c)) {
			return true
		}
	}
	return false
}

// inWord admits bytes that no shell gives a meaning inside a word.
func inWord(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c >= 0x80 || strings.IndexByte("_-+/=.,:@%", c) >= 0
}

// withoutMarks drops the marks that stand for hidden parts, "[hidden: <kind>]".
func withoutMarks(text string) string { return strings.Join(literalsOf(text), "") }

// literalsOf are the parts of a redacted text around its marks.
func literalsOf(text string) (literals []string) {
	const mark = "[hidden: "
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(text, mark)
		b.WriteString(before)
		if !found {
			return append(literals, b.String())
		}
		kind := len(rest) - len(strings.TrimLeft(rest, "abcdefghijklmnopqrstuvwxyz-"))
		if kind == len(rest) || rest[kind] != ']' {
			b.WriteString(mark)
			text = rest
			continue
		}
		literals = append(literals, b.String())
		b.Reset()
		text = rest[kind+1:]
	}
}
