package command

import (
	"os/exec"
	"strings"
	"testing"
)

// A quoted text is that text to whatever shell, and none of it can get out of its quotes.
func TestQuotedForEveryShell(t *testing.T) {
	for _, text := range []string{"a", "", "it's", `a\`, `\`, `\\`, `a\'b; id #`, `'\'`, `\' ; id ; \'`, `$x "y" \"`, "a\nb", `\\\\'''`, `\n`} {
		var b strings.Builder
		writeQuoted(&b, text)
		for _, shell := range []string{"bash", "zsh", "dash"} {
			if _, err := exec.LookPath(shell); err != nil {
				continue
			}
			out, err := exec.Command(shell, "-c", "printf %s "+b.String()).Output()
			if err != nil || string(out) != text {
				t.Errorf("%s: %s is %q, not %q (%v)", shell, b.String(), out, text, err)
			}
		}
		if got := fish(b.String()); got != text {
			t.Errorf("fish: %s is %q, not %q", b.String(), got, text)
		}
	}
}

// fish reads a word of quotes as fish does: between single quotes a backslash stands for a quote or a backslash behind it,
// between double quotes for $ besides.
func fish(word string) string {
	var text strings.Builder
	quote := byte(0)
	for i := 0; i < len(word); i++ {
		switch c := word[i]; {
		case quote == 0 && (c == '\'' || c == '"'):
			quote = c
		case quote == 0:
			return "out of its quotes: " + word[i:]
		case c == quote:
			quote = 0
		case c == '\\' && i+1 < len(word) && (word[i+1] == '\\' || word[i+1] == quote || quote == '"' && word[i+1] == '$'):
			i++
			text.WriteByte(word[i])
		default:
			text.WriteByte(c)
		}
	}
	if quote != 0 {
		return "still in its quotes"
	}
	return text.String()
}
