package display

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// attack is a case of attacks.json about what people are shown.
type attack struct {
	ID, Class, Surface, Level, Why string
	Attempt                        struct {
		Command json.RawMessage
		Field   string
		Value   json.RawMessage
	}
	Check struct {
		VisibleEscape bool `json:"visible_escape"`
		RoundTrip     bool `json:"round_trip"`
		ShowsTruth    bool `json:"shows_truth"`
	}
}

// text unpacks a value: a string, or {"$rle": [text, [unit, n], …]}. Anything else is not a text.
func text(t *testing.T, raw json.RawMessage) (string, bool) {
	t.Helper()
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s, true
	}
	var packed struct {
		Runs []json.RawMessage `json:"$rle"`
	}
	if json.Unmarshal(raw, &packed) != nil || packed.Runs == nil {
		return "", false
	}
	var b strings.Builder
	for _, run := range packed.Runs {
		if json.Unmarshal(run, &s) == nil {
			b.WriteString(s)
			continue
		}
		var unit string
		var n int
		if err := json.Unmarshal(run, &[]any{&unit, &n}); err != nil {
			t.Fatal(err)
		}
		b.WriteString(strings.Repeat(unit, n))
	}
	return b.String(), true
}

// TestTextsOfTheCorpus shows the texts of the corpus as cards do. Its cases count where the whole gate plays them: internal/attacks.
func TestTextsOfTheCorpus(t *testing.T) {
	files := []string{filepath.Join("..", "internal", "attacks", "testdata", "vectors", "attacks.json")}
	if dir := os.Getenv("TOOLWARD_VECTORS"); dir != "" {
		files = append(files, filepath.Join(dir, "attacks.json"))
	}
	shown := 0
	for i, file := range files {
		raw, err := os.ReadFile(file)
		if i > 0 && errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		var doc struct{ Cases []attack }
		if err := json.Unmarshal(raw, &doc); err != nil {
			t.Fatal(err)
		}
		for _, c := range doc.Cases {
			judge := judgeOf(t, c)
			if judge == nil {
				continue
			}
			shown++
			t.Run(c.ID, judge)
		}
	}
	if shown == 0 {
		t.Error("no text was shown")
	}
}

// judgeOf is the test of a case, or nil when it is about something else than how a text is shown.
func judgeOf(t *testing.T, c attack) func(*testing.T) {
	if c.Surface != "display" {
		return nil
	}
	command, isCommand := text(t, c.Attempt.Command)
	value, isValue := text(t, c.Attempt.Value)
	// As on a card: lines are kept, and what is beyond the limit is cut with a mark.
	card := Options{Lines: true, Limit: 4000}
	switch {
	case isCommand && c.Check.VisibleEscape:
		return func(t *testing.T) { mustEscape(t, command, Show(command, card)) }
	case isCommand && c.Check.RoundTrip:
		return func(t *testing.T) {
			if got := Show(command, card).String(); got != command {
				t.Errorf("%q is shown as %q", command, got)
			}
		}
	case isValue && c.Check.ShowsTruth && (c.Attempt.Field == "tool" || c.Attempt.Field == "cwd") && Line(value) != value:
		return func(t *testing.T) { mustEscape(t, value, Show(value, Options{})) }
	}
	return nil
}

// mustEscape demands an escape, and nothing left that hides, moves or pushes text away.
func mustEscape(t *testing.T, in string, shown Shown) {
	t.Helper()
	escaped := false
	for _, p := range shown.Pieces {
		escaped = escaped || p.Escaped && p.Note != ""
	}
	out := shown.String()
	if !escaped || HasInvisible(out) || Confusable(out) || strings.Contains(out, strings.Repeat(" ", maxSpaces+1)) || strings.Contains(out, strings.Repeat("\n", maxBlankLines+2)) {
		t.Errorf("%q is shown as %q", in, out)
	}
	if last := in[len(in)-1]; last > ' ' && last < 0x7f && out[len(out)-1] != last {
		t.Errorf("the end of %q is not shown: %q", in, out)
	}
}
