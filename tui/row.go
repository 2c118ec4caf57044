package tui

import (
	"strings"
	"unicode/utf8"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/display"
)

// row is one row of the screen, ready to print.
type row struct {
	text  string
	color string // of the whole row, for our own marking; "" is none
}

// rows collects the rows of a text.
type rows struct {
	width int
	list  []row
}

// line adds our own words, or a safe text, folded; indent stands before each row.
func (r *rows) line(color, indent, text string) {
	for _, part := range display.Fold(text, r.width-len(indent)) {
		r.list = append(r.list, row{indent + flat(part), color})
		indent = strings.Repeat(" ", len(indent))
	}
}

// quote adds a text of the caller's behind a bar. The bar stands on every row, so that no line of it, and no row of a
// long line, can pass for a row of ours. paint may give a line a color by how it begins.
func (r *rows) quote(text string, paint func(line string) string) {
	for line := range strings.SplitSeq(strings.TrimSuffix(display.Block(text), "\n"), "\n") {
		color := ""
		if paint != nil {
			color = paint(line)
		}
		for _, part := range display.Fold(line, r.width-2) {
			r.list = append(r.list, row{"│ " + flat(part), color})
		}
	}
}

// wide reports whether a text holds signs whose width terminals disagree about. The bar is ours and is known.
func wide(list []row) bool {
	for _, r := range list {
		for _, c := range r.text {
			if c >= utf8.RuneSelf && !strings.ContainsRune("│─…·—", c) {
				return true
			}
		}
	}
	return false
}

// flat replaces tabs by the spaces up to the next column of eight: what is drawn in cells has no tabs.
func flat(text string) string {
	if !strings.Contains(text, "\t") {
		return text
	}
	var b strings.Builder
	column := 0
	for _, c := range text {
		if c != '\t' {
			b.WriteRune(c)
			column++
			continue
		}
		n := 8 - column%8
		b.WriteString("        "[:n])
		column += n
	}
	return b.String()
}

// columns is how wide a text is at most: what is not ASCII counts as two.
func columns(text string) int {
	n := 0
	for _, c := range text {
		if n++; c >= utf8.RuneSelf {
			n++
		}
	}
	return n
}

// cut shortens a text of one line to so many columns, with a mark where something is left out.
func cut(text string, width int) string {
	if columns(text) <= width {
		return text
	}
	n := 2 // of the mark
	for i, c := range text {
		if n++; c >= utf8.RuneSelf {
			n++
		}
		if n > width {
			return text[:i] + "…"
		}
	}
	return text
}

// pad cuts or fills a text to so many columns.
func pad(text string, width int) string {
	text = cut(text, width)
	return text + strings.Repeat(" ", max(0, width-columns(text)))
}

var severities = map[toolward.Severity]struct{ word, color string }{
	toolward.Info: {"Routine", "36"}, toolward.Warning: {"Caution", "33"}, toolward.Critical: {"Critical", "31"},
}

// colorOf paints dangers red and what asks yellow.
func colorOf(row *display.OutlineRow) string {
	switch {
	case row.Kind == display.LineFinding, row.Mark == display.MarkDeny:
		return "31"
	case row.Mark == display.MarkAsk:
		return "33"
	}
	return ""
}

// Colors of our own marks.
const (
	red    = "31"
	green  = "32"
	yellow = "33"
	bold   = "1"
	faint  = "2"
)
