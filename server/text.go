package server

import (
	"fmt"
	"unicode"
)

type span struct {
	Text string
	Odd  bool
	Note string
}

func spans(s string) []span {
	var out []span
	start := 0
	for i, r := range s {
		if r == '\n' || r == '\t' || unicode.IsGraphic(r) {
			continue
		}
		if i > start {
			out = append(out, span{Text: s[start:i]})
		}
		out = append(out, span{Text: fmt.Sprintf("U+%04X", r), Odd: true, Note: "invisible character"})
		start = i + len(string(r))
	}
	if start < len(s) {
		out = append(out, span{Text: s[start:]})
	}
	return out
}
