package command

import (
	"slices"

	"github.com/toolward/toolward/display"
	"github.com/toolward/toolward/modes"
	"github.com/toolward/toolward/place"
	"github.com/toolward/toolward/shell"
)

// maxNotes bounds what people are told besides the outline, which has all of it.
const maxNotes = 4

// notes say what makes the question about a command more than routine: what it does beyond the workspace, and code that
// nobody has read. They follow from what the programs do, not from their names, and decide nothing. What something said
// yes to is routine.
func (a *Assessment) notes() (found []string) {
	add := func(what string) {
		if len(found) < maxNotes && !slices.Contains(found, what) {
			found = append(found, what)
		}
	}
	// What the outline shows as a finding is no routine.
	if slices.Contains(a.Findings, modes.FindingHeredoc) {
		add("a program reads the text that follows the command")
	}
	if a.OK && a.ByShell != "" {
		add("a shell reads the text once more: " + a.ByShell)
	}
	eachPipeline(a.Segments, func(pipeline []Segment) {
		from, fetches := "", false
		for i := range pipeline {
			s := &pipeline[i]
			switch {
			case s.By != NotSatisfied:
			case fetches && (s.runsInput() || s.Blocked != ""):
				// Whoever answers at that address decides what runs, and may answer differently each time.
				add("it runs code that it fetches" + from)
			case i > 0 && s.runsInput():
				add("it runs what is piped into it")
			case s.runsInput():
				add("it runs code that does not stand here")
			}
			if s.By == NotSatisfied {
				s.notes(add)
			}
			for _, e := range s.effects {
				if e.Kind == shell.Network && !fetches {
					fetches = true
					if e.Host != "" {
						from = " from " + display.Words(e.Host)
					}
				}
			}
		}
	})
	return found
}

// runsInput reports whether the program runs code that comes by its standard input, or by a file that nobody looked into.
func (s *Segment) runsInput() bool {
	return s.shell && s.Blocked == "" && s.ScriptArg < 0 && s.loads == "" ||
		slices.ContainsFunc(s.effects, func(e shell.Effect) bool { return e.Kind == shell.Evaluates && e.Text == "" })
}

// notes are those of one command that nothing says yes to.
func (s *Segment) notes(add func(string)) {
	if h := s.Program.Hijack; h != "" {
		add("another program may stand behind " + display.Words(s.Program.Word) + ": " + h)
	}
	if s.Blocked != "" && s.Rule == nil {
		add("what it starts is not known: " + s.Blocked)
	}
	for i := range s.Redirs {
		if r := &s.Redirs[i]; !r.Harmless() && r.File.Real != "" && beyond(r.File.Zone.String(), r.Writes()) {
			add("it " + map[bool]string{true: "writes ", false: "reads "}[r.Writes()] + display.Words(r.File.Real) + ", " + placeWords[r.File.Zone.String()])
		}
	}
	for i := range s.Effects {
		e := &s.Effects[i]
		switch {
		case noteworthy[e.Kind],
			e.Kind == shell.Reads && beyond(e.Place, false),
			(e.Kind == shell.Writes || e.Kind == shell.Enters) && beyond(e.Place, true):
			add("it " + e.told())
		}
	}
	if len(s.Effects) == 0 { // nobody came to judge them
		for i := range s.effects {
			if e := &s.effects[i]; noteworthy[e.Kind] {
				add("it " + (&Judged{Effect: *e}).told())
			}
		}
	}
}

// noteworthy are the effects that are more than routine wherever they happen. Code in the arguments is a finding of its own.
var noteworthy = map[shell.Kind]bool{
	shell.Network: true, shell.Installs: true, shell.Destroys: true, shell.Configures: true, shell.Environment: true, shell.Signs: true,
}

// beyond reports whether a file is one that the file tools ask about by a warning or worse.
func beyond(where string, writes bool) bool {
	switch where {
	case "", place.Workspace.String():
		return false
	case place.Outside.String(), place.Protected.String(), place.Instructions.String():
		return writes
	}
	return true
}

// told is the effect in the words of the outline.
func (j *Judged) told() string {
	label, text := effectWords(&j.Effect)
	if text != "" {
		label += " " + text
	}
	if j.Place != "" {
		label += ", " + placeWords[j.Place]
	}
	return label
}
