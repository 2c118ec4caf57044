package builtin

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// A patch in the format that coding models are trained on:
//
//	*** Begin Patch
//	*** Add File: docs/new.md
//	+every line of the new file
//	*** Delete File: old.txt
//	*** Update File: main.go
//	*** Move to: cmd/main.go
//	@@ func main() {
//	 context line
//	-line to remove
//	+line to add
//	*** End of File
//	*** End Patch
//
// parsePatch only reads the text; what the hunks do to a file's content is in patchapply.go.

// patchOp is what one section of a patch does to its file.
type patchOp string

const (
	patchAdd    patchOp = "add"
	patchDelete patchOp = "delete"
	patchUpdate patchOp = "update"
)

// patchFile is one section of a patch.
type patchFile struct {
	op    patchOp
	path  string // as written
	move  string // new path of an update, or ""
	line  int    // line of the section's header in the patch, from 1
	lines []string
	hunks []patchHunk
}

// patchHunk is one change of an update.
type patchHunk struct {
	line    int      // line of the hunk's first line in the patch, from 1
	anchors []string // texts after @@: lines to move to, one after the other, before the hunk is looked for
	lines   []patchLine
	atEnd   bool // the hunk's last old line is the file's last line
}

// patchLine is one line of a hunk. Kind is ' ', '-' or '+'.
type patchLine struct {
	kind byte
	text string
}

// patchError is a mistake in a patch. Line counts from 1 in the patch text.
type patchError struct {
	line int
	msg  string
}

func (e *patchError) Error() string { return fmt.Sprintf("patch line %d: %s", e.line, e.msg) }

const (
	patchBegin    = "*** Begin Patch"
	patchEnd      = "*** End Patch"
	patchAddMark  = "*** Add File: "
	patchDelMark  = "*** Delete File: "
	patchUpdMark  = "*** Update File: "
	patchMoveMark = "*** Move to: "
	patchEOFMark  = "*** End of File"
)

// patchParser walks the lines of a patch once.
type patchParser struct {
	lines []string
	next  int // index of the next line
}

// parsePatch reads a whole patch. It refuses everything that it does not understand: a line that is skipped here
// would be shown to the person who approves and then not be carried out.
func parsePatch(text string, maxFiles int) ([]patchFile, error) {
	if !utf8.ValidString(text) {
		return nil, &patchError{1, "the patch is not valid UTF-8"}
	}
	p := patchParser{lines: splitPatchLines(text)}
	for p.more() && strings.TrimSpace(p.peek()) == "" {
		p.next++
	}
	if !p.more() || strings.TrimRight(p.peek(), " \t") != patchBegin {
		return nil, p.fail("expected %q as the first line", patchBegin)
	}
	p.next++
	var files []patchFile
	for {
		if !p.more() {
			return nil, p.fail("the patch ends without %q", patchEnd)
		}
		line := p.peek()
		if strings.TrimRight(line, " \t") == patchEnd {
			p.next++
			break
		}
		if strings.TrimSpace(line) == "" {
			p.next++
			continue
		}
		file, err := p.section()
		if err != nil {
			return nil, err
		}
		if files = append(files, file); len(files) > maxFiles {
			return nil, &patchError{file.line, fmt.Sprintf("more than %d files in one patch", maxFiles)}
		}
	}
	for p.more() {
		if strings.TrimSpace(p.peek()) != "" {
			return nil, p.fail("text after %q", patchEnd)
		}
		p.next++
	}
	if len(files) == 0 {
		return nil, &patchError{1, "the patch has no file sections"}
	}
	return files, nil
}

// splitPatchLines splits at line feeds and drops the carriage return of clients that send CRLF. Files keep their
// own line ends; see applyHunks.
func splitPatchLines(text string) []string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = strings.TrimSuffix(line, "\r")
	}
	return lines
}

func (p *patchParser) more() bool   { return p.next < len(p.lines) }
func (p *patchParser) peek() string { return p.lines[p.next] }

// fail makes an error about the next line.
func (p *patchParser) fail(format string, args ...any) error {
	return &patchError{min(p.next+1, max(len(p.lines), 1)), fmt.Sprintf(format, args...)}
}

// section reads one file section, from its header to the next header.
func (p *patchParser) section() (patchFile, error) {
	line := p.peek()
	file := patchFile{line: p.next + 1}
	switch {
	case strings.HasPrefix(line, patchAddMark):
		file.op, file.path = patchAdd, line[len(patchAddMark):]
	case strings.HasPrefix(line, patchDelMark):
		file.op, file.path = patchDelete, line[len(patchDelMark):]
	case strings.HasPrefix(line, patchUpdMark):
		file.op, file.path = patchUpdate, line[len(patchUpdMark):]
	default:
		return file, p.fail("expected %q, %q, %q or %q, found %s",
			strings.TrimSpace(patchAddMark), strings.TrimSpace(patchDelMark), strings.TrimSpace(patchUpdMark), patchEnd, quoteShort(line))
	}
	if file.path = strings.TrimSpace(file.path); file.path == "" {
		return file, p.fail("the path is missing")
	}
	p.next++
	switch file.op {
	case patchAdd:
		return file, p.added(&file)
	case patchUpdate:
		return file, p.updated(&file)
	}
	return file, nil
}

// added reads the lines of a new file: all of them start with '+'.
func (p *patchParser) added(file *patchFile) error {
	for p.more() && !strings.HasPrefix(p.peek(), "*** ") {
		line := p.peek()
		switch {
		case strings.HasPrefix(line, "+"):
			file.lines = append(file.lines, line[1:])
		case strings.TrimSpace(line) == "" && p.blankUntilHeader():
			// an empty line between two sections
		default:
			return p.fail("every line of the new file %s starts with '+', found %s", quoteShort(file.path), quoteShort(line))
		}
		p.next++
	}
	return nil
}

// blankUntilHeader reports whether only blank lines follow before the next header or the end.
func (p *patchParser) blankUntilHeader() bool {
	for _, line := range p.lines[p.next:] {
		if strings.HasPrefix(line, "*** ") {
			return true
		}
		if strings.TrimSpace(line) != "" {
			return false
		}
	}
	return true
}

// updated reads the optional new path and the hunks of a changed file.
func (p *patchParser) updated(file *patchFile) error {
	if p.more() && strings.HasPrefix(p.peek(), patchMoveMark) {
		if file.move = strings.TrimSpace(p.peek()[len(patchMoveMark):]); file.move == "" {
			return p.fail("the new path is missing")
		}
		p.next++
	}
	for p.more() && !p.atHeader() {
		if strings.TrimSpace(p.peek()) == "" && p.blankUntilHeader() {
			p.next++
			continue
		}
		hunk, err := p.hunk(len(file.hunks))
		if err != nil {
			return err
		}
		file.hunks = append(file.hunks, hunk)
	}
	if len(file.hunks) == 0 && file.move == "" {
		return &patchError{file.line, fmt.Sprintf("the update of %s changes nothing: it has no hunk and no new path", quoteShort(file.path))}
	}
	return nil
}

// atHeader reports whether the next line begins another section or ends the patch.
func (p *patchParser) atHeader() bool {
	line := p.peek()
	return strings.HasPrefix(line, "*** ") && line != patchEOFMark
}

// hunk reads one hunk. The first hunk of a section may leave out its @@ line.
func (p *patchParser) hunk(index int) (patchHunk, error) {
	hunk := patchHunk{line: p.next + 1}
	for p.more() && strings.HasPrefix(p.peek(), "@@") {
		anchor, err := p.anchor()
		if err != nil {
			return hunk, err
		}
		if anchor != "" {
			hunk.anchors = append(hunk.anchors, anchor)
		}
		p.next++
	}
	if hunk.line == p.next+1 && index > 0 {
		return hunk, p.fail("expected @@ before the next hunk, found %s", quoteShort(p.peek()))
	}
	changes := false
	for p.more() && !p.atHeader() && !strings.HasPrefix(p.peek(), "@@") {
		line := p.peek()
		if line == patchEOFMark {
			hunk.atEnd = true
			p.next++
			break
		}
		switch {
		case line == "":
			if p.blankUntilHeader() {
				p.next++
				continue
			}
			hunk.lines = append(hunk.lines, patchLine{' ', ""}) // editors strip the space of an empty context line
		case line[0] == ' ', line[0] == '-', line[0] == '+':
			hunk.lines = append(hunk.lines, patchLine{line[0], line[1:]})
			changes = changes || line[0] != ' '
		default:
			return hunk, p.fail("a line of a hunk starts with ' ', '-' or '+', found %s", quoteShort(line))
		}
		p.next++
	}
	if !changes {
		return hunk, &patchError{hunk.line, fmt.Sprintf("hunk %d has no line that starts with '-' or '+'", index+1)}
	}
	return hunk, nil
}

// anchor returns the text after @@; "" for a bare @@ and for the line numbers of other diff formats, which say
// nothing in this one.
func (p *patchParser) anchor() (string, error) {
	text, ok := strings.CutPrefix(p.peek(), "@@ ")
	if !ok {
		if strings.TrimRight(p.peek(), " \t") == "@@" {
			return "", nil
		}
		return "", p.fail("expected \"@@\" or \"@@ \" and a line of the file, found %s", quoteShort(p.peek()))
	}
	if numbers, ok := strings.CutPrefix(text, "-"); ok && strings.Contains(numbers, " +") {
		if _, tail, ok := strings.Cut(numbers, " @@"); ok {
			return strings.TrimSpace(tail), nil
		}
	}
	return strings.TrimRight(text, " \t"), nil
}

// quoteShort quotes a text for an error message, cut to 80 characters.
func quoteShort(s string) string {
	const limit = 80
	if utf8.RuneCountInString(s) > limit {
		return fmt.Sprintf("%q…", string([]rune(s)[:limit]))
	}
	return fmt.Sprintf("%q", s)
}
