package command

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/display"
	"github.com/toolward/toolward/modes"
	"github.com/toolward/toolward/shell"
)

// Outline tells people what the command would do: findings first, then how it is understood, then every program with
// what it does and why, and last what "always" would save.
func (a *Assessment) Outline() *display.Outline {
	o := &outliner{out: &display.Outline{}}
	o.findings(a)
	o.understanding(a)
	o.segments(a.Segments, a.Dir, 0)
	o.files(a)
	o.always(a)
	return o.out
}

// outliner writes an outline.
type outliner struct{ out *display.Outline }

func (o *outliner) add(depth int, kind display.LineKind, mark display.Mark, label, text, note string) {
	o.out.Add(display.OutlineLine{Depth: depth, Kind: kind, Mark: mark, Label: label, Text: text, Note: note})
}

func (o *outliner) findings(a *Assessment) {
	for _, finding := range a.Critical {
		o.add(0, display.LineFinding, display.MarkAsk, "DANGER: it", finding, "")
	}
	if a.Forbidden != "" {
		o.add(0, display.LineFinding, display.MarkDeny, "refused by a rule:", a.Forbidden, "")
	}
	var hijacks []string
	eachSegment(a.Segments, func(s *Segment) {
		if h := s.Program.Hijack; h != "" && !slices.Contains(hijacks, h) {
			hijacks = append(hijacks, h)
			o.add(0, display.LineFinding, display.MarkAsk, "DANGER: another program may stand behind", display.Words(s.Program.Word), h)
		}
	})
	for _, reason := range a.Findings {
		if words := findingWords[reason]; words != "" {
			o.add(0, display.LineFinding, display.MarkAsk, words, strings.Join(hiddenIf(reason, a), ", "), "")
		}
	}
}

// findingWords are for people. A rule says so itself, with the segment.
var findingWords = map[string]string{
	modes.FindingHeredoc:     "text follows the command, which the program reads as its input: read it, too",
	modes.FindingInlineEval:  "code stands in the arguments: read it, nobody else has",
	modes.FindingObfuscation: "it is written as commands are that hide what they do:",
}

func hiddenIf(reason string, a *Assessment) []string {
	if reason == modes.FindingObfuscation {
		return a.Hidden
	}
	return nil
}

// understanding says who reads the text once more, if anybody does.
func (o *outliner) understanding(a *Assessment) {
	const exactly = "a shell (bash) gets exactly this text"
	if !a.OK {
		o.add(0, display.LineFinding, display.MarkAsk, "Not understood:", a.Detail, string(a.Reason))
	}
	switch {
	case a.Client:
		o.add(0, display.LineNote, display.NoMark, "The program that asks runs this text itself, in its own shell and environment.", "", "")
	case !a.OK:
		o.add(0, display.LineNote, display.NoMark, "If it is allowed, "+exactly+".", "", "")
	case a.Script && a.Satisfied && a.ByShell != "":
		o.add(0, display.LineNote, display.NoMark, "Understood: a shell gets these programs with these words, and not the text.", "", "")
	case a.ByShell != "":
		o.add(0, display.LineFinding, display.MarkAsk, "Understood, but if it is allowed, "+exactly+":", a.ByShell, "")
	default:
		o.add(0, display.LineNote, display.NoMark, "Understood: these programs start with these words, and no shell reads them again.", "", "")
	}
}

func (o *outliner) segments(segments []Segment, dir string, depth int) {
	before := shell.None
	for i := range segments {
		s := &segments[i]
		o.add(depth, display.LineCommand, s.mark(), joinWords[before], display.Words(s.Argv...), "")
		o.segment(s, dir, depth+1)
		before = s.Op
	}
}

var joinWords = map[shell.Operator]string{
	shell.Pipe: "| into", shell.And: "&& then", shell.Or: "|| or else", shell.Sequence: "; then",
}

func (s *Segment) mark() display.Mark {
	switch {
	case s.By != NotSatisfied:
		return display.MarkRun
	case s.Rule != nil && s.Rule.Decision == Forbidden:
		return display.MarkDeny
	}
	return display.MarkAsk
}

// segment says everything about a command below its words.
func (o *outliner) segment(s *Segment, dir string, depth int) {
	if s.Dir != dir {
		o.add(depth, display.LineNote, display.NoMark, "in", display.Words(s.Dir), "")
	}
	for _, other := range s.OtherDir {
		o.add(depth, display.LineNote, display.NoMark, "or, if an earlier cd fails, in", display.Words(other), "")
	}
	o.programs(s, depth)
	o.words(s, depth)
	shown := o.redirections(s, depth)
	o.heredoc(s.Heredoc, depth)
	shown = append(shown, o.effects(s, depth)...)
	if len(s.Inner) > 0 {
		label := "runs this script:"
		if len(s.dynamic) > 0 {
			label = "gets what these print:"
		}
		o.add(depth, display.LineNote, display.NoMark, label, "", "")
		o.segments(s.Inner, s.Dir, depth+1)
	}
	o.verdict(s, shown, depth)
}

// programs names the files that start, wrappers first.
func (o *outliner) programs(s *Segment, depth int) {
	for i := range s.Wrappers {
		w := &s.Wrappers[i]
		note := alias(&w.Program)
		if w.Dropped {
			note = "left out, as it changes nothing"
		}
		o.add(depth, display.LineWrapper, display.NoMark, "started by", display.Words(append([]string{pathOf(&w.Program)}, w.Args...)...), note)
	}
	switch {
	case s.Builtin != "" && s.Builtin != "cd":
		o.add(depth, display.LineNote, display.NoMark, "the shell does it itself", "", "")
	case s.Builtin == "cd":
		o.add(depth, display.LineNote, display.NoMark, "goes to", display.Words(s.Target), "")
	case s.Program.Found():
		o.add(depth, display.LineProgram, display.NoMark, "program", display.Words(s.Program.Path), alias(&s.Program))
	}
	if s.loads != "" {
		o.add(depth, display.LineProgram, display.NoMark, "script", display.Words(s.loads), "")
	}
}

func pathOf(p *Program) string {
	if p.Found() {
		return p.Path
	}
	return p.Word
}

// alias is the file behind a link.
func alias(p *Program) string {
	if p.Real == p.Path {
		return ""
	}
	return "which is " + display.Words(p.Real)
}

// words shows what is not as it is written, and variables that are set for the command.
func (o *outliner) words(s *Segment, depth int) {
	for _, f := range s.forms {
		became := s.Argv[f.at : f.at+f.n]
		if f.n == 1 && became[0] == f.source {
			continue // the pattern fits no file
		}
		o.add(depth, display.LineWord, display.NoMark, "written", f.source, "")
		switch {
		case f.n == 0:
			o.add(depth+1, display.LineWord, display.NoMark, "runs as nothing: it is left out", "", "")
		case f.n == 1:
			o.add(depth+1, display.LineWord, display.NoMark, "runs as", display.Words(became...), "")
		default:
			o.add(depth+1, display.LineWord, display.NoMark, fmt.Sprintf("runs as %d words:", f.n), display.Words(became...), "")
		}
	}
	for _, v := range s.Assigns {
		o.add(depth, display.LineWord, display.NoMark, "with", v.Name+"="+display.Words(v.Value), "for this command alone")
	}
}

// redirections shows the files that the streams are joined to, and returns the findings that this has shown already.
func (o *outliner) redirections(s *Segment, depth int) (shown []Finding) {
	for i := range s.Redirs {
		o.redirection(&s.Redirs[i], depth)
		shown = append(shown, Finding{Redirected, s.Redirs[i].String()})
	}
	return shown
}

func (o *outliner) redirection(r *Redirect, depth int) {
	note := "changes nothing"
	if !r.Harmless() {
		deed := "writes "
		switch {
		case r.Reads():
			deed = "reads "
		case strings.Contains(r.Op, ">>"):
			deed = "adds to "
		}
		note = deed + "a file that is not known now"
		if r.File.Real != "" {
			note = deed + display.Words(r.File.Real) + ", " + placeWords[r.File.Zone.String()]
		}
	}
	o.add(depth, display.LineFile, markOf(r.Verdict), "redirection", r.FD+r.Op+display.Words(r.Target), note)
}

func markOf(v toolward.Verdict) display.Mark {
	if v == toolward.Allow {
		return display.MarkRun
	}
	return display.MarkAsk
}

// placeWords say what a place is to people.
var placeWords = map[string]string{
	"workspace": "in the workspace", "outside": "outside the workspace", "instructions": "instructions that agents obey",
	"protected": "which other programs run or trust", "secret": "which holds secrets", "self": "which is Toolward's own",
}

// documentLines is how much of a here-document stands in the outline; all of it stands in the command.
const documentLines = 6

func (o *outliner) heredoc(text *string, depth int) {
	if text == nil {
		return
	}
	lines := strings.Split(strings.TrimSuffix(*text, "\n"), "\n")
	o.add(depth, display.LineFile, display.NoMark, fmt.Sprintf("gets this text as input, %d lines, %d bytes:", len(lines), len(*text)), "", "")
	for i, line := range lines {
		if i == documentLines {
			o.add(depth+1, display.LineFile, display.NoMark, fmt.Sprintf("… and %d more lines", len(lines)-i), "", "")
			return
		}
		o.add(depth+1, display.LineFile, display.NoMark, "", line, "")
	}
}

// effects shows what the program does by its arguments, and returns the findings that this has shown already.
func (o *outliner) effects(s *Segment, depth int) (shown []Finding) {
	for i := range s.Effects {
		e := &s.Effects[i]
		var notes []string
		if e.Place != "" {
			notes = append(notes, placeWords[e.Place])
		}
		if e.Code != "" {
			notes = append(notes, string(e.Code))
			shown = append(shown, Finding{e.Code, e.String()})
		}
		label, text := effectWords(&e.Effect)
		o.add(depth, display.LineEffect, markOf(e.Verdict), label, text, strings.Join(notes, "; "))
		if e.Runs != nil {
			o.segment(e.Runs, s.Dir, depth+1)
		}
	}
	if len(s.Effects) == 0 { // nobody came to judge them
		for i := range s.effects {
			label, text := effectWords(&s.effects[i])
			o.add(depth, display.LineEffect, display.NoMark, label, text, "")
		}
	}
	return shown
}

var effectLabels = map[shell.Kind]string{
	shell.Reads: "reads", shell.Writes: "writes", shell.Enters: "works in, or is told what to do by,", shell.Runs: "runs",
	shell.Destroys: "loses work that nobody has a copy of", shell.Evaluates: "runs code in the language",
	shell.Project: "runs code of the project", shell.Network: "talks to", shell.Configures: "changes what later runs do",
	shell.Installs: "installs, and runs, code of others:", shell.Environment: "shows the environment, where secrets are",
	shell.Signs: "signs as you", shell.Unknown: "has an argument that is not understood",
}

// effectWords is an effect for people: our words, and those of the command.
func effectWords(e *shell.Effect) (label, text string) {
	label = effectLabels[e.Kind]
	switch {
	case e.Kind == shell.Runs && e.Open:
		label, text = "runs, with names added,", display.Words(e.Argv...)
	case e.Kind == shell.Runs:
		text = display.Words(e.Argv...)
	case e.Kind == shell.Evaluates && e.Text == "" && e.Via == "standard input":
		label = strings.TrimSpace("runs as "+e.Lang) + " code what it reads from its standard input"
	case e.Kind == shell.Evaluates && e.Text == "":
		label, text = strings.Join(strings.Fields("runs "+e.Lang+" code from"), " "), display.Words(e.Via)
	case e.Kind == shell.Evaluates:
		text = strings.TrimSpace(e.Lang + " " + display.Words(e.Text))
	case e.Kind == shell.Installs:
		text = display.Words(e.Text)
	case e.Kind == shell.Network && e.Host == "":
		label = "talks to a host that the arguments do not name"
	case e.Kind == shell.Network:
		text = display.Words(e.Host)
	case e.Path != "":
		text = display.Words(path.Join(e.Dir, e.Path))
	case e.Via != "" && (e.Kind == shell.Project || e.Kind == shell.Unknown):
		text = display.Words(e.Via)
	}
	if e.Kind == shell.Enters && e.Via == "working directory" {
		label = "obeys what lies in"
	}
	if e.Far {
		text += " and where links below it lead"
	}
	return label, text
}

// verdict says what satisfied the command, or why nothing does.
func (o *outliner) verdict(s *Segment, shown []Finding, depth int) {
	switch s.By {
	case NotSatisfied:
		for _, finding := range s.Asks {
			label := "because"
			if finding.Code == InlineCode {
				label = "because of code in"
			}
			if !slices.Contains(shown, finding) {
				o.add(depth, display.LineNote, display.MarkAsk, label, finding.Detail, string(finding.Code))
			}
		}
	case ByAllowlist:
		o.add(depth, display.LineNote, display.NoMark, "allowed by the entry", display.AllowedProgram(s.Entry.Pattern, s.Entry.Effects, s.Entry.Argv), "of agent "+display.Words(s.Entry.Agent))
	case ByRule:
		o.add(depth, display.LineNote, display.NoMark, "allowed by the rule about", s.Rule.text(), s.Rule.Justification)
	case ByBuiltin, ByInner: // the lines above say it
	default:
		o.add(depth, display.LineNote, display.NoMark, satisfactionWords[s.By], "", "")
	}
}

var satisfactionWords = map[Satisfaction]string{
	BySafeBins: "allowed as a safe bin: it only reads its input",
	ByPreset:   "allowed by the preset",
}

// files lists what the yes holds for besides the words.
func (o *outliner) files(a *Assessment) {
	for i := range a.Files {
		o.add(0, display.LineFile, display.NoMark, "a yes holds only for the present content of", display.Words(a.Files[i].Real), "")
	}
}

// always lists what "always" would save.
func (o *outliner) always(a *Assessment) {
	var lines []display.OutlineLine
	for i, e := range a.Always {
		if i == 0 {
			lines = append(lines, display.OutlineLine{Kind: display.LineAlways, Label: `"Always" would let this run without a question from now on:`})
		}
		lines = append(lines, display.OutlineLine{Depth: 1, Kind: display.LineAlways, Text: display.AllowedProgram(e.Pattern, e.Effects, e.Argv)})
	}
	o.out.AddLast(lines...)
}
