package shell

import (
	"io/fs"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// hidden says how a pattern deals with files whose names begin with a dot: a shell matches them only where the pattern
// has the dot itself. The library lets "*.*" and "[!a]*" match them.
type hidden int

const (
	noneHidden hidden = iota // no part of the path that is matched begins with a dot
	allHidden                // every part does
	someHidden
)

// hiddenIn looks at the parts of the path that a word is, one between each two slashes.
func hiddenIn(word *syntax.Word, in Surroundings) hidden {
	parts := pathParts(word, in)
	parts = slices.DeleteFunc(parts, func(p pathPart) bool { return !p.pattern })
	dots := 0
	for _, p := range parts {
		if p.dot {
			dots++
		}
	}
	switch dots {
	case 0:
		return noneHidden
	case len(parts):
		return allHidden
	}
	return someHidden
}

// hasLiteralPart reports whether all that is special in a part of the path is quoted: "*/'*'". The library looks for a
// file with the backslashes in its name that it quotes it with.
func hasLiteralPart(word *syntax.Word, in Surroundings) bool {
	return slices.ContainsFunc(pathParts(word, in), func(p pathPart) bool { return p.literal && !p.pattern })
}

func pathParts(word *syntax.Word, in Surroundings) []pathPart {
	var parts []pathPart
	current := pathPart{}
	add := func(text string, quoted bool) {
		for i := 0; i < len(text); i++ {
			c, literal := text[i], quoted
			if !quoted && c == '\\' && i+1 < len(text) {
				i++
				c, literal = text[i], true
			}
			if c == '/' {
				parts = append(parts, current)
				current = pathPart{}
				continue
			}
			current.dot = current.dot || !current.begun && c == '.'
			current.begun = true
			special := strings.IndexByte(`*?[]\{}`, c) >= 0
			current.pattern = current.pattern || !literal && special
			current.literal = current.literal || literal && special
		}
	}
	each(word.Parts, in, add)
	return append(parts, current)
}

// pathPart is what stands between two slashes.
type pathPart struct {
	begun, dot bool
	pattern    bool // some of its characters match others
	literal    bool // characters that could do so are quoted
}

// each gives the texts of a word, one after the other, and whether they are quoted.
func each(parts []syntax.WordPart, in Surroundings, add func(text string, quoted bool)) {
	for _, part := range parts {
		switch p := part.(type) {
		case *syntax.Lit:
			add(p.Value, false)
		case *syntax.SglQuoted:
			add(p.Value, true)
		case *syntax.DblQuoted:
			each(p.Parts, in, func(text string, _ bool) { add(text, true) })
		case *syntax.ParamExp:
			value, _ := environment{in}.value(p.Param.Value)
			add(value, true)
		}
	}
}

// slashes reports whether a word has two slashes beside each other.
func slashes(word *syntax.Word, in Surroundings) bool {
	var whole strings.Builder
	each(word.Parts, in, func(text string, _ bool) { whole.WriteString(text) })
	return strings.Contains(whole.String(), "//")
}

// visible leaves out files whose names begin with a dot.
func visible(entries []fs.DirEntry) []fs.DirEntry {
	return slices.DeleteFunc(slices.Clone(entries), func(e fs.DirEntry) bool { return strings.HasPrefix(e.Name(), ".") })
}
