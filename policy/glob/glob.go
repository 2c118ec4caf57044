// Package glob matches texts against patterns in which * stands for any run of bytes, also of none, and every other byte for
// itself: "/", "?" and "[" too.
package glob

import "strings"

// Match reports whether a pattern describes a whole text.
func Match(pattern, text string) bool {
	star, mark := -1, 0
	p, t := 0, 0
	for t < len(text) {
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, mark = p, t
			p++
		case p < len(pattern) && pattern[p] == text[t]:
			p++
			t++
		case star >= 0:
			mark++
			p, t = star+1, mark
		default:
			return false
		}
	}
	return strings.Trim(pattern[p:], "*") == ""
}

// Is reports whether an entry of a list is a pattern.
func Is(entry string) bool { return strings.Contains(entry, "*") }

// Literal is how specific a pattern is: how many of its bytes stand for themselves.
func Literal(pattern string) int { return len(pattern) - strings.Count(pattern, "*") }
