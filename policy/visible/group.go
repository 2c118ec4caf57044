package visible

import (
	"strings"

	"github.com/toolward/toolward"
)

// groupContext is the chat group that a conversation is held in.
type groupContext struct {
	Channel string `json:"channel"`
	GroupID string `json:"groupId"`
}

// groupOf reads the group out of a session key: [agent:<id>:][subagent:]<channel>:group|channel:<id>, with or without
// a thread at the end. The id keeps its colons.
func groupOf(key toolward.SessionKey) (g groupContext, ok bool) {
	body := string(key)
	if !strings.Contains(body, ":") {
		return g, false
	}
	lower := strings.ToLower(body)
	if len(lower) != len(body) {
		lower = body // letters whose lower case is longer: positions would be off
	}
	if end := max(strings.LastIndex(lower, ":thread:"), strings.LastIndex(lower, ":topic:")); end >= 0 {
		body = body[:end]
	}
	if rest, ok := cutPart(body, "agent"); ok {
		_, body, _ = strings.Cut(rest, ":")
	}
	if rest, ok := cutPart(body, "subagent"); ok {
		body = rest
	}
	channel, rest, _ := strings.Cut(body, ":")
	kind, id, _ := strings.Cut(rest, ":")
	channel, kind, id = Fold(channel), Fold(kind), strings.TrimSpace(id)
	if channel == "" || id == "" || kind != "group" && kind != "channel" {
		return g, false
	}
	return groupContext{channel, id}, true
}

// cutPart cuts the first part of a key off if it is the given word.
func cutPart(key, word string) (string, bool) {
	first, rest, ok := strings.Cut(key, ":")
	return rest, ok && strings.EqualFold(first, word)
}

// groupOfCaller is the group of a caller. What the session says comes first: a request must not get a looser group by
// naming it.
func groupOfCaller(c *toolward.Caller) (groupContext, bool) {
	if g, ok := groupOf(c.Session); ok {
		return g, true
	}
	if g, ok := groupOf(c.Parent); ok {
		return g, true
	}
	g := groupContext{Fold(c.Channel), strings.TrimSpace(c.Group)}
	return g, g.Channel != "" && g.GroupID != ""
}

// defaultAccount is the account of callers that name none.
const defaultAccount = "default"

// anyGroup is the key of the entry for all groups that have none of their own.
const anyGroup = "*"

// channel is the compiled section of one channel.
type channel struct {
	groups   *groups
	accounts map[string]*groups // only those that have groups of their own
}

// groups is a compiled map of groups.
type groups struct {
	exact  map[string]*groupRule
	folded map[string]*groupRule // by folded id; nil where several ids differ in case only
	others *groupRule            // the entry *
}

// groupRule is one compiled group. A nil layer is an entry that restricts nothing, which is still a hit.
type groupRule struct {
	hasTools bool
	tools    *layer
	senders  *senderRules[*layer]
}

// find returns the entry of a group, by its exact id or by the only one that differs in case alone: session keys are
// lower case, ids such as C0ABC are not.
func (g *groups) find(id string) *groupRule {
	if id == anyGroup {
		return nil
	}
	if rule := g.exact[id]; rule != nil {
		return rule
	}
	return g.folded[strings.ToLower(id)]
}

// of picks the groups of an account; an account with groups of its own replaces those of the channel.
func (c *channel) of(account string) *groups {
	account = Fold(account)
	if account == "" {
		account = defaultAccount
	}
	if g := c.accounts[account]; g != nil {
		return g
	}
	return c.groups
}

// layer returns the layer for a caller in a group: the first that exists of the sender's and the group's own, then of
// the sender's and the default one. It is used alone; nil restricts nothing.
func (g *groups) layer(id string, c *toolward.Caller) *layer {
	if g == nil {
		return nil
	}
	who := senderOf(c)
	for _, rule := range []*groupRule{g.find(id), g.others} {
		if rule == nil {
			continue
		}
		if l, ok := rule.senders.match(who); ok {
			return l
		}
		if rule.hasTools {
			return rule.tools
		}
	}
	return nil
}
