package builtin

import (
	"fmt"
	"strings"
)

// replacement is one change of the edit tool: an exact text and what takes its place.
type replacement struct {
	old, new string
	all      bool // replace every occurrence, not exactly one
}

// replaceTexts applies the replacements in order, each to the result of the one before, and returns the new content
// and the number of places changed. Line ends are matched whatever they are and kept as they are: CRLF and LF in
// the old text are the same, and the new text gets the line ends of what it replaces. Nothing is returned unless
// every replacement fits.
func replaceTexts(content string, edits []replacement, limit int) (string, int, error) {
	places := 0
	for i, edit := range edits {
		next, n, err := replaceText(content, edit, limit)
		if err != nil {
			if len(edits) > 1 {
				err = fmt.Errorf("edit %d of %d: %w", i+1, len(edits), err)
			}
			return "", 0, err
		}
		content, places = next, places+n
	}
	return content, places, nil
}

func replaceText(content string, edit replacement, limit int) (string, int, error) {
	old, fresh := toLF(edit.old), toLF(edit.new)
	switch {
	case old == "":
		return "", 0, fmt.Errorf("oldText is empty: give the exact text to replace, or use write for a new file")
	case old == fresh:
		return "", 0, fmt.Errorf("oldText and newText are the same: nothing would change")
	}
	plain := newFolded(content)
	count := strings.Count(plain.text, old)
	switch {
	case count == 0:
		return "", 0, notFound(plain.text, old)
	case count > 1 && !edit.all:
		return "", 0, fmt.Errorf("oldText stands in %d places (lines %s): give more of the text around the one you mean, or set replaceAll",
			count, placesOf(plain.text, old, 5))
	case len(content)+count*(len(fresh)-len(old)) > limit:
		// One short text replaced by a long one in many places could fill memory and disk.
		return "", 0, fmt.Errorf("the file would grow beyond %d bytes", limit)
	}
	var b strings.Builder
	b.Grow(len(content) + max(0, count*(len(fresh)-len(old))))
	eol, done := lineEnd(content), 0
	for from := 0; ; {
		i := strings.Index(plain.text[from:], old)
		if i < 0 {
			break
		}
		start, end := plain.offset(from+i), plain.offset(from+i+len(old))
		b.WriteString(content[done:start])
		if found := content[start:end]; strings.Contains(found, "\n") {
			eol = lineEnd(found)
		}
		if eol == "\r\n" {
			b.WriteString(strings.ReplaceAll(fresh, "\n", eol))
		} else {
			b.WriteString(fresh)
		}
		done, from = end, from+i+len(old)
	}
	b.WriteString(content[done:])
	return b.String(), count, nil
}

func toLF(s string) string { return strings.ReplaceAll(s, "\r\n", "\n") }

// folded is a text with LF line ends that knows where each of its bytes stood in the original.
type folded struct {
	text  string
	drops []int // positions in text before which one more carriage return was left out, ascending
}

func newFolded(content string) folded {
	if !strings.Contains(content, "\r\n") {
		return folded{text: content}
	}
	f := folded{}
	for at, dropped := 0, 0; ; {
		i := strings.Index(content[at:], "\r\n")
		if i < 0 {
			break
		}
		f.drops = append(f.drops, at+i-dropped)
		dropped++
		at += i + 2
	}
	f.text = toLF(content)
	return f
}

// offset returns the position in the original of byte i of the folded text. A line end counts from its carriage
// return.
func (f *folded) offset(i int) int {
	lo, hi := 0, len(f.drops)
	for lo < hi {
		if mid := (lo + hi) / 2; f.drops[mid] < i {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return i + lo
}

// placesOf lists the line numbers of the first occurrences.
func placesOf(text, old string, limit int) string {
	var b strings.Builder
	line, at := 1, 0
	for n := 0; ; n++ {
		i := strings.Index(text[at:], old)
		if i < 0 {
			return b.String()
		}
		if n == limit {
			return b.String() + ", …"
		}
		line += strings.Count(text[at:at+i], "\n")
		if n > 0 {
			b.WriteString(", ")
		}
		fmt.Fprint(&b, line)
		line += strings.Count(old, "\n")
		at += i + len(old)
	}
}

// notFound explains why the old text does not occur, as far as that can be told.
func notFound(text, old string) error {
	t := splitText(text)
	wanted := splitText(old)
	lines := make([]string, len(wanted.lines))
	for i, line := range wanted.lines {
		lines[i] = trimEOL(line)
	}
	if i, ok := t.find(lines, 0, false); ok {
		return fmt.Errorf("oldText is not in the file exactly: lines %d to %d differ only in white space or punctuation; the file has %s",
			i+1, i+len(lines), quoteShort(strings.Join(t.lines[i:i+len(lines)], "")))
	}
	first := lines[0]
	for _, line := range lines {
		if strings.TrimSpace(line) != "" {
			first = line
			break
		}
	}
	if number, near, ok := nearestLine(t.lines, first, 0); ok {
		return fmt.Errorf("oldText is not in the file; the line most like %s is line %d: %s", quoteShort(first), number, quoteShort(near))
	}
	return fmt.Errorf("oldText is not in the file, and no line is like %s", quoteShort(first))
}
