package shell

import (
	"regexp"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// fileOperators redirect to or from a file.
var fileOperators = []syntax.RedirOperator{
	syntax.RdrOut, syntax.AppOut, syntax.RdrClob, syntax.RdrAll, syntax.AppAll, syntax.RdrIn,
}

var numberRange = regexp.MustCompile(`^<[0-9]*-[0-9]*>`)

// redirect takes a redirection of a standard stream.
func (w *walker) redirect(s *Segment, r *syntax.Redirect) {
	fd := ""
	if r.N != nil {
		fd = r.N.Value
	}
	end := int(r.Word.End().Offset())
	s.To = max(s.To, end)
	if end < len(w.text) && strings.IndexByte("<>", w.text[end]) >= 0 && IsNumber(w.text[r.Word.Pos().Offset():end]) {
		w.refuse(Redirection, r.Pos()) // ">2>1": for bash, 2 is the descriptor of what follows
		return
	}
	if at := int(r.OpPos.Offset()); r.N == nil && at > 0 && kindOf(w.text[at-1]) == '0' {
		w.refuse(Redirection, r.Pos()) // "2&>a": for zsh, 2 is a descriptor
		return
	}
	if numberRange.MatchString(w.text[r.OpPos.Offset():]) {
		w.refuse(Redirection, r.Pos()) // "a<->b": a pattern for numbers, for zsh
		return
	}
	switch {
	case r.Op == syntax.Hdoc || r.Op == syntax.DashHdoc:
		w.heredoc(s, r, fd)
	case !slices.Contains([]string{"", "0", "1", "2"}, fd):
		w.refuse(Redirection, r.Pos())
	case r.Op == syntax.DplOut:
		if target := r.Word.Lit(); fd == "0" || target != "1" && target != "2" {
			w.refuse(Redirection, r.Pos())
		}
		s.Redirs = append(s.Redirs, Redirect{fd, ">&", r.Word.Lit()})
	case slices.Contains(fileOperators, r.Op):
		word := w.word(r.Word)
		if _, assigned := assignedName(word.Source); assigned && (r.Op == syntax.RdrAll || r.Op == syntax.AppAll) {
			w.refuse(Redirection, r.Pos()) // "&>>a=" is a syntax error for bash, which takes it for an assignment
		}
		// ">! a" writes the file "!" for bash, and for zsh a; ">=id" for zsh the program id.
		if w.err == nil && (word.Text == "" || word.Expands() || connects(word.Text) || strings.IndexByte("!=", word.Source[0]) >= 0 || word.Dollar() || word.Disguised()) {
			w.refuse(Redirection, r.Pos())
		}
		s.Redirs = append(s.Redirs, Redirect{fd, r.Op.String(), word.Text})
	default:
		w.refuse(Redirection, r.Pos())
	}
}

// connects reports whether a shell opens a connection instead of a file.
func connects(target string) bool {
	return strings.HasPrefix(target, "/dev/tcp/") || strings.HasPrefix(target, "/dev/udp/")
}

var plainDelimiter = regexp.MustCompile(`^[A-Za-z0-9_.!-]+$`)

// heredoc takes a here-document for standard input, of text and plain parameters.
func (w *walker) heredoc(s *Segment, r *syntax.Redirect, fd string) {
	if s.Heredoc != nil || fd != "" && fd != "0" {
		w.refuse(Redirection, r.Pos())
		return
	}
	delimiter, quoted := w.delimiter(r.Word)
	// 'E'F is quoted for a shell and not for the parser, 'E'# is no comment, é is not found.
	after := w.text[r.Word.End().Offset():]
	if len(r.Word.Parts) != 1 || !plainDelimiter.MatchString(delimiter) || after != "" && strings.IndexByte(" \t\n;|&<>", after[0]) < 0 {
		w.refuse(Redirection, r.Pos())
	}
	if w.err != nil {
		return
	}
	doc := &Heredoc{Literal: quoted}
	end := 0
	if r.Hdoc != nil {
		end = int(r.Hdoc.End().Offset())
		for _, part := range r.Hdoc.Parts {
			w.bodyPart(doc, part, quoted)
		}
	}
	if r.Op == syntax.DashHdoc {
		doc.dropTabs()
	}
	s.Heredoc = doc
	w.coverHeredoc(r, delimiter, end)
}

// delimiter reads the word that ends a here-document.
func (w *walker) delimiter(node *syntax.Word) (text string, quoted bool) {
	for _, part := range node.Parts {
		lit, ok := part.(*syntax.Lit)
		if !ok || strings.Contains(lit.Value, `\`) {
			quoted = true
		}
	}
	return w.word(node).Text, quoted
}

func (w *walker) bodyPart(doc *Heredoc, part syntax.WordPart, quoted bool) {
	switch p := part.(type) {
	case *syntax.Lit:
		text := p.Value
		if !quoted {
			text = unescape(text, "\\$`")
		}
		doc.body = append(doc.body, bodyPart{text: text})
	case *syntax.ParamExp:
		name, ok := parameterName(w.text[p.Pos().Offset():p.End().Offset()])
		if !ok {
			w.refuse(HeredocExpansion, p.Pos())
			return
		}
		doc.body = append(doc.body, bodyPart{text: name, param: true})
	default:
		w.refuse(HeredocExpansion, part.Pos())
	}
}

// dropTabs removes the tabs that "<<-" ignores at the beginning of lines.
func (h *Heredoc) dropTabs() {
	atStart := true
	for i := range h.body {
		p := &h.body[i]
		if p.param {
			atStart = false
			continue
		}
		lines := strings.SplitAfter(p.text, "\n")
		for j, line := range lines {
			if j > 0 || atStart {
				lines[j] = strings.TrimLeft(line, "\t")
			}
		}
		atStart = strings.HasSuffix(p.text, "\n")
		p.text = strings.Join(lines, "")
	}
}

// coverHeredoc notes where the lines of a here-document stand: its body, which ends at end, and its delimiter. Bodies
// of several here-documents follow each other below the one line of commands.
func (w *walker) coverHeredoc(r *syntax.Redirect, delimiter string, end int) {
	at := int(r.Word.End().Offset())
	if n := len(w.heredocs); n > 0 {
		at = w.heredocs[n-1].to
	}
	line := strings.IndexByte(w.text[at:], '\n')
	if line < 0 {
		w.refuse(ParseError, r.Pos())
		return
	}
	from := at + line
	if end == 0 { // no body
		end = from + 1 + len(delimiter)
	}
	// Where the parser says that it ends, there must be the delimiter, on a line of its own.
	if end > len(w.text) || end < len(w.text) && w.text[end] != '\n' {
		w.refuse(ParseError, r.Pos())
		return
	}
	before, found := strings.CutSuffix(w.text[:end], delimiter)
	if r.Op == syntax.DashHdoc {
		before = strings.TrimRight(before, "\t")
	}
	if !found || !strings.HasSuffix(before, "\n") || len(before) <= from {
		w.refuse(ParseError, r.Pos())
		return
	}
	w.heredocs = append(w.heredocs, span{from, end})
}

// newline refuses line breaks that are neither quoted nor part of a here-document. Commands on several lines are
// easily overlooked, and the end of a here-document is where people stop reading.
func (w *walker) newline() error {
	quoted, heredocs := w.quoted, w.heredocs
	for i := range len(w.text) {
		if w.text[i] != '\n' {
			continue
		}
		quoted, heredocs = from(quoted, i), from(heredocs, i)
		switch inQuotes := covers(quoted, i); {
		case inQuotes && len(w.heredocs) == 0, !inQuotes && covers(heredocs, i):
		default:
			return &NotAnalysable{Reason: Newline, Offset: i}
		}
	}
	return nil
}

// from drops the spans that end before a place; spans are in the order of the text.
func from(spans []span, at int) []span {
	for len(spans) > 0 && spans[0].to <= at {
		spans = spans[1:]
	}
	return spans
}

func covers(spans []span, at int) bool { return len(spans) > 0 && spans[0].from <= at }
