package shell

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// Part is a piece of a word of which some becomes known only when it runs.
type Part struct {
	Text    string   // as it is
	Raw     string   // a parameter that the shell which runs the text knows: "${X}", "$?"
	Command *Command // what it prints stands there
}

// plainValue is one that a shell takes for one word as it is.
var plainValue = regexp.MustCompile(`^[A-Za-z0-9_./:@%+,=-]+$`)

// assigns takes variables without a program: what is known of them is put where they are used.
func (s *scripted) assigns(stmt *syntax.Stmt, c *syntax.CallExpr) {
	for _, a := range c.Assigns {
		if s.unsure || len(stmt.Redirs) > 0 || a.Name == nil || a.Append || a.Naked || a.Index != nil || a.Array != nil {
			s.refuse(Assignment, a.Pos())
			return
		}
		name := a.Name.Value
		word := Word{}
		if a.Value != nil {
			if word = s.valueOf(a.Value); s.err != nil {
				return
			}
		}
		switch {
		case s.settable(name) && word.Parts != nil:
			s.segments = append(s.segments, Segment{Variable: name, Own: true, Words: []Word{word}, Before: s.before, Op: Sequence, From: int(a.Pos().Offset()), To: int(a.End().Offset())})
			s.before = ""
			s.known[name] = value{raw: true}
		case s.settable(name):
			s.known[name] = value{text: word.Text}
		default:
			s.exports(name, word, a.Pos())
		}
	}
}

// exports sets a variable that programs see.
func (s *scripted) exports(name string, word Word, at syntax.Pos) {
	if word.Parts != nil || s.in.Sets == nil || !s.in.Sets(name, word.Text) {
		s.refuse(Assignment, at)
		return
	}
	s.known[name], s.exported[name] = value{text: word.Text}, true
}

// export takes "export NAME=value" and "export NAME".
func (s *scripted) export(stmt *syntax.Stmt, c *syntax.DeclClause) {
	if c.Variant.Value != "export" || len(c.Args) == 0 || s.unsure || len(stmt.Redirs) > 0 {
		s.refuse(Compound, c.Pos())
		return
	}
	for _, a := range c.Args {
		if a.Name == nil || a.Append || a.Index != nil || a.Array != nil {
			s.refuse(Compound, a.Pos())
			return
		}
		v, known := s.known[a.Name.Value]
		word := Word{Text: v.text}
		switch {
		case a.Naked && (!known || v.raw || v.lost):
			s.refuse(Compound, a.Pos())
		case !a.Naked && a.Value == nil:
			word = Word{}
		case !a.Naked:
			word = s.valueOf(a.Value)
		}
		if s.err != nil {
			return
		}
		s.exports(a.Name.Value, word, a.Pos())
	}
}

// prefix takes a variable for one program alone.
func (s *scripted) prefix(segment *Segment, a *syntax.Assign) {
	if a.Name == nil || a.Append || a.Naked || a.Index != nil || a.Array != nil {
		s.refuse(Assignment, a.Pos())
		return
	}
	word := Word{}
	if a.Value != nil {
		word = s.valueOf(a.Value)
	}
	if s.err != nil {
		return
	}
	if harmless := (slices.Contains(harmless, a.Name.Value) || strings.HasPrefix(a.Name.Value, "LC_")) && !namesFile(word.Text); word.Parts != nil || !harmless && (s.in.Sets == nil || !s.in.Sets(a.Name.Value, word.Text)) {
		s.refuse(Assignment, a.Pos())
		return
	}
	segment.Assigns = append(segment.Assigns, Assign{a.Name.Value, word.Text})
}

// valueOf is the value of a variable: a shell splits it nowhere and matches it against nothing.
func (s *scripted) valueOf(node *syntax.Word) Word {
	if len(node.Parts) == 1 {
		switch node.Parts[0].(type) {
		case *syntax.CmdSubst, *syntax.ParamExp: // as if it stood in quotes
			at, end := node.Pos(), node.End()
			node = &syntax.Word{Parts: []syntax.WordPart{&syntax.DblQuoted{Left: at, Right: syntax.NewPos(end.Offset()-1, end.Line(), 1), Parts: node.Parts}}}
		}
	}
	word := s.word(node)
	if s.err == nil && word.Parts == nil && (word.Param || strings.Contains(literals(node), "~")) {
		s.refuse(Assignment, node.Pos())
	}
	word.Glob, word.Brace = false, false
	return word
}

func (s *scripted) argument(segment *Segment, node *syntax.Word) {
	if len(segment.Words) > 0 {
		word := s.word(node)
		segment.Words = append(segment.Words, word)
		return
	}
	resolved, parts := s.resolve(node)
	if s.err == nil && parts != nil {
		s.refuse(DynamicExecutable, node.Pos())
	}
	if s.err == nil {
		s.walker.argument(segment, resolved)
	}
}

// word takes a word in which what is known stands for what says so.
func (s *scripted) word(node *syntax.Word) Word {
	source := s.text[node.Pos().Offset():node.End().Offset()]
	resolved, parts := s.resolve(node)
	switch {
	case s.err != nil:
		return Word{}
	case parts != nil:
		word := Word{Source: source, Parts: parts}
		for _, p := range parts {
			word.Text += p.Text + p.Raw
			if p.Command != nil {
				word.Text += "$(" + p.Command.Text + ")"
			}
		}
		return word
	}
	word := s.walker.word(resolved)
	word.Source = source
	return word
}

// file takes a redirection.
func (s *scripted) file(segment *Segment, r *syntax.Redirect) {
	if r.Op != syntax.Hdoc && r.Op != syntax.DashHdoc {
		resolved, parts := s.resolve(r.Word)
		if s.err == nil && parts != nil {
			s.refuse(Redirection, r.Pos())
		}
		if s.err != nil {
			return
		}
		known := *r
		known.Word = resolved
		s.redirect(segment, &known)
		return
	}
	if s.redirect(segment, r); s.err != nil {
		return
	}
	for i := range segment.Heredoc.body {
		p := &segment.Heredoc.body[i]
		v, known := s.known[p.text]
		switch {
		case !p.param || !known:
		case v.raw || v.lost:
			s.refuse(HeredocExpansion, r.Pos())
		default:
			*p = bodyPart{text: v.text}
		}
	}
}

// resolve puts into a word what is known. parts are those of one of which some is not; then the word is nothing else.
func (s *scripted) resolve(node *syntax.Word) (*syntax.Word, []Part) {
	r := &resolver{s: s}
	for _, part := range node.Parts {
		if q, ok := part.(*syntax.DblQuoted); ok && !q.Dollar {
			r.quoted(q)
		} else {
			r.part(part, false)
		}
		if s.err != nil {
			return nil, nil
		}
	}
	switch {
	case r.dynamic && !r.whole:
		s.refuse(ParameterExpansion, node.Pos())
	case r.dynamic:
		return nil, r.parts
	case r.changed:
		return &syntax.Word{Parts: r.resolved}, nil
	}
	return node, nil
}

// resolver takes one word.
type resolver struct {
	s        *scripted
	resolved []syntax.WordPart // with what is known
	parts    []Part            // the same as texts
	changed  bool
	dynamic  bool
	whole    bool // parts are all of it
	odd      bool // something in it is only for the walker
}

func (r *resolver) quoted(q *syntax.DblQuoted) {
	before := r.changed
	inner := &resolver{s: r.s}
	for _, part := range q.Parts {
		if inner.part(part, true); r.s.err != nil {
			return
		}
	}
	r.changed = before || inner.changed
	if inner.changed {
		r.resolved = append(r.resolved, inner.resolved...)
	} else {
		r.resolved = append(r.resolved, q)
	}
	r.parts, r.dynamic, r.odd = append(r.parts, inner.parts...), r.dynamic || inner.dynamic, r.odd || inner.odd
	r.whole = !r.odd
}

// known adds a text in the place of a part.
func (r *resolver) known(part syntax.WordPart, text string) {
	at, end := part.Pos(), part.End()
	r.resolved = append(r.resolved, &syntax.SglQuoted{Left: at, Right: syntax.NewPos(end.Offset()-1, end.Line(), 1), Value: text})
	r.parts = append(r.parts, Part{Text: text})
}

func (r *resolver) later(p Part) {
	r.parts, r.dynamic, r.changed = append(r.parts, p), true, true
}

func (r *resolver) part(part syntax.WordPart, quoted bool) {
	defer func() { r.whole = !r.odd }()
	switch p := part.(type) {
	case *syntax.Lit:
		if quoted {
			r.known(part, unescape(p.Value, "\\\"$`"))
			return
		}
		r.resolved = append(r.resolved, part)
		r.odd = r.odd || !plainValue.MatchString(p.Value)
		r.parts = append(r.parts, Part{Text: p.Value})
	case *syntax.SglQuoted:
		r.resolved = append(r.resolved, part)
		r.odd = r.odd || p.Dollar
		r.parts = append(r.parts, Part{Text: p.Value})
	case *syntax.ParamExp:
		r.parameter(p, quoted)
	case *syntax.CmdSubst:
		r.substitution(p, quoted)
	case *syntax.ArithmExp:
		n, ok := r.s.computed(p.X)
		if !ok || p.Bracket || p.Unsigned {
			r.s.refuse(Arithmetic, p.Pos())
			return
		}
		r.changed = true
		r.known(p, strconv.Itoa(n))
	default:
		r.resolved, r.odd = append(r.resolved, part), true
	}
}

func (r *resolver) parameter(p *syntax.ParamExp, quoted bool) {
	source := r.s.text[p.Pos().Offset():p.End().Offset()]
	if source == "$?" || source == "${?}" {
		r.later(Part{Raw: "$?"})
		return
	}
	name, plain := plainParameter(source)
	v, known := r.s.known[name]
	switch {
	case !plain || !known:
		r.odd = true
		if quoted {
			end := p.End()
			r.resolved = append(r.resolved, &syntax.DblQuoted{Left: p.Pos(), Right: syntax.NewPos(end.Offset()-1, end.Line(), 1), Parts: []syntax.WordPart{p}})
		} else {
			r.resolved = append(r.resolved, p)
		}
	case v.lost, !quoted && (v.raw || !plainValue.MatchString(v.text)):
		r.s.refuse(ParameterExpansion, p.Pos())
	case v.raw:
		r.later(Part{Raw: "${" + name + "}"})
	default:
		r.changed = true
		r.known(p, v.text)
	}
}

// substitution puts the text of a here-document in its place, or what a command is known to print. Of all others only the
// command is known; in quotes what they print is one word or a part of it.
func (r *resolver) substitution(p *syntax.CmdSubst, quoted bool) {
	s := r.s
	if p.TempFile || p.ReplyVar || len(p.Stmts) == 0 {
		s.refuse(CommandSubstitution, p.Pos())
		return
	}
	inner := &scripted{walker: walker{text: s.text}, in: s.in, known: s.known, exported: s.exported, unsure: true, moved: s.moved, turns: s.turns}
	inner.list(p.Stmts)
	if s.err = inner.err; s.err != nil {
		return
	}
	s.turns = inner.turns
	if len(inner.segments) == 0 {
		s.refuse(CommandSubstitution, p.Pos())
		return
	}
	inner.segments[len(inner.segments)-1].Op = None
	if text, ok := s.says(inner.segments); ok && (quoted || plainValue.MatchString(text)) {
		r.changed = true
		r.known(p, text)
		return
	}
	documents := slices.ContainsFunc(inner.segments, func(i Segment) bool { return i.Heredoc != nil || strings.Contains(i.After, "&") })
	if !quoted || documents {
		s.refuse(CommandSubstitution, p.Pos())
		return
	}
	from, to := p.Stmts[0].Pos().Offset(), p.Stmts[len(p.Stmts)-1].End().Offset()
	r.later(Part{Command: &Command{Text: strings.TrimSpace(s.text[from:to]), Segments: inner.segments, Script: true}})
}

// says is what a command prints, if that is known without running it.
func (s *scripted) says(segments []Segment) (string, bool) {
	only := &segments[0]
	if len(segments) > 1 || len(only.Assigns) > 0 || len(only.Redirs) > 0 || only.Before+only.After != "" || only.Own {
		return "", false
	}
	argv := only.Argv()
	switch {
	case slices.ContainsFunc(only.Words, func(w Word) bool { return w.Expands() || w.Parts != nil }):
	case only.Heredoc != nil:
		if len(argv) == 1 && argv[0] == "cat" && !slices.ContainsFunc(only.Heredoc.body, func(p bodyPart) bool { return p.param }) {
			return strings.TrimRight(only.Heredoc.Body(nil), "\n"), true
		}
	case !s.moved && s.in.Says != nil:
		return s.in.Says(argv)
	}
	return "", false
}

// activates reports whether words make a virtual environment of Python that of the shell: "source .venv/bin/activate".
func activates(argv []string) bool {
	return len(argv) == 2 && (argv[0] == "source" || argv[0] == ".") && (argv[1] == "bin/activate" || strings.HasSuffix(argv[1], "/bin/activate"))
}

// onlyMoved reports whether nothing was before but "cd a &&".
func (s *scripted) onlyMoved() bool {
	return !slices.ContainsFunc(s.segments, func(before Segment) bool { return before.Words[0].Text != "cd" || before.Op != And })
}

// ofShell reports whether words are a command of the shell itself that touches nothing but how it goes on.
func ofShell(argv []string) bool {
	switch argv[0] {
	case "wait", ":":
		return len(argv) == 1
	case "exit":
		return len(argv) == 1 || len(argv) == 2 && IsNumber(argv[1])
	case "set":
		options := strings.Join(argv[1:], " ")
		return slices.Contains([]string{"-e", "-u", "-x", "-eu", "-ex", "-eux", "+e", "+x", "-o pipefail", "-eo pipefail", "-euo pipefail", "-euxo pipefail", "-e -o pipefail", "-eu -o pipefail"}, options)
	}
	return false
}
