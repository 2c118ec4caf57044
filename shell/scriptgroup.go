package shell

import (
	"maps"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// enclosed takes a group of commands.
func (s *scripted) enclosed(before string, stmts []*syntax.Stmt, after string, at syntax.Pos) {
	s.before += before
	n := len(s.segments)
	if s.list(stmts); s.err != nil {
		return
	}
	if n == len(s.segments) {
		s.refuse(Compound, at)
		return
	}
	if last := &s.segments[len(s.segments)-1]; strings.HasSuffix(last.After, " &") {
		after = strings.TrimPrefix(after, ";")
	}
	s.after(after)
}

// pipeline reports whether a command is a program, or programs joined by pipes.
func pipeline(stmt *syntax.Stmt) bool {
	switch c := stmt.Cmd.(type) {
	case *syntax.CallExpr:
		return true
	case *syntax.BinaryCmd:
		return (c.Op == syntax.Pipe || c.Op == syntax.PipeAll) && pipeline(c.X) && pipeline(c.Y)
	}
	return false
}

// test takes "[[ ]]" where "[" means the same: one file or text, or two texts that are no patterns.
func (s *scripted) test(stmt *syntax.Stmt, c *syntax.TestClause) {
	var words []Word
	plain := func(expr syntax.TestExpr) {
		node, ok := expr.(*syntax.Word)
		if !ok {
			s.refuse(Compound, c.Pos())
			return
		}
		word := s.word(node)
		if s.err == nil && word.Expands() {
			s.refuse(Compound, c.Pos())
			return
		}
		words = append(words, word)
	}
	operator := func(op string) { words = append(words, Word{Text: op, Source: op}) }
	operator("[")
	switch x := c.X.(type) {
	case *syntax.UnaryTest:
		if operator(x.Op.String()); !slices.Contains([]string{"-f", "-d", "-e", "-s", "-x", "-r", "-n", "-z"}, x.Op.String()) {
			s.refuse(Compound, c.Pos())
			return
		}
		plain(x.X)
	case *syntax.BinaryTest:
		op := x.Op.String()
		if op == "==" {
			op = "="
		}
		if plain(x.X); op != "=" && op != "!=" {
			s.refuse(Compound, c.Pos())
			return
		}
		operator(op)
		plain(x.Y)
	default:
		s.refuse(Compound, c.Pos())
	}
	if s.err != nil {
		return
	}
	operator("]")
	s.segments = append(s.segments, Segment{Words: words, Before: s.before, From: int(stmt.Pos().Offset()), To: int(stmt.End().Offset())})
	s.before = ""
}

func (s *scripted) subshell(c *syntax.Subshell) {
	outer := *s
	s.known, s.exported, s.unsure, s.apart, s.inner, s.breaks = maps.Clone(s.known), maps.Clone(s.exported), false, false, true, false
	s.enclosed("( ", c.Stmts, " )", c.Pos())
	s.known, s.exported, s.unsure, s.apart, s.moved = outer.known, outer.exported, outer.unsure, outer.apart, outer.moved
	s.inner, s.breaks = outer.inner, outer.breaks
}

func (s *scripted) condition(c *syntax.IfClause) {
	unsure, apart := s.unsure, s.apart
	s.unsure, s.apart = true, true
	s.before += "if "
	for s.err == nil {
		s.part(c.Cond, "; then", c.Pos())
		next, end := c.Else, "; fi"
		switch {
		case next == nil:
		case len(next.Cond) > 0:
			end = "; elif"
		default:
			end = "; else"
		}
		s.part(c.Then, end, c.Pos())
		if c = next; c == nil {
			break
		}
		if len(c.Cond) == 0 {
			s.part(c.Then, "; fi", c.Pos())
			break
		}
	}
	s.unsure, s.apart = unsure, apart
}

// part takes the commands up to a word of syntax.
func (s *scripted) part(stmts []*syntax.Stmt, end string, at syntax.Pos) {
	n := len(s.segments)
	if s.err != nil {
		return
	}
	s.list(stmts)
	switch {
	case s.err != nil:
	case n == len(s.segments) || strings.HasSuffix(s.segments[len(s.segments)-1].After, " &"):
		s.refuse(Compound, at)
	default:
		s.after(end)
	}
}

// loop writes down each turn of a loop over words that are known.
func (s *scripted) loop(c *syntax.ForClause) {
	over, ok := c.Loop.(*syntax.WordIter)
	if !ok || c.Select || !over.InPos.IsValid() || !isVariable(over.Name.Value) || !s.settable(over.Name.Value) {
		s.refuse(Compound, c.Pos())
		return
	}
	var items []string
	for _, node := range over.Items {
		words, ok := s.items(node)
		if !ok {
			return
		}
		items = append(items, words...)
	}
	if s.turns += len(items); len(items) == 0 || s.turns > maxTurns {
		s.refuse(TooComplex, c.Pos())
		return
	}
	first := len(s.segments)
	before, after := "{ ", "}"
	apart, unsure, breaks := s.apart, s.unsure, s.breaks
	if s.breaks = hasBreak(c.Do); s.breaks {
		// A loop of one turn, which holds them all: break leaves it, and what stands later may not run.
		before, after, s.unsure = "for "+over.Name.Value+" in 1; do ", "done", true
	}
	s.before += before
	s.apart = true
	for _, item := range items {
		s.known[over.Name.Value] = value{text: item}
		n := len(s.segments)
		if s.list(c.Do); s.err != nil {
			return
		}
		if n == len(s.segments) {
			s.refuse(Compound, c.Pos())
			return
		}
	}
	broken := s.breaks
	s.apart, s.unsure, s.breaks = apart, unsure, breaks
	if s.unsure || broken { // it may not have run
		s.known[over.Name.Value] = value{lost: true}
	}
	if strings.HasSuffix(s.segments[len(s.segments)-1].After, " &") || first == len(s.segments) {
		s.after(" " + after)
		return
	}
	s.after("; " + after)
}

// hasBreak reports whether a loop may be left before its end.
func hasBreak(body []*syntax.Stmt) (has bool) {
	for _, stmt := range body {
		syntax.Walk(stmt, func(node syntax.Node) bool {
			if c, ok := node.(*syntax.CallExpr); ok && len(c.Args) > 0 && c.Args[0].Lit() == "break" {
				has = true
			}
			return !has
		})
	}
	return has
}

// items are the words that one word after "in" stands for.
func (s *scripted) items(node *syntax.Word) (list []string, ok bool) {
	word := s.word(node)
	switch {
	case s.err != nil:
		return nil, false
	case word.Parts != nil:
		s.refuse(CommandSubstitution, node.Pos())
		return nil, false
	case !word.Expands():
		return []string{word.Text}, true
	}
	if !s.moved && !word.Param && s.in.Expand != nil {
		if list, ok = s.in.Expand(&word); ok {
			return list, true
		}
	}
	s.refuse(ParameterExpansion, node.Pos())
	return nil, false
}

// settable reports whether a variable may be used for what the text says, and means nothing to a shell.
func (s *scripted) settable(name string) bool {
	_, plain := parameterName("$" + name)
	return plain && name != "PWD" && s.in.Sets != nil && s.in.Sets(name, "") && !s.exported[name] && !s.in.Exported(name)
}
