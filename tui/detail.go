package tui

import (
	"cmp"
	"encoding/json"
	"strings"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/approval"
	"github.com/toolward/toolward/display"
)

// Colors of our own marks.
const (
	red    = "31"
	green  = "32"
	yellow = "33"
	bold   = "1"
	faint  = "2"
)

// rowsOf is all that a person must know to answer a call, dangers first. Nothing is left out but what the approval
// itself does not hold, and that is said.
func rowsOf(r *approval.Record, width int) []row {
	d := r.Request
	out := &rows{width: width}
	severity := severities[d.Severity]
	out.line(severity.color, "", severity.word+"  "+display.Line(cmp.Or(d.Agent, "unknown agent"))+callerNote(r))
	out.line(bold, "", display.Line(d.Title))
	if d.Level != toolward.Normal {
		out.line(red, "", "Level of the session: "+d.Level.String())
	}
	dangers, rest := splitOutline(d.Outline.Without(display.LineAlways))
	out.outline(dangers)
	out.call(d)
	if rest != nil && len(rest.Lines) > 0 || len(d.Variables) > 0 {
		out.line("", "", "What it would do:")
		out.outline(rest)
	}
	if len(d.Variables) > 0 {
		out.line("", "  ", "Sets in its environment: "+display.Line(display.Words(d.Variables...)))
	}
	out.arguments(d)
	out.line("", "", "Why:")
	for _, reason := range d.Reasons {
		out.line("", "  - ", display.Line(reason))
	}
	out.always(r)
	if d.Cut {
		out.line(yellow, "", "Some arguments are longer than what can be shown; deny the call if you need to see them.")
	}
	out.facts(r)
	return out.list
}

// splitOutline takes the dangers from the beginning of an outline.
func splitOutline(o *display.Outline) (dangers, rest *display.Outline) {
	if o == nil {
		return nil, nil
	}
	n := 0
	for n < len(o.Lines) && (o.Lines[n].Kind == display.LineDanger || n > 0 && o.Lines[n].Depth > 0) {
		n++
	}
	return &display.Outline{Lines: o.Lines[:n]}, &display.Outline{Lines: o.Lines[n:], Cut: o.Cut}
}

func (r *rows) outline(o *display.Outline) {
	for _, l := range o.Rows(r.width - 2) {
		r.list = append(r.list, row{"  " + flat(l.Text), colorOf(&l)})
	}
}

// call is the command and the change, which are what is approved.
func (r *rows) call(d *approval.Details) {
	if d.Command != "" {
		r.line("", "", "Command in "+display.Line(cmp.Or(d.WorkDir, "an unknown directory"))+":")
		r.quote(d.Command, nil)
	}
	if d.Diff != "" {
		r.line("", "", "Change:")
		r.quote(d.Diff, diffColor)
	}
	for _, target := range d.Targets {
		r.line("", "  ", display.Line(target))
	}
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

// arguments are all arguments but a command that stands above to the last character.
func (r *rows) arguments(d *approval.Details) {
	var arguments map[string]json.RawMessage
	if json.Unmarshal(d.Preview, &arguments) != nil {
		if len(d.Preview) > 0 {
			r.line("", "", "Arguments:")
			r.quote(string(d.Preview), nil)
		}
		return
	}
	for _, name := range sortedNames(arguments) {
		text := string(arguments[name])
		var s string
		if json.Unmarshal(arguments[name], &s) == nil {
			text = s
		}
		if name == "command" && text == d.Command {
			continue
		}
		r.line("", "", "Argument "+display.Line(name)+":")
		r.quote(text, nil)
	}
}

// always is what "always" would save, or that nothing can be saved.
func (r *rows) always(a *approval.Record) {
	if !a.Offers(toolward.AllowAlways) || len(a.Request.Proposals) == 0 {
		r.line("", "", "Always: nothing can be saved for this call.")
		return
	}
	r.line("", "", "Always would save one of these, whichever you choose:")
	for i, p := range a.Request.Proposals {
		r.line("", proposalMark(i), display.Line(p.Text))
	}
}

// facts identify the call, for comparing it with other surfaces and the record.
func (r *rows) facts(a *approval.Record) {
	d := a.Request
	r.line(bold, "", "Digest "+display.Line(a.Binding[:min(12, len(a.Binding))]))
	for _, fact := range []struct{ name, value string }{
		{"tool", strings.TrimSpace(d.Tool + " " + d.Action)},
		{"runs on", string(d.Host)},
		{"session", string(d.Session)},
		{"sender", strings.TrimSpace(d.Channel + " " + d.Sender)},
		{"approval", a.ID},
	} {
		if fact.value != "" {
			r.line(faint, "  ", fact.name+" "+display.Line(fact.value))
		}
	}
	if d.ByClient {
		r.line(faint, "  ", "run by the agent's own program")
	}
}
