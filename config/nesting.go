package config

import (
	"bytes"
	"fmt"

	"github.com/tailscale/hujson"
)

// maxNesting bounds how deep objects and lists may stand in each other.
const maxNesting = 200

// ParseText reads JSON with comments and trailing commas. The parser calls itself for each level of nesting, and a
// stack that is full cannot be caught: without a bound whoever writes a file of brackets would end the gateway that
// looks at it.
func ParseText(source []byte) (hujson.Value, error) {
	if at := tooDeep(source); at >= 0 {
		line, column := 1+bytes.Count(source[:at], []byte("\n")), at-bytes.LastIndexByte(source[:at], '\n')
		return hujson.Value{}, fmt.Errorf("hujson: line %d, column %d: more than %d levels of objects and lists", line, column, maxNesting)
	}
	// A comment on the last line needs no line break after it.
	return hujson.Parse(append(bytes.Clone(source), '\n'))
}

// tooDeep is the offset of the bracket that goes a level too deep; -1 if there is none. It knows just enough of the
// language to tell brackets from those in texts and comments. Where a text is wrong the parser ends before it is
// called for what follows.
func tooDeep(source []byte) int {
	depth := 0
	for i := 0; i < len(source); i++ {
		rest := source[i:]
		switch {
		case rest[0] == '{' || rest[0] == '[':
			if depth++; depth > maxNesting {
				return i
			}
		case rest[0] == '}' || rest[0] == ']':
			depth--
		case rest[0] == '"':
			for i++; i < len(source) && source[i] != '"'; i++ {
				if source[i] == '\\' {
					i++
				}
			}
		case bytes.HasPrefix(rest, []byte("//")):
			i += lengthTo(rest, "\n") - 1
		case bytes.HasPrefix(rest, []byte("/*")):
			i += 2 + lengthTo(rest[2:], "*/") - 1
		}
	}
	return -1
}

// lengthTo is the length of a text up to the end of what ends it.
func lengthTo(text []byte, end string) int {
	if i := bytes.Index(text, []byte(end)); i >= 0 {
		return i + len(end)
	}
	return len(text)
}
