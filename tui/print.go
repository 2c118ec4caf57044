package tui

import (
	"strings"
	"time"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/approval"
	"github.com/toolward/toolward/display"
)

const prompt = "> "

const help = `  a            allow this call once
  A1, A2 …     allow it, and save what stands beside the number
  d            deny it
  d <reason>   deny it, and tell the agent why
  m            print all of a long call
  q            answer somewhere else from now on
`

// shortLines is how many lines of a command, difference or argument are printed before a person asks for more.
const shortLines = 40

// printCall prints a call, all of it or its beginning, and reports whether nothing was left out.
func (t *Terminal) printCall(r *approval.Record, whole bool) bool {
	return t.printView(r.View(), whole)
}

func (t *Terminal) printView(v *approval.View, whole bool) bool {
	p := &printer{Terminal: t, whole: whole, complete: true}
	severity := severities[v.Severity]
	t.printf("\n%s  %s  (answer within %s)\n", t.paint(severity.color, severity.word),
		t.paint("1", caller(v)), max(time.Until(v.Expires), 0).Round(time.Second))
	t.rows("  ", display.Line(v.Title))
	if v.Level != toolward.Normal {
		t.printf("%s\n", t.paint("31", "Level of the session: "+v.Level.String()))
	}
	p.parts(v)
	t.printf("Why:\n")
	for _, reason := range v.Reasons {
		t.rows("  - ", display.Line(reason.Text))
	}
	if v.Cut {
		t.printf("%s\n", approval.CutText)
	}
	for _, text := range factLines(v) {
		t.rows("  ", text)
	}
	t.printf("Digest %s\n", display.Line(v.ShortDigest()))
	t.printf("a: allow once   d: deny, with a reason if you like")
	if !p.complete {
		t.printf("   m: print all %d lines first", p.longest)
	}
	t.printf("\n")
	for i, offer := range v.Always {
		t.printf("A%d: from now on without a question:\n", i+1)
		t.rows("    ", display.Line(offer.Text))
	}
	return p.complete
}

// paint colors our own words; text of callers never carries escapes.
func (t *Terminal) paint(code, text string) string {
	if !t.color {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

// printer prints the parts of one call.
type printer struct {
	*Terminal
	whole    bool
	complete bool
	longest  int // lines of the longest part that was left out
}

func (p *printer) parts(v *approval.View) {
	if v.Says != "" {
		p.part("It says", v.Says)
	}
	if v.Command != "" {
		p.part(commandLabel(v), v.Command)
	}
	p.outline(v)
	if v.Diff != "" {
		p.part("Change", v.Diff)
	}
	for _, target := range v.Targets {
		p.rows("  ", display.Line(target))
	}
	for _, a := range v.Arguments {
		if !a.Above {
			p.part(argumentLabel(a), a.Text)
		}
	}
}

// outline prints what a command would do, but for what "always" would save: that stands beside the answers.
func (p *printer) outline(v *approval.View) {
	width := p.width() - 2
	if rows := append(v.Findings.Rows(width), v.Outline.Without(display.LineAlways).Rows(width)...); len(rows) > 0 {
		p.rows("", "What it would do:")
		p.limited(len(rows), func(i int) {
			text := rows[i].Text
			if color := colorOf(&rows[i]); color != "" {
				text = p.paint(color, text)
			}
			p.printf("  %s\n", text)
		})
	}
	if len(v.Variables) > 0 {
		p.rows("  ", "Sets in its environment: "+display.Line(display.Words(v.Variables...)))
	}
}

// limited prints rows, all of them or the beginning.
func (p *printer) limited(n int, row func(int)) {
	for i := range n {
		if i == shortLines && !p.whole {
			p.complete = false
			p.longest = max(p.longest, n)
			p.printf("  │ … %d more lines are not printed yet …\n", n-i)
			return
		}
		row(i)
	}
}

// part prints a text behind a bar. The bar stands on every row, so that no line of an argument, and no row of a long
// line, can pass for a line of the dialogue.
func (p *printer) part(label, text string) {
	var rows []string
	for line := range strings.SplitSeq(strings.TrimSuffix(display.Block(text), "\n"), "\n") {
		rows = append(rows, display.Fold(line, p.width()-4)...)
	}
	p.rows("", label+":")
	p.limited(len(rows), func(i int) { p.printf("  │ %s\n", rows[i]) })
}

// rows prints a text with an indent on its first row and as much space before the others.
func (t *Terminal) rows(indent, text string) {
	for _, row := range display.Fold(text, t.width()-len(indent)) {
		t.printf("%s%s\n", indent, row)
		indent = strings.Repeat(" ", len(indent))
	}
}
