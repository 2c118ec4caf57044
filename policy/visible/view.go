package visible

import (
	"github.com/toolward/toolward"
)

// view is what callers with the same facts see.
type view struct {
	owner    bool
	patch    bool // apply_patch is there
	voice    bool
	readOnly bool // nothing in the caller's sandbox can be written
	pipeline pipeline
	http     *httpRule // nil for other surfaces
	seen     toolSet
	visible  []*toolward.Tool // by name
}

// newView runs the registered tools through cuts and layers.
func (r *ruleBook) newView(a *agentRules, c *toolward.Caller) *view {
	v := &view{
		owner: c.Owner, patch: a.patch.offers(c), voice: Fold(c.Channel) == "voice", readOnly: c.SandboxReadOnly, pipeline: r.pipeline(a, c),
	}
	if c.Surface == toolward.SurfaceHTTP {
		v.http = &r.http
	}
	tools := r.inventory.tools
	v.seen = newToolSet(len(tools))
	kept := v.pipeline.keeps(len(tools))
	v.visible = make([]*toolward.Tool, 0, len(tools))
	for i, t := range tools {
		if !kept.has(i) {
			continue
		}
		if _, hidden := v.before(t); hidden {
			continue
		}
		if _, hidden := v.after(t); hidden {
			continue
		}
		v.seen.add(i)
		v.visible = append(v.visible, t)
	}
	return v
}

// offers reports whether the caller's model gets apply_patch. Where the model is unknown, as with MCP clients, only
// the switch counts: the rule is about what models can do, and the call is judged like any other write.
func (p patchRule) offers(c *toolward.Caller) bool {
	if c.Provider == "" && c.Model == "" {
		return (p.enabled || !p.set) && !c.SandboxReadOnly
	}
	return p.available(c.Provider, c.Model, c.SandboxReadOnly)
}

// before is the cuts that come before the layers.
func (v *view) before(t *toolward.Tool) (toolward.Reason, bool) {
	switch {
	case !v.patch && t.Name == "apply_patch":
		return toolward.Reason{Layer: patchLayer, Rule: patchLayer, Text: "tools.exec.applyPatch does not offer it to this model"}, true
	case v.readOnly && (t.Name == "write" || t.Name == "edit"):
		// A model that has them would try, and ask people for what nobody's answer makes possible.
		return toolward.Reason{Layer: sandboxLayer, Text: "nothing in the session's sandbox can be written to"}, true
	case v.voice && t.Name == "tts":
		return toolward.Reason{Layer: providerLayer, Text: "a voice conversation is spoken anyway"}, true
	case !v.owner && OwnerOnly(t):
		return OwnerReason, true
	case t.Optional && t.Plugin != "" && !v.pipeline.names(t.Name, t.Plugin):
		return optionalReason, true
	}
	return toolward.Reason{}, false
}

// after is the cut that comes after the layers.
func (v *view) after(t *toolward.Tool) (toolward.Reason, bool) {
	if v.http == nil {
		return toolward.Reason{}, false
	}
	return v.http.hides(t.Name, t.Plugin)
}

// hides says what hides a tool, the first of all that do.
func (v *view) hides(t *toolward.Tool) (toolward.Reason, bool) {
	if reason, hidden := v.before(t); hidden {
		return reason, true
	}
	if reason, hidden := v.pipeline.remover(t.Name, t.Plugin); hidden {
		return reason, true
	}
	return v.after(t)
}
