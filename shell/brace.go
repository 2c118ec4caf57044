package shell

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// hasBraces reports whether a shell would make several words of one.
func hasBraces(node *syntax.Word) bool {
	return syntax.SplitBraces(&syntax.Word{Parts: slices.Clone(node.Parts)})
}

// oddBraces finds what shells take apart in different ways: a range of characters with a letter at one end and
// something else, or the other case, at the other, and braces that are left over beside those that are expanded.
func oddBraces(node *syntax.Word) bool {
	split := &syntax.Word{Parts: slices.Clone(node.Parts)}
	syntax.SplitBraces(split)
	expands := slices.ContainsFunc(split.Parts, func(part syntax.WordPart) bool { _, ok := part.(*syntax.BraceExp); return ok })
	if expands {
		return isOdd(split)
	}
	// "{.},}" is ".}" and nothing for bash, and one word for the parser.
	text := escapes.Replace(literals(node))
	open, end := strings.IndexByte(text, '{'), strings.LastIndexByte(text, '}')
	return open >= 0 && end > open && (strings.Contains(text[open:end], ",") || strings.Contains(text[open:end], ".."))
}

// escapes takes out the braces and commas that are escaped.
var escapes = strings.NewReplacer(`\\`, "", `\{`, "", `\}`, "", `\,`, "", `\.`, "")

func isOdd(split *syntax.Word) bool {
	for _, part := range split.Parts {
		switch p := part.(type) {
		case *syntax.Lit:
			if hasUnescaped(p.Value, "{}") {
				return true
			}
		case *syntax.BraceExp:
			if p.Sequence && len(p.Elems) >= 2 && kind(p.Elems[0].Lit()) != kind(p.Elems[1].Lit()) {
				return true
			}
			if !p.Sequence && slices.ContainsFunc(p.Elems, isOdd) {
				return true
			}
		}
	}
	return false
}

func hasUnescaped(text, characters string) bool {
	for i := 0; i < len(text); i++ {
		if text[i] == '\\' {
			i++
		} else if strings.IndexByte(characters, text[i]) >= 0 {
			return true
		}
	}
	return false
}

// kind is that of the letter at the end of a range; numbers of any length are digits.
func kind(end string) byte {
	if len(end) == 1 {
		return kindOf(end[0])
	}
	return '0'
}
