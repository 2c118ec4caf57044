package display

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestRowsCannotBeForged(t *testing.T) {
	o := &Outline{}
	o.Add(OutlineLine{Kind: LineCommand, Mark: MarkAsk, Label: "| into", Text: "'x\nok    ls'", Note: "a\u200bb"})
	o.Add(OutlineLine{Depth: 1, Kind: LineEffect, Mark: MarkRun, Label: "reads", Text: strings.Repeat("a ", 30) + "ok    b"})
	o.Add(OutlineLine{Depth: 1, Kind: LineFinding, Mark: MarkAsk, Text: "deletes a whole tree"})
	o.Add(OutlineLine{Depth: 1, Kind: LineFinding, Mark: MarkDeny, Text: "forbidden"})
	var got []string
	for _, row := range o.Rows(50) {
		got = append(got, row.Text)
	}
	want := []string{
		"asks  | into 'x⟦newline⟧ok    ls' — ",
		"          a⟦U+200B⟧b",
		"ok      reads a a a a a a a a a a a a a a a a ",
		"            a a a a a a a a a a a a a a ok    b",
		"!!      deletes a whole tree",
		"no      forbidden",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestAnOutlineIsBoundedAndSaysSo(t *testing.T) {
	o := &Outline{}
	for range 1000 {
		o.Add(OutlineLine{Depth: 99, Text: strings.Repeat("x", 10_000)})
	}
	o.AddLast(make([]OutlineLine, 60)...)
	if len(o.Lines) != maxLines+1+maxLastLines+1 || o.Cut != 1000-maxLines {
		t.Fatalf("%d lines, %d cut", len(o.Lines), o.Cut)
	}
	if got := o.Lines[maxLines].Label; !strings.Contains(got, "750 more lines are not shown") {
		t.Errorf("mark: %q", got)
	}
	if got := o.Lines[len(o.Lines)-1].Label; !strings.Contains(got, "10 more lines are not shown") {
		t.Errorf("mark at the end: %q", got)
	}
	if got := o.Lines[0].Text; len(got) > 2100 || !strings.Contains(got, " … 8000 characters are not shown … ") || o.Lines[0].Depth != maxDepth {
		t.Errorf("depth %d, text of %d bytes: %.80q", o.Lines[0].Depth, len(got), got)
	}
}

func TestAnOutlineIsRedactedEverywhere(t *testing.T) {
	o := &Outline{Cut: 2}
	o.Add(OutlineLine{Label: "hunter2", Text: "a hunter2", Note: "hunter2 b"})
	clean := o.Redacted(func(s string) string { return strings.ReplaceAll(s, "hunter2", "[hidden: password]") })
	if l := clean.Lines[0]; strings.Contains(l.Label+l.Text+l.Note, "hunter2") || clean.Cut != 2 {
		t.Errorf("%+v", clean)
	}
	if o.Lines[0].Label != "hunter2" {
		t.Error("the outline itself was changed")
	}
	if none := (*Outline)(nil); none.Redacted(strings.ToUpper) != nil || none.Rows(80) != nil {
		t.Error("no outline became one")
	}
}

// Whatever a call brings, no row holds what moves a cursor, and none but the first of a line begins at the left edge.
func TestRowsAreSafe(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := &Outline{}
		text := rapid.String().Draw(t, "text") + string(rapid.SliceOf(rapid.Byte()).Draw(t, "bytes"))
		o.Add(OutlineLine{Depth: rapid.IntRange(0, 20).Draw(t, "depth"), Mark: MarkAsk, Text: text})
		for i, row := range o.Rows(rapid.IntRange(0, 120).Draw(t, "width")) {
			if HasInvisible(row.Text) || strings.ContainsAny(row.Text, "\n\t") || i > 0 && !strings.HasPrefix(row.Text, noGutter+hanging) {
				t.Fatalf("row %d of %q: %q", i, text, row.Text)
			}
		}
	})
}

func TestFoldKeepsEveryCharacter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		line := rapid.StringOf(rapid.SampledFrom([]rune("ab  \té漢"))).Draw(t, "line")
		width := rapid.IntRange(0, 60).Draw(t, "width")
		rows := Fold(line, width)
		if strings.Join(rows, "") != line {
			t.Fatalf("%q became %q", line, rows)
		}
		for _, row := range rows {
			columns := 0
			for _, r := range row {
				columns += columnsOf(r)
			}
			if columns > max(width, 20) {
				t.Fatalf("row %q has %d columns of %d", row, columns, width)
			}
		}
	})
}

func TestWords(t *testing.T) {
	for want, words := range map[string][]string{
		"git log --oneline":       {"git", "log", "--oneline"},
		"'' ' ' 'a b' 'it'\\''s'": {"", " ", "a b", "it's"},
		"'{}' '*' '~' '$x' '|'":   {"{}", "*", "~", "$x", "|"},
		"'é' 'x\u200b' 'a\nb'":    {"é", "x\u200b", "a\nb"},
	} {
		if got := Words(words...); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestAllowedProgram(t *testing.T) {
	for _, c := range []struct {
		effects, argv []string
		want          string
	}{
		{[]string{"read"}, nil, "/usr/bin/x, reading"},
		{[]string{"read", "write"}, nil, "/usr/bin/x, reading and writing in the workspace, also by the project's code"},
		{[]string{"read", "write", "network"}, nil, "/usr/bin/x, reading, writing in the workspace, also by the project's code and talking to public hosts"},
		{[]string{}, nil, "/usr/bin/x, without reading or changing any file"},
		{nil, nil, "/usr/bin/x, as far as the preset goes"},
		{[]string{"read"}, []string{"/usr/bin/x", "a b"}, "exactly: /usr/bin/x 'a b'"},
	} {
		if got := AllowedProgram("/usr/bin/x", c.effects, c.argv); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}
