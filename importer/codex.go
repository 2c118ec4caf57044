package importer

import (
	"bytes"
	"path/filepath"
	"slices"
	"strings"
)

// readCodex reads config.toml and the rules for commands beside it.
func readCodex(r *reader, where Where) error {
	dir := filepath.Join(where.Home, ".codex")
	files := []string{filepath.Join(where.System, "codex", "config.toml"), filepath.Join(dir, "config.toml")}
	switch {
	case where.Path == "":
	case !isDirectory(where.Path):
		dir, files = "", []string{where.Path}
	case isDirectory(filepath.Join(where.Path, ".codex")):
		files = append(files, filepath.Join(where.Path, ".codex", "config.toml"))
	default:
		dir, files = where.Path, []string{filepath.Join(where.Path, "config.toml")}
	}
	for _, path := range slices.Compact(files) {
		root, err := r.loadTree(path, parseTOML)
		if err != nil {
			return err
		}
		if root != nil {
			codexReader{r}.config(root)
			r.unread(root)
		}
	}
	for _, name := range []string{"managed_config.toml", "requirements.toml"} {
		path := filepath.Join(where.System, "codex", name)
		if _, there, err := r.load(path); err != nil {
			return err
		} else if there {
			r.lose(&node{at: Place{File: path}}, name, "what an administrator requires of Codex is not read; Codex itself keeps to it")
		}
	}
	if dir == "" {
		return nil
	}
	return codexReader{r}.rules(dir)
}

type codexReader struct{ *reader }

// changesFiles are the tools that change files.
var changesFiles = []string{"write", "edit", "apply_patch"}

func (c codexReader) config(root *node) {
	approval, sandbox := root.get("approval_policy"), root.get("sandbox_mode")
	profile := root.get("default_permissions")
	mode, at := sandbox.text(), sandbox
	if sandbox == nil && profile != nil {
		mode, at = strings.TrimPrefix(profile.text(), ":"), profile
	}
	c.sandbox(at, mode, approval.text() == "never")
	c.approval(approval)
	workspace := root.get("sandbox_workspace_write")
	roots, nodes := workspace.get("writable_roots").texts()
	for i, dir := range roots {
		c.lose(nodes[i], "sandbox_workspace_write.writable_roots: "+dir, "it lies outside the workspace: writes there ask")
	}
	if n := workspace.get("network_access"); n.is(true) {
		c.lose(n, "sandbox_workspace_write.network_access = true", "commands ask, whatever they reach")
	}
	for _, n := range []*node{root.get("web_search"), root.path("tools", "web_search")} {
		if n.is("disabled") || n.is(false) {
			c.deny(n, "web_search off", "web_search")
		}
	}
	if n := root.path("tools", "view_image"); n.is(false) {
		c.deny(n, "tools.view_image off", "image")
	}
	c.servers(root.get("mcp_servers"))
	for _, known := range []struct{ name, reason string }{
		{"profiles", "which of them holds is chosen on the command line; none is read"},
		{"permissions", "boundaries of commands come with sandboxes; until then every command asks"},
		{"projects", "Toolward trusts no directory more than another"},
	} {
		if n := root.get(known.name); n != nil {
			n.all()
			c.lose(n, known.name, "%s", known.reason)
		}
	}
}

func (c codexReader) sandbox(n *node, mode string, never bool) {
	says := "sandbox_mode = " + mode
	switch mode {
	case "":
	case "read-only":
		if never {
			c.deny(n, says+", approval_policy = never", changesFiles...)
		} else {
			c.class(n, says, "needs_approval", changesFiles...)
		}
		c.lose(n, says+" (for commands)", "what commands may change is a matter of sandboxes; until then every command asks")
	case "workspace-write", "workspace":
		c.lose(n, says, "the boundary around commands comes with sandboxes; until then every command asks, and so does every write")
	default:
		c.lose(n, says, "an import only tightens: Toolward's own classes decide, and people")
	}
}

func (c codexReader) approval(n *node) {
	if n == nil {
		return
	}
	says := "approval_policy = " + n.text()
	switch n.text() {
	case "untrusted":
		c.class(n, says, "needs_approval", append([]string{"exec"}, changesFiles...)...)
	case "":
		n.all()
		c.lose(n, "approval_policy (granular)", "Toolward asks in every case; what Codex would refuse without asking, people can refuse")
	case "never":
		c.lose(n, says, "Toolward asks where Codex would run within its sandbox; what Codex would refuse without asking, people can refuse")
	default:
		c.lose(n, says, "Toolward asks about every command and every write")
	}
}

func (c codexReader) servers(servers *node) {
	if servers == nil {
		return
	}
	for _, name := range servers.names {
		server := servers.get(name)
		if server.get("enabled").is(false) {
			c.deny(server, "mcp_servers."+name+" is off", mcpGlob(name))
		}
		if only := server.get("enabled_tools"); only != nil {
			tools, _ := only.texts()
			c.onlyTools(only, "mcp_servers."+name+".enabled_tools", name, tools)
		}
		tools, nodes := server.get("disabled_tools").texts()
		for i, tool := range tools {
			c.deny(nodes[i], "mcp_servers."+name+".disabled_tools: "+tool, mcpName(name, tool))
		}
		c.serverApproval(server, name)
		// How a server is reached is not about what it may do.
		for _, how := range server.names {
			server.get(how).all()
		}
	}
}

// serverApproval carries over who is asked about a server's tools.
func (c codexReader) serverApproval(server *node, name string) {
	one := func(n *node, says, key string) {
		switch n.text() {
		case "prompt":
			c.class(n, says, "needs_approval", key)
		case "approve":
			c.lose(n, says+" = approve", "an import only tightens: tools of MCP servers ask")
		}
	}
	one(server.get("default_tools_approval_mode"), "mcp_servers."+name+".default_tools_approval_mode", mcpGlob(name))
	tools := server.get("tools")
	if tools == nil {
		return
	}
	for _, tool := range tools.names {
		one(tools.path(tool, "approval_mode"), "mcp_servers."+name+".tools."+tool, mcpName(name, tool))
	}
}

// rules lists the rules for commands. They are programs, and every one of them is about commands: nothing of them is
// read but where they stand.
func (c codexReader) rules(dir string) error {
	paths, err := filepath.Glob(filepath.Join(dir, "rules", "*.rules"))
	if err != nil {
		return err
	}
	for _, path := range paths {
		data, there, err := c.load(path)
		if err != nil || !there {
			return err
		}
		at := 0
		for line := range bytes.Lines(data) {
			trimmed := bytes.TrimLeft(line, " \t")
			if bytes.HasPrefix(trimmed, []byte("prefix_rule(")) || bytes.HasPrefix(trimmed, []byte("host_executable(")) {
				word, _, _ := bytes.Cut(trimmed, []byte("("))
				c.lose(&node{at: placeOf(path, data, at+len(line)-len(trimmed))}, string(word), "it is a program; write what it says as a rule in tools.exec.rules, which has the same parts")
			}
			at += len(line)
		}
	}
	return nil
}
