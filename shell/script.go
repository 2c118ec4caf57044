package shell

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// Script is what [Script.Analyze] needs to know of where a text of several commands would run. A nil function knows nothing.
type Script struct {
	// Sets reports whether a variable may get a value that programs see.
	Sets func(name, value string) bool
	// Exported reports whether a variable is already in the environment: setting it changes what programs see.
	Exported func(name string) bool
	// Expand gives the words that a pattern or braces stand for, where the text starts.
	Expand func(w *Word) ([]string, bool)
	// Says gives what a command prints, if that is known without running it: "git rev-parse --show-toplevel".
	Says func(argv []string) (string, bool)
}

// Bounds of texts of several commands.
const maxTurns = 50 // of one loop

// Analyze takes a text apart of which [Analyze] understands too little: several lines, loops over words that are known,
// groups, conditions, variables, output of commands in quotes. What it returns is not what the text says but what it comes
// to: loops are unrolled, and variables and what commands print are put in their places where they are known. So nothing but
// the text that is made of its segments may run, never the given one, which a shell may read otherwise. The error is
// always a *[NotAnalysable].
func (in *Script) Analyze(text string) (*Command, error) {
	text = strings.Trim(joinLines(text), " \t\n")
	switch {
	case text == "":
		return nil, &NotAnalysable{Reason: Empty}
	case len(text) > maxText:
		return nil, &NotAnalysable{Reason: TooLong}
	case continuesLine(text) || strings.HasSuffix(text, `\`):
		return nil, &NotAnalysable{Reason: LineContinuation}
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
	s := &scripted{walker: walker{text: text}, in: in, known: map[string]value{}, exported: map[string]bool{}}
	s.list(file.Stmts)
	if s.err != nil {
		return nil, s.err
	}
	if len(s.segments) == 0 || s.before != "" {
		return nil, &NotAnalysable{Reason: Assignment}
	}
	if last := &s.segments[len(s.segments)-1]; last.Op == Sequence {
		last.Op = None
	}
	return &Command{Text: text, Segments: s.segments, Script: true}, nil
}

// joinLines puts lines together that a backslash continues, where that is one blank and nothing else: outside of quotes,
// comments and here-documents, behind a blank. Other backslashes before line breaks stay, and are not understood.
func joinLines(text string) string {
	if !continuesLine(text) {
		return text
	}
	var b strings.Builder
	quote, comment := byte(0), false
	for i := 0; i < len(text); i++ {
		c := text[i]
		before := byte(' ')
		if i > 0 {
			before = text[i-1]
		}
		switch {
		case comment:
			comment = c != '\n'
		case quote != 0:
			if c == '\\' && quote == '"' && i+1 < len(text) {
				b.WriteByte(c)
				i++
				c = text[i]
			} else if c == quote {
				quote = 0
			}
		case c == '\\' && strings.HasPrefix(text[i+1:], "\n") && (before == ' ' || before == '\t'):
			i++
			continue
		case c == '\\' && i+1 < len(text):
			b.WriteByte(c)
			i++
			c = text[i]
		case c == '\'' || c == '"':
			quote = c
		case c == '#' && strings.IndexByte(" \t\n;&|(", before) >= 0:
			comment = true
		case c == '<' && before == '<':
			b.WriteString(text[i:]) // a here-document may follow
			return b.String()
		}
		b.WriteByte(c)
	}
	return b.String()
}

// value is what a variable is known to be.
type value struct {
	text string
	raw  bool // not its value, only that a command printed it
	lost bool // nothing
}

// scripted walks through a text and writes down what its commands come to.
type scripted struct {
	walker
	in       *Script
	known    map[string]value
	exported map[string]bool
	unsure   bool // what is here may not run
	moved    bool // a cd was before
	apart    bool // in a shell of its own, a loop or a condition
	turns    int
	inner    bool   // in a shell of its own
	breaks   bool   // in a loop that break leaves, and in the same shell as that
	before   string // syntax for the next segment
}

// list takes commands that run one after the other.
func (s *scripted) list(stmts []*syntax.Stmt) {
	for _, stmt := range stmts {
		if s.err != nil {
			return
		}
		n := len(s.segments)
		s.statement(stmt)
		if n < len(s.segments) {
			if last := &s.segments[len(s.segments)-1]; last.Op == None {
				last.Op = Sequence
			}
		}
	}
}

func (s *scripted) statement(stmt *syntax.Stmt) {
	if stmt.Coprocess || stmt.Disown {
		s.refuse(Background, stmt.Pos())
		return
	}
	if len(s.segments) >= maxSegments {
		s.refuse(TooComplex, stmt.Pos())
		return
	}
	at := len(s.segments)
	unsure, apart, breaks := s.unsure, s.apart, s.breaks
	if stmt.Background {
		s.unsure, s.apart, s.breaks = true, true, false
	}
	if stmt.Negated {
		s.before += "! "
		s.unsure, s.apart = true, true
	}
	s.command(stmt)
	s.unsure, s.apart, s.breaks = unsure, apart, breaks
	if s.err != nil {
		return
	}
	if len(s.segments) == at && (stmt.Negated || stmt.Background) {
		s.refuse(Assignment, stmt.Pos())
		return
	}
	if stmt.Background {
		s.after(" &")
		s.segments[len(s.segments)-1].Op = Sequence
	}
}

// after puts syntax behind the last segment.
func (s *scripted) after(syntax string) {
	last := &s.segments[len(s.segments)-1]
	last.Op, last.After = None, last.After+syntax
}

func (s *scripted) command(stmt *syntax.Stmt) {
	switch c := stmt.Cmd.(type) {
	case *syntax.BinaryCmd:
		s.binary(c)
	case *syntax.CallExpr:
		if len(c.Args) == 0 {
			s.assigns(stmt, c)
			return
		}
		s.simple(stmt, c)
		return
	case *syntax.DeclClause:
		s.export(stmt, c)
	case *syntax.Subshell:
		s.subshell(c)
	case *syntax.Block:
		apart := s.apart
		s.apart = s.apart || s.unsure
		s.enclosed("{ ", c.Stmts, "; }", stmt.Pos())
		s.apart = apart
	case *syntax.IfClause:
		s.condition(c)
	case *syntax.ForClause:
		s.loop(c)
	case *syntax.TestClause:
		s.test(stmt, c)
	case *syntax.TimeClause:
		if c.PosixFormat || c.Stmt == nil {
			s.refuse(Compound, stmt.Pos())
			return
		}
		s.before += "time "
		s.statement(c.Stmt)
	default:
		s.refuse(Compound, stmt.Pos())
		return
	}
	s.redirections(stmt)
}

// redirections are those of a whole group: only such as change nothing outside.
func (s *scripted) redirections(stmt *syntax.Stmt) {
	for _, r := range stmt.Redirs {
		if s.err != nil || len(s.segments) == 0 {
			return
		}
		var whole Segment
		s.redirect(&whole, r)
		if s.err == nil && (whole.Heredoc != nil || len(whole.Redirs) != 1 || !whole.Redirs[0].Harmless() || whole.Redirs[0].Reads()) {
			s.refuse(Redirection, r.Pos())
			return
		}
		if _, grouped := stmt.Cmd.(*syntax.BinaryCmd); grouped || s.err != nil {
			s.refuse(Redirection, r.Pos())
			return
		}
		last := &s.segments[len(s.segments)-1]
		last.After += " " + whole.Redirs[0].String()
	}
}

func (s *scripted) binary(c *syntax.BinaryCmd) {
	at, unsure, apart, breaks := len(s.segments), s.unsure, s.apart, s.breaks
	piped := c.Op == syntax.Pipe || c.Op == syntax.PipeAll
	if _, timed := c.Y.Cmd.(*syntax.TimeClause); timed && piped {
		s.refuse(Compound, c.OpPos) // there it is a program
		return
	}
	if piped {
		s.unsure, s.apart, s.breaks = true, true, false // each in a shell of its own
	}
	if s.statement(c.X); s.err != nil {
		return
	}
	nothing := len(s.segments) == at
	switch {
	case nothing && c.Op == syntax.AndStmt: // "X=1 && make": it cannot fail
	case nothing || c.X.Background:
		s.refuse(Assignment, c.OpPos)
	case c.Op == syntax.AndStmt:
		s.joinIf(And, c.OpPos)
	case c.Op == syntax.OrStmt:
		s.joinIf(Or, c.OpPos)
	case c.Op == syntax.PipeAll:
		if _, simple := c.X.Cmd.(*syntax.CallExpr); !simple {
			s.refuse(PipeStderr, c.OpPos)
			return
		}
		last := &s.segments[len(s.segments)-1]
		last.Redirs = append(last.Redirs, Redirect{"2", ">&", "1"})
		s.join(Pipe)
	case c.Op == syntax.Pipe:
		s.join(Pipe)
	default:
		s.refuse(Compound, c.OpPos)
	}
	if s.err != nil {
		return
	}
	s.unsure = s.unsure || !nothing
	right := len(s.segments)
	s.statement(c.Y)
	if s.err == nil && len(s.segments) == right {
		s.refuse(Assignment, c.OpPos)
	}
	if piped {
		// Of a group on either side nobody tells which of its parts writes or reads what.
		many := len(s.segments) > right+1 || !pipeline(c.X)
		for i := right; i < len(s.segments); i++ {
			s.segments[i].Fed = s.segments[i].Fed || many
		}
	}
	s.unsure, s.apart, s.breaks = unsure, apart, breaks
}

// simple takes one program with its arguments, variables and redirections.
func (s *scripted) simple(stmt *syntax.Stmt, c *syntax.CallExpr) {
	segment := Segment{From: int(stmt.Pos().Offset()), To: int(stmt.End().Offset()), Before: s.before}
	s.before = ""
	for _, a := range c.Assigns {
		s.prefix(&segment, a)
	}
	words, redirs := c.Args, slices.Clone(stmt.Redirs)
	slices.SortFunc(redirs, func(a, b *syntax.Redirect) int { return int(a.Pos().Offset()) - int(b.Pos().Offset()) })
	for _, node := range words {
		if s.err != nil {
			return
		}
		s.argument(&segment, node)
	}
	for _, r := range redirs {
		if s.err != nil {
			return
		}
		s.file(&segment, r)
	}
	if s.err != nil {
		return
	}
	named := len(segment.Redirs) > 0 && slices.ContainsFunc(segment.Words, func(word Word) bool { return namedDescriptor.MatchString(word.Source) })
	if segment.Heredoc != nil && slices.ContainsFunc(segment.Redirs, Redirect.input) || len(segment.Words) == 0 || named {
		s.refuse(Redirection, stmt.Pos())
		return
	}
	for name := range s.exported {
		if v := s.known[name]; !slices.ContainsFunc(segment.Assigns, func(a Assign) bool { return a.Name == name }) {
			segment.Assigns = append(segment.Assigns, Assign{name, v.text})
		}
	}
	slices.SortFunc(segment.Assigns, func(a, b Assign) int { return strings.Compare(a.Name, b.Name) })
	switch argv := segment.Argv(); {
	case argv[0][0] == '-' || slices.Contains(keywords, segment.Words[0].Source):
		s.refuse(Compound, stmt.Pos()) // "time -- a" has an option, and "else a" is none of a shell's
		return
	case argv[0] == "cd" && s.apart:
		s.refuse(Compound, stmt.Pos()) // where it leaves the rest would be a matter of what runs
		return
	case argv[0] == "cd":
		s.moved = true
	case argv[0] == "break":
		if !s.breaks || len(argv) > 1 || len(c.Assigns)+len(segment.Redirs) > 0 || segment.Heredoc != nil {
			s.refuse(Compound, stmt.Pos()) // in a shell of its own it leaves nothing, and "break 2" leaves more than its loop
			return
		}
		segment.Own, segment.Assigns = true, nil
	case activates(argv) && (!s.unsure || s.onlyMoved()) && !s.apart && !s.inner && len(c.Assigns)+len(segment.Redirs) == 0 && segment.Heredoc == nil && segment.Before == "":
		segment.Own, segment.Assigns = true, nil
	case ofShell(argv) && len(segment.Redirs) == 0 && segment.Heredoc == nil && len(c.Assigns) == 0:
		segment.Own, segment.Assigns = true, nil
	}
	s.segments = append(s.segments, segment)
}
