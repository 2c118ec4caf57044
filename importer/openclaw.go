package importer

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolward/toolward/command"
	"github.com/toolward/toolward/config"
)

// readOpenClaw reads openclaw.json and exec-approvals.json.
func readOpenClaw(r *reader, where Where) error {
	dir := filepath.Join(where.Home, ".openclaw")
	file := filepath.Join(dir, "openclaw.json")
	switch {
	case where.Path == "":
	case isDirectory(where.Path):
		dir, file = where.Path, filepath.Join(where.Path, "openclaw.json")
	default:
		dir, file = filepath.Dir(where.Path), where.Path
	}
	r.agent = ""
	o := openClawReader{r, execRules{}, execRules{}}
	root, err := r.loadTree(file, parseJSON5)
	if err != nil {
		return err
	}
	if root != nil {
		o.config(root)
		r.unread(root)
	}
	approvals, err := r.loadTree(filepath.Join(dir, "exec-approvals.json"), parseJSON)
	if approvals != nil {
		o.approvals(approvals)
		r.unread(approvals)
	}
	o.commands()
	return err
}

type openClawReader struct {
	*reader
	fromConfig, fromApprovals execRules
}

// execRules is who is asked about commands: by agent ("" for all of them) and setting.
type execRules map[string]map[string]*node

func (e execRules) put(id, name string, n *node) {
	if n == nil {
		return
	}
	if e[id] == nil {
		e[id] = map[string]*node{}
	}
	e[id][name] = n
}

// of is what holds for an agent: what is said of it, else the next wider that says something.
func (e execRules) of(name string, ids ...string) *node {
	for _, id := range ids {
		if n := e[id][name]; n != nil {
			return n
		}
	}
	return nil
}

func (o openClawReader) config(root *node) {
	if n := root.get("$include"); n != nil {
		n.all()
		o.lose(n, "$include", "included files are not read; import each of them as well")
	}
	o.scope("", root.get("tools"), "")
	agents := root.get("agents").get("list")
	for i, agent := range agents.list() {
		id := agent.get("id").text()
		if id == "" {
			agent.all()
			o.lose(agent, fmt.Sprintf("agents.list[%d]", i), "the agent has no id")
			continue
		}
		agent.get("name")
		agent.get("default")
		if n := agent.get("workspace"); n != nil {
			o.lose(n, "agents.list["+id+"].workspace", "where an agent works is no rule about tools; set agents.list[].workspace")
		}
		o.scope(id, agent.get("tools"), "agents.list["+id+"].")
	}
	if n := root.path("agents", "defaults", "subagents", "maxSpawnDepth"); n != nil && number(n) > 1 {
		o.lose(n, "agents.defaults.subagents.maxSpawnDepth", "an import only tightens: sub-agents spawn none by default")
	}
	o.channels(root.get("channels"))
	o.gateway(root.path("gateway", "tools"))
}

// scope carries over tools of the gateway (id is "") or of one agent.
func (o openClawReader) scope(id string, tools *node, prefix string) {
	if tools == nil {
		return
	}
	at := prefix + "tools."
	if n := tools.get("profile"); n != nil {
		o.want(id, "tools.profile", set, n.text(), n, at+"profile")
	}
	o.lists(id, "tools", tools, at)
	providers := tools.get("byProvider")
	if providers != nil {
		for _, key := range providers.names {
			provider := providers.get(key)
			o.want(id, config.JoinKey("tools.byProvider", key), set, plain(provider, "profile", "allow", "alsoAllow", "deny"), provider, at+"byProvider."+key)
		}
	}
	o.exec(id, tools.get("exec"), at+"exec.")
	if n := tools.path("fs", "workspaceOnly"); n.is(true) {
		o.want(id, "tools.fs.workspaceOnly", set, true, n, at+"fs.workspaceOnly")
	}
	o.sandbox(id, tools.path("sandbox", "tools"), at+"sandbox.tools.")
	if n := tools.get("elevated"); n != nil {
		n.all()
		if !n.get("enabled").is(false) {
			o.lose(n, at+"elevated", "commands with more rights are blocked; teg.enable \"exec.elevated\" lets people be asked")
		}
	}
	if n := tools.get("loopDetection"); n != nil {
		n.all()
		o.lose(n, at+"loopDetection", "Toolward watches for loops with settings of its own")
	}
	if id == "" {
		o.subagents(tools.path("subagents", "tools"), at+"subagents.tools.")
	}
}

// lists carries over allow, alsoAllow and deny.
func (o openClawReader) lists(id, key string, n *node, at string) {
	for _, name := range []string{"allow", "alsoAllow", "deny"} {
		list := n.get(name)
		if list == nil {
			continue
		}
		how := add
		if name == "allow" {
			how = narrow
		}
		texts, _ := list.texts()
		if len(texts) > 0 {
			o.want(id, key+"."+name, how, texts, list, at+name)
		}
	}
}

// exec carries over who is asked about commands, as far as it is stricter. Lists of commands come later.
func (o openClawReader) exec(id string, exec *node, at string) {
	for _, name := range []string{"security", "ask"} {
		o.fromConfig.put(id, name, exec.get(name))
	}
	patch := exec.get("applyPatch")
	switch n := patch.get("enabled"); {
	case n.is(true):
		patch.all()
		o.lose(n, at+"applyPatch.enabled = true", "an import only tightens: the tool is off until somebody sets tools.exec.applyPatch.enabled")
	case n.is(false):
		patch.all()
		o.want(id, "tools.exec.applyPatch.enabled", set, false, n, at+"applyPatch.enabled")
	}
	o.safeBins(id, exec.get("safeBins"), at+"safeBins")
	switch n := exec.get("strictInlineEval"); {
	case n.is(true):
		o.want(id, "tools.exec.strictInlineEval", set, true, n, at+"strictInlineEval")
	case n.is(false):
		o.lose(n, at+"strictInlineEval = false", "an import only tightens: inline code asks until somebody sets tools.exec.strictInlineEval")
	}
	for _, by := range []struct{ name, why string }{
		{"host", "where commands run is no rule about them; set tools.exec.host"},
		{"safeBinProfiles", "an import only tightens: what a stream filter may be given is written by hand"},
		{"safeBinTrustedDirs", "an import only tightens: directories that are trusted are written by hand"},
		{"pathPrepend", "which programs are found first is decided by hand"},
	} {
		if n := exec.get(by.name); n != nil {
			n.all()
			o.lose(n, at+by.name, "%s", by.why)
		}
	}
}

// safeBins carries over which of the stream filters that run by default do.
func (o openClawReader) safeBins(id string, n *node, at string) {
	if n == nil {
		return
	}
	names, nodes := n.texts()
	both := []string{}
	for i, name := range names {
		if slices.Contains(command.DefaultSafeBins, name) {
			both = append(both, name)
		} else {
			o.lose(nodes[i], at+": "+name, "an import only tightens: it asks until somebody adds it to tools.exec.safeBins")
		}
	}
	o.want(id, "tools.exec.safeBins", set, both, n, at)
}

// sandbox carries over the lists for sandboxed sessions. OpenClaw's deny list replaces the default one; here it joins
// it, and an allow list loses what the default one does not have.
func (o openClawReader) sandbox(id string, tools *node, at string) {
	if deny := tools.get("deny"); deny != nil {
		texts, _ := deny.texts()
		o.want(id, "tools.sandbox.tools.alsoDeny", add, texts, deny, at+"deny")
	}
	if allow := tools.get("allow"); allow != nil {
		texts, _ := allow.texts()
		if len(texts) == 0 {
			o.lose(allow, at+"allow = []", "an import only tightens: an empty list would open every tool to sandboxed sessions")
		} else {
			o.want(id, "tools.sandbox.tools.allow", narrow, texts, allow, at+"allow")
		}
	}
}

func (o openClawReader) subagents(tools *node, at string) {
	o.lists("", "tools.subagents.tools", tools, at)
}

// channels carries over what chat groups get.
func (o openClawReader) channels(channels *node) {
	if channels == nil {
		return
	}
	for _, id := range channels.names {
		channel := channels.members[id]
		if channel.members == nil {
			continue
		}
		channel.read = true
		o.groups(config.JoinKey("channels", id)+".groups", channel.get("groups"), "channels."+id+".groups.")
		accounts := channel.get("accounts")
		if accounts == nil {
			continue
		}
		for _, name := range accounts.names {
			account := accounts.get(name)
			o.groups(config.JoinKey(config.JoinKey("channels", id)+".accounts", name)+".groups", account.get("groups"), "channels."+id+".accounts."+name+".groups.")
		}
	}
}

func (o openClawReader) groups(key string, groups *node, at string) {
	if groups == nil {
		return
	}
	for _, id := range groups.names {
		group := groups.get(id)
		value := map[string]any{}
		if tools := group.get("tools"); tools != nil {
			value["tools"] = plain(tools, "allow", "alsoAllow", "deny")
		}
		if senders := group.get("toolsBySender"); senders != nil {
			lists := map[string]any{}
			for _, who := range senders.names {
				lists[who] = plain(senders.get(who), "allow", "alsoAllow", "deny")
			}
			value["toolsBySender"] = lists
		}
		// A group without lists counts too: it gets those of the entry for all others only if it has none itself.
		if len(value) > 0 {
			o.want("", config.JoinKey(key, id), set, value, group, at+id)
		}
	}
}

func (o openClawReader) gateway(tools *node) {
	if deny := tools.get("deny"); deny != nil {
		texts, _ := deny.texts()
		o.want("", "gateway.tools.deny", add, texts, deny, "gateway.tools.deny")
	}
	if n := tools.get("allow"); n != nil {
		texts, _ := n.texts()
		o.lose(n, "gateway.tools.allow: "+strings.Join(texts, ", "), "an import only tightens: what the HTTP endpoint denies by default is re-opened by hand")
	}
}

// plain is an object with the given members, all lists of texts or texts.
func plain(n *node, names ...string) map[string]any {
	value := map[string]any{}
	for _, name := range names {
		m := n.get(name)
		switch {
		case m == nil:
		case m.isList:
			texts, _ := m.texts()
			value[name] = append([]string{}, texts...)
		default:
			value[name] = m.value
		}
	}
	return value
}

// approvals carries over what exec-approvals.json says about agents.
func (o openClawReader) approvals(root *node) {
	root.get("version")
	root.get("socket").all() // its token is nobody's business
	o.approval("", root.get("defaults"), "defaults.")
	agents := root.get("agents")
	if agents == nil {
		return
	}
	for _, id := range agents.names {
		agent := agents.get(id)
		o.approval(id, agent, "agents."+id+".")
		for i, entry := range agent.get("allowlist").list() {
			pattern := entry.get("pattern").text()
			if pattern == "" {
				pattern = entry.text()
			}
			entry.all()
			o.lose(entry, fmt.Sprintf("agents.%s.allowlist[%d]: %s", id, i, pattern), "an import only tightens: it asks, unless somebody allows it with toolward approvals allowlist add")
		}
	}
}

func (o openClawReader) approval(id string, n *node, at string) {
	for _, name := range []string{"security", "ask"} {
		o.fromApprovals.put(id, name, n.get(name))
	}
	if v := n.get("askFallback"); v != nil && v.text() != "deny" {
		o.lose(v, at+"askFallback = "+v.text(), "silence is never consent: without an answer a call is refused")
	}
	if v := n.get("autoAllowSkills"); v.is(true) {
		o.lose(v, at+"autoAllowSkills", "an import only tightens: commands of skills ask like others")
	}
}

// commands carries over who is asked about commands: of both files the stricter, for every agent.
func (o openClawReader) commands() {
	ids := map[string]bool{"": true}
	for _, rules := range []execRules{o.fromConfig, o.fromApprovals} {
		for id := range rules {
			ids[id] = id != "*"
		}
	}
	for _, id := range sortedKeys(ids) {
		if !ids[id] {
			continue
		}
		for _, name := range []string{"security", "ask"} {
			n := o.fromConfig.of(name, id, "")
			file := o.fromApprovals.of(name, id, "*", "")
			if n == nil || file != nil && stricterWord("tools.exec."+name, file.text(), n.text()) {
				n = file
			}
			if n != nil {
				o.want(id, "tools.exec."+name, set, n.text(), n, "exec "+name+" = "+n.text())
			}
		}
	}
}
