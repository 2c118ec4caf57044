// Package difference makes the lines of a unified difference ready for a page.
package difference

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/toolward/toolward/display"
)

// Limits of a difference on a page.
const (
	maxLines = 4000
	maxBytes = 64 << 10
)

// View is a unified difference, line by line, ready for a page.
type View struct {
	Lines   []Line
	Added   int
	Removed int
	Cut     string // what is not shown, in words; "" if all is there
}

// Line is one line of it.
type Line struct {
	Kind   string // file, hunk, add, del, note or "" for context
	Number string // of the line in the new file, of a removed one in the old; "" where there is none
	Text   []display.Piece
}

// Read classifies the lines of a unified difference. It counts the lines that each hunk announces: a removed
// line "-- x" reads "--- x" in the text, and a line that looked like a file header would hide what is removed.
func Read(text string) *View {
	view := &View{}
	if len(text) > maxBytes {
		cut := strings.LastIndexByte(text[:maxBytes], '\n') + 1
		view.Cut = fmt.Sprintf("%d more bytes of this difference are not shown", len(text)-cut)
		text = text[:cut]
	}
	var oldLeft, newLeft, oldAt, newAt int
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		kind, number := "", 0
		switch {
		case oldLeft > 0 || newLeft > 0:
			switch {
			case strings.HasPrefix(line, "+"):
				kind, number, newLeft, newAt = "add", newAt, newLeft-1, newAt+1
				view.Added++
			case strings.HasPrefix(line, "-"):
				kind, number, oldLeft, oldAt = "del", oldAt, oldLeft-1, oldAt+1
				view.Removed++
			case strings.HasPrefix(line, `\`):
				kind = "note"
			default:
				number, oldLeft, newLeft, oldAt, newAt = newAt, oldLeft-1, newLeft-1, oldAt+1, newAt+1
			}
		case strings.HasPrefix(line, "@@ "):
			kind = "hunk"
			oldAt, oldLeft, newAt, newLeft = hunkRanges(line)
		case strings.HasPrefix(line, "--- "), strings.HasPrefix(line, "+++ "):
			kind = "file"
		default:
			kind = "note"
		}
		if len(view.Lines) == maxLines {
			view.Cut = "more lines of this difference are not shown"
			break
		}
		view.Lines = append(view.Lines, Line{Kind: kind, Number: lineNumber(number), Text: pieces(line)})
	}
	return view
}

// lineNumber is a line's number; "" if it has none, or if what announced it was no number.
func lineNumber(n int) string {
	if n <= 0 {
		return ""
	}
	return strconv.Itoa(n)
}

// hunkRanges reads where the lines of "@@ -1,2 +3,4 @@" begin and how many there are; an absent count is 1.
func hunkRanges(header string) (oldAt, oldLines, newAt, newLines int) {
	fields := strings.Fields(header)
	if len(fields) < 3 {
		return 0, 0, 0, 0
	}
	oldAt, oldLines = lineRange(fields[1], "-")
	newAt, newLines = lineRange(fields[2], "+")
	return oldAt, oldLines, newAt, newLines
}

func lineRange(field, sign string) (at, lines int) {
	rest, ok := strings.CutPrefix(field, sign)
	if !ok {
		return 0, 0
	}
	start, count, ok := strings.Cut(rest, ",")
	if !ok {
		return smallNumber(start), 1
	}
	return smallNumber(start), smallNumber(count)
}

func smallNumber(text string) int {
	n := 0
	for _, c := range []byte(text) {
		if c < '0' || c > '9' || n > 1<<24 {
			return 0
		}
		n = n*10 + int(c-'0')
	}
	return n
}

// OfEdit shows an edit whose file nobody could read as what it takes away and what it puts there.
func OfEdit(oldText, newText string) *View {
	view := &View{}
	add := func(text, kind, sign string, count *int) {
		for line := range strings.Lines(text) {
			*count++
			if len(view.Lines) == maxLines {
				view.Cut = "more lines of this change are not shown"
				return
			}
			view.Lines = append(view.Lines, Line{Kind: kind, Text: pieces(sign + strings.TrimSuffix(line, "\n"))})
		}
	}
	add(oldText, "del", "-", &view.Removed)
	add(newText, "add", "+", &view.Added)
	return view
}

func pieces(line string) []display.Piece {
	return display.Show(line, display.Options{Lines: true}).Pieces
}
