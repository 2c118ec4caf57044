package plugin

import (
	"context"
	"maps"
	"slices"
)

// build makes the handlers of a checked configuration, and what lets go of their programs. Compiled-in plug-ins come
// first, the others in the order of their ids, so that equal priorities always mean the same.
func (r *Runner) build(c Config) (handlers, func()) {
	keep := func(g *registration) bool {
		c.Entries[g.plugin].adjust(g)
		return c.uses(g.plugin)
	}
	all := handlers{
		before: chosen(r.registry.all.before, keep),
		after:  chosen(r.registry.all.after, keep),
		result: chosen(r.registry.all.result, keep),
	}
	var held []*program
	for _, id := range slices.Sorted(maps.Keys(c.Entries)) {
		e := c.Entries[id]
		if !c.uses(id) {
			if e.Enabled == nil || *e.Enabled {
				r.log.Warn("a plug-in is in the configuration but not used: plugins.allow does not name it, or plugins.deny does", "plugin", id)
			}
			continue
		}
		var line asker
		switch e.Kind {
		case KindCommand:
			p := r.programs.hold(id, e, r)
			held = append(held, p)
			line = p
		case KindHTTP:
			line = newWebPlugin(e, r.environ)
		default:
			continue
		}
		all.addOutside(id, e, &outside{line: line, redact: r.redact})
	}
	return all, func() {
		for _, p := range held {
			r.programs.drop(p)
		}
	}
}

// asker carries one event to a plug-in outside and brings its answer.
type asker interface {
	ask(ctx context.Context, event []byte, hook Name, call []byte) (reply, error)
}

func (all *handlers) addOutside(id string, e Entry, o *outside) {
	for _, hook := range e.Hooks {
		timeout := beforeTimeout
		if hook == AfterToolCall {
			timeout = afterTimeout
		}
		g := newRegistration(id, hook, timeout)
		e.adjust(&g)
		if e.Tools != nil {
			g.tools, _ = newToolList(e.Tools) // the configuration was checked
		}
		switch hook {
		case BeforeToolCall:
			all.before = append(all.before, handler[BeforeToolCallFunc]{g, o.before})
		case AfterToolCall:
			all.after = append(all.after, handler[AfterToolCallFunc]{g, o.after})
		}
	}
}
