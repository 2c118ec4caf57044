package console

import (
	"encoding/json"
	"html"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/toolward/toolward/approval"
	"github.com/toolward/toolward/display"
)

var (
	commandBlock = regexp.MustCompile(`(?s)aria-label="Command">(.*?)</pre>`)
	ourMarks     = regexp.MustCompile(`</?mark[^<>]*>`)
)

// TestDisplayVectors renders the card of every command of the corpus: its text is shown as display shows it, and nothing
// of it becomes markup. The cases count where the whole gate plays them: internal/attacks.
func TestDisplayVectors(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join("..", "..", "internal", "attacks", "testdata", "vectors", "attacks.json"))
	if err != nil {
		t.Fatal(err)
	}
	var corpus struct {
		Cases []struct {
			ID, Surface string
			Attempt     struct{ Command any }
		}
	}
	if err := json.Unmarshal(raw, &corpus); err != nil {
		t.Fatal(err)
	}
	held := 0
	for _, c := range corpus.Cases {
		command, ok := c.Attempt.Command.(string)
		if c.Surface != "display" || !ok {
			continue
		}
		t.Run(c.ID, func(t *testing.T) {
			for _, text := range []string{command, command + "</pre></ul><script>alert(1)</script>"} {
				page := cardOf(t, text, text)
				elements := strings.Count(cardOf(t, strings.Repeat("x\n", strings.Count(text, "\n"))+"x", "x"), "<")
				if n := strings.Count(ourMarks.ReplaceAllString(page, ""), "<"); n != elements {
					t.Errorf("%d elements instead of %d:\n%s", n, elements, page)
				}
				found := commandBlock.FindStringSubmatch(page)
				if found == nil {
					t.Fatal("the command is not shown")
				}
				if got, want := html.UnescapeString(ourMarks.ReplaceAllString(found[1], "")), display.Block(text); got != want {
					t.Errorf("shown as %q, want %q", got, want)
				}
				if plain := strings.NewReplacer("\n", "", "\t", "").Replace(page); display.HasInvisible(plain) {
					t.Error("something on the card is not visible")
				}
			}
			held++
		})
	}
	if held == 0 {
		t.Error("no card was looked at")
	}
}

// cardOf is the page's part for a command with an outline that holds a text of the call in every place.
func cardOf(t *testing.T, command, text string) string {
	t.Helper()
	o := &display.Outline{}
	o.Add(display.OutlineLine{Kind: display.LineCommand, Mark: display.MarkAsk, Label: text, Text: text, Note: text})
	var b strings.Builder
	c := newCard("/s", &approval.Record{ID: "id", State: approval.StatePending, Request: &approval.Details{
		Tool: "exec", Command: command, Outline: o, Variables: []string{text}, WorkDir: text, Agent: text,
	}}, time.Now())
	if err := templates().ExecuteTemplate(&b, "card", c); err != nil {
		t.Fatal(err)
	}
	return b.String()
}
