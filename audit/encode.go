package audit

import (
	"strconv"
	"time"
	"unicode/utf8"
)

// The encoder appends canonical JSON by hand: a record is built on the path of
// every call, and reflection would cost more than the decision. Fields are
// appended in the order of their names; every field but an object's first is
// preceded by a comma.

// field appends ,"name": — name needs no escapes.
func field(b []byte, name string) []byte {
	b = append(b, `,"`...)
	b = append(b, name...)
	return append(b, `":`...)
}

// textField appends ,"name":"value", or nothing if value is empty.
func textField(b []byte, name, value string) []byte {
	if value == "" {
		return b
	}
	return appendText(field(b, name), value)
}

func intField(b []byte, name string, value int64) []byte {
	return strconv.AppendInt(field(b, name), value, 10)
}

// countField appends a number, or nothing if it is zero.
func countField(b []byte, name string, value int64) []byte {
	if value == 0 {
		return b
	}
	return intField(b, name, value)
}

// flagField appends ,"name":true, or nothing if value is false.
func flagField(b []byte, name string, value bool) []byte {
	if !value {
		return b
	}
	return append(field(b, name), "true"...)
}

func boolField(b []byte, name string, value bool) []byte {
	return strconv.AppendBool(field(b, name), value)
}

// object appends ,"name":{…}, where fill appends the fields; their first comma
// becomes the brace. Without fields nothing is appended.
func object(b []byte, name string, fill func([]byte) []byte) []byte {
	before := len(b)
	b = field(b, name)
	start := len(b)
	b = fill(b)
	if len(b) == start {
		return b[:before]
	}
	b[start] = '{'
	return append(b, '}')
}

// list appends ,"name":[…] of count elements, or nothing if there are none.
func list(b []byte, name string, count int, element func([]byte, int) []byte) []byte {
	if count == 0 {
		return b
	}
	b = append(field(b, name), '[')
	for i := range count {
		if i > 0 {
			b = append(b, ',')
		}
		b = element(b, i)
	}
	return append(b, ']')
}

// textsField appends a list of texts.
func textsField(b []byte, name string, values []string) []byte {
	return list(b, name, len(values), func(b []byte, i int) []byte { return appendText(b, values[i]) })
}

// sizesField appends a list of whole numbers.
func sizesField(b []byte, name string, values []int) []byte {
	return list(b, name, len(values), func(b []byte, i int) []byte { return appendInt(b, values[i]) })
}

// element appends {…}, where fill appends the fields as for object.
func element(b []byte, fill func([]byte) []byte) []byte {
	start := len(b)
	b = fill(b)
	if len(b) == start {
		return append(b, "{}"...)
	}
	b[start] = '{'
	return append(b, '}')
}

// timeField appends the time in UTC with milliseconds.
func timeField(b []byte, t time.Time) []byte {
	b = append(field(b, "ts"), '"')
	b = t.UTC().AppendFormat(b, timeFormat)
	return append(b, '"')
}

const timeFormat = "2006-01-02T15:04:05.000Z"

// appendText appends s as a JSON string the way RFC 8785 writes it. Bytes that
// are not UTF-8 become U+FFFD.
func appendText(b []byte, s string) []byte {
	b = append(b, '"')
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= 0x20 && c < utf8.RuneSelf && c != '"' && c != '\\' {
			i++
			continue
		}
		if c >= utf8.RuneSelf {
			r, n := utf8.DecodeRuneInString(s[i:])
			if r != utf8.RuneError || n > 1 {
				i += n
				continue
			}
		}
		b = append(b, s[start:i]...)
		b = appendEscape(b, c)
		i++
		start = i
	}
	b = append(b, s[start:]...)
	return append(b, '"')
}

func appendEscape(b []byte, c byte) []byte {
	const digits = "0123456789abcdef"
	switch c {
	case '"', '\\':
		return append(b, '\\', c)
	case '\b':
		return append(b, `\b`...)
	case '\t':
		return append(b, `\t`...)
	case '\n':
		return append(b, `\n`...)
	case '\f':
		return append(b, `\f`...)
	case '\r':
		return append(b, `\r`...)
	}
	if c < 0x20 {
		return append(b, '\\', 'u', '0', '0', digits[c>>4], digits[c&15])
	}
	return append(b, "\uFFFD"...)
}

// cut shortens s to at most limit bytes, at the border of a character, and
// marks the place.
func cut(s string, limit int) string {
	const mark = "…"
	if len(s) <= limit {
		return s
	}
	end := limit - len(mark)
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + mark
}
