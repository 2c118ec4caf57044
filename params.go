package toolward

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"iter"
	"maps"
	"slices"
	"strconv"
	"unicode/utf8"
)

// Params are the arguments of a call in the one form that is decided, shown, bound, recorded and executed. They
// cannot be changed: accessors copy what could be written to, which stops a plug-in or a delayed goroutine from
// swapping arguments between approval and run.
type Params struct {
	canonical []byte
	object    map[string]any
}

// NewParams takes ownership of a canonical encoding and the object it encodes. Numbers in object are json.Number.
func NewParams(canonical []byte, object map[string]any) Params {
	return Params{canonical: canonical, object: object}
}

// Canonical returns a copy of the canonical JSON.
func (p Params) Canonical() json.RawMessage { return slices.Clone(p.canonical) }

// Len is the length of the canonical JSON in bytes.
func (p Params) Len() int { return len(p.canonical) }

// AppendCanonical appends the canonical JSON to b.
func (p Params) AppendCanonical(b []byte) []byte { return append(b, p.canonical...) }

// Has reports whether the parameter is there at all.
func (p Params) Has(name string) bool { _, ok := p.object[name]; return ok }

// Names returns the names of all parameters in order.
func (p Params) Names() []string { return slices.Sorted(maps.Keys(p.object)) }

// Keys iterates over the names of all parameters in no order.
func (p Params) Keys() iter.Seq[string] { return maps.Keys(p.object) }

// String returns a text parameter; "" and false if it is absent or not a text.
func (p Params) String(name string) (string, bool) { s, ok := p.object[name].(string); return s, ok }

// Text returns a text parameter, or "" if there is none.
func (p Params) Text(name string) string { s, _ := p.object[name].(string); return s }

// Texts gives the parameters that are texts, by name, in no particular order.
func (p Params) Texts() iter.Seq2[string, string] {
	return func(yield func(name, text string) bool) {
		for name, v := range p.object {
			if text, ok := v.(string); ok && !yield(name, text) {
				return
			}
		}
	}
}

// Bool returns a boolean parameter; false and false if it is absent or not a boolean.
func (p Params) Bool(name string) (value, ok bool) {
	value, ok = p.object[name].(bool)
	return value, ok
}

// Int returns a whole-number parameter; 0 and false if it is absent, not a number or out of range.
func (p Params) Int(name string) (int64, bool) {
	n, ok := p.object[name].(json.Number)
	if !ok {
		return 0, false
	}
	if i, err := strconv.ParseInt(string(n), 10, 64); err == nil {
		return i, true
	}
	f, err := n.Float64()
	if err != nil || f != float64(int64(f)) || f > 1<<53 || f < -(1<<53) {
		return 0, false
	}
	return int64(f), true
}

// Value returns a copy of any parameter; nil if it is absent. Numbers are json.Number.
func (p Params) Value(name string) any { return clone(p.object[name]) }

// Object returns a deep copy of all parameters.
func (p Params) Object() map[string]any {
	if p.object == nil {
		return map[string]any{}
	}
	return clone(p.object).(map[string]any)
}

func clone(v any) any {
	switch v := v.(type) {
	case map[string]any:
		m := make(map[string]any, len(v))
		for k, e := range v {
			m[k] = clone(e)
		}
		return m
	case []any:
		s := make([]any, len(v))
		for i, e := range v {
			s[i] = clone(e)
		}
		return s
	default:
		return v
	}
}

// Digest is SHA-256 in lower hex over the canonical JSON of {agentId, params, sessionKey, tool}; an empty agent or
// session is null. It is the paramsDigest of approvals.
func (p Params) Digest(tool, agent string, session SessionKey) string {
	b := make([]byte, 0, len(p.canonical)+len(tool)+len(agent)+len(session)+64)
	b = append(b, `{"agentId":`...)
	b = appendTextOrNull(b, agent)
	b = append(b, `,"params":`...)
	b = append(b, p.canonical...)
	b = append(b, `,"sessionKey":`...)
	b = appendTextOrNull(b, string(session))
	b = append(b, `,"tool":`...)
	b = appendText(b, tool)
	b = append(b, '}')
	return hexDigest(b)
}

func hexDigest(b []byte) string {
	sum := sha256.Sum256(b)
	var text [2 * sha256.Size]byte
	hex.Encode(text[:], sum[:])
	return string(text[:])
}

func appendTextOrNull(b []byte, s string) []byte {
	if s == "" {
		return append(b, "null"...)
	}
	return appendText(b, s)
}

// appendText appends s as a JSON string the way RFC 8785 writes it: only what must be escaped is escaped.
// encoding/json cannot be used, it escapes more (U+2028, U+2029).
func appendText(b []byte, s string) []byte {
	b = append(b, '"')
	plain := 0 // where the text begins that needs no escape and is not yet appended
	for i := 0; i < len(s); {
		c := s[i]
		if c >= utf8.RuneSelf {
			r, n := utf8.DecodeRuneInString(s[i:])
			if r != utf8.RuneError || n > 1 {
				i += n
				continue
			}
		} else if c >= 0x20 && c != '"' && c != '\\' {
			i++
			continue
		}
		b = append(b, s[plain:i]...)
		b = appendEscaped(b, c)
		i++
		plain = i
	}
	b = append(b, s[plain:]...)
	return append(b, '"')
}

// appendEscaped appends a byte that cannot stand for itself.
func appendEscaped(b []byte, c byte) []byte {
	const hexDigits = "0123456789abcdef"
	switch {
	case c == '"' || c == '\\':
		return append(b, '\\', c)
	case c >= utf8.RuneSelf:
		return utf8.AppendRune(b, utf8.RuneError) // an invalid byte; adapters refuse such names before
	case c == '\b':
		return append(b, '\\', 'b')
	case c == '\t':
		return append(b, '\\', 't')
	case c == '\n':
		return append(b, '\\', 'n')
	case c == '\f':
		return append(b, '\\', 'f')
	case c == '\r':
		return append(b, '\\', 'r')
	}
	return append(b, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
}
