package approval

import (
	"fmt"
	"strings"
	"time"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/display"
)

// Message is an approval as a message for people elsewhere: in a ticket, in a chat. code makes a block of code of a shown
// text, such as [display.MarkdownOf] and [display.ChatOf]. All that a caller wrote stands inside of the block, and the
// lines of a command behind a bar, so that nothing of it can pass for a line of ours.
//
// A message answers nothing: whoever reads it compares the digest with a console and answers there.
func (r *Record) Message(code func(shown string) string) string {
	d := r.Request
	var b strings.Builder
	line := func(name, text string) {
		if text != "" {
			fmt.Fprintf(&b, "%-10s %s\n", name, display.Line(text))
		}
	}
	quote := func(text string) {
		for row := range strings.SplitSeq(strings.TrimRight(display.Block(text), "\n"), "\n") {
			b.WriteString("| " + row + "\n")
		}
	}
	line("tool", strings.TrimSpace(d.Tool+" "+d.Action))
	line("severity", d.Severity.String())
	line("agent", d.Agent)
	line("session", string(d.Session))
	line("directory", d.WorkDir)
	if d.Command != "" {
		quote(d.Command)
	} else {
		quote(string(d.Preview))
	}
	for _, row := range d.Outline.Without(display.LineAlways).Rows(100) {
		b.WriteString(row.Text + "\n")
	}
	if d.Diff != "" {
		quote(d.Diff)
	}
	line("sets", display.Words(d.Variables...))
	for _, target := range d.Targets {
		line("target", target)
	}
	for _, reason := range d.Reasons {
		line("because", reason)
	}
	for _, p := range d.Proposals {
		line("always", "would save: "+p.Text)
	}
	line("digest", d.Digest[:min(12, len(d.Digest))])
	head, foot := "A call waits for an answer until "+time.UnixMilli(r.ExpiresMs).UTC().Format(time.RFC3339)+".", ""
	switch {
	case r.State == StatePending:
		foot = "\nAnswer it in the console, or with toolward approvals allow " + r.Slug() + " or toolward approvals deny " + r.Slug() + "\n"
	case r.Decision == toolward.DenyCall:
		head = "A call was denied."
	case r.Decision == toolward.NoDecision:
		head = "Nobody answered a call."
	default:
		head = "A call was allowed."
	}
	return head + " Approval " + r.ID + "\n\n" + code(b.String()) + "\n" + foot
}
