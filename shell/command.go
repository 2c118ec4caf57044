package shell

import (
	"slices"
	"strings"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"
)

// Command is a command line that was understood: simple commands and how they are joined.
type Command struct {
	Text     string // as analyzed: without white space around it
	Segments []Segment
	Script   bool // by [Script.Analyze]: the text itself must not run in the place of its segments
}

// Portable reports whether every POSIX shell understands the command as bash does. "sh -c" may be any of them: for dash,
// "{a,b}" is one word, "a &> b" starts a in the background, "[^a]" is "^" or "a", "?" is a byte, and ".*" matches ".." too.
func (c *Command) Portable() bool {
	for i := range c.Segments {
		s := &c.Segments[i]
		if slices.ContainsFunc(s.Words, func(w Word) bool { return w.Brace || w.Glob && strings.ContainsAny(w.Source, "?[") || w.MatchesDots() }) ||
			slices.ContainsFunc(s.Redirs, func(r Redirect) bool { return strings.HasPrefix(r.Op, "&") }) {
			return false
		}
	}
	return true
}

// Parameters lists the names of the parameters in words and here-documents, in the order of the text but for the
// bodies of here-documents, as often as they stand there.
func (c *Command) Parameters() []string {
	var names []string
	for i := range c.Segments {
		s := &c.Segments[i]
		for j := range s.Words {
			if s.Words[j].Param {
				names = appendParameters(names, s.Words[j].node.Parts)
			}
		}
		if s.Heredoc == nil {
			continue
		}
		for _, p := range s.Heredoc.body {
			if p.param {
				names = append(names, p.text)
			}
		}
	}
	return names
}

func appendParameters(names []string, parts []syntax.WordPart) []string {
	for _, part := range parts {
		switch p := part.(type) {
		case *syntax.ParamExp:
			names = append(names, p.Param.Value)
		case *syntax.DblQuoted:
			names = appendParameters(names, p.Parts)
		}
	}
	return names
}

// Segment is one simple command.
type Segment struct {
	Assigns  []Assign // harmless variables for this command alone
	Words    []Word   // the program and its arguments, as written; never empty
	Redirs   []Redirect
	Heredoc  *Heredoc // nil if standard input is not a here-document
	Op       Operator // how the next segment follows; None for the last, unless it ends in ";"
	From, To int      // where it stands, as byte offsets in the command's text, redirections included

	// What only [Script.Analyze] gives.
	Before, After string // syntax around it: "( ", "if ", "; then", " )", " &"
	Own           bool   // a command of the shell itself, or Variable
	Variable      string // that gets the value of the only word
	Fed           bool   // a group is piped into it, or it stands in one that something is piped into
}

// Structured reports whether the segment is more than one of a list or a pipeline: only a shell can run it.
func (s *Segment) Structured() bool {
	return s.Before != "" || s.After != "" || s.Own || slices.ContainsFunc(s.Words, func(w Word) bool { return w.Parts != nil })
}

// Argv is the program and its arguments as written, with quotes removed and nothing expanded.
func (s *Segment) Argv() []string {
	argv := make([]string, len(s.Words))
	for i := range s.Words {
		argv[i] = s.Words[i].Text
	}
	return argv
}

// Literalized lists the positions of words that a shell would expand.
func (s *Segment) Literalized() []int {
	var positions []int
	for i := range s.Words {
		if s.Words[i].Expands() {
			positions = append(positions, i)
		}
	}
	return positions
}

// Operator joins two segments.
type Operator string

// The operators.
const (
	None     Operator = ""
	Pipe     Operator = "|"
	And      Operator = "&&"
	Or       Operator = "||"
	Sequence Operator = ";"
)

// Assign is a variable that is set for one command alone.
type Assign struct{ Name, Value string }

// Word is one word of a command.
type Word struct {
	Text   string // with quotes removed and nothing expanded
	Source string // as written

	// What a shell would expand in it.
	Glob, Brace, Tilde, Param bool

	// Parts are those of a word of which something becomes known only when it runs; nil for all others.
	Parts []Part

	node *syntax.Word
}

// Expands reports whether a shell would make something else of the word.
func (w *Word) Expands() bool { return w.Glob || w.Brace || w.Tilde || w.Param }

// Params lists the parameters that a shell would put into the word.
func (w *Word) Params() []string {
	if !w.Param {
		return nil
	}
	var names []string
	syntax.Walk(w.node, func(node syntax.Node) bool {
		if p, ok := node.(*syntax.ParamExp); ok {
			names = append(names, p.Param.Value)
		}
		return true
	})
	return names
}

// Modified reports whether a parameter stands before "[", ":" or a letter beyond ASCII without braces: zsh takes what follows
// for a subscript, a modifier or more of the name, in quotes, too. "$PWD:h" is the directory above.
func (w *Word) Modified() bool {
	return w.Param && modified(w.node.Parts)
}

func modified(parts []syntax.WordPart) bool {
	for i, part := range parts {
		switch p := part.(type) {
		case *syntax.ParamExp:
			if !p.Short || i+1 == len(parts) {
				continue
			}
			if next, ok := parts[i+1].(*syntax.Lit); ok && next.Value != "" && (strings.IndexByte("[:", next.Value[0]) >= 0 || next.Value[0] >= utf8.RuneSelf) {
				return true
			}
		case *syntax.DblQuoted:
			if modified(p.Parts) {
				return true
			}
		}
	}
	return false
}

// Dollar reports whether a "$" stands for itself where zsh may see the beginning of a parameter: "$^a", "$=a", "$~a".
func (w *Word) Dollar() bool {
	return w.node != nil && strings.Contains(w.Source, "$") && dollar(w.node.Parts)
}

func dollar(parts []syntax.WordPart) bool {
	for n, part := range parts {
		switch p := part.(type) {
		case *syntax.Lit:
			for i := 0; i < len(p.Value); i++ {
				switch {
				case p.Value[i] == '\\':
					i++
				case p.Value[i] == '$' && !endsName(p.Value[i+1:], parts[n+1:]):
					return true
				}
			}
		case *syntax.DblQuoted:
			if dollar(p.Parts) {
				return true
			}
		}
	}
	return false
}

// endsName reports whether what follows a "$", in its literal or the next, is nothing or begins no name.
func endsName(rest string, parts []syntax.WordPart) bool {
	if rest == "" && len(parts) > 0 {
		next, ok := parts[0].(*syntax.Lit)
		if !ok {
			return false
		}
		rest = next.Value
	}
	return rest == "" || strings.IndexByte("|) /,", rest[0]) >= 0
}

// Escapes reports whether a backslash stands where fish reads it in another way: before a letter or a number, and between
// single quotes before another or at the end.
func (w *Word) Escapes() bool {
	if w.node == nil { // a plain one: backslashes stand between single quotes
		return strings.Contains(w.Source, `\\`) || strings.Contains(w.Source, `\'`)
	}
	return strings.Contains(w.Source, `\`) && fishEscapes(w.node.Parts)
}

func fishEscapes(parts []syntax.WordPart) bool {
	return slices.ContainsFunc(parts, func(part syntax.WordPart) bool {
		switch p := part.(type) {
		case *syntax.Lit:
			for i := 0; i+1 < len(p.Value); i++ {
				if p.Value[i] != '\\' {
					continue
				}
				if i++; plainByte(p.Value[i]) {
					return true
				}
			}
		case *syntax.SglQuoted:
			return strings.Contains(p.Value, `\\`) || strings.HasSuffix(p.Value, `\`)
		}
		return false
	})
}

func plainByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}

// OddBraces reports whether one of the words that braces make is empty, which bash drops and zsh does not, or begins with
// "=", behind which zsh looks for a program.
func (w *Word) OddBraces() bool {
	source := emptyQuotes.Replace(w.Source)
	if !w.Brace || !strings.HasPrefix(source, "{") {
		return false
	}
	odd := []string{"{,", ",,", ",}", "{=", ",="}
	if source != w.Source {
		odd = append(odd, "{~", ",~")
	}
	return slices.ContainsFunc(odd, func(odd string) bool { return strings.Contains(source, odd) })
}

// emptyQuotes are what shells leave out of a word: nothing, in quotes, and a line that goes on.
var emptyQuotes = strings.NewReplacer("$''", "", `$""`, "", "''", "", `""`, "", "\\\n", "")

// Disguised reports whether nothing but empty quotes stands before a "~" or "=" of the word: for bash they are text, for zsh a home
// directory and a program. "> ”~/.bashrc" writes a start-up file.
func (w *Word) Disguised() bool { return disguised(w.Source) }

func disguised(source string) bool {
	bare := source
	for {
		shorter := emptyQuotes.Replace(bare)
		if shorter == bare {
			return bare != source && bare != "" && strings.IndexByte("~=", bare[0]) >= 0
		}
		bare = shorter
	}
}

// Descends reports whether the word is a pattern with "**", which matches directories of any depth for zsh.
func (w *Word) Descends() bool { return w.Glob && strings.Contains(w.Text, "**") }

// MatchesDots reports whether the word is a pattern that matches "." and ".." in older shells: ".*".
func (w *Word) MatchesDots() bool {
	if !w.Glob {
		return false
	}
	return w.Brace && strings.Contains(w.Text, ".") || slices.ContainsFunc(strings.Split(w.Text, "/"), func(part string) bool {
		return strings.HasPrefix(part, ".") && strings.ContainsAny(part, "*?[")
	})
}

// Redirect is a redirection whose effect is known: of or to one literal file, or between the standard streams.
type Redirect struct {
	FD     string // descriptor before the operator: "", "0", "1" or "2"
	Op     string // > >> >| &> &>> < or >&
	Target string // file, or descriptor with >&
}

// String is the redirection without white space.
func (r Redirect) String() string { return r.FD + r.Op + r.Target }

// Harmless reports whether the redirection changes nothing outside the command: to or from /dev/null, or between the
// standard streams.
func (r Redirect) Harmless() bool {
	return r.Op == ">&" || r.Target == "/dev/null" && r.Op != ">>" && r.Op != "&>>" && r.Op != ">|"
}

// Reads and Writes report what happens to the target, if it is a file.
func (r Redirect) Reads() bool { return r.Op == "<" }

// Writes reports whether the target is written.
func (r Redirect) Writes() bool { return r.Op != "<" && r.Op != ">&" }

// input reports whether standard input is redirected.
func (r Redirect) input() bool { return r.FD == "0" || r.FD == "" && r.Reads() }

// Heredoc is a here-document.
type Heredoc struct {
	Literal bool // the delimiter is quoted: nothing in the body is expanded
	body    []bodyPart
}

// bodyPart is a piece of the body of a here-document: text, or a parameter.
type bodyPart struct {
	text  string
	param bool
}

// Body is the text of the here-document, with parameters replaced by what value gives for them.
func (h *Heredoc) Body(value func(name string) string) string {
	var text []byte
	for _, p := range h.body {
		if p.param {
			text = append(text, value(p.text)...)
		} else {
			text = append(text, p.text...)
		}
	}
	return string(text)
}
