package importer

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/command"
	"github.com/toolward/toolward/config"
	"github.com/toolward/toolward/policy"
	"github.com/toolward/toolward/policy/visible"
)

// guard proves that a configuration is not looser than another one. It does not read settings, it asks the compiled
// policies: which tools callers of every kind see, and what becomes of their calls. What it cannot ask about must not
// have changed at all.
type guard struct {
	tools  []*toolward.Tool
	around policy.Surroundings
	loaded *config.Loaded
	before []*policy.Snapshot // without plug-ins, and with those that named names
	named  []string
	others []*toolward.Tool
}

func newGuard(before *config.Loaded, tools []*toolward.Tool, around policy.Surroundings) (*guard, error) {
	g := &guard{tools: tools, around: around, loaded: before}
	var err error
	g.before, err = g.compile(before.File, nil)
	return g, err
}

// mayChange are the settings that the guard can ask about. Everything else an import leaves alone.
var mayChange = regexp.MustCompile(`^(tools\.|channels\.|gateway\.tools\.deny|teg\.rules|agents\.list\[\d+\]\.(id$|tools\.|teg\.tools))`)

// looser says what a configuration would let through that the first one stops; "" if there is nothing.
func (g *guard) looser(after *config.Loaded) (string, error) {
	changes, err := config.Changes(g.loaded, after)
	if err != nil {
		return "", err
	}
	for _, c := range changes {
		if !mayChange.MatchString(c.Key) {
			return c.Key + " would change", nil
		}
	}
	world := newWorld(g.loaded.File, after.File)
	if !slices.Equal(world.names, g.named) {
		g.named, g.others = world.names, world.plugins()
		if g.before, err = g.compile(g.loaded.File, g.others); err != nil {
			return "", err
		}
	}
	now, err := g.compile(after.File, g.others)
	if err != nil {
		return "", err
	}
	for i := range now {
		if text := compareTools(g.before[i], now[i], world); text != "" {
			return text, nil
		}
		if text := compareCalls(g.before[i], now[i], world); text != "" {
			return text, nil
		}
	}
	return compareSettings(g.loaded.File, after.File, world), nil
}

// compile compiles a configuration twice: what lists mean depends on whether the plug-ins that they name are there.
func (g *guard) compile(f config.File, plugins []*toolward.Tool) ([]*policy.Snapshot, error) {
	c := f.Policy()
	c.Around = g.around
	bare, _, err := policy.Compile(c, g.tools)
	if err != nil {
		return nil, err
	}
	full, _, err := policy.Compile(c, slices.Concat(g.tools, plugins))
	return []*policy.Snapshot{bare, full}, err
}

// anything is a schema that takes any object.
var anything = json.RawMessage(`{"type":"object"}`)

// everyTool are the gateway's tools and those of the catalog that it does not have yet: lists may name them. Their
// schemas, which nothing here looks at, are left out, because compiling them takes most of the time.
func everyTool(tools []*toolward.Tool) []*toolward.Tool {
	var all []*toolward.Tool
	for _, t := range tools {
		all = append(all, &toolward.Tool{Name: t.Name, Plugin: t.Plugin, OwnerOnly: t.OwnerOnly, Schema: anything})
	}
	for _, name := range visible.CoreTools() {
		if !slices.ContainsFunc(tools, func(t *toolward.Tool) bool { return t.Name == name }) {
			all = append(all, &toolward.Tool{Name: name, Schema: anything})
		}
	}
	return all
}

// world is everything that two configurations name, and something of each kind that they do not name.
type world struct {
	agents    []string
	models    [][2]string // provider and model
	groups    []toolward.Caller
	names     []string // entries of lists and keys of teg.tools
	overrides []string // keys of teg.tools
}

func newWorld(files ...config.File) *world {
	w := &world{agents: []string{"someone-else"}, models: [][2]string{{"", ""}, {"unnamed", "model"}}, groups: []toolward.Caller{{}}}
	names := map[string]bool{}
	tell := func(lists ...[]string) {
		for _, list := range lists {
			for _, entry := range list {
				names[visible.NormalizeName(entry)] = true
			}
		}
	}
	tools := func(t visible.Tools) {
		tell(t.Allow, t.AlsoAllow, t.Deny, t.SelfLimit, t.Sandbox.Tools.Allow, t.Sandbox.Tools.AlsoAllow, t.Sandbox.Tools.Deny, t.Sandbox.Tools.AlsoDeny)
		tell(t.Subagents.Tools.Allow, t.Subagents.Tools.AlsoAllow, t.Subagents.Tools.Deny)
		for key, p := range t.ByProvider {
			provider, model, _ := strings.Cut(strings.ToLower(strings.TrimSpace(key)), "/")
			w.models = append(w.models, [2]string{provider, model}, [2]string{provider, "another-model"}, [2]string{"unnamed", key})
			tell(p.Allow, p.AlsoAllow, p.Deny)
		}
	}
	for _, f := range files {
		tools(f.Tools.Policy())
		tell(f.Gateway.Tools.Allow, f.Gateway.Tools.Deny)
		tell(slices.Collect(maps.Keys(f.TEG.Tools)))
		w.overrides = append(w.overrides, slices.Collect(maps.Keys(f.TEG.Tools))...)
		for _, a := range f.Agents.List {
			w.agents = append(w.agents, strings.ToLower(strings.TrimSpace(a.ID)))
			tools(a.Tools.Policy())
			tell(slices.Collect(maps.Keys(a.TEG.Tools)))
			w.overrides = append(w.overrides, slices.Collect(maps.Keys(a.TEG.Tools))...)
		}
		for id, ch := range f.Channels {
			w.channel(id, "", ch.Groups, tell)
			for account, a := range ch.Accounts {
				w.channel(id, account, a.Groups, tell)
			}
		}
	}
	w.names = slices.Sorted(maps.Keys(names))
	w.agents = sortedUnique(w.agents)
	w.overrides = sortedUnique(w.overrides)
	slices.SortFunc(w.models, func(a, b [2]string) int { return strings.Compare(a[0]+"\x00"+a[1], b[0]+"\x00"+b[1]) })
	w.models = slices.Compact(w.models)
	slices.SortFunc(w.groups, func(a, b toolward.Caller) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	w.groups = slices.Compact(w.groups)
	return w
}

func sortedUnique(list []string) []string {
	slices.Sort(list)
	return slices.Compact(list)
}

// channel adds the groups of a channel with their senders, and a group and a sender that it does not name.
func (w *world) channel(id, account string, groups map[string]visible.Group, tell func(...[]string)) {
	ids := append(slices.Collect(maps.Keys(groups)), "another-group")
	senders := []string{"id:somebody"}
	for _, g := range groups {
		if g.Tools != nil {
			tell(g.Tools.Allow, g.Tools.AlsoAllow, g.Tools.Deny)
		}
		for who, l := range g.ToolsBySender {
			senders = append(senders, who)
			tell(l.Allow, l.AlsoAllow, l.Deny)
		}
	}
	for _, group := range ids {
		if group == "*" {
			continue
		}
		for _, who := range senders {
			c := toolward.Caller{Channel: id, Account: account, Group: group}
			kind, value, typed := strings.Cut(who, ":")
			switch strings.ToLower(kind) {
			case "e164":
				c.SenderPhone = value
			case "username":
				c.SenderUser = value
			case "name":
				c.SenderName = value
			case "id":
				c.Sender = value
			default:
				if c.Sender = who; typed {
					c.Sender = value
				}
			}
			w.groups = append(w.groups, c)
			unknown := c
			unknown.Account = "another-account"
			w.groups = append(w.groups, unknown)
		}
	}
}

// plugins are tools of plug-ins that the lists could mean: one for every name, and one that no list names.
func (w *world) plugins() []*toolward.Tool {
	tools := []*toolward.Tool{{Name: "unnamed_tool", Plugin: "unnamed-plugin", Schema: anything}}
	for _, name := range w.names {
		if name = strings.ReplaceAll(name, "*", "x"); visible.CheckName(name, "some-plugin") == nil && visible.CheckName("of_"+name, name) == nil {
			tools = append(tools,
				&toolward.Tool{Name: name, Plugin: "some-plugin", Schema: anything},
				&toolward.Tool{Name: "of_" + name, Plugin: name, Schema: anything})
		}
	}
	return tools
}

// callers are those of every agent that differ in one thing besides. Layers only ever take tools away, each by itself,
// so that pairs of an agent and one other thing are enough.
func (w *world) callers() []toolward.Caller {
	var all []toolward.Caller
	for _, agent := range w.agents {
		base := toolward.Caller{Agent: agent, Owner: true, Context: "main"}
		for _, model := range w.models {
			c := base
			c.Provider, c.Model = model[0], model[1]
			all = append(all, c)
			c.Sandboxed = true
			all = append(all, c)
		}
		for _, group := range w.groups {
			group.Agent, group.Owner, group.Context = agent, true, "group"
			all = append(all, group)
		}
		for depth := 1; depth <= 3; depth++ {
			c := base
			c.Depth, c.Context = depth, "subagent"
			all = append(all, c)
		}
		stranger, http := base, base
		stranger.Owner, http.Surface = false, toolward.SurfaceHTTP
		all = append(all, stranger, http)
	}
	return all
}

// forms are tools of clients that the names could mean.
func (w *world) forms() []*toolward.Tool {
	names := []string{"mcp__unnamed__tool", "claude-code/unnamed", "client", "gemini/unnamed"}
	for _, name := range w.names {
		if strings.HasPrefix(name, "mcp__") || strings.Contains(name, "/") {
			names = append(names, strings.ReplaceAll(name, "*", "x"), strings.ReplaceAll(name, "*", ""))
		}
	}
	var forms []*toolward.Tool
	for _, name := range sortedUnique(names) {
		forms = append(forms, &toolward.Tool{Name: name, Plugin: "a-client", Schema: anything})
	}
	return forms
}

// compareTools says which tool a caller would see that it does not see before.
func compareTools(before, after *policy.Snapshot, w *world) string {
	forms := w.forms()
	for _, c := range w.callers() {
		seen := before.Tools(c)
		for _, t := range after.Tools(c) {
			if !slices.Contains(seen, t) {
				return fmt.Sprintf("%s would get %s", describe(c), t.Name)
			}
		}
		for _, form := range forms {
			if adopted, _ := after.Adopt(c, form); adopted == nil {
				continue
			}
			if adopted, _ := before.Adopt(c, form); adopted == nil {
				return fmt.Sprintf("%s would get %s", describe(c), form.Name)
			}
		}
	}
	return ""
}

func describe(c toolward.Caller) string {
	text := "agent " + c.Agent
	if c.Agent == "someone-else" {
		text = "an agent without settings of its own"
	}
	switch {
	case c.Sandboxed:
		text += ", sandboxed,"
	case c.Depth > 0:
		text = "a sub-agent of " + text
	case c.Group != "":
		text += " in group " + c.Group + " of " + c.Channel
	case c.Surface == toolward.SurfaceHTTP:
		text += " over HTTP"
	}
	if c.Provider != "" {
		text += " with " + strings.Trim(c.Provider+"/"+c.Model, "/")
	}
	return text
}

// compareCalls says which call would be judged more mildly. Agents can change classes of their own; calls without
// arguments of every tool and action that a class names are enough, because a class looks at nothing else.
func compareCalls(before, after *policy.Snapshot, w *world) string {
	names := slices.Concat(visible.CoreTools(), []string{"list", "search", "mcp__unnamed__tool", "unnamed_tool"})
	for _, key := range w.overrides {
		names = append(names, visible.NormalizeName(strings.NewReplacer("*", "x").Replace(key)), visible.NormalizeName(strings.ReplaceAll(key, "*", "")))
	}
	for _, agent := range w.agents {
		for _, name := range sortedUnique(names) {
			tool, action, dotted := strings.Cut(name, ".")
			for _, r := range []*toolward.Request{request(agent, name, ""), request(agent, tool, action)} {
				if !dotted && r.Facts.Action != "" {
					continue
				}
				for level := toolward.Normal; ; level-- {
					r.Level = level
					if was, is := before.Judge(r), after.Judge(r); toolward.Stricter(was.Verdict, is.Verdict) != is.Verdict {
						return fmt.Sprintf("agent %s: %s would be %s instead of %s", agent, name, is.Verdict, was.Verdict)
					}
					if level == toolward.Lockdown {
						break
					}
				}
			}
		}
	}
	return ""
}

func request(agent, tool, action string) *toolward.Request {
	plugin := ""
	if !slices.Contains(visible.CoreTools(), tool) {
		plugin = "a-client"
	}
	caller := toolward.Caller{Agent: agent, Owner: true}
	return &toolward.Request{
		Call: toolward.Call{Tool: tool, Caller: caller, Host: toolward.HostGateway}, Tool: &toolward.Tool{Name: tool, Plugin: plugin, Schema: anything},
		Params: toolward.NewParams([]byte("{}"), map[string]any{}), Facts: toolward.Facts{Action: action},
	}
}

// compareSettings compares what has an order of its own.
func compareSettings(before, after config.File, w *world) string {
	if text := compareCommands(before, after, w); text != "" {
		return text
	}
	for _, agent := range w.agents {
		was, is := ownSettings(before, agent), ownSettings(after, agent)
		switch {
		case stricterWord("tools.exec.security", was.security, is.security):
			return fmt.Sprintf("commands of agent %s: security %s instead of %s", agent, is.security, was.security)
		case stricterWord("tools.exec.ask", was.ask, is.ask):
			return fmt.Sprintf("commands of agent %s: ask %s instead of %s", agent, is.ask, was.ask)
		case was.inWorkspace && !is.inWorkspace, was.patchInWorkspace && !is.patchInWorkspace, was.noPatch && !is.noPatch:
			return fmt.Sprintf("agent %s could reach files outside its workspace, or use apply_patch", agent)
		}
	}
	// Rules that ask or deny only raise; those that are there stay, in their order.
	if n := len(before.TEG.Rules); len(after.TEG.Rules) < n || !slices.Equal(before.TEG.Rules, after.TEG.Rules[:n]) ||
		slices.ContainsFunc(after.TEG.Rules[n:], func(r policy.Rule) bool { return r.Then != "ask" && r.Then != "deny" }) {
		return "rules would change"
	}
	inherits := func(f config.File) bool { return f.Tools.Subagents.Inherit == nil || *f.Tools.Subagents.Inherit }
	if inherits(before) && !inherits(after) || before.Tools.UnmatchedAllowlist != after.Tools.UnmatchedAllowlist {
		return "what sub-agents inherit, or what lists without a match mean, would change"
	}
	return ""
}

// compareCommands compares what runs commands without a question. Who may have commands with more rights, and the shell
// and search path of commands, must not change.
func compareCommands(before, after config.File, w *world) string {
	was, is := before.Commands(), after.Commands()
	for _, agent := range w.agents {
		if was.Stricter(&is, agent) {
			return fmt.Sprintf("commands of agent %s would run that ask", agent)
		}
	}
	elevated := func(c *command.Configuration, agent string) command.ElevatedConfig {
		if own := c.AgentElevated[agent]; own != nil {
			return *own
		}
		return command.ElevatedConfig{}
	}
	changed := !reflect.DeepEqual(was.Elevated, is.Elevated) || was.ElevatedDefault != is.ElevatedDefault
	for _, agent := range w.agents {
		changed = changed || !reflect.DeepEqual(elevated(&was, agent), elevated(&is, agent))
	}
	one, other := before.Tools.Exec, after.Tools.Exec
	if changed || one.Shell != other.Shell || !slices.Equal(one.PathPrepend, other.PathPrepend) {
		return "who may have commands with more rights, or what commands are run by, would change"
	}
	return ""
}

// effective are settings as they hold for one agent.
type effective struct {
	security, ask                          string
	inWorkspace, patchInWorkspace, noPatch bool
}

func ownSettings(f config.File, agent string) effective {
	e := effective{"allowlist", "on-miss", false, true, true}
	e.over(f.Tools.Policy())
	for _, a := range f.Agents.List {
		if strings.EqualFold(strings.TrimSpace(a.ID), agent) {
			e.over(a.Tools.Policy())
		}
	}
	return e
}

func (e *effective) over(t visible.Tools) {
	if t.Exec.Security != "" {
		e.security = t.Exec.Security
	}
	if t.Exec.Ask != "" {
		e.ask = t.Exec.Ask
	}
	if p := t.FS.WorkspaceOnly; p != nil {
		e.inWorkspace = *p
	}
	if p := t.Exec.ApplyPatch.WorkspaceOnly; p != nil {
		e.patchInWorkspace = *p
	}
	if p := t.Exec.ApplyPatch.Enabled; p != nil {
		e.noPatch = !*p
	}
}
