package schema

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"unicode/utf8"
)

// Canonical returns the canonical encoding of a JSON-like Go value: what encoding/json decodes to, with numbers as
// json.Number, float64 or an integer type. Other types are first encoded by encoding/json.
func Canonical(v any) ([]byte, error) { return AppendCanonical(nil, v) }

// Canonicalize re-encodes one JSON text canonically. It refuses what [Schema.Decode] refuses in any arguments:
// duplicate keys, lone surrogates, invalid UTF-8, "__proto__", more than [MaxBytes] or [MaxDepth].
func Canonicalize(raw []byte) ([]byte, error) {
	v, err := parse(raw)
	if err != nil {
		return nil, err
	}
	return AppendCanonical(make([]byte, 0, len(raw)), v)
}

// AppendCanonical appends the canonical encoding of v to b. On an error b is returned as it was given.
func AppendCanonical(b []byte, v any) ([]byte, error) {
	out, err := appendValue(b, v, 0)
	if err != nil {
		return b, err
	}
	return out, nil
}

func appendValue(b []byte, v any, depth int) ([]byte, error) {
	if depth > MaxDepth {
		return nil, fmt.Errorf("canonical JSON: nested deeper than %d", MaxDepth)
	}
	switch v := v.(type) {
	case nil:
		return append(b, "null"...), nil
	case bool:
		return strconv.AppendBool(b, v), nil
	case string:
		return appendString(b, v)
	case json.Number:
		return appendNumber(b, v)
	case map[string]any:
		return appendObject(b, v, depth)
	case []any:
		b = append(b, '[')
		for i, e := range v {
			if i > 0 {
				b = append(b, ',')
			}
			var err error
			if b, err = appendValue(b, e, depth+1); err != nil {
				return nil, err
			}
		}
		return append(b, ']'), nil
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return nil, fmt.Errorf("canonical JSON: %v is not a number of JSON", v)
		}
		return append(b, formatFloat(v)...), nil
	case int:
		return strconv.AppendInt(b, int64(v), 10), nil
	case int64:
		return strconv.AppendInt(b, v, 10), nil
	default:
		return appendOther(b, v, depth)
	}
}

func appendObject(b []byte, m map[string]any, depth int) ([]byte, error) {
	var few [16]string
	names := few[:0]
	for name := range m {
		names = append(names, name)
	}
	slices.SortFunc(names, compareUTF16)
	b = append(b, '{')
	for i, name := range names {
		if i > 0 {
			b = append(b, ',')
		}
		var err error
		if b, err = appendString(b, name); err != nil {
			return nil, err
		}
		b = append(b, ':')
		if b, err = appendValue(b, m[name], depth+1); err != nil {
			return nil, err
		}
	}
	return append(b, '}'), nil
}

// appendOther takes the way through encoding/json, for structs and the like.
func appendOther(b []byte, v any, depth int) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, fmt.Errorf("canonical JSON: %w", err)
	}
	plain, err := parse(buf.Bytes())
	if err != nil {
		return nil, fmt.Errorf("canonical JSON: %w", err)
	}
	return appendValue(b, plain, depth)
}

// appendNumber writes a number from anywhere; those that parse made are canonical already.
func appendNumber(b []byte, n json.Number) ([]byte, error) {
	s := scanner{text: string(n)}
	v, err := s.number()
	if err != nil || s.pos != len(n) {
		return nil, fmt.Errorf("canonical JSON: %q is not a number", string(n))
	}
	return append(b, v.(json.Number)...), nil
}

// appendString escapes only what RFC 8785 says must be escaped.
func appendString(b []byte, s string) ([]byte, error) {
	const hexDigits = "0123456789abcdef"
	if !utf8.ValidString(s) {
		return nil, fmt.Errorf("canonical JSON: text is not valid UTF-8")
	}
	b = append(b, '"')
	start := 0
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c >= 0x20 && c != '"' && c != '\\' {
			continue
		}
		b = append(b, s[start:i]...)
		start = i + 1
		switch c {
		case '"', '\\':
			b = append(b, '\\', c)
		case '\b':
			b = append(b, '\\', 'b')
		case '\t':
			b = append(b, '\\', 't')
		case '\n':
			b = append(b, '\\', 'n')
		case '\f':
			b = append(b, '\\', 'f')
		case '\r':
			b = append(b, '\\', 'r')
		default:
			b = append(b, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		}
	}
	b = append(b, s[start:]...)
	return append(b, '"'), nil
}

// compareUTF16 orders texts by UTF-16 code units, which RFC 8785 asks for. It differs from the order of bytes only
// between characters beyond U+FFFF, which UTF-16 writes with surrogates, and U+E000 to U+FFFF.
func compareUTF16(a, b string) int {
	n := min(len(a), len(b))
	for i := range n {
		x, y := a[i], b[i]
		if x == y {
			continue
		}
		if xHigh, yHigh := x >= 0xF0, y >= 0xF0; xHigh != yHigh {
			if xHigh && y >= 0xEE {
				return -1
			}
			if yHigh && x >= 0xEE {
				return 1
			}
		}
		return cmp.Compare(x, y)
	}
	return cmp.Compare(len(a), len(b))
}
