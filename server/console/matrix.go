package console

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/policy"
	"github.com/toolward/toolward/policy/visible"
	"github.com/toolward/toolward/server/api"
)

// sectionNames are the sections of the catalog in words.
var sectionNames = map[string]string{
	"fs": "Files", "runtime": "Commands", "web": "Web", "memory": "Memory", "sessions": "Sessions and sub-agents",
	"ui": "Browser and canvas", "messaging": "Messages", "automation": "Automation", "nodes": "Nodes", "agents": "Agents",
	"media": "Media", visible.SectionToolward: "Toolward's additions", visible.SectionChannels: "Channels",
	visible.SectionOther: "Other",
}

// otherAgents stands in the console for every agent that the configuration does not name.
const otherAgents = "any other agent"

// matrixPage is agents × tools.
type matrixPage struct {
	page
	Filter   filterView
	Agents   []agentView
	Columns  int
	Sections []sectionView
	Shown    int // tools that the filter leaves
	Total    int
	Revision string
}

// filterView is the form above the matrix and the layers.
type filterView struct {
	Action       string // path of the page
	Text         string
	Agent        string
	Tool         string
	Model        string
	Session      string
	Levels, Kind []choice
}

// agentView is a column.
type agentView struct {
	ID       string
	Name     []span
	Chosen   bool   // the one that a phone shows
	Pick     string // address of the matrix with this one chosen
	Layers   string // address of its layers
	Overview string // what it sees, in words
}

type sectionView struct {
	Name   []span
	Note   string
	Tools  []toolLine
	Hidden bool // all of it is
}

type toolLine struct {
	Hidden      bool // by the text filter
	Absent      bool // not registered
	Name        []span
	Find        string // what the text filter looks at
	Description []span
	Marks       []string // what is special, in words
	Cells       []cellView
}

type cellView struct {
	Agent  []span
	Chosen bool
	Marks  []mark
	Href   string
	Why    []span // what hides it
}

// mark is one possible end of a call: a sign, a word and a color, so that none of the three is needed.
type mark struct{ Kind, Sign, Word string }

var (
	markAllow  = mark{"allow", "✓", "allowed"}
	markAsk    = mark{"ask", "?", "asks"}
	markDeny   = mark{"deny", "✕", "denied"}
	markHidden = mark{"hidden", "–", "hidden"}
)

func marksOf(visible bool, p policy.Possible) []mark {
	if !visible {
		return []mark{markHidden}
	}
	return possibleMarks(p)
}

func possibleMarks(p policy.Possible) (marks []mark) {
	for _, end := range []struct {
		possible bool
		mark     mark
	}{{p.Allow, markAllow}, {p.Ask, markAsk}, {p.Deny, markDeny}} {
		if end.possible {
			marks = append(marks, end.mark)
		}
	}
	return marks
}

func levelChoices(of toolward.Level) []choice {
	var out []choice
	for _, l := range []toolward.Level{toolward.Normal, toolward.Elevated, toolward.Lockdown} {
		out = append(out, choice{l.String(), l.String(), l == of})
	}
	return out
}

func agentName(id string) []span {
	if id == "" {
		return oneLine(otherAgents)
	}
	return oneLine(id)
}

// showMatrix is GET /c/{key}/tools: agents × tools.
func (s *Server) showMatrix(w http.ResponseWriter, r *http.Request, v *visitor) error {
	query := r.URL.Query()
	a, bad := api.ReadAngle(query)
	if bad != nil {
		return bad
	}
	m := api.NewMatrix(s.policy(), a)
	chosen := m.Agents[0]
	if agent := query.Get("agent"); slices.Contains(m.Agents, agent) && query.Has("agent") {
		chosen = agent
	}
	text := strings.TrimSpace(query.Get("q"))
	p := matrixPage{
		page: s.newPage(v, "Tools", "/tools"), Total: len(m.Tools), Columns: len(m.Agents) + 1, Revision: m.Revision,
		Filter: filterView{Action: v.base + "/tools", Text: text, Agent: chosen, Levels: levelChoices(a.Level), Kind: kinds(a)},
	}
	p.Script, p.Style = "matrix.js", "policy.css"
	for i, id := range m.Agents {
		p.Agents = append(p.Agents, agentView{
			ID: id, Name: agentName(id), Chosen: id == chosen, Layers: angleLink(v, a, "/tools/layers", "agent", id),
			Pick: pickLink(v, a, id, text), Overview: overview(m.Tools, i),
		})
	}
	for _, t := range m.Tools {
		line := newToolLine(v, a, &t, m.Agents, chosen)
		line.Hidden = !strings.Contains(line.Find, strings.ToLower(text))
		if !line.Hidden {
			p.Shown++
		}
		p.Sections = intoSection(p.Sections, &t, line)
	}
	return renderPage(w, http.StatusOK, "matrix", p)
}

// pickLink keeps the filter and names the agent even if it is "", which is all others.
func pickLink(v *visitor, a api.Angle, agent, text string) string {
	q := a.Query()
	q.Set("agent", agent)
	if text != "" {
		q.Set("q", text)
	}
	return v.base + "/tools?" + q.Encode()
}

func overview(tools []api.MatrixTool, column int) string {
	n := 0
	for i := range tools {
		if tools[i].Available && tools[i].Cells[column].Visible {
			n++
		}
	}
	return fmt.Sprintf("sees %d", n)
}

func newToolLine(v *visitor, a api.Angle, t *api.MatrixTool, agents []string, chosen string) toolLine {
	line := toolLine{
		Absent: !t.Available, Name: oneLine(t.Name), Description: oneLine(t.Description),
		Find: strings.ToLower(strings.Join([]string{t.Name, sectionTitle(t), t.Plugin, t.Description}, " ")),
	}
	if !t.Available {
		line.Marks = append(line.Marks, "unavailable")
	}
	if t.OwnerOnly {
		line.Marks = append(line.Marks, "owner only")
	}
	for i, cell := range t.Cells {
		view := cellView{
			Agent: agentName(agents[i]), Chosen: agents[i] == chosen, Marks: marksOf(cell.Visible, cell.Possible),
			Href: angleLink(v, a, "/tools/one", "agent", agents[i], "tool", t.Name),
		}
		if cell.Removed != nil {
			view.Why = oneLine(cell.Removed.Layer)
		}
		line.Cells = append(line.Cells, view)
	}
	return line
}

func sectionTitle(t *api.MatrixTool) string {
	if t.Section == visible.SectionPlugin {
		return "Plug-in " + t.Plugin
	}
	if name, ok := sectionNames[t.Section]; ok {
		return name
	}
	return t.Section
}

// intoSection adds a line to the last section, or begins the next one: tools come section by section.
func intoSection(sections []sectionView, t *api.MatrixTool, line toolLine) []sectionView {
	title := oneLine(sectionTitle(t))
	if n := len(sections); n > 0 && slices.Equal(sections[n-1].Name, title) {
		sections[n-1].Tools = append(sections[n-1].Tools, line)
		sections[n-1].Hidden = sections[n-1].Hidden && line.Hidden
		return sections
	}
	note := "group:" + t.Section
	switch t.Section {
	case visible.SectionToolward, visible.SectionChannels, visible.SectionOther:
		note = ""
	case visible.SectionPlugin:
		note = "group:plugins"
	}
	return append(sections, sectionView{Name: title, Note: note, Tools: []toolLine{line}, Hidden: line.Hidden})
}

func kinds(a api.Angle) []choice {
	var out []choice
	for _, k := range api.CallerKinds {
		out = append(out, choice{k.Value, k.Name, k.Value == a.As})
	}
	return out
}

// inWords says from where the policy is looked at.
func inWords(a api.Angle) string {
	words := map[string]string{
		"agent": "for a caller that is not proven to be the owner", "owner": "for a call that is proven to be the owner's",
		"subagent": "for a sub-agent", "sandbox": "in a sandboxed session",
	}[a.As]
	return fmt.Sprintf("At level %s, %s", a.Level, words)
}

// link makes an address below the console from the angle and further parameters; empty ones are left out.
func angleLink(v *visitor, a api.Angle, path string, more ...string) string {
	q := a.Query()
	for i := 0; i < len(more); i += 2 {
		if more[i+1] != "" {
			q.Set(more[i], more[i+1])
		}
	}
	if len(q) == 0 {
		return v.base + path
	}
	return v.base + path + "?" + q.Encode()
}
