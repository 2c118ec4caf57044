package server

import (
	"fmt"
	"strings"
)

// Limits of a difference on a page.
const (
	maxDiffLines = 4000
	maxDiffBytes = 64 << 10
)

// diffView is a unified difference, line by line, ready for a page.
type diffView struct {
	Lines   []diffLine
	Added   int
	Removed int
	Cut     string // what is not shown, in words; "" if all is there
}

type diffLine struct {
	Kind string // file, hunk, add, del, note or "" for context
	Text []span
}

// readDiff classifies the lines of a unified difference. It counts the lines that each hunk announces: a removed
// line "-- x" reads "--- x" in the text, and a line that looked like a file header would hide what is removed.
func readDiff(text string) *diffView {
	view := &diffView{}
	if len(text) > maxDiffBytes {
		cut := strings.LastIndexByte(text[:maxDiffBytes], '\n') + 1
		view.Cut = fmt.Sprintf("%d more bytes of this difference are not shown", len(text)-cut)
		text = text[:cut]
	}
	var oldLeft, newLeft int
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		kind := ""
		switch {
		case oldLeft > 0 || newLeft > 0:
			switch {
			case strings.HasPrefix(line, "+"):
				kind, newLeft = "add", newLeft-1
				view.Added++
			case strings.HasPrefix(line, "-"):
				kind, oldLeft = "del", oldLeft-1
				view.Removed++
			case strings.HasPrefix(line, `\`):
				kind = "note"
			default:
				oldLeft, newLeft = oldLeft-1, newLeft-1
			}
		case strings.HasPrefix(line, "@@ "):
			kind = "hunk"
			oldLeft, newLeft = hunkLengths(line)
		case strings.HasPrefix(line, "--- "), strings.HasPrefix(line, "+++ "):
			kind = "file"
		default:
			kind = "note"
		}
		if len(view.Lines) == maxDiffLines {
			view.Cut = "more lines of this difference are not shown"
			break
		}
		view.Lines = append(view.Lines, diffLine{Kind: kind, Text: spans(line)})
	}
	return view
}

// hunkLengths reads the old and new line counts of "@@ -1,2 +3,4 @@"; an absent count is 1.
func hunkLengths(header string) (oldLines, newLines int) {
	fields := strings.Fields(header)
	if len(fields) < 3 {
		return 0, 0
	}
	return rangeLength(fields[1], "-"), rangeLength(fields[2], "+")
}

func rangeLength(field, sign string) int {
	rest, ok := strings.CutPrefix(field, sign)
	if !ok {
		return 0
	}
	_, count, ok := strings.Cut(rest, ",")
	if !ok {
		return 1
	}
	n := 0
	for _, c := range []byte(count) {
		if c < '0' || c > '9' || n > 1<<24 {
			return 0
		}
		n = n*10 + int(c-'0')
	}
	return n
}

// diffOfEdit shows an edit whose file nobody could read as what it takes away and what it puts there.
func diffOfEdit(oldText, newText string) *diffView {
	view := &diffView{}
	add := func(text, kind, sign string, count *int) {
		for line := range strings.Lines(text) {
			*count++
			if len(view.Lines) == maxDiffLines {
				view.Cut = "more lines of this change are not shown"
				return
			}
			view.Lines = append(view.Lines, diffLine{Kind: kind, Text: spans(sign + strings.TrimSuffix(line, "\n"))})
		}
	}
	add(oldText, "del", "-", &view.Removed)
	add(newText, "add", "+", &view.Added)
	return view
}
