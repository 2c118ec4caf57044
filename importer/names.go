package importer

import (
	"maps"
	"slices"
	"strings"
)

// MCP tools are called mcp__<server>__<tool>, in lower case.

// mcpGlob stands for every tool of a server.
func mcpGlob(server string) string { return mcpName(server, "*") }

func mcpName(server, tool string) string {
	return "mcp__" + strings.ToLower(server) + "__" + strings.ToLower(tool)
}

// mcpRule turns mcp__server and mcp__server__tool into an entry of a list.
func mcpRule(rule string) string {
	server, tool, named := strings.Cut(strings.TrimPrefix(rule, "mcp__"), "__")
	switch {
	case named:
		return mcpName(server, tool)
	case strings.HasSuffix(server, "*"):
		return "mcp__" + strings.ToLower(server)
	}
	return mcpGlob(server)
}

// matchStar matches a whole name; * stands for any run of characters.
func matchStar(pattern, name string) bool {
	parts := strings.Split(pattern, "*")
	if len(parts) == 1 {
		return pattern == name
	}
	rest, ok := strings.CutPrefix(name, parts[0])
	if !ok {
		return false
	}
	for _, part := range parts[1 : len(parts)-1] {
		i := strings.Index(rest, part)
		if i < 0 {
			return false
		}
		rest = rest[i+len(part):]
	}
	return strings.HasSuffix(rest, parts[len(parts)-1])
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
