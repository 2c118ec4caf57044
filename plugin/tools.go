package plugin

import (
	"errors"
	"fmt"
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
		switch list[i] = toolward.NormalToolName(entry); {
		case list[i] == "":
			return nil, errors.New("the list of tools has an empty name")
		case strings.HasPrefix(list[i], "group:"):
			// Taken for a name it would match no tool, and its author would believe a whole group guarded.
			return nil, fmt.Errorf("%q: groups are for lists of the policy; name the tools here, * stands for any characters", entry)
		case strings.Trim(list[i], "abcdefghijklmnopqrstuvwxyz0123456789_.:/-*") != "":
			return nil, fmt.Errorf("%q cannot be the name of a tool; names have letters, digits and _.:/- only", entry)
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
