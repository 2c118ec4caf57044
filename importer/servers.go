package importer

import (
	"slices"
	"strings"

	"github.com/toolward/toolward/config"
)

// servers is what the files say about which MCP servers, and which of their tools, are there at all. Where several
// files have a list, only what is in all of them remains.
type servers struct {
	names *allowed
	tools map[string]*allowed // by server
}

// allowed is a list that everything else is left out by.
type allowed struct {
	names []string // lower case
	from  *node    // where it was last narrowed
	says  string
}

func (a *allowed) narrow(n *node, says string, names []string) *allowed {
	lower := make([]string, len(names))
	for i, name := range names {
		lower[i] = strings.ToLower(name)
	}
	if a != nil {
		lower = slices.DeleteFunc(lower, func(name string) bool { return !slices.Contains(a.names, name) })
	}
	return &allowed{lower, n, says}
}

// onlyServers leaves out the tools of all MCP servers but those named.
func (r *reader) onlyServers(n *node, says string, names []string) {
	r.only.names = r.only.names.narrow(n, says, names)
}

// onlyTools leaves out the tools of one MCP server but those named.
func (r *reader) onlyTools(n *node, says, server string, tools []string) {
	if r.only.tools == nil {
		r.only.tools = map[string]*allowed{}
	}
	server = strings.ToLower(server)
	r.only.tools[server] = r.only.tools[server].narrow(n, says, tools)
}

// leavesOut reports whether the lists leave out what a key of teg.tools is about.
func (s *servers) leavesOut(key string) bool {
	server, tool, qualified := strings.Cut(strings.TrimPrefix(key, "mcp__"), "__")
	if !strings.HasPrefix(key, "mcp__") {
		return false
	}
	if s.names != nil && !(qualified && slices.Contains(s.names.names, server)) {
		return true
	}
	if strings.Contains(server, "*") {
		return len(s.tools) > 0
	}
	only := s.tools[server]
	return only != nil && !slices.Contains(only.names, tool)
}

// finish turns the lists into settings. A question about a tool that a list leaves out would be a more precise key
// than the list's own, and bring the tool back: it goes.
func (r *reader) finish() {
	r.plan.settings = slices.DeleteFunc(r.plan.settings, func(s setting) bool {
		return s.value == "needs_approval" && r.only.leavesOut(lastName(s.key))
	})
	if a := r.only.names; a != nil {
		r.class(a.from, a.says, "blocked", "mcp__*")
		for _, name := range a.names {
			r.class(a.from, a.says, "needs_approval", mcpGlob(name))
		}
	}
	for _, server := range sortedKeys(r.only.tools) {
		a := r.only.tools[server]
		r.class(a.from, a.says, "blocked", mcpGlob(server))
		if r.only.names != nil && !slices.Contains(r.only.names.names, server) {
			continue
		}
		for _, tool := range a.names {
			r.class(a.from, a.says, "needs_approval", mcpName(server, tool))
		}
	}
}

// lastName is the last part of a key.
func lastName(key string) string {
	parts := config.SplitKey(key)
	return parts[len(parts)-1]
}
