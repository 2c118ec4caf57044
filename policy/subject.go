package policy

import (
	"slices"
	"strings"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/place"
)

// subject is one call as the class table looks at it.
type subject struct {
	tool      string
	action    string // squashed; "" if there is none
	params    toolward.Params
	place     place.Zone // the strictest of all targets
	placed    bool       // there are targets, and the place of each is known
	scope     string     // self, tree, other or ""
	browserOn string     // sandbox, host, node or ""
	elevated  bool
	urls      bool // aims at a URL
}

// newSubject reads a request.
func newSubject(r *toolward.Request) subject {
	s := subject{
		tool: r.Tool.Name, params: r.Params, scope: r.Facts.Scope, browserOn: r.Facts.BrowserOn,
		elevated: r.Facts.Elevated, urls: len(r.Facts.URLs) > 0,
	}
	s.readParams(r.Facts.Action)
	s.place, s.placed = strictestPlace(r.Facts.Targets)
	return s
}

// readParams takes from the parameters what facts may lack. What the parameters say comes first: it is what runs.
func (s *subject) readParams(action string) {
	if named, ok := s.params.String("action"); ok {
		action = named
	}
	s.action = toolward.NormalAction(action)
	switch s.tool {
	case "exec", "nodes":
		// Anything but a plain no counts as asking for more rights.
		if s.params.Has("elevated") {
			no, isBool := s.params.Bool("elevated")
			s.elevated = s.elevated || no || !isBool && s.params.Value("elevated") != nil
		}
	case "image":
		s.urls = s.urls || hasURL(s.params)
	}
}

// strictestPlace is the place that decides when a call has several targets. It is not known when there is no target
// or one of them has no place that we know.
func strictestPlace(targets []toolward.Target) (place.Zone, bool) {
	strictest := place.Workspace
	for i := range targets {
		p, err := place.Parse(string(targets[i].Zone))
		if err != nil {
			return place.Self, false
		}
		strictest = min(strictest, p)
	}
	return strictest, len(targets) > 0
}

// hasURL reports whether one of the image parameters is a web address.
func hasURL(params toolward.Params) bool {
	for _, name := range []string{"image", "url"} {
		if isWebAddress(params.Text(name)) {
			return true
		}
	}
	images, _ := params.Value("images").([]any)
	return slices.ContainsFunc(images, func(v any) bool { text, _ := v.(string); return isWebAddress(text) })
}

func isWebAddress(text string) bool {
	text = strings.ToLower(strings.TrimSpace(text))
	return strings.HasPrefix(text, "http://") || strings.HasPrefix(text, "https://")
}

// actKinds lists what a browser "act" call does, squashed, with both places in which clients write it.
func (s *subject) actKinds() []string {
	var kinds []string
	request, _ := s.params.Value("request").(map[string]any)
	for _, from := range []map[string]any{request, {"kind": s.params.Value("kind"), "fn": s.params.Value("fn")}} {
		if kind, ok := from["kind"].(string); ok {
			kinds = append(kinds, toolward.NormalAction(kind))
		}
		// "wait" takes a function to wait for: script in the page by another name.
		if fn, there := from["fn"]; there && fn != nil && fn != "" {
			kinds = append(kinds, "evaluate")
		}
	}
	return kinds
}

// invoked is the command that a "nodes invoke" call sends, lower case and trimmed.
func (s *subject) invoked() string {
	return strings.ToLower(strings.TrimSpace(s.params.Text("invokeCommand")))
}

// actionKeys are the names by which configuration may address the call's action: the precise one, and for some calls
// one for all of their kind. Both are "" for a call that has no action.
func (s *subject) actionKeys() (precise, kind string) {
	switch {
	case s.tool == "exec" && s.elevated:
		return "elevated", ""
	case s.tool == "nodes" && s.action == "invoke":
		return "invoke:" + toolward.NormalAction(s.invoked()), "invoke"
	}
	return s.action, ""
}
