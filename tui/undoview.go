package tui

import (
	"fmt"

	"github.com/toolward/toolward/display"
)

// choices are the keys by which a person says what becomes of what somebody has changed since, with the words of the gateway.
var choices = map[string]string{"k": "keep", "r": "replace", "b": "beside"}

// choice is what a key means for what is shown; chosen is false for a key that means no.
func (t *takingBack) choice(key string) (choice string, chosen bool) {
	switch {
	case !t.known || t.only || t.nothing():
		return "", false
	case t.conflicts():
		choice, chosen = choices[key]
		return choice, chosen
	}
	return "", key == "y"
}

func (t *takingBack) conflicts() bool {
	for _, w := range t.now.Workspaces {
		if len(w.Conflicts) > 0 {
			return true
		}
	}
	return false
}

// nothing reports whether all is as it was already.
func (t *takingBack) nothing() bool {
	for _, w := range t.now.Workspaces {
		if len(w.Restored)+len(w.Conflicts) > 0 {
			return false
		}
	}
	return true
}

// rows are what a person reads before they answer.
func (t *takingBack) rows(out *rows) {
	what := display.Line(t.call.Tool + " " + t.call.Text)
	switch {
	case !t.known:
		out.line("", "", "One moment...")
		return
	case t.only:
		out.line(bold, "", "What "+what+" changed")
		t.call.differences(out)
		return
	case t.request.Session != "":
		out.line(bold, "", "Back to before session "+display.Line(t.request.Session)+"?")
	default:
		out.line(bold, "", "Take back "+what+"?")
	}
	if t.request.Everything {
		out.line(yellow, "", "It runs, or it was cut off: nobody knows what it changed. All that has happened to the workspace since it began is taken back, whoever did it.")
	}
	for _, id := range t.now.Unknown {
		out.line(yellow, "", "Left out, because it runs or was cut off: "+display.Line(id))
	}
	for i := range t.now.Workspaces {
		t.now.Workspaces[i].rows(out)
	}
	if t.nothing() {
		out.line("", "", "Everything is as it was before already.")
	}
}

func (w *TakenWorkspace) rows(out *rows) {
	out.line("", "", "In "+display.Line(w.Workspace)+":")
	for _, c := range w.Conflicts {
		out.line(yellow, "  ", "changed since by somebody else: "+display.Line(c.Path+": "+c.What))
	}
	for _, c := range w.Restored {
		out.line("", "  ", "taken back: "+display.Line(c.Path+": "+c.What))
	}
	for _, c := range w.Lost {
		out.line("", "  ", "was not kept, and stays as it is: "+display.Line(c.Path+": "+c.What))
	}
}

// differences are what a call changed, path by path.
func (u *UndoCall) differences(out *rows) {
	for _, c := range u.Changes {
		out.line(bold, "", display.Line(c.Path+": "+c.What))
		if c.Diff != "" {
			out.quote(c.Diff, diffColor)
		}
	}
	if n := u.Total - len(u.Changes); n > 0 {
		out.line("", "", fmt.Sprintf("and %d more", n))
	}
	if len(u.Changes) == 0 {
		out.line("", "", "Nothing that is known.")
	}
}

// hint says which keys count.
func (t *takingBack) hint() string {
	switch {
	case t.sent:
		return "Taking back..."
	case t.only:
		return "PgUp, PgDn: scroll   any other key: back"
	case !t.known || t.nothing():
		return "Any key: back"
	case t.conflicts():
		return "Changed since: k keep it   r replace it   b put the old beside it   any other key: no"
	}
	return "y: take back   PgUp, PgDn: scroll   any other key: no"
}
