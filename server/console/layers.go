package console

import (
	"net/http"
	"strings"

	"github.com/toolward/toolward/policy/visible"
)

// layersPage is how the tools of one agent come about.
type layersPage struct {
	page
	Agent    []span
	Angle    string
	Filter   filterView
	Seen     []toolLink
	Steps    []layerLine
	Warnings [][]span
	Sandbox  []sandboxList
	Back     string
}

// layerLine is one step with what it takes away.
type layerLine struct {
	Number   int
	Label    []span
	Absent   string
	Lists    []listView
	Unknown  []span
	Stripped bool
	Removed  []toolLink
}

// listView is an allow or a deny list with the key where it is set.
type listView struct {
	Name    string
	Key     []span
	Entries [][]span
	Empty   string // what an empty list means
}

type sandboxList struct {
	Source string
	listView
}

type toolLink struct {
	Name []span
	Href string
	Why  []span
}

// showLayers is GET /c/{key}/tools/layers: the steps of one agent in order.
func (s *Server) showLayers(w http.ResponseWriter, r *http.Request, v *visitor) error {
	l, a, bad := s.api.LayersOf(r.URL.Query())
	if bad != nil {
		return bad
	}
	p := layersPage{
		page: s.newPage(v, "Layers", "/tools"), Agent: agentName(l.Agent), Angle: inWords(a), Back: pickLink(v, a, l.Agent, ""),
		Filter: filterView{Action: v.base + "/tools/layers", Agent: l.Agent, Model: a.Model, Session: string(a.Session), Kind: kinds(a)},
	}
	p.Style = "policy.css"
	link := func(tool string) toolLink {
		return toolLink{Name: oneLine(tool), Href: angleLink(v, a, "/tools/one", "agent", l.Agent, "tool", tool)}
	}
	for _, t := range l.Tools {
		if t.Visible {
			p.Seen = append(p.Seen, link(t.Tool.Name))
		}
	}
	for i := range l.Steps {
		line := newLayerLine(&l.Steps[i])
		for _, removed := range l.Steps[i].Removed {
			tool := link(removed.Tool)
			tool.Why = oneLine(removed.Reason.Text)
			line.Removed = append(line.Removed, tool)
		}
		p.Steps = append(p.Steps, line)
	}
	for _, warning := range l.Warnings {
		p.Warnings = append(p.Warnings, oneLine(warning.String()))
	}
	p.Sandbox = []sandboxList{
		{sourceWords(l.Sandbox.AllowSource), newListView("allow", l.Sandbox.AllowSource.Key, l.Sandbox.Allow, "everything")},
		{sourceWords(l.Sandbox.DenySource), newListView("deny", l.Sandbox.DenySource.Key, l.Sandbox.Deny, "nothing")},
	}
	return renderPage(w, http.StatusOK, "layers", p)
}

func newLayerLine(step *visible.StepView) layerLine {
	line := layerLine{Number: step.Number, Label: oneLine(step.Label), Absent: step.Absent, Stripped: step.Stripped}
	if len(step.Unknown) > 0 {
		line.Unknown = oneLine(strings.Join(step.Unknown, ", "))
	}
	if step.AllowKey != "" && (len(step.Allow) > 0 || step.Stripped) {
		line.Lists = append(line.Lists, newListView("allow", step.AllowKey, step.Allow, "everything: the list is ignored"))
	}
	if step.DenyKey != "" && len(step.Deny) > 0 {
		line.Lists = append(line.Lists, newListView("deny", step.DenyKey, step.Deny, "nothing"))
	}
	return line
}

func newListView(name, key string, entries []string, empty string) listView {
	l := listView{Name: name, Key: oneLine(key), Empty: empty}
	for _, entry := range entries {
		l.Entries = append(l.Entries, oneLine(entry))
	}
	return l
}

func sourceWords(s visible.ListSource) string {
	switch s.Source {
	case "agent":
		return "set for this agent"
	case "global":
		return "set for all agents"
	}
	return "the list that Toolward has when none is set"
}
