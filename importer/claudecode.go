package importer

import (
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/toolward/toolward/bridge"
)

// readClaudeCode reads settings.json of the machine, the user and one project.
func readClaudeCode(r *reader, where Where) error {
	files := []string{
		filepath.Join(where.System, "claude-code", "managed-settings.json"),
		filepath.Join(where.Home, ".claude", "settings.json"),
	}
	switch {
	case where.Path == "":
	case !isDirectory(where.Path):
		files = []string{where.Path}
	case filepath.Base(where.Path) == ".claude":
		files = append(files, filepath.Join(where.Path, "settings.json"), filepath.Join(where.Path, "settings.local.json"))
	default:
		files = append(files, filepath.Join(where.Path, ".claude", "settings.json"), filepath.Join(where.Path, ".claude", "settings.local.json"))
	}
	c := claudeReader{r, bridge.NativeTools(bridge.ClaudeCode), where.Home}
	for _, path := range slices.Compact(files) {
		root, err := r.loadTree(path, parseJSON)
		if err != nil {
			return err
		}
		if root != nil {
			c.settings(root)
			r.unread(root)
		}
	}
	return nil
}

type claudeReader struct {
	*reader
	tools map[string]bridge.NativeTool
	home  string
}

func (c *claudeReader) settings(root *node) {
	for _, name := range []string{"$schema", "hooks", "env", "model", "theme"} {
		// Known, and no rule about tools. Hooks run besides Toolward's own.
		root.get(name).all()
	}
	permissions := root.get("permissions")
	c.rules(permissions.get("deny"), c.denied)
	c.rules(permissions.get("ask"), c.asked)
	c.rules(permissions.get("allow"), c.allowed)
	c.mode(permissions.get("defaultMode"))
	for _, name := range []string{"disableBypassPermissionsMode", "disableAutoMode"} {
		permissions.get(name) // Toolward has no such mode to begin with
	}
	reads, writes := permissions.get("blockReadsOutsideWorkingDirectories"), permissions.get("blockWritesOutsideWorkingDirectories")
	switch {
	case reads.is(true):
		c.want(c.agent, "tools.fs.workspaceOnly", set, true, reads, "permissions.blockReadsOutsideWorkingDirectories")
	case writes.is(true):
		c.lose(writes, "permissions.blockWritesOutsideWorkingDirectories", "writes outside the workspace ask; to refuse them, and reads too, set tools.fs.workspaceOnly")
	}
	dirs, nodes := permissions.get("additionalDirectories").texts()
	for i, dir := range dirs {
		c.lose(nodes[i], "permissions.additionalDirectories: "+dir, "it lies outside the workspace: reads run while the session is calm, writes ask")
	}
	c.servers(root)
}

func (c *claudeReader) servers(root *node) {
	names, nodes := root.get("disabledMcpjsonServers").texts()
	for i, name := range names {
		c.deny(nodes[i], "disabledMcpjsonServers: "+name, mcpGlob(name))
	}
	for _, server := range root.get("deniedMcpServers").list() {
		if name := server.get("serverName").text(); name != "" {
			c.deny(server, "deniedMcpServers: "+name, mcpGlob(name))
			continue
		}
		server.all()
		c.lose(server, "deniedMcpServers", "servers are known by their names only, not by command or address")
	}
	if allowed := root.get("allowedMcpServers"); allowed != nil {
		names, plain := []string{}, true
		for _, server := range allowed.list() {
			name := server.get("serverName").text()
			plain = plain && name != ""
			names = append(names, name)
			server.all()
		}
		if !plain {
			c.lose(allowed, "allowedMcpServers", "servers are known by their names only, not by command or address")
			return
		}
		c.onlyServers(allowed, "allowedMcpServers", names)
	}
}

// mode reports the permission mode. Every mode that asks less than Toolward is Toolward's own business.
func (c *claudeReader) mode(n *node) {
	switch says := "permissions.defaultMode: " + n.text(); n.text() {
	case "", "default", "manual":
	case "acceptEdits":
		c.lose(n, says, "edits keep asking; teg.preset \"workspace\" lets those inside the workspace run")
	case "plan", "dontAsk":
		c.lose(n, says, "it is stricter than Toolward, which asks where this mode refuses; the client keeps to it by itself")
	default:
		c.lose(n, says, "an import only tightens: Toolward's own classes decide, and people")
	}
}

func (c *claudeReader) rules(list *node, each func(n *node, rule, tool, specifier string)) {
	rules, nodes := list.texts()
	for i, rule := range rules {
		tool, specifier, _ := strings.Cut(strings.TrimSpace(rule), "(")
		specifier = strings.TrimSpace(strings.TrimSuffix(specifier, ")"))
		if specifier == "*" || specifier == "**" {
			specifier = "" // the same as the tool alone
		}
		each(nodes[i], rule, strings.TrimSpace(tool), specifier)
	}
}

// covers lists the tools that a rule is about: a rule for edits is about everything that changes files, one for reads
// about searches too.
func (c *claudeReader) covers(tool string) []string {
	switch tool {
	case "Edit":
		return []string{"Edit", "Write", "NotebookEdit"}
	case "Read":
		return []string{"Read", "Grep", "Glob", "LSP"}
	}
	return []string{tool}
}

// denied carries a deny rule over.
func (c *claudeReader) denied(n *node, rule, tool, specifier string) {
	says := "deny " + rule
	switch {
	case specifier != "":
		c.partly(n, says, "deny", tool, specifier)
	case strings.HasPrefix(tool, "mcp__"):
		c.deny(n, says, mcpRule(tool))
	case strings.Contains(tool, "*"):
		c.globbed(n, says, tool)
	default:
		for _, name := range c.covers(tool) {
			c.denyTool(n, says, name)
		}
	}
}

// denyTool takes one native tool away. Where several tools of the client share a name of Toolward's, its action alone
// is blocked.
func (c *claudeReader) denyTool(n *node, says, name string) {
	native, known := c.tools[name]
	switch {
	case !known:
		c.deny(n, says, c.agentTool(name))
	case native.Action == "":
		c.deny(n, says, native.Name, native.Other)
	default:
		c.class(n, says, "blocked", native.Name+"."+native.Action)
		c.deny(n, says, native.Other)
	}
}

// globbed denies every known tool whose native name matches.
func (c *claudeReader) globbed(n *node, says, pattern string) {
	if strings.Trim(pattern, "*") == "" {
		c.deny(n, says, "*")
		return
	}
	c.deny(n, says, c.agentTool(pattern))
	for _, name := range sortedKeys(c.tools) {
		if matchStar(pattern, name) {
			c.denyTool(n, says, name)
		}
	}
}

// asked carries an ask rule over.
func (c *claudeReader) asked(n *node, rule, tool, specifier string) {
	says := "ask " + rule
	switch {
	case specifier != "":
		c.partly(n, says, "ask", tool, specifier)
	case strings.HasPrefix(tool, "mcp__"):
		c.class(n, says, "needs_approval", mcpRule(tool))
	case strings.Contains(tool, "*"):
		for _, name := range sortedKeys(c.tools) {
			if matchStar(tool, name) {
				c.askTool(n, says, name)
			}
		}
	default:
		for _, name := range c.covers(tool) {
			c.askTool(n, says, name)
		}
	}
}

func (c *claudeReader) askTool(n *node, says, name string) {
	native, known := c.tools[name]
	if !known {
		c.class(n, says, "needs_approval", c.agentTool(name))
		return
	}
	key := native.Name
	if native.Action != "" {
		key += "." + native.Action
	}
	c.class(n, says, "needs_approval", key)
}

// allowed reports what an allow rule would have let through.
func (c *claudeReader) allowed(n *node, rule, tool, specifier string) {
	says := "allow " + rule
	switch {
	case c.tools[tool].Name == "exec":
		c.lose(n, says, "an import only tightens: the preset in tools.exec, rules and exec-approvals.json say which commands need no question")
	case tool == "WebFetch" && strings.HasPrefix(specifier, "domain:"):
		c.lose(n, says, "it runs while the session is calm; to let it run at level elevated, add the host to teg.web.allowHosts")
	default:
		c.lose(n, says, "an import only tightens: Toolward's own classes decide, and people")
	}
}

// partly carries a rule with a condition over, where its condition can be said.
func (c *claudeReader) partly(n *node, says, then, tool, specifier string) {
	var conditions, tools []string
	switch {
	case c.tools[tool].Name == "exec":
		c.lose(n, says, "it is about the text of commands; write the words that it begins with as a rule in tools.exec.rules: %s", map[string]string{"deny": "forbidden", "ask": "prompt"}[then])
		return
	case tool == "Read":
		conditions, tools = pathConditions(specifier, c.home), []string{"read"}
	case tool == "Edit":
		conditions, tools = pathConditions(specifier, c.home), []string{"write", "edit"}
	case tool == "WebFetch" && strings.HasPrefix(specifier, "domain:"):
		conditions, tools = hostCondition(strings.TrimPrefix(specifier, "domain:")), []string{"web_fetch"}
	case tool == "Agent" || tool == "Task":
		conditions, tools = []string{"facts.target == " + strconv.Quote(specifier)}, []string{"sessions_spawn"}
	}
	if len(conditions) == 0 {
		c.lose(n, says, "it holds for some arguments only; write it as a rule in teg.rules")
		return
	}
	for _, one := range tools {
		c.addRules(n, says, then, one, conditions)
	}
	if tool == "Read" {
		c.lose(n, says+" (searches)", "searches that begin in a directory above it are not stopped")
	}
}

// agentTool is the name of a tool of the client that Toolward does not know.
func (c *claudeReader) agentTool(native string) string {
	return bridge.ClaudeCode + "/" + strings.ToLower(native)
}
