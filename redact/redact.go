// Package redact finds secrets in text and hides them.
//
// Two kinds of knowledge are used. Shapes are how keys of well-known makers, private-key blocks and JSON web tokens
// look, anchored at their fixed prefix, and values that stand behind words such as "password". Held secrets are exact
// values that the caller knows (configured tokens, say); they are found in plain form and in base64, hexadecimal and
// percent encoding.
//
//	r := redact.New(cfg.Token)
//	clean := r.String(text)               // for records and screens
//	clean, found := r.Clean(text)         // the same, and whether anything was hidden
//	clean, found, err := r.JSON(document) // string leaves only, everything else byte for byte
//	r.Holds(argument)                     // finding secret_value
//	redact.Shapes(argument)               // finding secret_shape
//
// One pass over the text decides; its time grows linearly with the text, whatever the text is.
package redact

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// Match is a secret in a text.
type Match struct {
	Kind       string // "github-token", "private-key", "password", …; "held" for a secret that the caller knows
	Start, End int    // bytes of the text
}

// Redactor hides secrets. The zero value knows shapes only. It is safe for concurrent use.
type Redactor struct {
	held atomic.Pointer[finder]

	mu   sync.Mutex
	from map[string][]string // exact secrets by where they come from
}

// New returns a Redactor that also knows these exact secrets. Values of less than 6 bytes are not held: they occur in
// ordinary text by chance.
func New(held ...string) *Redactor {
	r := &Redactor{}
	r.Hold("", held...)
	return r
}

// Hold replaces the exact secrets of one source, such as a part of the configuration. Those of others stay held.
func (r *Redactor) Hold(from string, secrets ...string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.from == nil {
		r.from = map[string][]string{}
	}
	r.from[from] = secrets
	var all []string
	for _, some := range r.from {
		all = append(all, some...)
	}
	r.held.Store(compileHeld(all))
}

// String returns s with every secret replaced by "[hidden: <kind>]".
func (r *Redactor) String(s string) string {
	clean, _ := r.Clean(s)
	return clean
}

// Clean is String, and reports whether there was a secret.
func (r *Redactor) Clean(s string) (clean string, found bool) {
	return hide(s, r.Find(s))
}

// opening is how the text that stands for a secret begins.
const opening = "[hidden: "

// Hidden reports whether a text holds one that stands for a hidden secret.
func Hidden(s string) bool { return strings.Contains(s, opening) }

// Find returns all secrets in s, in order and without overlap.
func (r *Redactor) Find(s string) []Match {
	matches := scan(s, true)
	if held := r.findHeld(s); len(held) > 0 {
		matches = merge(append(matches, held...))
	}
	return matches
}

// Holds reports whether a text contains a held secret in plain or encoded form. Sending such a text anywhere would
// hand the secret over.
func (r *Redactor) Holds(s string) bool {
	held := r.held.Load()
	if held == nil {
		return false
	}
	found := false
	held.each(s, func(int, *pattern) int {
		found = true
		return len(s)
	})
	return found
}

// Text is [Redactor.String] of a Redactor that holds no secrets.
func Text(s string) string {
	clean, _ := hide(s, scan(s, true))
	return clean
}

// Shapes returns what in a text is a secret by its own shape: private-key blocks, keys by the prefix of
// their maker, JSON web tokens. Guesses from words such as "password" are not among them.
func Shapes(s string) []Match { return scan(s, false) }

func (r *Redactor) findHeld(s string) (matches []Match) {
	held := r.held.Load()
	if held == nil {
		return nil
	}
	held.each(s, func(at int, p *pattern) int {
		matches = append(matches, Match{Kind: "held", Start: at, End: at + len(p.text)})
		return 0
	})
	return matches
}

// hide replaces matches, which are in order and do not overlap.
func hide(s string, matches []Match) (string, bool) {
	if len(matches) == 0 {
		return s, false
	}
	var b strings.Builder
	b.Grow(len(s))
	last := 0
	for _, m := range matches {
		b.WriteString(s[last:m.Start])
		b.WriteString(opening)
		b.WriteString(m.Kind)
		b.WriteString("]")
		last = m.End
	}
	b.WriteString(s[last:])
	return b.String(), true
}

// merge sorts matches and joins those that overlap.
func merge(matches []Match) []Match {
	slices.SortFunc(matches, func(a, b Match) int {
		if a.Start != b.Start {
			return a.Start - b.Start
		}
		return b.End - a.End
	})
	out := matches[:0]
	for _, m := range matches {
		if n := len(out); n > 0 && m.Start < out[n-1].End {
			if m.End > out[n-1].End {
				out[n-1].End = m.End
			}
			continue
		}
		out = append(out, m)
	}
	return out
}
