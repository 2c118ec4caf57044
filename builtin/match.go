package builtin

import (
	"bytes"
	"regexp"
	"regexp/syntax"
	"slices"
)

// foundLine is a line of a text.
type foundLine struct {
	number     int // from 1
	start, end int // byte offsets, without the line end
	at         int // where the match begins
}

// matcher finds matching lines.
type matcher struct {
	expr   *regexp.Regexp
	byLine bool // the expression must be tried on each line alone
}

func newMatcher(expr string) (*matcher, error) {
	if _, err := syntax.Parse(expr, syntax.Perl); err != nil {
		return nil, err // about the expression as it was given
	}
	expr = "(?m:" + expr + ")"
	tree, err := syntax.Parse(expr, syntax.Perl)
	if err != nil {
		return nil, err
	}
	compiled, err := regexp.Compile(expr)
	if err != nil {
		return nil, err
	}
	return &matcher{expr: compiled, byLine: hasTextAnchor(tree)}, nil
}

// hasTextAnchor reports whether an expression speaks of the beginning or end of the whole text, which here are those
// of a line.
func hasTextAnchor(tree *syntax.Regexp) bool {
	return tree.Op == syntax.OpBeginText || tree.Op == syntax.OpEndText || slices.ContainsFunc(tree.Sub, hasTextAnchor)
}

// lines returns the matching lines, or only the first. The whole text is searched at once, which skips over what
// cannot match; where a match is found the line is tried alone, because a match must not reach over its end.
func (m *matcher) lines(text []byte, firstOnly bool) []foundLine {
	var found []foundLine
	byLine := m.byLine || bytes.IndexByte(text, '\r') >= 0 // a line ends before its carriage return
	number := 1
	for pos := 0; pos < len(text); {
		start := pos
		if !byLine {
			loc := m.expr.FindIndex(text[pos:])
			if loc == nil || pos+loc[0] >= len(text) {
				break
			}
			start = pos + bytes.LastIndexByte(text[pos:pos+loc[0]], '\n') + 1
			number += bytes.Count(text[pos:start], []byte{'\n'})
		}
		end := len(text)
		if i := bytes.IndexByte(text[start:], '\n'); i >= 0 {
			end = start + i
		}
		if loc := m.expr.FindIndex(bytes.TrimSuffix(text[start:end], []byte{'\r'})); loc != nil {
			found = append(found, foundLine{number, start, end, start + loc[0]})
			if firstOnly {
				break
			}
		}
		pos = end + 1
		number++
	}
	return found
}

// linesBefore returns the lines that stand before a line, those with numbers greater than after.
func linesBefore(text []byte, line foundLine, after int) []foundLine {
	var before []foundLine
	for line.number-1 > after && line.start > 0 {
		end := line.start - 1
		line = foundLine{line.number - 1, bytes.LastIndexByte(text[:end], '\n') + 1, end, 0}
		before = append(before, line)
	}
	slices.Reverse(before)
	return before
}

// linesAfter returns the lines that follow a line, up to the number until.
func linesAfter(text []byte, line foundLine, until int) []foundLine {
	var after []foundLine
	for line.number < until && line.end+1 < len(text) {
		start := line.end + 1
		end := len(text)
		if i := bytes.IndexByte(text[start:], '\n'); i >= 0 {
			end = start + i
		}
		line = foundLine{line.number + 1, start, end, 0}
		after = append(after, line)
	}
	return after
}
