package visible

import (
	"fmt"
	"slices"

	"github.com/toolward/toolward"
)

// layer is one step of the tool policy: it takes tools away and never adds one.
type layer struct {
	label     string // what explanations print, such as "tools.agent (coder)"
	allowKey  string // configuration path of the allow list, such as "agents.list[0].tools.allow"
	denyKey   string
	hint      string // what to do about it, if that is not plain
	list      list
	keeps     toolSet // the registered tools that it leaves
	strips    bool    // an allow list of which nothing is live is dropped
	private   bool    // not a part of the ceiling of children
	effective restriction
	optional  *Names   // of a parent's ceiling: what names the optional tools that it leaves; nil: all of them
	unknown   []string // entries of the allow list that match nothing there is
	stripped  bool     // the allow list was dropped
}

// optionalReason is why an optional tool that nobody asked for is not there.
var optionalReason = toolward.Reason{
	Layer: optionalLayer, Rule: "tools.alsoAllow",
	Text: "the tool is optional: it is there once an allow list names it, its plug-in or group:plugins",
}

// The labels that explanations print for cuts which are no layers of lists.
const (
	ownerLayer    = "owner-only"
	optionalLayer = "optional tools"
	patchLayer    = "tools.exec.applyPatch"
	providerLayer = "message provider (voice)"
	sandboxLayer  = "sandbox workspaceAccess"

	// sandboxTools is the label of the layer of lists for sandboxed sessions.
	sandboxTools = "sandbox tools.allow"
)

// pipeline is the layers that apply to a caller, in order. The order decides only which layer is named as the one
// that removed a tool.
type pipeline []*layer

// remover returns the first layer that removes a tool, with the reason in words.
func (p pipeline) remover(tool, plugin string) (toolward.Reason, bool) {
	for _, l := range p {
		entry, ok := l.list.allows(tool, plugin)
		if ok {
			continue
		}
		if entry != "" {
			return toolward.Reason{
				Layer: l.label, Rule: l.denyKey, Matched: entry,
				Text: fmt.Sprintf("%s denies it by %q", l.denyKey, entry) + l.hint,
			}, true
		}
		return toolward.Reason{Layer: l.label, Rule: l.allowKey, Text: l.allowKey + " does not name it" + l.hint}, true
	}
	return toolward.Reason{}, false
}

// names reports whether the allow list of some layer names a plug-in's tool by itself, by its plug-in, or by the group of
// all plug-ins. A glob names nothing: it was not written for a tool that nobody knew of.
// What a parent's lists do not name, those of its children cannot bring back.
func (p pipeline) names(tool, plugin string) bool {
	named := false
	for _, l := range p {
		if l.optional != nil && l.optional.matchExact(tool, plugin) == "" {
			return false
		}
		named = named || l.label != inheritedLayer && l.list.allow.matchExact(tool, plugin) != ""
	}
	return named
}

// keeps is what all layers together leave of n registered tools.
func (p pipeline) keeps(n int) toolSet {
	left := newToolSet(n)
	for i := range left {
		left[i] = ^uint64(0)
	}
	for _, l := range p {
		left.cut(l.keeps)
	}
	return left
}

// Step is one layer that applies to a caller.
type Step struct {
	Label string `json:"label"`
	Strip bool   `json:"strip"` // an allow list that names only plug-ins which are not there is dropped
}

// steps lists the layers. What several ancestors left is one step.
func (p pipeline) steps() []Step {
	steps := make([]Step, 0, len(p))
	for _, l := range p {
		steps = append(steps, Step{l.label, l.strips})
	}
	return slices.Compact(steps)
}

// ListWarning is an allow list of a caller's layers with entries that match nothing.
type ListWarning struct {
	Label    string   `json:"label"`
	Unknown  []string `json:"unknown"`
	Stripped bool     `json:"stripped"` // the list was ignored, so that the core tools stay
}

// String says which case it is.
func (w ListWarning) String() string {
	switch {
	case w.Stripped:
		return fmt.Sprintf("%s: the allow list is ignored, so that the core tools stay: nothing that it names is there (unknown: %q)", w.Label, w.Unknown)
	default:
		return fmt.Sprintf("%s: %q match nothing until a plug-in of that name is enabled", w.Label, w.Unknown)
	}
}

func (p pipeline) warnings() []ListWarning {
	warnings := []ListWarning{}
	for _, l := range p {
		if l.stripped || len(l.unknown) > 0 {
			warnings = append(warnings, ListWarning{l.label, l.unknown, l.stripped})
		}
	}
	return warnings
}

// toolSet is a set of registered tools, by their position among the sorted ones.
type toolSet []uint64

func newToolSet(n int) toolSet { return make(toolSet, (n+63)/64) }

func (s toolSet) add(i int)      { s[i/64] |= 1 << (i % 64) }
func (s toolSet) has(i int) bool { return s[i/64]&(1<<(i%64)) != 0 }

// cut takes away everything that is not in other.
func (s toolSet) cut(other toolSet) {
	for i := range s {
		s[i] &= other[i]
	}
}

// OwnerOnly reports whether a tool is for the owner alone. Four tools are by name, whoever registers them.
func OwnerOnly(t *toolward.Tool) bool { return t.OwnerOnly || isOwnerOnlyName(t.Name) }

// WithoutOwnerOnly is the cut that comes before all layers: the names of the tools that a caller who is not the
// owner keeps.
func WithoutOwnerOnly(tools []*toolward.Tool, owner bool) []*toolward.Tool {
	if owner {
		return tools
	}
	return slices.DeleteFunc(slices.Clone(tools), OwnerOnly)
}

// OwnerReason is why a stranger does not see an owner's tool.
var OwnerReason = toolward.Reason{Layer: ownerLayer, Text: "only the owner may use it, and the caller is not proven to be the owner"}

// inheritedLayer is the label of what a parent's policies leave to its children.
const inheritedLayer = "inherited tools"

// groupLayer is the label of the layer of chat groups.
const groupLayer = "group tools.allow"
