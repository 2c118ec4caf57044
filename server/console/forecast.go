package console

import (
	"net/http"
	"strings"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/policy"
	"github.com/toolward/toolward/server/api"
)

// forecastPage is one cell of the matrix.
type forecastPage struct {
	page
	Tool, Agent []span
	Angle       string
	Marks       []mark
	Removed     *removedView
	Steps       []stepLine
	Cases       []caseLine
	Back        string
	Layers      string
	Command     string // that explains one call
}

type removedView struct {
	Layer, Text, Key []span
}

// stepLine is one step of the trace.
type stepLine struct {
	Number int
	Label  []span
	Said   []span
	Kind   string // "takes", "first", "absent" or ""
}

// caseLine is one row of the class table for a tool.
type caseLine struct {
	Row     []span
	Actions []span
	Marks   []mark
	Facts   string
	Reasons []reasonLine
}

// reasonLine is one reason with the configuration that it comes from, if it comes from there.
type reasonLine struct{ Text, Key []span }

// showForecast is GET /c/{key}/tools/one: why a cell of the matrix is what it is.
func (s *Server) showForecast(w http.ResponseWriter, r *http.Request, v *visitor) error {
	o, a, bad := s.api.ForecastOf(r.URL.Query())
	if bad != nil {
		return bad
	}
	p := forecastPage{
		page: s.newPage(v, o.Tool, "/tools"), Tool: oneLine(o.Tool), Agent: agentName(o.Agent), Angle: inWords(a),
		Marks: marksOf(o.Visible, o.Possible), Back: pickLink(v, a, o.Agent, ""), Layers: angleLink(v, a, "/tools/layers", "agent", o.Agent),
		Command: explainCommand(&o, a),
	}
	p.Style = "policy.css"
	if o.Removed != nil {
		p.Removed = &removedView{oneLine(o.Removed.Layer), oneLine(o.Removed.Text + "."), oneLine(o.Removed.Rule)}
	}
	first := true
	for _, step := range o.Steps {
		line := stepLine{Number: step.Number, Label: oneLine(step.Label), Said: oneLine("leaves it")}
		switch {
		case step.Absent != "":
			line.Said, line.Kind = oneLine("not here: "+step.Absent), "absent"
		case step.Takes != nil:
			line.Said, line.Kind = oneLine(step.Takes.Text), "takes"
			if first {
				line.Kind, first = "first", false
			}
		}
		p.Steps = append(p.Steps, line)
	}
	for i := range o.Cases {
		p.Cases = append(p.Cases, newCaseLine(&o.Cases[i]))
	}
	return renderPage(w, http.StatusOK, "forecast", p)
}

func newCaseLine(c *policy.Case) caseLine {
	line := caseLine{Row: oneLine(c.Row), Marks: possibleMarks(c.Possible)}
	if len(c.Actions) > 0 {
		line.Actions = oneLine(strings.Join(c.Actions, ", "))
	}
	facts := []string{"Severity " + c.Severity.String()}
	if c.Grant != toolward.GrantNone && c.Possible.Ask {
		facts = append(facts, "“always” can be kept for this "+grantWords(c.Grant))
	}
	if c.Enabled {
		facts = append(facts, "enabled by teg.enable")
	}
	line.Facts = strings.Join(facts, "; ")
	for _, reason := range c.Reasons {
		view := reasonLine{Text: oneLine(sentence(reason.Text))}
		if reason.Rule != "" && reason.Layer != "class" {
			view.Key = oneLine(strings.TrimPrefix(reason.Layer+": "+reason.Rule, reason.Rule+": "))
		}
		line.Reasons = append(line.Reasons, view)
	}
	return line
}

func grantWords(k toolward.GrantKind) string {
	switch k {
	case toolward.GrantExact:
		return "exact call"
	case toolward.GrantExec:
		return "command"
	case toolward.GrantPath:
		return "directory"
	}
	return string(k)
}

// explainCommand is what to type to have one call explained from the same angle, quoted for a shell. The level alone
// cannot be said: it is that of a session.
func explainCommand(o *api.ToolForecast, a api.Angle) string {
	quote := func(s string) string {
		plain := func(r rune) bool {
			return r < 128 && (r == '_' || r == '-' || r == '.' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z')
		}
		if s != "" && !strings.ContainsFunc(s, func(r rune) bool { return !plain(r) }) {
			return s
		}
		return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
	}
	command := "toolward explain " + quote(o.Tool)
	if o.Agent != "" {
		command += " --agent " + quote(o.Agent)
	}
	command += map[string]string{"owner": " --owner", "subagent": " --depth 1", "sandbox": " --sandboxed"}[o.As]
	c := a.Caller(o.Agent)
	for _, flag := range []struct{ name, value string }{{"provider", c.Provider}, {"model", c.Model}, {"session", string(c.Session)}} {
		if flag.value != "" {
			command += " --" + flag.name + " " + quote(flag.value)
		}
	}
	return command + ` --args '{…}'`
}
