package importer

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// readGemini reads settings.json of the machine, the user and one project, and the user's policies.
func readGemini(r *reader, where Where) error {
	dir := filepath.Join(where.Home, ".gemini")
	files := []string{filepath.Join(where.System, "gemini-cli", "settings.json"), filepath.Join(dir, "settings.json")}
	policies := []string{filepath.Join(where.System, "gemini-cli", "policies"), filepath.Join(dir, "policies")}
	switch {
	case where.Path == "":
	case !isDirectory(where.Path):
		files, policies = []string{where.Path}, nil
	case filepath.Base(where.Path) == ".gemini":
		files, policies = []string{filepath.Join(where.Path, "settings.json")}, []string{filepath.Join(where.Path, "policies")}
	default:
		files = append(files, filepath.Join(where.Path, ".gemini", "settings.json"))
	}
	g := geminiReader{r}
	for _, path := range slices.Compact(files) {
		root, err := r.loadTree(path, parseJSON)
		if err != nil {
			return err
		}
		if root != nil {
			g.settings(root)
			r.unread(root)
		}
	}
	for _, dir := range policies {
		if err := g.policies(dir); err != nil {
			return err
		}
	}
	return nil
}

type geminiReader struct{ *reader }

// geminiTools is what the tools of Gemini CLI are in Toolward's words: a name, or a name and an action.
var geminiTools = map[string]string{
	"run_shell_command": "exec", "ShellTool": "exec",
	"read_file": "read", "ReadFileTool": "read", "read_many_files": "read", "ReadManyFilesTool": "read",
	"glob": "read.glob", "GlobTool": "read.glob", "list_directory": "read.list", "LSTool": "read.list",
	"grep_search": "read.grep", "search_file_content": "read.grep", "GrepTool": "read.grep",
	"write_file": "write", "WriteFileTool": "write", "replace": "edit", "EditTool": "edit",
	"web_fetch": "web_fetch", "WebFetchTool": "web_fetch", "google_web_search": "web_search", "WebSearchTool": "web_search",
	"invoke_agent": "sessions_spawn",
}

// own is the name of a tool that Toolward has no word for.
func (g geminiReader) own(name string) string { return Gemini + "/" + strings.ToLower(name) }

func (g geminiReader) settings(root *node) {
	root.get("$schema")
	tools, old := root.get("tools"), root
	g.core(tools.get("core"), "tools.core")
	g.core(old.get("coreTools"), "coreTools")
	g.exclude(tools.get("exclude"), "tools.exclude")
	g.exclude(old.get("excludeTools"), "excludeTools")
	g.allowed(tools.get("allowed"), "tools.allowed")
	g.allowed(old.get("allowedTools"), "allowedTools")
	if n := old.get("autoAccept"); n.is(true) {
		g.lose(n, "autoAccept = true", "an import only tightens: Toolward's own classes decide, and people")
	}
	if n := root.path("general", "defaultApprovalMode"); n != nil && n.text() != "default" {
		g.lose(n, "general.defaultApprovalMode: "+n.text(), "Toolward's own classes decide, and people")
	}
	root.path("security", "disableYoloMode")
	for _, mcp := range []struct {
		allowed, excluded *node
		prefix            string
	}{
		{root.path("mcp", "allowed"), root.path("mcp", "excluded"), "mcp."},
		{old.get("allowMCPServers"), old.get("excludeMCPServers"), "MCPServers "},
	} {
		if mcp.allowed != nil {
			names, _ := mcp.allowed.texts()
			g.onlyServers(mcp.allowed, mcp.prefix+"allowed", names)
		}
		names, nodes := mcp.excluded.texts()
		for i, name := range names {
			g.deny(nodes[i], mcp.prefix+"excluded: "+name, mcpGlob(name))
		}
	}
	g.servers(root.get("mcpServers"))
}

// core carries over the list of built-in tools that are there at all. Tools of MCP servers are not built in.
func (g geminiReader) core(n *node, says string) {
	if n == nil {
		return
	}
	entries, nodes := n.texts()
	names := []string{"mcp__*", "client"}
	for i, entry := range entries {
		tool, arguments, restricted := strings.Cut(entry, "(")
		name, _, _ := strings.Cut(geminiTools[tool], ".")
		if name == "" {
			name = g.own(tool)
		}
		names = union(names, []string{name, g.own(tool)})
		if restricted {
			g.lose(nodes[i], says+": "+entry, "an import only tightens: commands ask that no preset, rule or entry of exec-approvals.json covers (%s)", strings.TrimSuffix(arguments, ")"))
		}
	}
	g.want(g.agent, "tools.allow", narrow, names, n, says)
}

func (g geminiReader) exclude(n *node, says string) {
	entries, nodes := n.texts()
	for i, entry := range entries {
		if tool, _, restricted := strings.Cut(entry, "("); restricted {
			g.lose(nodes[i], says+": "+entry, "it is about the arguments of %s; for commands, write the words that it begins with as a rule in tools.exec.rules", tool)
			continue
		}
		g.denyTool(nodes[i], says+": "+entry, entry)
	}
}

func (g geminiReader) denyTool(n *node, says, tool string) {
	name, _, action := strings.Cut(geminiTools[tool], ".")
	switch {
	case action:
		g.class(n, says, "blocked", geminiTools[tool])
	case name != "":
		g.deny(n, says, name)
	}
	if server, one, ok := strings.Cut(strings.TrimPrefix(tool, "mcp_"), "_"); ok && strings.HasPrefix(tool, "mcp_") {
		g.deny(n, says, mcpName(server, one))
		return
	}
	g.deny(n, says, g.own(tool))
}

func (g geminiReader) allowed(n *node, says string) {
	entries, nodes := n.texts()
	for i, entry := range entries {
		g.lose(nodes[i], says+": "+entry, "an import only tightens: Toolward's own classes decide, and people")
	}
}

func (g geminiReader) servers(servers *node) {
	if servers == nil {
		return
	}
	for _, name := range servers.names {
		server := servers.get(name)
		says := "mcpServers." + name
		if n := server.get("trust"); n.is(true) {
			g.lose(n, says+".trust = true", "an import only tightens: tools of MCP servers ask")
		}
		if n := server.get("includeTools"); n != nil {
			tools, _ := n.texts()
			for i, tool := range tools {
				tools[i], _, _ = strings.Cut(tool, "(")
			}
			g.onlyTools(n, says+".includeTools", name, tools)
		}
		tools, nodes := server.get("excludeTools").texts()
		for i, tool := range tools {
			g.deny(nodes[i], says+".excludeTools: "+tool, mcpName(name, tool))
		}
		for _, how := range server.names {
			server.get(how).all()
		}
	}
}

// policies reads the rules of the policy engine. The rule with the highest priority decides there; here the strictest
// does. A rule without conditions is carried over, unless one that is laxer outranks it.
func (g geminiReader) policies(dir string) error {
	paths, err := filepath.Glob(filepath.Join(dir, "*.toml"))
	if err != nil {
		return err
	}
	var rules []*node
	for _, path := range paths {
		root, err := g.loadTree(path, parseTOML)
		if err != nil {
			return err
		}
		if root == nil {
			continue
		}
		list := root.get("rule").list()
		for _, rule := range list {
			rule.all()
		}
		rules = append(rules, list...)
		g.unread(root)
	}
	for _, rule := range rules {
		g.policy(rule, rules)
	}
	return nil
}

func (g geminiReader) policy(rule *node, all []*node) {
	decision := rule.get("decision").text()
	names := ruleTools(rule)
	says := fmt.Sprintf("rule: %s %s", decision, strings.Join(names, ", "))
	switch {
	case decision == "allow":
		g.lose(rule, says, "an import only tightens: Toolward's own classes decide, and people")
		return
	case decision != "deny" && decision != "ask_user":
		g.lose(rule, says, "%q is not a decision that Toolward knows", decision)
		return
	case conditional(rule) || len(names) == 0:
		g.lose(rule, says, "it holds for some calls only; write it as a rule in teg.rules, or for commands in tools.exec.rules")
		return
	}
	for _, other := range all {
		if other.get("decision").text() != decision && number(other.get("priority")) >= number(rule.get("priority")) && overlaps(names, ruleTools(other)) {
			g.lose(rule, says, "another rule outranks it for some calls; write it as a rule in teg.rules")
			return
		}
	}
	for _, name := range names {
		switch {
		case decision == "deny" && strings.Trim(name, "*") == "":
			g.deny(rule, says, "*")
		case decision == "deny" && strings.HasPrefix(name, "mcp__"):
			g.deny(rule, says, name)
		case decision == "deny":
			g.denyTool(rule, says, name)
		case strings.HasPrefix(name, "mcp__"):
			g.class(rule, says, "needs_approval", name)
		case geminiTools[name] != "":
			g.class(rule, says, "needs_approval", geminiTools[name])
		default:
			g.class(rule, says, "needs_approval", g.own(name))
		}
	}
}

// ruleTools lists the tools of a rule, those of MCP servers under Toolward's names.
func ruleTools(rule *node) []string {
	n := rule.get("toolName")
	names, _ := n.texts()
	if one := n.text(); one != "" {
		names = []string{one}
	}
	server := rule.get("mcpName").text()
	if server == "" {
		return names
	}
	if len(names) == 0 {
		return []string{mcpGlob(server)}
	}
	qualified := make([]string, len(names))
	for i, name := range names {
		qualified[i] = mcpName(server, name)
	}
	return qualified
}

// conditional reports whether a rule holds for some calls of its tools only.
func conditional(rule *node) bool {
	return slices.ContainsFunc(rule.names, func(name string) bool {
		return !slices.Contains([]string{"toolName", "mcpName", "decision", "priority", "denyMessage", "name", "description"}, name)
	})
}

func number(n *node) float64 {
	if n == nil {
		return 0
	}
	v, _ := n.value.(float64)
	return v
}

// overlaps reports whether two lists of names, which may be patterns, can mean the same tool. No name at all means any.
func overlaps(a, b []string) bool {
	if len(a) == 0 || len(b) == 0 {
		return true
	}
	return slices.ContainsFunc(a, func(x string) bool {
		return slices.ContainsFunc(b, func(y string) bool {
			return matchStar(x, y) || matchStar(y, x) || strings.Contains(x, "*") && strings.Contains(y, "*")
		})
	})
}
