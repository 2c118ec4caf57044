package builtin

import (
	"errors"
	"fmt"
	"strings"
)

// applyHunks returns content with all hunks of a section applied in order. Lines that a hunk keeps stay as they are
// in the file, byte for byte; added lines get the line end that the file uses. A byte order mark and a missing last
// line end are kept. Nothing is returned unless every hunk fits.
func applyHunks(content string, hunks []patchHunk) (string, error) {
	text := splitText(content)
	at := 0 // hunks stand in the order of the file; the next one is looked for from here
	for i, hunk := range hunks {
		next, err := text.apply(hunk, at)
		if err != nil {
			return "", &patchError{hunk.line, fmt.Sprintf("hunk %d: %s", i+1, err)}
		}
		at = next
	}
	return text.join(), nil
}

// apply changes the lines by one hunk, looking for it from line index at, and returns the index after it.
func (t *textLines) apply(hunk patchHunk, at int) (int, error) {
	anchored := false
	for _, anchor := range hunk.anchors {
		found, ok := t.find([]string{anchor}, at, false)
		if !ok {
			return 0, fmt.Errorf("no line %s%s", quoteShort(anchor), t.hint(anchor, at))
		}
		at, anchored = found+1, true
	}
	var old []string
	for _, line := range hunk.lines {
		if line.kind != '+' {
			old = append(old, line.text)
		}
	}
	start := at
	if len(old) == 0 {
		// A hunk that only adds goes after its anchor line, or to the end of the file if it has none.
		if !anchored || hunk.atEnd {
			start = len(t.lines)
		}
	} else {
		found, ok := t.find(old, at, hunk.atEnd)
		if !ok && anchored && !hunk.atEnd {
			// Models repeat the anchor as the first context line.
			found, ok = t.find(old, at-1, false)
			ok = ok && found == at-1
		}
		if !ok {
			return 0, t.misfit(old, at, hunk.atEnd)
		}
		start = found
	}
	return t.splice(start, hunk.lines), nil
}

// splice replaces the old lines of a hunk, which start at index start, and returns the index after the new ones.
func (t *textLines) splice(start int, change []patchLine) int {
	end := start
	var fresh []string
	for _, line := range change {
		switch line.kind {
		case ' ':
			fresh = append(fresh, t.lines[end])
			end++
		case '-':
			end++
		case '+':
			fresh = append(fresh, line.text+t.eol)
		}
	}
	// The last line of a file may have no line end. If lines follow it now it needs one, and the new last line
	// takes over what the old one had.
	if t.bareEnd() && end == len(t.lines) {
		if start > 0 && len(fresh) > 0 && !hasEOL(t.lines[start-1]) {
			t.lines[start-1] += t.eol
		}
		for i := range fresh {
			if last := i == len(fresh)-1; last {
				fresh[i] = strings.TrimSuffix(fresh[i], t.eol)
			} else if !hasEOL(fresh[i]) {
				fresh[i] += t.eol
			}
		}
	}
	lines := make([]string, 0, len(t.lines)-(end-start)+len(fresh))
	lines = append(lines, t.lines[:start]...)
	lines = append(lines, fresh...)
	t.lines = append(lines, t.lines[end:]...)
	return start + len(fresh)
}

// find returns the index of the first place at or after from where the wanted lines stand. Bytes are compared
// first; if that fails, ever more of what models get wrong is ignored: white space at the end, white space at both
// ends, typographic punctuation. A looser comparison must fit in one place only, or the change could land elsewhere
// than the author meant.
func (t *textLines) find(want []string, from int, atEnd bool) (int, bool) {
	last := len(t.lines) - len(want)
	if atEnd {
		from = max(from, last)
	}
	for strictness, same := range []func(a, b string) bool{sameBytes, sameTrimmedRight, sameTrimmed, samePunctuation} {
		found, count := 0, 0
		for i := from; i <= last && t.work > 0; i++ {
			if !t.matches(want, i, same) {
				continue
			}
			if count++; count == 1 {
				found = i
			}
			if strictness == 0 {
				break
			}
		}
		if count == 1 {
			return found, true
		}
		if count > 1 {
			return 0, false
		}
	}
	return 0, false
}

func (t *textLines) matches(want []string, at int, same func(a, b string) bool) bool {
	for i, line := range want {
		if t.work--; t.work < 0 {
			return false
		}
		if !same(trimEOL(t.lines[at+i]), line) {
			return false
		}
	}
	return true
}

func sameBytes(a, b string) bool { return a == b }

func sameTrimmedRight(a, b string) bool {
	return strings.TrimRight(a, " \t\r") == strings.TrimRight(b, " \t\r")
}

func sameTrimmed(a, b string) bool { return strings.TrimSpace(a) == strings.TrimSpace(b) }

func samePunctuation(a, b string) bool {
	return plainPunctuation.Replace(strings.TrimSpace(a)) == plainPunctuation.Replace(strings.TrimSpace(b))
}

// plainPunctuation replaces typographic hyphens, quotes and spaces by their ASCII forms.
var plainPunctuation = strings.NewReplacer(
	"\u2010", "-", "\u2011", "-", "\u2012", "-", "\u2013", "-", "\u2014", "-", "\u2015", "-", "\u2212", "-",
	"\u2018", "'", "\u2019", "'", "\u201a", "'", "\u201b", "'",
	"\u201c", `"`, "\u201d", `"`, "\u201e", `"`, "\u201f", `"`,
	"\u00a0", " ", "\u2002", " ", "\u2003", " ", "\u2004", " ", "\u2005", " ", "\u2006", " ", "\u2007", " ",
	"\u2008", " ", "\u2009", " ", "\u200a", " ", "\u202f", " ", "\u205f", " ", "\u3000", " ",
)

// misfit explains why the old lines of a hunk were not found: the line that differs first at the best place.
func (t *textLines) misfit(old []string, from int, atEnd bool) error {
	where := fmt.Sprintf("from line %d on", from+1)
	if atEnd {
		where = "at the end of the file"
	}
	if t.work <= 0 {
		return errors.New("comparing it with the file takes too long; use fewer or larger hunks, or write the file whole")
	}
	best, bestLen := -1, 0
	for i := range t.lines {
		n := 0
		for n < len(old) && i+n < len(t.lines) && t.work > 0 && sameTrimmed(trimEOL(t.lines[i+n]), old[n]) {
			n++
			t.work--
		}
		if n > bestLen {
			best, bestLen = i, n
		}
	}
	switch {
	case best >= 0 && bestLen == len(old) && atEnd:
		return fmt.Errorf("its lines stand at line %d, not at the end of the file as marked", best+1)
	case best >= 0 && bestLen == len(old) && best < from:
		return fmt.Errorf("its lines stand at line %d, before the place of the hunk ahead of it; order hunks as in the file", best+1)
	case best >= 0 && bestLen == len(old):
		return fmt.Errorf("its lines fit in several places %s; add context lines or an @@ line", where)
	case best >= 0 && best+bestLen >= len(t.lines):
		return fmt.Errorf("its first %d lines fit at line %d, but the file ends there and the hunk goes on with %s",
			bestLen, best+1, quoteShort(old[bestLen]))
	case best >= 0:
		return fmt.Errorf("its first %d lines fit at line %d, but line %d of the file is %s and the hunk has %s",
			bestLen, best+1, best+bestLen+1, quoteShort(trimEOL(t.lines[best+bestLen])), quoteShort(old[bestLen]))
	}
	return fmt.Errorf("its line %s is not in the file %s%s", quoteShort(old[0]), where, t.hint(old[0], 0))
}

// hint names the line most like want, if one is near enough to help.
func (t *textLines) hint(want string, from int) string {
	number, line, ok := nearestLine(t.lines, want, from)
	if !ok {
		return ""
	}
	return fmt.Sprintf("; the nearest is line %d: %s", number, quoteShort(line))
}
