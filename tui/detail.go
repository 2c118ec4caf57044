package tui

import (
	"cmp"
	"strings"
	"time"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/approval"
	"github.com/toolward/toolward/display"
)

// rowsOf is all that a person must know to answer a call, dangers first. Nothing is left out but what the approval
// itself does not hold, and that is said.
func rowsOf(v *approval.View, width int) []row {
	out := &rows{width: width}
	severity := severities[v.Severity]
	out.line(severity.color, "", severity.word+"  "+caller(v))
	out.line(bold, "", display.Line(v.Title))
	if v.Says != "" {
		out.line("", "", "It says:")
		out.quote(v.Says, nil)
	}
	if v.Level != toolward.Normal {
		out.line(red, "", "Level of the session: "+v.Level.String())
	}
	out.outline(v.Findings)
	out.call(v)
	if rest := v.Outline.Without(display.LineAlways); len(rest.Lines) > 0 || len(v.Variables) > 0 {
		out.line("", "", "What it would do:")
		out.outline(rest)
	}
	if len(v.Variables) > 0 {
		out.line("", "  ", "Sets in its environment: "+display.Line(display.Words(v.Variables...)))
	}
	for _, a := range v.Arguments {
		if !a.Above {
			out.line("", "", argumentLabel(a)+":")
			out.quote(a.Text, nil)
		}
	}
	out.line("", "", "Why:")
	for _, reason := range v.Reasons {
		out.line("", "  - ", display.Line(reason.Text))
	}
	out.always(v)
	if v.Cut {
		out.line(yellow, "", approval.CutText)
	}
	out.facts(v)
	return out.list
}

// caller is who asks.
func caller(v *approval.View) string {
	if v.Caller == "" {
		return display.Line(v.Agent)
	}
	return display.Line(v.Agent) + ", " + display.Line(v.Caller)
}

func argumentLabel(a approval.Argument) string {
	if a.Name == "" {
		return "Arguments"
	}
	return "Argument " + display.Line(a.Name)
}

func (r *rows) outline(o *display.Outline) {
	for _, l := range o.Rows(r.width - 2) {
		r.list = append(r.list, row{"  " + flat(l.Text), colorOf(&l)})
	}
}

// call is the command and the change, which are what is approved.
func (r *rows) call(v *approval.View) {
	if v.Command != "" {
		r.line("", "", commandLabel(v)+":")
		r.quote(v.Command, nil)
	}
	if v.Diff != "" {
		r.line("", "", "Change:")
		r.quote(v.Diff, diffColor)
	}
	for _, target := range v.Targets {
		r.line("", "  ", display.Line(target))
	}
}

func commandLabel(v *approval.View) string {
	return "Command in " + display.Line(cmp.Or(v.Directory, "an unknown directory"))
}

func diffColor(line string) string {
	switch {
	case strings.HasPrefix(line, "+++"), strings.HasPrefix(line, "---"):
		return bold
	case strings.HasPrefix(line, "+"):
		return green
	case strings.HasPrefix(line, "-"):
		return red
	}
	return ""
}

// always is what "always" would save, or that nothing can be saved.
func (r *rows) always(v *approval.View) {
	if len(v.Always) == 0 {
		r.line("", "", "Always: nothing can be saved for this call.")
		return
	}
	r.line("", "", "Always would save one of these, whichever you choose:")
	for i, offer := range v.Always {
		r.line("", proposalMark(i), display.Line(offer.Text))
	}
}

// facts identify the call, for comparing it with other screens and the record.
func (r *rows) facts(v *approval.View) {
	r.line(bold, "", "Digest "+display.Line(v.ShortDigest()))
	for _, text := range factLines(v) {
		r.line(faint, "  ", text)
	}
}

// factLines are the deadline, and the facts.
func factLines(v *approval.View) []string {
	lines := []string{"until " + v.Expires.Format(time.TimeOnly)}
	for _, fact := range v.Facts {
		lines = append(lines, display.Line(fact.Name+" "+fact.Value))
	}
	return lines
}
