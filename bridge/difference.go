package bridge

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/place"
)

const (
	maxDiffFile = 1 << 20  // larger files are not read for a difference
	maxDiff     = 64 << 10 // bytes of a difference
	around      = 3        // unchanged lines shown before and after a change
)

// diffOfWrite shows what writing the whole file changes.
func diffOfWrite(l *looker, r *toolward.Request) (string, error) {
	old, err := l.current(r)
	if err != nil {
		return "", err
	}
	return unified(r.Params.Text("path"), old, r.Params.Text("content")), nil
}

// diffOfEdit shows what replacing a text changes.
func diffOfEdit(l *looker, r *toolward.Request) (string, error) {
	old, err := l.current(r)
	if err != nil {
		return "", err
	}
	from, to := r.Params.Text("oldText"), r.Params.Text("newText")
	all, _ := r.Params.Bool("replace_all")
	switch {
	case from == "" && old == "":
		return unified(r.Params.Text("path"), "", to), nil
	case from == "" || !strings.Contains(old, from):
		return "", errors.New("the text to replace is not in the file")
	case all:
		return unified(r.Params.Text("path"), old, strings.ReplaceAll(old, from, to)), nil
	}
	return unified(r.Params.Text("path"), old, strings.Replace(old, from, to, 1)), nil
}

// current reads the target as it is now; a missing one is empty.
func (l *looker) current(r *toolward.Request) (string, error) {
	resolved, err := l.places.Resolve(r.Call.WorkDir, r.Params.Text("path"))
	if err != nil {
		return "", err
	}
	if resolved.Kind == place.KindMissing {
		return "", nil
	}
	data, _, err := place.ReadFile(resolved, maxDiffFile)
	if err != nil {
		return "", err
	}
	if bytes.IndexByte(data[:min(len(data), 8000)], 0) >= 0 {
		return "", errors.New("the file is not text")
	}
	return string(data), nil
}

// unified writes the change from old to text line by line.
func unified(path, old, text string) string {
	before, after := splitLines(old), splitLines(text)
	edits := lineEdits(before, after)
	var b strings.Builder
	for start := 0; start < len(edits); {
		// A hunk reaches from the first change until more unchanged lines follow than two hunks would show.
		if edits[start].mark == ' ' {
			start++
			continue
		}
		end, quiet := start, 0
		for i := start; i < len(edits) && quiet <= 2*around; i++ {
			if quiet++; edits[i].mark != ' ' {
				end, quiet = i+1, 0
			}
		}
		first, last := max(start-around, 0), min(end+around, len(edits))
		if b.Len() == 0 {
			fmt.Fprintf(&b, "--- %s\n+++ %s\n", path, path)
		}
		writeHunk(&b, edits[first:last])
		start = last
	}
	if b.Len() > maxDiff {
		return strings.ToValidUTF8(b.String()[:maxDiff], "") + "\n… cut here: the difference is longer than can be shown.\n"
	}
	return b.String()
}

// lineEdit is one line of a difference, with its numbers on both sides.
type lineEdit struct {
	mark     byte // ' ', '-' or '+'
	line     string
	old, new int // lines before it
}

func writeHunk(b *strings.Builder, edits []lineEdit) {
	olds, news := 0, 0
	for _, e := range edits {
		if e.mark != '+' {
			olds++
		}
		if e.mark != '-' {
			news++
		}
	}
	fmt.Fprintf(b, "@@ -%s +%s @@\n", span(edits[0].old, olds), span(edits[0].new, news))
	for _, e := range edits {
		b.WriteByte(e.mark)
		b.WriteString(e.line)
		if !strings.HasSuffix(e.line, "\n") {
			b.WriteString("\n\\ No newline at end of file\n")
		}
	}
}

func span(before, count int) string {
	if count == 0 {
		return fmt.Sprintf("%d,0", before)
	}
	return fmt.Sprintf("%d,%d", before+1, count)
}

// maxTable bounds the search for a short difference; beyond it everything between the first and the last change is
// shown as removed and added, which is as true and only longer.
const maxTable = 1 << 22

// lineEdits finds the lines that both sides have in common.
func lineEdits(before, after []string) []lineEdit {
	head := 0
	for head < len(before) && head < len(after) && before[head] == after[head] {
		head++
	}
	tail := 0
	for tail < len(before)-head && tail < len(after)-head && before[len(before)-1-tail] == after[len(after)-1-tail] {
		tail++
	}
	a, b := before[head:len(before)-tail], after[head:len(after)-tail]
	edits := make([]lineEdit, 0, len(before)+len(b))
	i, j := 0, 0
	add := func(mark byte, line string) {
		edits = append(edits, lineEdit{mark, line, i, j})
		if mark != '+' {
			i++
		}
		if mark != '-' {
			j++
		}
	}
	for _, line := range before[:head] {
		add(' ', line)
	}
	common := commonLines(a, b)
	for i-head < len(a) || j-head < len(b) {
		x, y := i-head, j-head
		switch {
		case x < len(a) && y < len(b) && a[x] == b[y]:
			add(' ', a[x])
		case x < len(a) && (y == len(b) || common(x+1, y) >= common(x, y+1)):
			add('-', a[x])
		default:
			add('+', b[y])
		}
	}
	for _, line := range before[len(before)-tail:] {
		add(' ', line)
	}
	return edits
}

// commonLines counts, for every pair of positions, the lines that the rests have in common.
func commonLines(a, b []string) func(x, y int) int32 {
	width := len(b) + 1
	if (len(a)+1)*width > maxTable {
		return func(x, _ int) int32 { return int32(x) } // removals first
	}
	table := make([]int32, (len(a)+1)*width)
	for x := len(a) - 1; x >= 0; x-- {
		for y := len(b) - 1; y >= 0; y-- {
			if a[x] == b[y] {
				table[x*width+y] = table[(x+1)*width+y+1] + 1
			} else {
				table[x*width+y] = max(table[(x+1)*width+y], table[x*width+y+1])
			}
		}
	}
	return func(x, y int) int32 { return table[x*width+y] }
}

// splitLines keeps the line ends; the last line may have none.
func splitLines(s string) []string {
	lines := strings.SplitAfter(s, "\n")
	if last := len(lines) - 1; lines[last] == "" {
		lines = lines[:last]
	}
	return lines
}
