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

// unified writes the change from old to text as one hunk: the lines between the first and the last difference.
func unified(path, old, text string) string {
	before, after := splitLines(old), splitLines(text)
	head := 0
	for head < len(before) && head < len(after) && before[head] == after[head] {
		head++
	}
	tail := 0
	for tail < len(before)-head && tail < len(after)-head && before[len(before)-1-tail] == after[len(after)-1-tail] {
		tail++
	}
	if head == len(before) && head == len(after) {
		return ""
	}
	first := max(head-around, 0)
	lastBefore, lastAfter := min(len(before)-tail+around, len(before)), min(len(after)-tail+around, len(after))
	var b strings.Builder
	fmt.Fprintf(&b, "--- %s\n+++ %s\n@@ -%s +%s @@\n", path, path, span(first, lastBefore), span(first, lastAfter))
	write := func(mark string, lines []string) {
		for _, line := range lines {
			b.WriteString(mark)
			b.WriteString(line)
			if !strings.HasSuffix(line, "\n") {
				b.WriteString("\n\\ No newline at end of file\n")
			}
		}
	}
	write(" ", before[first:head])
	write("-", before[head:len(before)-tail])
	write("+", after[head:len(after)-tail])
	write(" ", before[len(before)-tail:lastBefore])
	if b.Len() > maxDiff {
		return strings.ToValidUTF8(b.String()[:maxDiff], "") + "\n… cut here: the difference is longer than can be shown.\n"
	}
	return b.String()
}

func span(first, end int) string {
	if end == first {
		return fmt.Sprintf("%d,0", first)
	}
	return fmt.Sprintf("%d,%d", first+1, end-first)
}

// splitLines keeps the line ends; the last line may have none.
func splitLines(s string) []string {
	lines := strings.SplitAfter(s, "\n")
	if last := len(lines) - 1; lines[last] == "" {
		lines = lines[:last]
	}
	return lines
}
