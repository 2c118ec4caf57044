package visible

import (
	"fmt"
	"slices"
	"strings"

	"github.com/toolward/toolward"
)

// NormalizeName is [toolward.NormalToolName].
func NormalizeName(name string) string { return toolward.NormalToolName(name) }

// maxNameLength is the longest name of a tool.
const maxNameLength = 128

// objectKeys are names that every JavaScript object has; a client that keeps tools in one would find something
// else under them.
var objectKeys = []string{
	"constructor", "prototype", "tostring", "tolocalestring", "valueof", "hasownproperty", "isprototypeof",
	"propertyisenumerable",
}

// CheckName says why a tool may not be registered under a name: it is not in normal form, or it would pass for
// something that it is not. plugin is the id of the plug-in or MCP server that brings the tool, "" for Toolward's
// own. A tool that carries the id of its server before its own name, as in mail__send, must have a sound name behind it
// too: that is what models and people read.
func CheckName(name, plugin string) error {
	if err := checkCharacters(name); err != nil {
		return err
	}
	if NormalizeName(name) != name {
		return fmt.Errorf("name %q is an alias of %q", name, NormalizeName(name))
	}
	if slices.Contains(objectKeys, name) {
		return fmt.Errorf("name %q is a property of every JavaScript object", name)
	}
	if plugin == "" {
		return nil
	}
	// A server that names its tool "read" would inherit the trust in Toolward's own.
	if reserved(name) {
		return fmt.Errorf("name %q belongs to a tool of Toolward", name)
	}
	if reserved(NormalizeName(plugin)) {
		return fmt.Errorf("plug-in id %q is the name of a tool of Toolward", plugin)
	}
	// Clients name the tools of their servers mcp__<server>__<tool>: such a name would pass for another server's.
	if strings.HasPrefix(name, "mcp__") {
		return fmt.Errorf(`name %q begins with "mcp__", which clients give themselves`, name)
	}
	if hasGroupPrefix(name) {
		return fmt.Errorf("name %q begins like that of a group", name)
	}
	if own, ok := strings.CutPrefix(name, NormalizeName(plugin)+"__"); ok {
		return checkOwnName(own)
	}
	return nil
}

// checkOwnName checks what follows the id of a plug-in or server in the name of its tool. The names of core tools and
// their aliases are refused there as well, because a model that reads mail__exec takes it for exec, and so do people.
func checkOwnName(name string) error {
	if err := checkCharacters(name); err != nil {
		return err
	}
	switch normal := NormalizeName(name); {
	case isCore(normal), slices.Contains(channelTools[:], normal):
		return fmt.Errorf("name %q belongs to a tool of Toolward", normal)
	case slices.Contains(objectKeys, name):
		return fmt.Errorf("name %q is a property of every JavaScript object", name)
	case strings.HasPrefix(name, "mcp__"):
		return fmt.Errorf(`name %q begins with "mcp__", which clients give themselves`, name)
	case hasGroupPrefix(name):
		return fmt.Errorf("name %q begins like that of a group", name)
	}
	return nil
}

func checkCharacters(name string) error {
	if name == "" {
		return fmt.Errorf("name is empty")
	}
	if len(name) > maxNameLength {
		return fmt.Errorf("name %q is longer than %d characters", name[:32]+"…", maxNameLength)
	}
	for i, c := range []byte(name) {
		letter := c >= 'a' && c <= 'z' || c >= '0' && c <= '9'
		if !letter && (i == 0 || !strings.ContainsRune("_.:/-", rune(c))) {
			return fmt.Errorf("name %q: use lower-case letters, digits and _ . : / - and begin with a letter or digit", name)
		}
	}
	// "../add" is kept out by its first character; "a/../b" must not reach anything that takes names for paths.
	if strings.Contains(name, "..") {
		return fmt.Errorf("name %q contains \"..\"", name)
	}
	return nil
}
