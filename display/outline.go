package display

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// Outline is what a call would do, line by line; a deeper line says more about the one above it. It is bounded, and
// says what it leaves out. The texts are kept as they are: whoever shows them makes them safe, as [Outline.Rows] does.
type Outline struct {
	Lines []OutlineLine `json:"lines"`
	Cut   int           `json:"cut,omitempty"` // lines left out, of those before the last ones
}

// OutlineLine is one line. Label and Note are our own words; Text is what the call brings, and so may try to deceive.
type OutlineLine struct {
	Depth int      `json:"depth"`
	Kind  LineKind `json:"kind"`
	Mark  Mark     `json:"mark,omitempty"`
	Label string   `json:"label,omitempty"`
	Text  string   `json:"text,omitempty"`
	Note  string   `json:"note,omitempty"`
}

// LineKind says what a line is about.
type LineKind string

// The kinds of lines.
const (
	LineFinding LineKind = "danger"  // what people must not overlook
	LineCommand LineKind = "command" // one command with its arguments
	LineProgram LineKind = "program" // the file that it starts
	LineWrapper LineKind = "wrapper" // a program that starts it
	LineWord    LineKind = "word"    // a word, as written or as it will run
	LineEffect  LineKind = "effect"  // what it does to the world
	LineFile    LineKind = "file"    // a file that it is joined to
	LineNote    LineKind = "note"    // a remark
	LineAlways  LineKind = "always"  // what "always" would save
)

// Mark is the verdict on a line.
type Mark string

// The marks. Most lines have none.
const (
	NoMark   Mark = ""
	MarkRun  Mark = "run"
	MarkAsk  Mark = "ask"
	MarkDeny Mark = "deny"
)

// Bounds of an outline: what no person would read any more, and no store should have to keep.
const (
	maxLines     = 250
	maxLastLines = 50
	maxLineText  = 2000 // characters of each of the three texts
	maxDepth     = 12
)

// Add adds a line before the last ones. Too long a text loses its middle, too deep a line moves up, and too many lines
// are counted instead of kept.
func (o *Outline) Add(line OutlineLine) {
	if len(o.Lines) >= maxLines {
		o.Cut++
		return
	}
	o.Lines = append(o.Lines, line.bounded())
}

// AddLast adds lines that must be there even if earlier ones were left out. Nothing is added after them.
func (o *Outline) AddLast(lines ...OutlineLine) {
	if more := len(lines) - maxLastLines; more > 0 {
		lines = append(lines[:maxLastLines:maxLastLines], OutlineLine{
			Depth: lines[0].Depth, Kind: LineNote, Label: fmt.Sprintf("… %d more lines are not shown", more),
		})
	}
	if o.Cut > 0 {
		o.Lines = append(o.Lines, OutlineLine{
			Kind: LineNote, Label: fmt.Sprintf("… %d more lines are not shown: it does more than anybody reads", o.Cut),
		})
	}
	for _, line := range lines {
		o.Lines = append(o.Lines, line.bounded())
	}
}

func (l OutlineLine) bounded() OutlineLine {
	l.Depth = min(l.Depth, maxDepth)
	l.Label, l.Text, l.Note = boundedText(l.Label), boundedText(l.Text), boundedText(l.Note)
	return l
}

func boundedText(s string) string {
	head, tail, cut := cutMiddle(s, maxLineText)
	if cut == 0 {
		return s
	}
	return fmt.Sprintf("%s … %d characters are not shown … %s", head, cut, tail)
}

// Redacted is the outline with secrets hidden; hide is given every text.
func (o *Outline) Redacted(hide func(string) string) *Outline {
	if o == nil {
		return nil
	}
	clean := &Outline{Lines: make([]OutlineLine, len(o.Lines)), Cut: o.Cut}
	for i, l := range o.Lines {
		l.Label, l.Text, l.Note = hide(l.Label), hide(l.Text), hide(l.Note)
		clean.Lines[i] = l
	}
	return clean
}

// Without is the outline without the lines of a kind.
func (o *Outline) Without(kind LineKind) *Outline {
	if o == nil {
		return nil
	}
	lines := slices.DeleteFunc(slices.Clone(o.Lines), func(l OutlineLine) bool { return l.Kind == kind })
	return &Outline{Lines: lines, Cut: o.Cut}
}

// OutlineRow is one row of a terminal.
type OutlineRow struct {
	Text string
	Kind LineKind
	Mark Mark
}

// What stands at the left edge of a terminal, where no text of a call can get.
const (
	noGutter = "      "
	hanging  = "    " // before the further rows of a line
)

var gutters = map[Mark]string{NoMark: noGutter, MarkRun: "ok    ", MarkAsk: "asks  ", MarkDeny: "no    "}

// Rows shows the outline on a terminal of so many columns; 0 is 80. The verdict stands at the left edge, everything else
// is indented, so that no text can pass for a line of its own.
func (o *Outline) Rows(width int) []OutlineRow {
	if o == nil {
		return nil
	}
	if width <= 0 {
		width = 80
	}
	var rows []OutlineRow
	for i := range o.Lines {
		l := &o.Lines[i]
		gutter := gutters[l.Mark]
		if l.Kind == LineFinding && l.Mark != MarkDeny {
			gutter = "!!    "
		}
		indent := strings.Repeat("  ", min(l.Depth, maxDepth))
		for n, text := range Fold(l.String(), width-len(noGutter)-len(indent)-len(hanging)) {
			if n > 0 {
				gutter = noGutter + hanging
			}
			rows = append(rows, OutlineRow{gutter + indent + text, l.Kind, l.Mark})
		}
	}
	return rows
}

// String is the line without its mark and depth, made safe to show.
func (l *OutlineLine) String() string {
	text := strings.TrimSpace(Line(l.Label) + " " + Line(l.Text))
	if l.Note != "" {
		text += " — " + Line(l.Note)
	}
	return text
}

// Fold cuts a line into rows of at most width columns, after a space where there is one in the second half. What is not
// ASCII counts as two columns, which is the most that anything takes; a tab counts as eight. Joined, the rows are the
// line again.
func Fold(line string, width int) []string {
	width = max(width, 20)
	var rows []string
	start, column, space, after := 0, 0, -1, 0 // after: columns since the space
	for i, r := range line {
		columns := columnsOf(r)
		if column+columns > width {
			if space > start && after < width/2 {
				rows = append(rows, line[start:space])
				start, column = space, after
			} else {
				rows = append(rows, line[start:i])
				start, column = i, 0
			}
			space, after = -1, 0
		}
		column += columns
		after += columns
		if r == ' ' {
			space, after = i+1, 0
		}
	}
	return append(rows, line[start:])
}

func columnsOf(r rune) int {
	switch {
	case r == '\t':
		return 8
	case r >= utf8.RuneSelf:
		return 2
	}
	return 1
}
