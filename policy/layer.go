package policy

import (
	"fmt"
	"slices"

	"github.com/toolward/toolward"
)

// layer is one step of the tool policy: it takes tools away and never adds one.
type layer struct {
	label string // what explanations print, such as "tools.agent (coder)"
	key   string // configuration path to edit, such as "agents.list[0].tools"
	list  list
}

// ownerLayer is the label of the cut that comes before all layers.
const ownerLayer = "owner-only"

// pipeline is the layers that apply to a caller, in order. The order decides only which layer is named as the one
// that removed a tool.
type pipeline []layer

// remover returns the first layer that removes a tool, with the reason in words.
func (p pipeline) remover(tool, plugin string) (toolward.Reason, bool) {
	for i := range p {
		l := &p[i]
		entry, ok := l.list.allows(tool, plugin)
		if ok {
			continue
		}
		if entry != "" {
			return toolward.Reason{
				Layer: l.label, Rule: l.key + ".deny", Matched: entry,
				Text: fmt.Sprintf("%s denies it by %q", l.key+".deny", entry),
			}, true
		}
		return toolward.Reason{Layer: l.label, Rule: l.key + ".allow", Text: l.key + ".allow does not name it"}, true
	}
	return toolward.Reason{}, false
}

// view is what callers of one agent see.
type view struct {
	pipeline pipeline
	removed  map[string]toolward.Reason // registered tools that a layer removed
	owner    []*toolward.Tool           // for the owner, by name
	others   []*toolward.Tool           // for everybody else
}

// newView runs the registered tools through the layers.
func newView(p pipeline, tools []*toolward.Tool) *view {
	v := &view{pipeline: p, removed: map[string]toolward.Reason{}}
	for _, t := range tools {
		if reason, gone := p.remover(t.Name, t.Plugin); gone {
			v.removed[t.Name] = reason
			continue
		}
		v.owner = append(v.owner, t)
		if !ownerOnly(t) {
			v.others = append(v.others, t)
		}
	}
	v.owner, v.others = slices.Clip(v.owner), slices.Clip(v.others)
	return v
}

// ownerOnly reports whether a tool is for the owner alone. Four tools are by name, whoever registers them.
func ownerOnly(t *toolward.Tool) bool { return t.OwnerOnly || isOwnerOnlyName(t.Name) }

// WithoutOwnerOnly is the cut that comes before all layers: the names of the tools that a caller who is not the
// owner keeps.
func WithoutOwnerOnly(tools []*toolward.Tool, owner bool) []*toolward.Tool {
	if owner {
		return tools
	}
	return slices.DeleteFunc(slices.Clone(tools), ownerOnly)
}

// ownerReason is why a stranger does not see an owner's tool.
var ownerReason = toolward.Reason{Layer: ownerLayer, Text: "only the owner may use it, and the caller is not proven to be the owner"}
