package bridge

import (
	"maps"
	"slices"
)

// clients are the clients whose agents are guarded. Nothing else in this package knows one of them by name but the files that
// begin with it.
var clients = []*client{
	{
		name: ClaudeCode, title: "Claude Code", answer: (*guest).claudeCode, tools: claudeTools, aliases: claudeAliases,
		directory: ".claude", variable: "CLAUDE_CONFIG_DIR", managed: claudeManagedSettings, events: claudeEvents, canary: claudeCanary, blocks: claudeBlocks,
		command: claudeCommand, instead: claudeInstead, switches: claudeSwitches, starts: claudeStarts,
	},
}

// clientNamed is the row of a client; nil if there is none.
func clientNamed(name string) *client {
	i := slices.IndexFunc(clients, func(c *client) bool { return c.name == name })
	if i < 0 {
		return nil
	}
	return clients[i]
}

// Clients lists the clients whose agents can be guarded, by name.
func Clients() (names []string) {
	for _, c := range clients {
		names = append(names, c.name)
	}
	return names
}

// ToolNames lists the names under which the tools of clients are judged, so that configuration may name them. MCP
// tools keep the names that the client gives them, and unknown tools of a client begin with its name and a slash.
func ToolNames() []string {
	names := map[string]bool{clientTool: true}
	for _, row := range clients {
		for _, tool := range row.tools {
			names[tool.tool] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// NativeTool is what a tool of a client is called in Toolward.
type NativeTool struct {
	Name   string // canonical name
	Action string // its action, where several tools of the client share the name; else ""
	Other  string // the name under which a call is judged whose arguments Toolward does not know
}

// NativeTools lists the tools of a client that are known, by their own names, older names included.
func NativeTools(client string) map[string]NativeTool {
	tools := map[string]NativeTool{}
	row := clientNamed(client)
	if row == nil {
		return tools
	}
	for name, tool := range row.tools {
		other, _ := foreignName(row.name+"/", name)
		tools[name] = NativeTool{tool.tool, tool.action, other}
	}
	for old, name := range row.aliases {
		tools[old] = tools[name]
	}
	return tools
}
