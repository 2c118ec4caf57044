package approval

import (
	"fmt"
	"strings"
	"time"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/display"
)

// Message is an approval as a message for people elsewhere: in a ticket, in a chat. code makes a block of code of a shown
// text, such as [display.MarkdownOf] and [display.ChatOf]. All that a caller wrote stands inside of the block.
//
// A message answers nothing: whoever reads it compares the digest with a console and answers there.
func (r *Record) Message(code func(shown string) string) string {
	view := r.View()
	head, foot := "A call waits for an answer until "+view.Expires.UTC().Format(time.RFC3339)+".", ""
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
	return head + " Approval " + r.ID + "\n\n" + code(view.Text()) + "\n" + foot
}

// CutText is what readers are told of arguments that are longer than what is shown.
const CutText = "Some arguments are longer than what can be shown; deny the call if you need to see them."

// Remarks is the part of the text that a question in the form of another product has no field for.
func (v *View) Remarks() string {
	t := &text{}
	t.line("caller", v.Caller)
	t.outline(v.Findings)
	t.outline(v.Outline)
	t.line("sets", display.Words(v.Variables...))
	if v.Cut {
		t.line("cut", CutText)
	}
	for _, fact := range v.Facts {
		t.line(fact.Name, fact.Value)
	}
	return t.String()
}

// textColumns is how wide the rows of an outline are in a text.
const textColumns = 100

// Text is all of the view as lines that are safe to print. The lines of a command, and of every other text that may have
// several, stand behind a bar, so that nothing of them can pass for a line of ours.
func (v *View) Text() string {
	t := &text{}
	t.line("severity", v.Severity.String())
	t.line("agent", v.Agent)
	t.line("caller", v.Caller)
	if v.Level != toolward.Normal {
		t.line("level", v.Level.String())
	}
	t.line("title", v.Title)
	t.quote("says", v.Says)
	t.outline(v.Findings)
	if v.Command != "" {
		t.line("directory", v.Directory)
		t.quote("command", v.Command)
	}
	t.quote("change", v.Diff)
	t.outline(v.Outline)
	t.line("sets", display.Words(v.Variables...))
	for _, target := range v.Targets {
		t.line("target", target)
	}
	for _, a := range v.Arguments {
		if !a.Above {
			t.quote(strings.TrimSpace("argument "+a.Name), a.Text)
		}
	}
	if v.Cut {
		t.line("cut", CutText)
	}
	for _, reason := range v.Reasons {
		t.line("because", reason.Text)
	}
	for i, offer := range v.Always {
		t.line(fmt.Sprintf("always (%d)", i), "would save: "+offer.Text)
	}
	t.line("until", v.Expires.UTC().Format(time.RFC3339))
	for _, fact := range v.Facts {
		t.line(fact.Name, fact.Value)
	}
	t.WriteString("digest " + display.Line(v.ShortDigest()) + "\n")
	return t.String()
}

// text collects lines.
type text struct{ strings.Builder }

func (t *text) line(name, text string) {
	if text != "" {
		fmt.Fprintf(t, "%-10s %s\n", display.Line(name), display.Line(text))
	}
}

func (t *text) quote(name, text string) {
	if text == "" {
		return
	}
	t.WriteString(display.Line(name) + ":\n")
	for row := range strings.SplitSeq(strings.TrimRight(display.Block(text), "\n"), "\n") {
		t.WriteString("| " + row + "\n")
	}
}

// outline leaves out what "always" would save: it has lines of its own.
func (t *text) outline(o *display.Outline) {
	for _, row := range o.Without(display.LineAlways).Rows(textColumns) {
		t.WriteString(row.Text + "\n")
	}
}
