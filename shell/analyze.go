package shell

import (
	"errors"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"
)

// Bounds of what is analyzed.
const (
	maxText     = 65536 // bytes
	maxNesting  = 100   // open brackets of any kind
	maxMarks    = 5000  // characters that part words or begin something else
	maxSegments = 256
)

// parsers are used again: each has a buffer of its own, and every call begins afresh.
var parsers = sync.Pool{New: func() any { return syntax.NewParser(syntax.Variant(syntax.LangBash)) }}

// Analyze takes a command line apart. The error is always a *[NotAnalysable].
func Analyze(text string) (*Command, error) {
	trimmed := strings.Trim(text, " \t\n")
	if segments := plain(trimmed); segments != nil {
		return &Command{Text: trimmed, Segments: segments}, nil
	}
	return parse(text)
}

// parse takes any command line apart.
func parse(text string) (*Command, error) {
	if continuesLine(text) {
		return nil, &NotAnalysable{Reason: LineContinuation}
	}
	given := strings.TrimLeft(text, " \t\n")
	text = strings.TrimRight(given, " \t\n")
	if strings.HasSuffix(text, `\`) {
		// What it quotes was trimmed, or is missing: shells differ in what they make of it.
		return nil, &NotAnalysable{Reason: LineContinuation, Offset: len(text) - 1}
	}
	switch {
	case text == "":
		return nil, &NotAnalysable{Reason: Empty}
	case len(text) > maxText:
		return nil, &NotAnalysable{Reason: TooLong}
	}
	if at, hidden := hiddenCharacter(text); hidden {
		return nil, &NotAnalysable{Reason: ControlCharacter, Offset: at}
	}
	if at, deep := tooDeep(text); deep {
		return nil, &NotAnalysable{Reason: TooComplex, Offset: at}
	}
	parser := parsers.Get().(*syntax.Parser)
	file, err := parser.Parse(strings.NewReader(text), "")
	parsers.Put(parser)
	if err != nil {
		return nil, parseError(err)
	}
	if len(file.Stmts) == 0 {
		return nil, &NotAnalysable{Reason: Empty}
	}
	w := &walker{text: text}
	for i, stmt := range file.Stmts {
		if i > 0 {
			w.join(Sequence)
		}
		w.statement(stmt)
		if w.err != nil {
			return nil, w.err
		}
	}
	if err := w.newline(); err != nil {
		return nil, err
	}
	if len(w.heredocs) > 0 && len(given) > len(text) && given[len(text)] != '\n' {
		// Blanks after the last delimiter make it a line of the body.
		return nil, &NotAnalysable{Reason: ParseError, Offset: len(text)}
	}
	if last := file.Stmts[len(file.Stmts)-1]; last.Semicolon.IsValid() {
		w.join(Sequence)
	}
	return &Command{Text: text, Segments: w.segments}, nil
}

func parseError(err error) *NotAnalysable {
	e := &NotAnalysable{Reason: ParseError, Detail: err.Error()}
	if parse, ok := errors.AsType[syntax.ParseError](err); ok {
		e.Offset, e.Detail = int(parse.Pos.Offset()), parse.Text
	}
	return e
}

// continuesLine reports whether a backslash stands before a line break anywhere, even in quotes. Scanners and shells
// disagree about what such a line is.
func continuesLine(text string) bool {
	for i := 0; i+1 < len(text); i++ {
		if text[i] == '\\' && (text[i+1] == '\n' || text[i+1] == '\r') {
			return true
		}
	}
	return false
}

// hiddenCharacter finds what people would not see, or see in another order, and what is not text at all.
func hiddenCharacter(text string) (at int, found bool) {
	for i, r := range text {
		switch {
		case r < 0x20 && r != '\t' && r != '\n', r >= 0x7f && r <= 0x9f,
			r >= 0x200b && r <= 0x200f, r >= 0x2028 && r <= 0x202e, r >= 0x2060 && r <= 0x2069,
			r == 0x061c, r == 0xfeff, r == utf8.RuneError, r >= 0xe0000 && r <= 0xe007f:
			return i, true
		}
	}
	return 0, false
}

// tooDeep bounds what the parser is given: brackets that open and do not close, and all that parts words. Quotes are
// not looked at; text that nests that deeply in quotes is refused with the rest.
func tooDeep(text string) (at int, deep bool) {
	depth, marks := 0, 0
	for i := range len(text) {
		if strings.IndexByte(" \t\n$`{<>|&;", text[i]) >= 0 {
			if marks++; marks > maxMarks {
				return i, true
			}
		}
		switch text[i] {
		case '(', '{', '[':
			if depth++; depth > maxNesting {
				return i, true
			}
		case ')', '}', ']':
			depth = max(0, depth-1)
		}
	}
	return 0, false
}

// walker accepts what it knows, in the order of the text, and stops at the first thing that it does not.
type walker struct {
	text     string
	segments []Segment
	quoted   []span // words, in the order of the text: line breaks within are quoted
	heredocs []span // from the line break before the first body to the end of the last delimiter
	err      error
}

// span is a part of the text, in bytes.
type span struct{ from, to int }

func (w *walker) refuse(reason Reason, at syntax.Pos) {
	if w.err == nil {
		w.err = &NotAnalysable{Reason: reason, Offset: int(at.Offset())}
	}
}

func (w *walker) join(op Operator) {
	if n := len(w.segments); n > 0 {
		w.segments[n-1].Op = op
	}
}

// joinIf joins with And or Or. Behind "[[", wherever it stands, "&&" and "||" are more words for the shell of busybox: "rm [[ && a"
// removes a there, and never starts it.
func (w *walker) joinIf(op Operator, at syntax.Pos) {
	if n := len(w.segments); n > 0 && slices.ContainsFunc(w.segments[n-1].Words, func(word Word) bool { return word.Source == "[[" }) {
		w.refuse(Compound, at)
		return
	}
	w.join(op)
}

func (w *walker) statement(s *syntax.Stmt) {
	if s.Negated {
		w.refuse(Compound, s.Pos())
		return
	}
	switch c := s.Cmd.(type) {
	case *syntax.BinaryCmd:
		w.binary(c)
		if len(s.Redirs) > 0 {
			w.refuse(Compound, s.Redirs[0].Pos())
		}
	case *syntax.CallExpr:
		w.simple(s, c)
	case nil:
		w.simple(s, &syntax.CallExpr{})
	case *syntax.CoprocClause:
		w.refuse(Background, s.Pos())
	default:
		w.refuse(Compound, s.Pos())
	}
	if s.Background || s.Coprocess || s.Disown {
		w.refuse(Background, s.Semicolon)
	}
}

func (w *walker) binary(c *syntax.BinaryCmd) {
	if w.statement(c.X); w.err != nil {
		return
	}
	switch c.Op {
	case syntax.AndStmt:
		w.joinIf(And, c.OpPos)
	case syntax.OrStmt:
		w.joinIf(Or, c.OpPos)
	case syntax.Pipe:
		w.join(Pipe)
	case syntax.PipeAll:
		w.refuse(PipeStderr, c.OpPos)
	default:
		w.refuse(Compound, c.OpPos)
	}
	if w.err == nil {
		w.statement(c.Y)
	}
}

// simple takes one simple command: variables, then words and redirections as they stand in the text.
func (w *walker) simple(s *syntax.Stmt, c *syntax.CallExpr) {
	if len(w.segments) >= maxSegments {
		w.refuse(TooComplex, s.Pos())
		return
	}
	segment := Segment{From: int(s.Pos().Offset())}
	for _, a := range c.Assigns {
		w.assign(&segment, a, len(c.Args) > 0)
	}
	words, redirs := c.Args, slices.Clone(s.Redirs)
	slices.SortFunc(redirs, func(a, b *syntax.Redirect) int { return int(a.Pos().Offset()) - int(b.Pos().Offset()) })
	for w.err == nil && len(words)+len(redirs) > 0 {
		if len(redirs) == 0 || len(words) > 0 && words[0].Pos().Offset() < redirs[0].Pos().Offset() {
			w.argument(&segment, words[0])
			words = words[1:]
		} else {
			w.redirect(&segment, redirs[0])
			redirs = redirs[1:]
		}
	}
	if segment.Heredoc != nil && slices.ContainsFunc(segment.Redirs, Redirect.input) {
		w.refuse(Redirection, s.Pos()) // the last one counts, and their order is not kept
	}
	if len(s.Redirs) > 0 && slices.ContainsFunc(segment.Words, func(word Word) bool { return namedDescriptor.MatchString(word.Source) }) {
		w.refuse(Redirection, s.Pos())
	}
	if w.err == nil && len(segment.Words) == 0 {
		// Redirections alone create or empty files without any program.
		w.refuse(Redirection, s.Pos())
	}
	w.segments = append(w.segments, segment)
}

// namedDescriptor is a word that zsh takes for the variable of a descriptor if a redirection follows: "{fd} <a".
var namedDescriptor = regexp.MustCompile(`^\{[A-Za-z_][A-Za-z0-9_]*\}$`)

// reserved are words that shells read as syntax, or as a change to the command that follows, where the parser sees a
// program.
var reserved = []string{"in", "repeat", "foreach", "end", "nocorrect", "noglob", "-", "integer", "float", "private"}

// modifiers are those of these words that change the command that follows even if they are quoted, for zsh.
var modifiers = []string{"nocorrect", "noglob", "-"}

// declarations change the shell. The parser knows them where they stand first and are not quoted; a shell always does.
var declarations = []string{"declare", "export", "let", "local", "readonly", "typeset"}

func (w *walker) argument(s *Segment, node *syntax.Word) {
	word := w.word(node)
	if w.err != nil {
		return
	}
	if len(s.Words) == 0 && (slices.Contains(reserved, word.Source) || slices.Contains(modifiers, word.Text) || slices.Contains(declarations, word.Text)) {
		w.refuse(Compound, node.Pos())
		return
	}
	// "%1" continues a job.
	if len(s.Words) == 0 && (word.Text == "" || word.Text[0] == '%' || word.Param || word.Glob || word.Brace) {
		w.refuse(DynamicExecutable, node.Pos())
		return
	}
	name, _, assigned := strings.Cut(word.Source, "=")
	if name = strings.TrimSuffix(name, "+"); len(s.Words) == 0 && assigned && (IsNumber(name) || !isASCII(name)) {
		w.refuse(Assignment, node.Pos()) // "1=a b", "1+=a b" and "é=a b" set a parameter and start b, for zsh
		return
	}
	s.Words = append(s.Words, word)
	s.To = max(s.To, int(node.End().Offset()))
}

// harmless are variables that change how programs speak, not what they do.
var harmless = []string{
	"LANG", "LANGUAGE", "TZ", "NO_COLOR", "FORCE_COLOR", "CLICOLOR", "TERM", "COLUMNS", "LINES", "CI", "NODE_ENV",
	"GOOS", "GOARCH", "GOARM", "CGO_ENABLED", "RUST_LOG", "RUST_BACKTRACE", "DEBIAN_FRONTEND",
}

// assign takes a variable before a command. All but a few can make a listed program do anything (LD_PRELOAD, PATH,
// GIT_PAGER), and a list of the bad ones is never complete.
func (w *walker) assign(s *Segment, a *syntax.Assign, before bool) {
	known := a.Name != nil && isVariable(a.Name.Value) &&
		(slices.Contains(harmless, a.Name.Value) || strings.HasPrefix(a.Name.Value, "LC_"))
	if !before || !known || a.Append || a.Naked || a.Index != nil || a.Array != nil {
		w.refuse(Assignment, a.Pos())
		return
	}
	value := ""
	if a.Value != nil {
		word := w.word(a.Value)
		if w.err != nil {
			return
		}
		if word.Param || strings.Contains(literals(a.Value), "~") {
			w.refuse(Assignment, a.Pos())
			return
		}
		if value = word.Text; namesFile(value) {
			w.refuse(Assignment, a.Pos())
			return
		}
	}
	s.Assigns = append(s.Assigns, Assign{a.Name.Value, value})
}

// namesFile reports whether a value leads to a file wherever it is looked up: TZ=:/home/u/.ssh/id_rsa, LANG=../../x. A time zone
// such as Europe/Berlin is looked up among the system's own.
func namesFile(value string) bool {
	value = strings.TrimPrefix(value, ":")
	return strings.HasPrefix(value, "/") || strings.HasPrefix(value, ".") || strings.HasPrefix(value, "~") || strings.Contains(value, "../") || strings.HasSuffix(value, "/..")
}
