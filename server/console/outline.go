package console

import (
	"github.com/toolward/toolward/approval"
	"github.com/toolward/toolward/display"
)

// outlineItem is a line of what a command would do, with the lines below it.
type outlineItem struct {
	Kind    string
	Mark    string // run, ask, deny or ""
	Verdict string // the mark in a word
	Label   []span // our words
	Text    []span // those of the call
	Note    []span // our words again
	Below   []outlineItem
}

var verdicts = map[display.Mark]string{display.MarkRun: "ok", display.MarkAsk: "asks", display.MarkDeny: "refused"}

// outlineOf makes a tree of what the command would do. Its environment stands below the dangers.
func outlineOf(v *approval.View) (items []outlineItem) {
	items = appendOutline(items, v.Findings.Lines)
	if len(v.Variables) > 0 {
		items = append(items, outlineItem{
			Kind: string(display.LineNote), Label: oneLine("sets in its environment"), Text: oneLine(display.Words(v.Variables...)),
		})
	}
	return appendOutline(items, v.Outline.Lines)
}

func appendOutline(items []outlineItem, lines []display.OutlineLine) []outlineItem {
	for len(lines) > 0 {
		var item outlineItem
		item, lines = outlineTree(lines)
		items = append(items, item)
	}
	return items
}

// outlineTree takes the first line and those below it.
func outlineTree(lines []display.OutlineLine) (item outlineItem, rest []display.OutlineLine) {
	l := &lines[0]
	item = outlineItem{
		Kind: string(l.Kind), Mark: string(l.Mark), Verdict: verdicts[l.Mark],
		Label: oneLine(l.Label), Text: oneLine(l.Text), Note: oneLine(l.Note),
	}
	for rest = lines[1:]; len(rest) > 0 && rest[0].Depth > l.Depth; {
		var below outlineItem
		below, rest = outlineTree(rest)
		item.Below = append(item.Below, below)
	}
	return item, rest
}
