package schema

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// Limits of one set of arguments.
const (
	MaxBytes = 1 << 20 // length of the JSON text
	MaxDepth = 64      // nesting of objects and arrays, the outermost counts as 1

	// maxNumber bounds the digits of one number. Checking a number against a schema takes time that grows with the
	// square of its length, so a number of a million digits would stop the gate.
	maxNumber = 1024
)

// parse reads one JSON value strictly. Numbers become json.Number in canonical form.
func parse(raw []byte) (any, error) {
	if len(raw) > MaxBytes {
		return nil, &Error{Problem: fmt.Sprintf("are longer than %d bytes", MaxBytes)}
	}
	// Two readers that repair broken UTF-8 in two ways see two different calls.
	if !utf8.Valid(raw) {
		return nil, &Error{Problem: "are not valid UTF-8"}
	}
	s := scanner{text: string(raw)}
	s.space()
	v, err := s.value()
	if err != nil {
		return nil, err
	}
	s.space()
	if s.pos != len(s.text) {
		return nil, s.syntax("text after the end of the value")
	}
	return v, nil
}

// scanner reads JSON in one pass. Strings without escapes share memory with text.
type scanner struct {
	text  string
	pos   int
	depth int
	names [MaxDepth]string // property names that lead to the current position, for messages
}

func (s *scanner) syntax(problem string) error {
	return &Error{Problem: fmt.Sprintf("are not valid JSON: %s at byte %d", problem, s.pos)}
}

func (s *scanner) refuse(name, problem string) error {
	field := strings.Builder{}
	for _, n := range s.names[:s.depth-1] {
		if n != "" {
			field.WriteString(n)
			field.WriteByte('.')
		}
	}
	return &Error{Field: field.String() + name, Problem: problem}
}

func (s *scanner) space() {
	for s.pos < len(s.text) {
		switch s.text[s.pos] {
		case ' ', '\t', '\n', '\r':
			s.pos++
		default:
			return
		}
	}
}

// peek returns the next byte, or 0 at the end.
func (s *scanner) peek() byte {
	if s.pos < len(s.text) {
		return s.text[s.pos]
	}
	return 0
}

func (s *scanner) value() (any, error) {
	switch c := s.peek(); {
	case c == '{':
		return s.object()
	case c == '[':
		return s.array()
	case c == '"':
		return s.str()
	case c == '-' || c >= '0' && c <= '9':
		return s.number()
	case s.word("true"):
		return true, nil
	case s.word("false"):
		return false, nil
	case s.word("null"):
		return nil, nil
	}
	if s.pos >= len(s.text) {
		return nil, s.syntax("unexpected end")
	}
	return nil, s.syntax("unexpected character")
}

func (s *scanner) word(w string) bool {
	if !strings.HasPrefix(s.text[s.pos:], w) {
		return false
	}
	s.pos += len(w)
	return true
}

func (s *scanner) enter() error {
	if s.depth == MaxDepth {
		return &Error{Problem: fmt.Sprintf("are nested deeper than %d", MaxDepth)}
	}
	s.depth++
	s.names[s.depth-1] = ""
	s.pos++
	s.space()
	return nil
}

func (s *scanner) object() (any, error) {
	if err := s.enter(); err != nil {
		return nil, err
	}
	defer func() { s.depth-- }()
	m := make(map[string]any)
	if s.peek() == '}' {
		s.pos++
		return m, nil
	}
	for {
		if s.peek() != '"' {
			return nil, s.syntax("expected a property name")
		}
		name, err := s.str()
		if err != nil {
			return nil, err
		}
		if _, twice := m[name]; twice {
			// A checker that takes the first and a tool that takes the last would see different calls.
			return nil, s.refuse(name, "is given twice")
		}
		if name == "__proto__" {
			// Poisons the prototype of every object in a JavaScript tool or client.
			return nil, s.refuse(name, "is not an allowed name")
		}
		s.space()
		if s.peek() != ':' {
			return nil, s.syntax("expected ':'")
		}
		s.pos++
		s.space()
		s.names[s.depth-1] = name
		v, err := s.value()
		if err != nil {
			return nil, err
		}
		m[name] = v
		s.space()
		switch s.peek() {
		case ',':
			s.pos++
			s.space()
		case '}':
			s.pos++
			return m, nil
		default:
			return nil, s.syntax("expected ',' or '}'")
		}
	}
}

func (s *scanner) array() (any, error) {
	if err := s.enter(); err != nil {
		return nil, err
	}
	defer func() { s.depth-- }()
	list := []any{}
	if s.peek() == ']' {
		s.pos++
		return list, nil
	}
	for {
		v, err := s.value()
		if err != nil {
			return nil, err
		}
		list = append(list, v)
		s.space()
		switch s.peek() {
		case ',':
			s.pos++
			s.space()
		case ']':
			s.pos++
			return list, nil
		default:
			return nil, s.syntax("expected ',' or ']'")
		}
	}
}

// str reads a string; the position is at its opening quote.
func (s *scanner) str() (string, error) {
	s.pos++
	start := s.pos
	for s.pos < len(s.text) {
		switch c := s.text[s.pos]; {
		case c == '"':
			s.pos++
			return s.text[start : s.pos-1], nil
		case c == '\\':
			return s.escaped(start)
		case c < 0x20:
			return "", s.syntax("control character in a string")
		default:
			s.pos++
		}
	}
	return "", s.syntax("unexpected end of a string")
}

// escaped reads the rest of a string that began at start and has its first escape at the current position.
func (s *scanner) escaped(start int) (string, error) {
	b := append(make([]byte, 0, s.pos-start+32), s.text[start:s.pos]...)
	for s.pos < len(s.text) {
		switch c := s.text[s.pos]; {
		case c == '"':
			s.pos++
			return string(b), nil
		case c < 0x20:
			return "", s.syntax("control character in a string")
		case c != '\\':
			b = append(b, c)
			s.pos++
		default:
			r, err := s.escape()
			if err != nil {
				return "", err
			}
			b = utf8.AppendRune(b, r)
		}
	}
	return "", s.syntax("unexpected end of a string")
}

// escape reads one escape sequence; the position is at its backslash.
func (s *scanner) escape() (rune, error) {
	s.pos++
	c := s.peek()
	s.pos++
	switch c {
	case '"', '\\', '/':
		return rune(c), nil
	case 'b':
		return '\b', nil
	case 'f':
		return '\f', nil
	case 'n':
		return '\n', nil
	case 'r':
		return '\r', nil
	case 't':
		return '\t', nil
	case 'u':
		return s.unicode()
	}
	s.pos--
	return 0, s.syntax("unknown escape in a string")
}

func (s *scanner) unicode() (rune, error) {
	r, err := s.hex4()
	if err != nil || !utf16.IsSurrogate(r) {
		return r, err
	}
	// A lone surrogate cannot be written as UTF-8; readers replace or drop it, each in its own way.
	if !strings.HasPrefix(s.text[s.pos:], `\u`) {
		return 0, s.syntax("lone surrogate in a string")
	}
	s.pos += 2
	low, err := s.hex4()
	if err != nil {
		return 0, err
	}
	if r = utf16.DecodeRune(r, low); r == utf8.RuneError {
		return 0, s.syntax("lone surrogate in a string")
	}
	return r, nil
}

func (s *scanner) hex4() (rune, error) {
	if s.pos+4 > len(s.text) {
		return 0, s.syntax("unexpected end of a string")
	}
	var r rune
	for _, c := range []byte(s.text[s.pos : s.pos+4]) {
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c >= 'a' && c <= 'f':
			c -= 'a' - 10
		case c >= 'A' && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, s.syntax("bad \\u escape in a string")
		}
		r = r<<4 | rune(c)
	}
	s.pos += 4
	return r, nil
}

func (s *scanner) number() (any, error) {
	start := s.pos
	if s.peek() == '-' {
		s.pos++
	}
	switch c := s.peek(); {
	case c == '0':
		s.pos++
	case c >= '1' && c <= '9':
		s.digits()
	default:
		return nil, s.syntax("bad number")
	}
	integer := true
	if s.peek() == '.' {
		integer = false
		s.pos++
		if !s.digits() {
			return nil, s.syntax("bad number")
		}
	}
	if c := s.peek(); c == 'e' || c == 'E' {
		integer = false
		s.pos++
		if c := s.peek(); c == '+' || c == '-' {
			s.pos++
		}
		if !s.digits() {
			return nil, s.syntax("bad number")
		}
	}
	text := s.text[start:s.pos]
	if len(text) > maxNumber {
		return nil, s.syntax(fmt.Sprintf("number of more than %d characters", maxNumber))
	}
	if integer {
		return json.Number(text), nil
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return nil, s.syntax("number out of range")
	}
	return json.Number(formatFloat(f)), nil
}

// digits skips a run of digits and reports whether there was any.
func (s *scanner) digits() bool {
	start := s.pos
	for c := s.peek(); c >= '0' && c <= '9'; c = s.peek() {
		s.pos++
	}
	return s.pos > start
}

// formatFloat writes a finite number the way ECMAScript and so RFC 8785 does.
func formatFloat(f float64) string {
	if f == 0 {
		return "0" // also for minus zero
	}
	format := byte('f')
	if abs := math.Abs(f); abs < 1e-6 || abs >= 1e21 {
		format = 'e'
	}
	text := strconv.FormatFloat(f, format, -1, 64)
	if n := len(text); format == 'e' && n >= 4 && text[n-4] == 'e' && text[n-3] == '-' && text[n-2] == '0' {
		text = text[:n-2] + text[n-1:] // e-09 is e-9 there
	}
	return text
}
