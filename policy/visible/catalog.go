package visible

import (
	"slices"
	"strings"

	"github.com/toolward/toolward"
)

// section is one part of the catalog of core tools.
type section struct {
	name  string
	tools []string
}

// catalog is the list of core tools. It is static: a tool counts as core even when it is not available in the
// present run, so that a list naming it stays a restriction.
var catalog = [...]section{
	{"fs", []string{"read", "write", "edit", "apply_patch"}},
	{"runtime", []string{"exec", "process"}},
	{"web", []string{"web_search", "web_fetch"}},
	{"memory", []string{"memory_search", "memory_get"}},
	{"sessions", []string{"sessions_list", "sessions_history", "sessions_send", "sessions_spawn", "subagents", "session_status"}},
	{"ui", []string{"browser", "canvas"}},
	{"messaging", []string{"message"}},
	{"automation", []string{"cron", "gateway"}},
	{"nodes", []string{"nodes"}},
	{"agents", []string{"agents_list"}},
	{"media", []string{"image", "tts"}},
}

// beyondCore are tools of Toolward that stand outside the 25: finding files is classified as reading them.
var beyondCore = [...]string{"list", "search"}

// EgressTool is the internal tool that stands for the connections of programs in sandboxes.
const EgressTool = "egress"

// channelTools are contributed by channels.
var channelTools = [...]string{"whatsapp_login"}

// ownerOnlyNames are tools that only the owner sees, whatever their registration says.
var ownerOnlyNames = [...]string{"whatsapp_login", "cron", "gateway", "nodes"}

// CoreTools lists the 25 core tools in the order of the catalog.
func CoreTools() []string {
	var all []string
	for _, s := range catalog {
		all = append(all, s.tools...)
	}
	return all
}

func isCore(name string) bool {
	for _, s := range catalog {
		if slices.Contains(s.tools, name) {
			return true
		}
	}
	return false
}

// reserved reports whether a name belongs to a tool of Toolward.
func reserved(name string) bool {
	return isCore(name) || name == EgressTool || slices.Contains(beyondCore[:], name) || slices.Contains(channelTools[:], name)
}

func isOwnerOnlyName(name string) bool { return slices.Contains(ownerOnlyNames[:], name) }

// Profile gives the allow list of a profile. The list of "full" is nil: no restriction. An unknown name is not ok.
func Profile(name string) (allow []string, ok bool) {
	switch name {
	case "minimal":
		return []string{"session_status"}, true
	case "coding":
		return ExpandGroups([]string{"group:fs", "group:runtime", "group:memory", "group:sessions", "image"}), true
	case "messaging":
		return []string{"sessions_list", "sessions_history", "sessions_send", "session_status", "message"}, true
	case "full":
		return nil, true
	}
	return nil, false
}

// groupPrefix begins the names of groups.
const groupPrefix = "group:"

// pluginsGroup is the group of all tools that plug-ins and MCP servers brought.
const pluginsGroup = "group:plugins"

// group returns the members of a group of core tools.
func group(name string) ([]string, bool) {
	name, ok := strings.CutPrefix(name, groupPrefix)
	if !ok {
		return nil, false
	}
	switch name {
	case "core":
		return CoreTools(), true
	case "openclaw":
		var tools []string
		for _, s := range catalog {
			if s.name != "fs" && s.name != "runtime" {
				tools = append(tools, s.tools...)
			}
		}
		return tools, true
	}
	for _, s := range catalog {
		if s.name == name {
			return s.tools, true
		}
	}
	return nil, false
}

func groupNames() []string {
	names := []string{groupPrefix + "core", groupPrefix + "openclaw", pluginsGroup}
	for _, s := range catalog {
		names = append(names, groupPrefix+s.name)
	}
	return names
}

// ExpandGroups normalizes the entries of a list, replaces groups of core tools by their members, and drops blanks
// and duplicates. Unknown groups stay: they match nothing, and they keep the list from being empty, which would
// mean "everything".
func ExpandGroups(list []string) []string {
	out := make([]string, 0, len(list))
	for _, entry := range list {
		entry = toolward.NormalToolName(entry)
		if entry == "" {
			continue
		}
		members, ok := group(entry)
		if !ok {
			members = []string{entry}
		}
		for _, m := range members {
			if !slices.Contains(out, m) {
				out = append(out, m)
			}
		}
	}
	return out
}

func hasGroupPrefix(entry string) bool {
	return len(entry) >= len(groupPrefix) && entry[:len(groupPrefix)] == groupPrefix
}
