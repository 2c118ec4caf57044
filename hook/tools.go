package hook

import (
	"errors"
	"slices"
	"strings"

	"github.com/toolward/toolward"
)

// toolList says for which tools a handler is called. Nil is for all.
type toolList []string

// newToolList brings entries to the normal form of tool names. An empty list is an error: a guard for no tool guards
// nothing, and its author surely meant something else.
func newToolList(entries []string) (toolList, error) {
	if len(entries) == 0 {
		return nil, errors.New("the list of tools is empty: name tools, or leave it out for all")
	}
	list := make(toolList, len(entries))
	for i, entry := range entries {
		if list[i] = toolward.NormalToolName(entry); list[i] == "" {
			return nil, errors.New("the list of tools has an empty name")
		}
	}
	return list, nil
}

func (l toolList) has(tool string) bool {
	return l == nil || slices.ContainsFunc(l, func(entry string) bool { return wildcard(entry, tool) })
}

// wildcard matches a text as a whole; * stands for any characters.
func wildcard(pattern, text string) bool {
	head, rest, more := strings.Cut(pattern, "*")
	if !more {
		return pattern == text
	}
	if !strings.HasPrefix(text, head) {
		return false
	}
	text = text[len(head):]
	parts := strings.Split(rest, "*")
	for _, part := range parts[:len(parts)-1] {
		i := strings.Index(text, part)
		if i < 0 {
			return false
		}
		text = text[i+len(part):]
	}
	return strings.HasSuffix(text, parts[len(parts)-1])
}
