package command

import (
	"regexp"
	"slices"
	"strings"

	"github.com/toolward/toolward/shell"
)

// render is the text of what would run: absolute programs, every word quoted, nothing left to a shell to expand. The
// bodies of here-documents follow below the one line of commands.
func render(segments []Segment) string {
	var b, bodies strings.Builder
	size := 0
	for i := range segments {
		for _, word := range segments[i].Argv {
			size += len(word) + len("'' ")
		}
		size += len(segments[i].Program.Path) + len(" && ")
	}
	b.Grow(size)
	for i := range segments {
		s := &segments[i]
		b.WriteString(s.Before)
		s.render(&b)
		b.WriteString(s.After)
		if i < len(segments)-1 {
			b.WriteString(s.separator())
		}
		if body := segments[i].Heredoc; body != nil {
			bodies.WriteString("\n" + *body + delimiter(*body))
		}
	}
	return b.String() + bodies.String()
}

// separator is what stands before the next one.
func (s *Segment) separator() string {
	for _, word := range []string{" &", "then", "else", "elif"} {
		if strings.HasSuffix(s.After, word) {
			return " "
		}
	}
	if s.Op == shell.None {
		return " ; "
	}
	return " " + string(s.Op) + " "
}

// delimiter is a word that is no line of a here-document.
func delimiter(body string) string {
	word := "EOF"
	for strings.Contains("\n"+body, "\n"+word+"\n") {
		word += "_"
	}
	return word
}

func (s *Segment) render(b *strings.Builder) {
	if s.Builtin == "cd" {
		b.WriteString("cd ")
		target := s.Target
		if len(s.OtherDir) > 0 && relativeFile(s.Args[0]) {
			target = "./" + s.Args[0] // below whichever directory it is by then
		}
		writeQuoted(b, target)
		return
	}
	switch s.Builtin {
	case "":
	case "source":
		b.WriteString(". ")
		writeQuoted(b, s.Target)
		return
	case "=":
		b.WriteString(s.Variable + "=")
		s.dynamic[0].render(b)
		return
	default:
		b.WriteString(strings.Join(s.Argv, " "))
		return
	}
	start := b.Len()
	next := func() *strings.Builder {
		if b.Len() > start {
			b.WriteByte(' ')
		}
		return b
	}
	for _, a := range s.Assigns {
		next().WriteString(a.Name + "=")
		writeQuoted(b, a.Value)
	}
	for _, w := range s.Wrappers {
		if w.Dropped {
			continue
		}
		writeQuoted(next(), w.Program.Path)
		for _, arg := range w.Args {
			writeQuoted(next(), arg)
		}
	}
	program := s.Program.Path
	if program == "" {
		program = s.Program.Word
	}
	writeQuoted(next(), program)
	for i, arg := range s.Args {
		if s.By == ByInner && s.at+1+i == s.ScriptArg {
			arg = s.Script
		}
		if n := slices.IndexFunc(s.dynamic, func(d dynamic) bool { return d.at == s.at+1+i }); n >= 0 {
			s.dynamic[n].render(next())
			continue
		}
		writeQuoted(next(), arg)
	}
	if s.Heredoc != nil {
		next().WriteString("<<" + quote(delimiter(*s.Heredoc)))
	}
	for _, r := range s.Redirs {
		if both, ok := strings.CutPrefix(r.Op, "&"); ok { // for sh "a &>b" are two commands
			next().WriteString(both + plainOrQuoted(r.Target) + " 2>&1")
			continue
		}
		next().WriteString(r.FD + r.Op + plainOrQuoted(r.Target))
	}
}

// render writes the word in double quotes: what commands print is one word, or a part of it, whatever it is.
func (d *dynamic) render(b *strings.Builder) {
	b.WriteByte('"')
	for _, p := range d.parts {
		b.WriteString(quotedText.Replace(p.text))
		b.WriteString(p.raw)
		if len(p.segments) > 0 {
			b.WriteString("$( " + render(p.segments) + " )")
		}
	}
	b.WriteByte('"')
}

var quotedText = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "$", `\$`, "`", "\\`")

// quote makes of a text one word that every shell leaves as it is. For fish a backslash takes the meaning from a quote, or from
// another backslash, between single quotes, too: there it would have ended the word of 'a\' elsewhere, and run what follows.
func quote(text string) string {
	if escapes(text) {
		return "'" + strings.NewReplacer("'", `'"'"'`, `\`, `'"\\"'`).Replace(text) + "'"
	}
	return "'" + strings.ReplaceAll(text, "'", `'"'"'`) + "'"
}

func escapes(text string) bool {
	return strings.HasSuffix(text, `\`) || strings.Contains(text, `\'`) || strings.Contains(text, `\\`)
}

// writeQuoted writes what quote gives.
func writeQuoted(b *strings.Builder, text string) {
	if strings.IndexByte(text, '\'') >= 0 || escapes(text) {
		b.WriteString(quote(text))
		return
	}
	b.WriteByte('\'')
	b.WriteString(text)
	b.WriteByte('\'')
}

var plainTarget = regexp.MustCompile(`^[A-Za-z0-9_./,:@%+-]+$`)

func plainOrQuoted(text string) string {
	if plainTarget.MatchString(text) {
		return text
	}
	return quote(text)
}
