package visible

import (
	"github.com/toolward/toolward"
	"github.com/toolward/toolward/policy/memo"
)

// scope is the compiled lists of the gateway, or of one agent.
type scope struct {
	tools     *layer
	providers map[string]*providerScope // by folded key
	alsoAllow []string                  // nil if the scope says nothing
	profile   profile
}

// profile is the name of a list to start from, and the key where it is set. An empty name is no profile.
type profile struct{ name, key string }

// providerScope is one compiled entry of byProvider.
type providerScope struct {
	tools     *layer
	alsoAllow []string
	profile   profile
}

// profileLayer compiles the profile that counts, widened by what is also allowed; nil if it restricts nothing.
func (v *inventory) profileLayer(label string, p profile, alsoAllow []string) *layer {
	allow, _ := Profile(p.name)
	if len(allow) == 0 {
		return nil
	}
	l := layer{label: label + " (" + p.name + ")", allowKey: p.key, denyKey: p.key, strips: true}
	return v.layer(l, restriction{Allow: union(allow, alsoAllow)})
}

// narrower picks the narrower scope's setting where it has one.
func narrower(own, global profile) profile {
	if own.name != "" {
		return own
	}
	return global
}

// firstList is the narrower scope's list if it is one, even an empty one.
func firstList(own, global []string) []string {
	if own != nil {
		return own
	}
	return global
}

// ruleBook is everything that layers depend on besides the agent.
type ruleBook struct {
	inventory inventory
	global    scope
	channels  map[string]*channel
	leaf      *layer // sub-agents of the last level
	inner     *layer // other sub-agents
	defaults  SubagentDefaults
	inherit   bool
	http      httpRule
	profiles  memo.Map[[2]*providerScope, *layer] // an agent's and the gateway's entry → nil if they restrict nothing
	ceilings  memo.Map[toolward.Ceiling, pipeline]
}

// providerProfile is the layer of a provider's profile. It is compiled when a caller first needs it, once for every
// pair of entries.
func (r *ruleBook) providerProfile(own, global *providerScope) *layer {
	if own == nil && global == nil {
		return nil
	}
	return r.profiles.Of([2]*providerScope{own, global}, func() *layer { return r.newProviderProfile(own, global) })
}

func (r *ruleBook) newProviderProfile(own, global *providerScope) *layer {
	var p profile
	var also []string
	if global != nil {
		p, also = global.profile, global.alsoAllow
	}
	if own != nil {
		p, also = narrower(own.profile, p), firstList(own.alsoAllow, also)
	}
	return r.inventory.profileLayer("tools.provider-profile", p, also)
}

// pipeline assembles the layers of a caller.
func (r *ruleBook) pipeline(a *agentRules, c *toolward.Caller) pipeline {
	p := make(pipeline, 0, 12)
	add := func(l *layer) {
		if l != nil {
			p = append(p, l)
		}
	}
	global, _ := byProvider(r.global.providers, c.Provider, c.Model)
	own, _ := byProvider(a.scope.providers, c.Provider, c.Model)
	add(a.profile)
	add(r.providerProfile(own, global))
	add(r.global.tools)
	if global != nil {
		add(global.tools)
	}
	add(a.scope.tools)
	if own != nil {
		add(own.tools)
	}
	add(r.group(c))
	if c.Sandboxed {
		add(a.sandbox)
	}
	if isSubagent(c) {
		add(r.subagent(c))
	} else {
		add(a.selfLimit) // given up for itself, not for its children
	}
	// A ceiling counts for whoever carries one: a child that is not recognized as one must not get rid of it.
	if r.inherit && !a.ownTools {
		p = append(p, r.inherited(c.Ceiling)...)
	}
	return p
}

// group is the layer of the chat group that the caller is in.
func (r *ruleBook) group(c *toolward.Caller) *layer {
	if len(r.channels) == 0 {
		return nil
	}
	g, ok := groupOfCaller(c)
	if !ok {
		return nil
	}
	ch := r.channels[g.Channel]
	if ch == nil {
		return nil
	}
	return ch.of(c.Account).layer(g.GroupID, c)
}

// subagent is the layer for a sub-agent.
func (r *ruleBook) subagent(c *toolward.Caller) *layer {
	depth := c.Depth
	if depth <= 0 {
		depth = depthOfKey(string(c.Session))
	}
	if depth == 0 {
		depth = -1 // known to be a sub-agent, at an unknown depth
	}
	if r.defaults.isLeaf(depth) {
		return r.leaf
	}
	return r.inner
}
