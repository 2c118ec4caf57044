package command

import (
	"slices"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/command/allowlist"
	"github.com/toolward/toolward/place"
	"github.com/toolward/toolward/shell"
)

// Assessment is everything that is known about one command: facts, of which [modes.Judge] makes the verdict. It is what is
// shown, bound and run: whoever uses it looks at nothing else again.
type Assessment struct {
	Command string `json:"command"` // as given
	Dir     string `json:"cwd"`     // where it would start

	OK     bool         `json:"analysisOk"`
	Reason shell.Reason `json:"reason,omitempty"` // why it was not understood
	Detail string       `json:"detail,omitempty"` // the same, for people

	Script    bool      `json:"script,omitempty"` // segments are what the text comes to; it is not run as it is written
	Segments  []Segment `json:"segments"`
	Satisfied bool      `json:"allowlistSatisfied"`

	Findings  []string `json:"forcedAsk,omitempty"`   // sorted: heredoc, inline-eval, obfuscation, rule
	Forbidden string   `json:"forbidden,omitempty"`   // why a rule refuses it in every mode
	Hidden    []string `json:"obfuscation,omitempty"` // ids of shell.Obfuscations
	Critical  []string `json:"dangers,omitempty"`     // what makes a prompt critical, for people

	Always   []Always     `json:"always,omitempty"`          // what "always" would save; if there is none, it is not offered
	Files    []LoadedFile `json:"files,omitempty"`           // files whose contents decide what runs
	ByShell  string       `json:"byShell,omitempty"`         // why a shell has to run it as it is written; "": package job runs what was judged
	Client   bool         `json:"byClient,omitempty"`        // somebody else's shell runs the text
	Enforced string       `json:"enforcedCommand,omitempty"` // the text of what would run without a person
	Network  bool         `json:"network,omitempty"`         // it reads what strangers wrote
}

// Satisfaction says what said yes to a segment.
type Satisfaction string

// The satisfactions.
const (
	NotSatisfied Satisfaction = ""
	ByAllowlist  Satisfaction = "allowlist"
	ByRule       Satisfaction = "rule"
	BySafeBins   Satisfaction = "safeBins"
	ByBuiltin    Satisfaction = "builtin"
	ByInner      Satisfaction = "inner"
	ByPreset     Satisfaction = "preset"
)

// Segment is one simple command, as written and as it would run.
type Segment struct {
	Written  []string        `json:"written"`            // words as written, quotes removed
	Argv     []string        `json:"argv"`               // words as they would run, wrappers included
	Expanded []int           `json:"expanded,omitempty"` // positions in Argv of words that are not as written
	Findings []shell.Finding `json:"doubts,omitempty"`   // of expansion
	Assigns  []shell.Assign  `json:"assigns,omitempty"`
	Op       shell.Operator  `json:"op,omitempty"` // how the next one follows

	Dir      string    `json:"dir"` // where it would start; after a cd that can fail, the first of several
	OtherDir []string  `json:"otherDirs,omitempty"`
	Wrappers []Wrapper `json:"wrappers,omitempty"` // outermost first
	Program  Program   `json:"program"`
	Args     []string  `json:"args"`              // of the program
	Builtin  string    `json:"builtin,omitempty"` // "cd": what the executor does itself; others, and "=" for Variable, only a shell
	Variable string    `json:"variable,omitempty"`
	Before   string    `json:"before,omitempty"` // syntax around it, which needs a shell
	After    string    `json:"after,omitempty"`
	Target   string    `json:"target,omitempty"` // of cd: the absolute directory

	Redirs  []Redirect `json:"redirs,omitempty"`
	Heredoc *string    `json:"heredoc,omitempty"` // standard input

	By      Satisfaction      `json:"satisfiedBy,omitempty"`
	Entry   *allowlist.Listed `json:"entry,omitempty"`   // that says so
	Rule    *Rule             `json:"rule,omitempty"`    // that says so, or that asks or forbids
	Blocked string            `json:"blocked,omitempty"` // why nothing can satisfy it
	Inline  string            `json:"inline,omitempty"`  // the argument that carries code
	Effects []Judged          `json:"effects,omitempty"`
	Asks    []Finding         `json:"asks,omitempty"` // why it is not satisfied

	Inner     []Segment `json:"inner,omitempty"`  // of a shell with a script in its arguments
	Script    string    `json:"script,omitempty"` // what the shell is given in its place, if the inner segments satisfy it
	ScriptArg int       `json:"scriptArg"`        // position of the script in Argv; -1 if there is none

	dynamic   []dynamic      // words of which a part becomes known only when it runs
	at        int            // position of the program in Argv
	forms     []wordForms    // of words that are not as written
	effects   []shell.Effect // by its profile
	profile   bool           // it has one
	shell     bool           // the program is one, or has one in it
	loads     string         // script that a shell is given
	globs     bool           // words are patterns for files, which another shell matches again
	loose     []string       // those that may match a name with a dash in front
	toMachine bool           // an entry has it run on the machine
}

// Wrapper is a program that only starts another one.
type Wrapper struct {
	Name    string   `json:"name"`
	Program Program  `json:"program"`
	Args    []string `json:"args,omitempty"`
	Dropped bool     `json:"dropped,omitempty"` // env without anything: not run
}

// Redirect is a redirection with its file.
type Redirect struct {
	shell.Redirect
	File    place.Resolved   `json:"file"` // zero if it is no file
	Verdict toolward.Verdict `json:"verdict"`
}

// Judged is an effect with what was decided about it.
type Judged struct {
	shell.Effect
	Verdict toolward.Verdict `json:"verdict"` // ask or allow
	Code    Code             `json:"code,omitempty"`
	Place   string           `json:"place,omitempty"` // of the path
	Why     string           `json:"why,omitempty"`   // it asks, if the effect and the place do not tell
	Runs    *Segment         `json:"runs,omitempty"`  // the command that is run

	at place.Resolved // its path in the segment's directory; zero if it was not looked for
}

// text tells people what asks.
func (j *Judged) text() string {
	if j.Why != "" {
		return j.Effect.String() + ": " + j.Why
	}
	return j.Effect.String()
}

// Finding is a reason why a segment is not satisfied.
type Finding struct {
	Code   Code   `json:"code"`
	Detail string `json:"detail"` // for people
}

// Code names a kind of finding.
type Code string

// The codes.
const (
	ArgumentExec    Code = "argument-exec"    // runs code that is not known
	ArgumentRead    Code = "argument-read"    // shows what is guarded
	ArgumentWrite   Code = "argument-write"   // changes what it must not change by itself
	ArgumentNetwork Code = "argument-network" // talks to whom it must not talk by itself
	ArgumentUnknown Code = "argument-unknown" // an argument that is not understood
	NotListed       Code = "not-listed"       // nothing says yes to the program
	NotFound        Code = "not-found"        // there is no such program
	BlockedWrapper  Code = "blocked"          // a wrapper, shell or builtin that nothing can satisfy
	InlineCode      Code = "inline-eval"      // code in the arguments
	PathHijack      Code = "path-hijack"      // the program may be another than people think
	Redirected      Code = "redirection"      // a file that it must not read or write by itself
	Expansion       Code = "expansion"        // words that mean more than they show
	Tensed          Code = "level"            // the session is too tense for it
)

// Always is an entry that "always" would save.
type Always struct {
	Pattern string        `json:"pattern"`
	Effects []string      `json:"effects"`
	Argv    []string      `json:"argv,omitempty"` // only with exactly these arguments
	Host    toolward.Host `json:"host,omitempty"` // see [allowlist.Entry]
}

// LoadedFile is a file whose contents decide what runs.
type LoadedFile struct {
	Segment  int    `json:"segment"`
	ArgIndex int    `json:"argIndex"` // in the segment's Argv; -1 if it is part of a word
	Path     string `json:"path"`     // absolute
	Real     string `json:"realPath"`
}

func hasEffect(effects []shell.Effect, kind shell.Kind) bool {
	return slices.ContainsFunc(effects, func(e shell.Effect) bool { return e.Kind == kind })
}

// found adds a reason why the segment is not satisfied.
func (s *Segment) found(code Code, detail string) {
	same := 0
	for i := range s.Asks {
		if s.Asks[i].Code == code {
			if same++; same == maxFindings || s.Asks[i].Detail == detail {
				return
			}
		}
	}
	s.Asks = append(s.Asks, Finding{code, detail})
}

// block makes the segment one that nothing can satisfy.
func (s *Segment) block(why string) {
	s.Blocked = why
	s.found(BlockedWrapper, why)
}

func (s *Segment) refuses(code Code) bool {
	return slices.ContainsFunc(s.Asks, func(f Finding) bool { return f.Code == code })
}

// wordForms is a word that a shell would make something else of.
type wordForms struct {
	source string // as written
	at, n  int    // what it became: n words of Argv
}

// Each visits every simple command of it, those of scripts in arguments and those that programs run.
func (a *Assessment) Each(visit func(*Segment)) { eachSegment(a.Segments, visit) }

// eachSegment visits segments, those of scripts in them, and the commands that programs run.
func eachSegment(segments []Segment, visit func(*Segment)) {
	for i := range segments {
		visit(&segments[i])
		eachSegment(segments[i].Inner, visit)
		for j := range segments[i].Effects {
			if runs := segments[i].Effects[j].Runs; runs != nil {
				eachSegment([]Segment{*runs}, visit)
			}
		}
	}
}

// eachPipeline visits the segments that are joined by pipes, those of scripts in them, and the commands that programs run.
func eachPipeline(segments []Segment, visit func([]Segment)) {
	for start, i := 0, 0; i < len(segments); i++ {
		s := &segments[i]
		eachPipeline(s.Inner, visit)
		for j := range s.Effects {
			if runs := s.Effects[j].Runs; runs != nil {
				eachPipeline([]Segment{*runs}, visit)
			}
		}
		if s.Op != shell.Pipe || i == len(segments)-1 {
			visit(segments[start : i+1])
			start = i + 1
		}
	}
}
