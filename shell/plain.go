package shell

import (
	"slices"
	"strings"
)

// maxPlain is how long a text may be that is taken apart without the parser, in bytes: short enough for none of the
// bounds of characters to be reached.
const maxPlain = 4096

// What a byte is outside quotes, for a text that is taken apart without the parser.
const (
	other    byte = iota // it may be special: for the parser
	ordinary             // part of a word, wherever it stands
	equals               // part of a word, but a variable before a program
	blank
	operator
	quotes
)

var plainBytes = func() (table [256]byte) {
	for c := range 256 {
		switch c := byte(c); {
		case kindOf(c) != 0, strings.IndexByte("_./,:@%+-", c) >= 0:
			table[c] = ordinary
		case c == '=':
			table[c] = equals
		case c == ' ', c == '\t':
			table[c] = blank
		case c == '|', c == '&', c == ';':
			table[c] = operator
		case c == '\'', c == '"':
			table[c] = quotes
		}
	}
	return table
}()

// keywords begin something else than a simple command, for the parser or for a shell.
var keywords = append(append([]string{
	"if", "then", "elif", "else", "fi", "for", "while", "until", "do", "done", "case", "esac", "select", "function",
	"coproc", "time", "nameref", "@test",
}, reserved...), declarations...)

// plain takes a command line apart that consists of nothing but simple commands, plain words and text in quotes. It
// gives exactly what the parser and the walker give, in a small part of their time, or nothing: then they must say. Most
// commands of every day are of this kind. A test compares both on all texts that there are, and a fuzz test on more.
func plain(text string) []Segment {
	if len(text) > maxPlain {
		return nil
	}
	words, segments := 1, 1
	for i := range len(text) {
		switch plainBytes[text[i]] {
		case blank:
			words++
		case operator:
			words, segments = words+1, segments+1
		}
	}
	p := &plainText{text: text, words: make([]Word, 0, words), segments: make([]Segment, 0, segments)}
	for p.at < len(text) {
		if !p.next() {
			return nil
		}
	}
	// An operator that nothing follows is none, except ";".
	if len(p.words) > p.begun && !p.end(None) || len(p.segments) == 0 || p.open {
		return nil
	}
	return p.segments
}

// plainText is such a text being taken apart.
type plainText struct {
	text     string
	at       int
	words    []Word // of all segments; those of the current one from begun
	begun    int
	from, to int  // where the current segment stands
	open     bool // the last operator needs something behind it
	brackets int
	segments []Segment
}

// next takes the next blank, operator or word; not if it is not plain.
func (p *plainText) next() bool {
	switch plainBytes[p.text[p.at]] {
	case blank:
		p.at++
		return true
	case operator:
		return p.operator()
	case other:
		return false
	}
	return p.word()
}

func (p *plainText) operator() bool {
	rest := p.text[p.at:]
	op := Operator(rest[:1])
	if len(rest) > 1 && (op == Pipe || op == "&") && rest[1] == rest[0] {
		op = Operator(rest[:2])
	}
	p.at += len(op)
	return op != "&" && p.end(op)
}

// end ends the current segment.
func (p *plainText) end(op Operator) bool {
	words := p.words[p.begun:len(p.words):len(p.words)]
	if len(words) == 0 || len(p.segments) == maxSegments {
		return false
	}
	p.segments = append(p.segments, Segment{Words: words, Op: op, From: p.from, To: p.to})
	p.begun, p.open = len(p.words), op != None && op != Sequence
	return true
}

func (p *plainText) word() bool {
	from, quoted, assigns := p.at, false, false
scan:
	for p.at < len(p.text) {
		switch plainBytes[p.text[p.at]] {
		case ordinary:
			p.at++
		case equals:
			assigns = true
			p.at++
		case quotes:
			quoted = true
			if !p.quoted() {
				return false
			}
		case other:
			return false
		default:
			break scan
		}
	}
	word := Word{Text: p.text[from:p.at], Source: p.text[from:p.at]}
	if len(p.words) == p.begun {
		if quoted || assigns || word.Text[0] == '%' || slices.Contains(keywords, word.Text) {
			return false
		}
		p.from = from
	}
	if quoted {
		word.Text = unquoted(word.Source)
	}
	p.words, p.to = append(p.words, word), p.at
	return true
}

// quoted goes past text in quotes in which nothing is special.
func (p *plainText) quoted() bool {
	quote := p.text[p.at]
	for p.at++; p.at < len(p.text); p.at++ {
		switch c := p.text[p.at]; {
		case c == quote:
			p.at++
			return true
		case c < ' ' || c > '~', quote == '"' && (c == '$' || c == '`' || c == '\\'):
			return false
		case c == '(' || c == '{' || c == '[':
			if p.brackets++; p.brackets > maxNesting {
				return false
			}
		}
	}
	return false
}

// unquoted takes quotes away from a word that has nothing else in it than text.
func unquoted(source string) string {
	if end := len(source) - 1; strings.IndexByte(source[1:], source[0]) == end-1 && plainBytes[source[0]] == quotes {
		return source[1:end] // as most are: all of it in one pair of quotes
	}
	var text strings.Builder
	for i := 0; i < len(source); i++ {
		if plainBytes[source[i]] != quotes {
			text.WriteByte(source[i])
			continue
		}
		end := i + 1 + strings.IndexByte(source[i+1:], source[i])
		text.WriteString(source[i+1 : end])
		i = end
	}
	return text.String()
}
