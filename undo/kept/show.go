package kept

import (
	"bytes"
	"context"
	"strconv"
	"unicode/utf8"

	"github.com/toolward/toolward/display"
	"github.com/toolward/toolward/undo"
)

// Shown is a change for people.
type Shown struct {
	Path   string `json:"path"` // within the workspace; quoted if it is no text
	What   string `json:"what"` // "changed", "deleted", …
	Before int64  `json:"before"`
	After  int64  `json:"after"` // bytes, of files
	Diff   string `json:"diff,omitempty"`
}

// Bounds of what is shown of one call.
const (
	mostShown   = 1000     // changes
	mostContent = 1 << 20  // bytes of a file that is compared
	mostDiff    = 64 << 10 // bytes of one difference
	mostDiffs   = 1 << 20  // bytes of all
)

// Show puts changes into words, with differences of texts if diffs are wanted. total is how many there are.
func (w *Workspaces) Show(changes []undo.Change, diffs bool) (list []Shown, total int) {
	total = len(changes)
	list = []Shown{}
	left := mostDiffs
	for _, c := range changes[:min(total, mostShown)] {
		one := Shown{Path: plainPath(c.Path), What: whatOf(c), Before: sizeOf(c.Before), After: sizeOf(c.After)}
		if diffs && left > 0 {
			one.Diff = w.diff(c)
			left -= len(one.Diff)
		}
		list = append(list, one)
	}
	return list, total
}

func plainPath(path string) string {
	if utf8.ValidString(path) {
		return path
	}
	return strconv.QuoteToASCII(path)
}

func whatOf(c undo.Change) string {
	before, after := c.Before, c.After
	switch {
	case before == nil && after == nil:
		return "gone"
	case before != nil && after != nil && *before == *after:
		return "something else is in it"
	case before == nil:
		return "created" + kindWords(after)
	case after == nil:
		return "deleted" + kindWords(before)
	case before.Kind == undo.Apart || after.Kind == undo.Apart:
		return "not kept: " + apartWords(before, after)
	case before.Kind != after.Kind:
		return "replaced:" + kindWords(before) + " by" + kindWords(after)
	case before.Hash == after.Hash && before.Mode != after.Mode:
		return "mode " + strconv.FormatUint(uint64(before.Mode), 8) + " to " + strconv.FormatUint(uint64(after.Mode), 8)
	}
	return "changed"
}

func kindWords(e *undo.Entry) string {
	switch e.Kind {
	case undo.Directory:
		return " a directory"
	case undo.Link:
		return " a link"
	case undo.Apart:
		return ", and not kept: " + e.Why
	}
	return " a file"
}

func apartWords(before, after *undo.Entry) string {
	if before.Kind == undo.Apart {
		return before.Why
	}
	return after.Why
}

func sizeOf(e *undo.Entry) int64 {
	if e == nil {
		return 0
	}
	return e.Size
}

// diff is the difference of two texts, "" if they are none.
func (w *Workspaces) diff(c undo.Change) string {
	before, ok := w.text(c.Before)
	if !ok {
		return ""
	}
	after, ok := w.text(c.After)
	if !ok || before == after {
		return ""
	}
	names := [2]string{"/dev/null", "/dev/null"}
	for i, e := range []*undo.Entry{c.Before, c.After} {
		if e != nil {
			names[i] = plainPath(c.Path)
		}
	}
	d := display.NewDiff(mostDiff)
	d.File(names[0], names[1], before, after)
	return d.String()
}

// text is the content of a file that is a text, or where a link leads; what is not there is empty.
func (w *Workspaces) text(e *undo.Entry) (string, bool) {
	switch {
	case e == nil:
		return "", true
	case e.Kind == undo.Link:
		return "link to " + strconv.Quote(e.Target) + "\n", true
	case e.Kind != undo.File:
		return "", false
	}
	store, err := w.opened(context.Background())
	if err != nil {
		return "", false
	}
	content, err := store.Content(e, mostContent)
	if err != nil || !utf8.Valid(content) || bytes.ContainsRune(content, 0) {
		return "", false
	}
	text := string(content)
	if w.options.Redact != nil {
		text = w.options.Redact(text)
	}
	return text, true
}
