package trial

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf16"

	"github.com/toolward/toolward/display"
	"github.com/toolward/toolward/policy"
)

// Snippet is the rule as it goes into the file. What nobody can see in it is escaped.
func Snippet(r *policy.Rule) (string, error) {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(r); err != nil {
		return "", err
	}
	return escapeUnseen(strings.TrimSuffix(b.String(), "\n")), nil
}

// escapeUnseen writes characters of JSON that nobody sees, or that a terminal obeys, as \u escapes: in a rule they stand
// in texts only, such as the path of a file.
func escapeUnseen(text string) string {
	if !display.HasInvisible(text) {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		if !display.Invisible(r) {
			b.WriteRune(r)
			continue
		}
		for _, unit := range utf16.Encode([]rune{r}) {
			fmt.Fprintf(&b, `\u%04x`, unit)
		}
	}
	return b.String()
}
