package shell

import (
	"slices"
	"strings"
	"unicode"

	"mvdan.cc/sh/v3/syntax"
)

// word takes a word apart; what it cannot take stops the walker.
func (w *walker) word(node *syntax.Word) Word {
	from, to := int(node.Pos().Offset()), int(node.End().Offset())
	w.quoted = append(w.quoted, span{from, to})
	word := Word{Source: w.text[from:to], node: node}
	var text strings.Builder
	for i, part := range node.Parts {
		switch p := part.(type) {
		case *syntax.Lit:
			w.literal(&word, &text, p, i == 0)
		case *syntax.SglQuoted:
			if p.Dollar {
				w.refuse(DollarQuote, p.Pos())
			}
			text.WriteString(p.Value)
		case *syntax.DblQuoted:
			w.doubleQuoted(&word, &text, p)
		default:
			w.expansion(&word, &text, part)
		}
		if w.err != nil {
			return Word{}
		}
	}
	word.Text = text.String()
	if oddBrackets(node) {
		w.refuse(ExtendedGlob, node.Pos())
	}
	if !word.Tilde && tildeLater(node) || tildeBesideQuotes(node) {
		w.refuse(UserHome, node.Pos())
	}
	w.braces(&word, node)
	return word
}

// braces tells whether a shell would make several words of one, and refuses braces that shells take apart in different
// ways.
func (w *walker) braces(word *Word, node *syntax.Word) {
	text := literals(node)
	switch {
	case !strings.Contains(text, "{"):
		return
	case strings.Count(text, ",") > maxBraceWords: // taking a list apart takes time with the square of its length
		w.refuse(TooComplex, node.Pos())
		return
	}
	if word.Brace = hasBraces(node); word.Brace && (w.growsInBraces(node) || strings.Contains(text, "$")) {
		w.refuse(ParameterExpansion, node.Pos()) // braces first, then parameters: "{$,}r" is "$r" and "r"
	}
	if oddBraces(node) {
		w.refuse(ExtendedGlob, node.Pos())
	}
	if word.Brace && strings.LastIndexByte(text, '~') > 0 {
		w.refuse(UserHome, node.Pos()) // braces first, then homes: "{~,a}" is "~" and "a"
	}
}

// expansion takes a parameter, and refuses everything else that a shell evaluates.
func (w *walker) expansion(word *Word, text *strings.Builder, part syntax.WordPart) {
	switch p := part.(type) {
	case *syntax.ParamExp:
		source := w.text[p.Pos().Offset():p.End().Offset()]
		if _, ok := parameterName(source); !ok {
			w.refuse(ParameterExpansion, p.Pos())
			return
		}
		word.Param = true
		text.WriteString(source)
	case *syntax.CmdSubst:
		w.refuse(CommandSubstitution, p.Pos())
	case *syntax.ProcSubst:
		w.refuse(ProcessSubstitution, p.Pos())
	case *syntax.ArithmExp:
		w.refuse(Arithmetic, p.Pos())
	case *syntax.ExtGlob:
		w.refuse(ExtendedGlob, p.Pos())
	default:
		w.refuse(Compound, part.Pos())
	}
}

func (w *walker) doubleQuoted(word *Word, text *strings.Builder, q *syntax.DblQuoted) {
	if q.Dollar {
		w.refuse(DollarQuote, q.Pos())
		return
	}
	for _, part := range q.Parts {
		if lit, ok := part.(*syntax.Lit); ok {
			text.WriteString(unescape(lit.Value, "\\\"$`"))
			continue
		}
		if w.expansion(word, text, part); w.err != nil {
			return
		}
	}
}

// literal takes unquoted text. A backslash quotes the character after it.
func (w *walker) literal(word *Word, text *strings.Builder, lit *syntax.Lit, first bool) {
	value := lit.Value
	if at := tildeIn(value, first); at >= 0 {
		if rest := value[at+1:]; at > 0 || rest != "" && rest[0] != '/' {
			w.refuse(UserHome, lit.Pos())
			return
		}
		word.Tilde = true
	}
	bracket := false
	for i := 0; i < len(value); i++ {
		c := value[i]
		switch c {
		case '\\':
			if i++; i < len(value) {
				text.WriteByte(value[i])
			}
			continue
		case '*', '?':
			word.Glob = true
		case '[':
			bracket = true
		case ']':
			word.Glob = word.Glob || bracket
		}
		text.WriteByte(c)
	}
}

// assignedName is what stands before the first "=" of a word, if a shell may take the word for an assignment: "a=",
// "a+=", "a[1]=".
func assignedName(value string) (name string, ok bool) {
	name, _, ok = strings.Cut(value, "=")
	plain, _, _ := strings.Cut(strings.TrimSuffix(name, "+"), "[")
	return name, ok && isVariable(plain)
}

// tildeIn finds an unquoted "~" that a shell expands: at the beginning of a word, or, in a word that looks like an
// assignment, after its "=" or a ":". It returns -1 if there is none.
func tildeIn(value string, first bool) int {
	if !first {
		return -1
	}
	if strings.HasPrefix(value, "~") {
		return 0
	}
	name, assigned := assignedName(value)
	if !assigned {
		return -1
	}
	for i := len(name) + 1; i < len(value); i++ {
		if value[i] == '~' && (value[i-1] == '=' || value[i-1] == ':') {
			return i
		}
	}
	return -1
}

// tildeLater reports whether a word that looks like an assignment has a "~" which a shell expands behind the first of
// its literals: "a=$X:~", "a[0]=~".
func tildeLater(node *syntax.Word) bool {
	begin, rest := "", node.Parts
	for len(rest) > 0 {
		lit, ok := rest[0].(*syntax.Lit)
		if !ok {
			break
		}
		begin, rest = begin+lit.Value, rest[1:]
	}
	name, assigned := assignedName(begin)
	if !assigned {
		return false
	}
	value := begin[len(name)+1:]
	return strings.HasPrefix(value, "~") || strings.Contains(value, ":~") || slices.ContainsFunc(rest, func(part syntax.WordPart) bool {
		lit, ok := part.(*syntax.Lit)
		return ok && (strings.HasPrefix(lit.Value, "~") || strings.Contains(lit.Value, ":~"))
	})
}

// tildeBesideQuotes reports whether quotes stand before or behind a "~": for bash "~'/a'" and "”~" are files of that name,
// and for zsh they lie in the home.
func tildeBesideQuotes(node *syntax.Word) bool {
	for i, part := range node.Parts {
		if lit, ok := part.(*syntax.Lit); ok && (i > 0 && strings.HasPrefix(lit.Value, "~") || lit.Value == "~" && len(node.Parts) > 1) {
			return true
		}
	}
	return false
}

// unescape removes backslashes before the given characters.
func unescape(s, special string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) && strings.IndexByte(special, s[i+1]) >= 0 {
			i++
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

func isASCII(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return r > unicode.MaxASCII }) < 0
}

// literals is the unquoted text of a word.
func literals(node *syntax.Word) string {
	var text strings.Builder
	for _, part := range node.Parts {
		if lit, ok := part.(*syntax.Lit); ok {
			text.WriteString(lit.Value)
		}
	}
	return text.String()
}
