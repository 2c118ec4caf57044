package gatetest

import (
	"encoding/json"

	"pgregory.net/rapid"

	"github.com/toolward/toolward"
)

// Plugin makes tools of one MCP server, or without an id plain tools, which take any arguments.
func Plugin(id string, names ...string) []*toolward.Tool {
	var tools []*toolward.Tool
	for _, name := range names {
		tools = append(tools, &toolward.Tool{Name: name, Plugin: id, Schema: json.RawMessage(`{"type":"object"}`)})
	}
	return tools
}

// AnyList draws entries of an allow or deny list: names, patterns and groups, known and unknown.
func AnyList() *rapid.Generator[[]string] {
	entries := []string{
		"*", "read", "Write", "bash", "apply_patch", "exec", "web_*", "*_search", "github", "github__*", "files", "group:fs",
		"group:plugins", "group:core", "group:openclaw", "group:nope", "nope", "cron",
	}
	return rapid.SliceOfN(rapid.SampledFrom(entries), 0, 4)
}
