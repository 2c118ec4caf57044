package display

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// Diff collects unified differences of several files up to a limit, so that people are shown what a call changes and
// never a flood. The texts are not made safe for showing: that is for whoever prints them.
type Diff struct {
	b     strings.Builder
	limit int
	full  bool
}

// NewDiff begins a difference of at most limit bytes.
func NewDiff(limit int) *Diff { return &Diff{limit: limit} }

const (
	diffContext = 3
	// diffEffort bounds the search for the shortest difference; beyond it the changed middle is shown as removed
	// and added whole, which is as true and only longer.
	diffEffort = 800
	diffFull   = "… the rest of the difference is left out …\n"
)

// File adds the difference of one file. Either side may be missing: pass "/dev/null" as its name.
func (w *Diff) File(oldName, newName, before, after string) {
	if w.full {
		return
	}
	if binary(before) || binary(after) {
		w.add(fmt.Sprintf("--- %s\n+++ %s\nBinary content: %d bytes before, %d after\n", oldName, newName, len(before), len(after)))
		return
	}
	if oldName != newName && before == after {
		w.add(fmt.Sprintf("rename from %s\nrename to %s\n", oldName, newName))
		return
	}
	w.add(fmt.Sprintf("--- %s\n+++ %s\n", oldName, newName))
	a, b := linesOf(before), linesOf(after)
	for _, group := range groupEdits(lineEdits(a, b)) {
		w.hunk(group, a, b)
		if w.full {
			return
		}
	}
}

// binary looks at the beginning of a content.
func binary(s string) bool {
	head := s[:min(len(s), 8192)]
	return strings.IndexByte(head, 0) >= 0 || !utf8.ValidString(s[:runeEnd(s, len(head))])
}

// runeEnd moves a cut back to the beginning of the character it would split.
func runeEnd(s string, n int) int {
	for back := 0; back < utf8.UTFMax && n < len(s) && n > 0 && !utf8.RuneStart(s[n]); back++ {
		n--
	}
	return n
}

func linesOf(s string) []string {
	lines := strings.SplitAfter(s, "\n")
	if lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	return lines
}

func (w *Diff) add(text string) {
	if w.full {
		return
	}
	if w.b.Len()+len(text)+len(diffFull) > w.limit {
		w.full = true
		w.b.WriteString(diffFull)
		return
	}
	w.b.WriteString(text)
}

// String is the difference collected so far.
func (w *Diff) String() string { return w.b.String() }

// Whole reports whether nothing was left out so far.
func (w *Diff) Whole() bool { return !w.full }

// lineEdit is one line of a difference: kept (' '), removed ('-') or added ('+'), with its index on both sides.
type lineEdit struct {
	kind byte
	a, b int
}

// hunk writes one group of neighboring changes with its context.
func (w *Diff) hunk(group []lineEdit, a, b []string) {
	oldCount, newCount := 0, 0
	for _, e := range group {
		if e.kind != '+' {
			oldCount++
		}
		if e.kind != '-' {
			newCount++
		}
	}
	w.add(fmt.Sprintf("@@ -%s +%s @@\n", diffRange(group[0].a, oldCount), diffRange(group[0].b, newCount)))
	for _, e := range group {
		line := ""
		if e.kind == '+' {
			line = b[e.b]
		} else {
			line = a[e.a]
		}
		if !strings.HasSuffix(line, "\n") {
			line += "\n\\ No newline at end of file\n"
		}
		w.add(string(e.kind) + line)
	}
}

func diffRange(start, count int) string {
	if count == 0 {
		return fmt.Sprintf("%d,0", start)
	}
	if count == 1 {
		return fmt.Sprint(start + 1)
	}
	return fmt.Sprintf("%d,%d", start+1, count)
}

// groupEdits cuts an edit script into hunks with three lines of context.
func groupEdits(edits []lineEdit) [][]lineEdit {
	var groups [][]lineEdit
	for i := 0; i < len(edits); {
		if edits[i].kind == ' ' {
			i++
			continue
		}
		start := max(0, i-diffContext)
		end, last := i, i
		for end < len(edits) && end-last <= 2*diffContext {
			if edits[end].kind != ' ' {
				last = end
			}
			end++
		}
		end = min(last+1+diffContext, len(edits))
		groups = append(groups, edits[start:end])
		i = end
	}
	return groups
}

// lineEdits returns the edit script from a to b: common lines at both ends, and the shortest difference between.
func lineEdits(a, b []string) []lineEdit {
	prefix := 0
	for prefix < len(a) && prefix < len(b) && a[prefix] == b[prefix] {
		prefix++
	}
	suffix := 0
	for suffix < len(a)-prefix && suffix < len(b)-prefix && a[len(a)-1-suffix] == b[len(b)-1-suffix] {
		suffix++
	}
	edits := make([]lineEdit, 0, max(len(a), len(b))+16)
	for i := range prefix {
		edits = append(edits, lineEdit{' ', i, i})
	}
	edits = append(edits, middleEdits(a[prefix:len(a)-suffix], b[prefix:len(b)-suffix], prefix)...)
	for i := range suffix {
		edits = append(edits, lineEdit{' ', len(a) - suffix + i, len(b) - suffix + i})
	}
	return edits
}

// middleEdits is Myers' greedy algorithm. Indexes in the result are moved by base.
func middleEdits(a, b []string, base int) []lineEdit {
	n, m := len(a), len(b)
	effort := min(n+m, diffEffort)
	v := make([]int, 2*effort+2)
	var trace [][]int
	for d := 0; d <= effort; d++ {
		trace = append(trace, slices.Clone(v[effort-d:effort+d+2]))
		for k := -d; k <= d; k += 2 {
			x := 0
			if k == -d || (k != d && v[effort+k-1] < v[effort+k+1]) {
				x = v[effort+k+1]
			} else {
				x = v[effort+k-1] + 1
			}
			for x < n && x-k < m && a[x] == b[x-k] {
				x++
			}
			v[effort+k] = x
			if x >= n && x-k >= m {
				return backtrack(trace, n, m, base)
			}
		}
	}
	edits := make([]lineEdit, 0, n+m)
	for i := range n {
		edits = append(edits, lineEdit{'-', base + i, base})
	}
	for i := range m {
		edits = append(edits, lineEdit{'+', base + n, base + i})
	}
	return edits
}

// backtrack walks the trace of middleEdits from the end to the beginning. trace[d] holds, for the diagonals -d to
// d+1, how far round d-1 came.
func backtrack(trace [][]int, x, y, base int) []lineEdit {
	var edits []lineEdit
	keep := func(toX, toY int) {
		for x > toX && y > toY {
			x, y = x-1, y-1
			edits = append(edits, lineEdit{' ', base + x, base + y})
		}
	}
	for d := len(trace) - 1; d > 0; d-- {
		reached := func(k int) int { return trace[d][k+d] }
		k := x - y
		prev := k - 1
		if k == -d || (k != d && reached(k-1) < reached(k+1)) {
			prev = k + 1
		}
		keep(reached(prev), reached(prev)-prev)
		if prev == k+1 {
			y--
			edits = append(edits, lineEdit{'+', base + x, base + y})
		} else {
			x--
			edits = append(edits, lineEdit{'-', base + x, base + y})
		}
	}
	keep(0, 0)
	slices.Reverse(edits)
	return edits
}
