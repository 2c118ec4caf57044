package shell

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// oddBrackets finds a pattern in brackets that is not a plain set of characters: with quotes or a parameter between the
// brackets, classes, names of characters, backslashes, a dot where names of hidden files begin. Shells differ in all
// of them.
func oddBrackets(node *syntax.Word) bool {
	var set strings.Builder // what stands between the brackets so far
	open, across, leading := false, false, false
	before := byte('/') // the character before; a slash if it is not known
	matches := false    // something else in the word does
	for _, part := range node.Parts {
		lit, ok := part.(*syntax.Lit)
		if !ok {
			across, before = open, '/'
			continue
		}
		for i := 0; i < len(lit.Value); i++ {
			matches = matches || lit.Value[i] == '*' || lit.Value[i] == '?'
			switch c := lit.Value[i]; {
			case !open && c == '\\':
				i++
			case !open && c == '[':
				open, across = true, false
				leading = before == '/'
				set.Reset()
			case open && c == ']':
				if across || !plainSet(set.String()) || leading && strings.Contains(set.String(), ".") {
					return true
				}
				open = false
			case open:
				set.WriteByte(c)
			}
			before = lit.Value[min(i, len(lit.Value)-1)]
		}
	}
	return open && matches // "[a*": what does not end is text for a shell, and no pattern at all for the library
}

// plainSet reports whether a set of characters has one meaning: ASCII without what is special in brackets, and ranges
// within one kind.
func plainSet(set string) bool {
	set = strings.TrimLeft(set, "!^")
	for i := 0; i < len(set); i++ {
		if !isPlain(set[i]) {
			return false
		}
		if i+2 < len(set) && set[i+1] == '-' {
			from, to := set[i], set[i+2]
			if kindOf(from) == 0 || kindOf(from) != kindOf(to) || from > to {
				return false
			}
			i += 2
		}
	}
	return set != ""
}

func isPlain(c byte) bool { return c > ' ' && c < 0x7f && strings.IndexByte(`[]\/!^-$`, c) < 0 }

// kindOf tells lower-case letters, upper-case letters and digits apart; 0 is everything else.
func kindOf(c byte) byte {
	switch {
	case c >= 'a' && c <= 'z':
		return 'a'
	case c >= 'A' && c <= 'Z':
		return 'A'
	case c >= '0' && c <= '9':
		return '0'
	}
	return 0
}
