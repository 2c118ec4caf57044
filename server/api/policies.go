package api

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/policy"
	"github.com/toolward/toolward/policy/visible"
	"github.com/toolward/toolward/server/door"
)

// angle is from where a person looks at the policy: a kind of caller, at a level.
type Angle struct {
	Level   toolward.Level
	As      string // one of callerKinds
	Model   string // provider/model, or ""
	Session toolward.SessionKey
}

// callerKinds are the callers that the console tells apart, in the order in which it offers them.
var CallerKinds = []callerKind{
	{Value: "agent", Name: "The agent, not proven to be the owner's"},
	{Value: "owner", Name: "The agent on a call that is proven to be the owner's"},
	{Value: "subagent", Name: "A sub-agent of the first level"},
	{Value: "sandbox", Name: "The agent in a sandboxed session"},
}

// readAngle reads level, as, model and session from a query.
func ReadAngle(query url.Values) (Angle, *door.Problem) {
	a := Angle{Level: toolward.Normal, As: "agent", Model: query.Get("model"), Session: toolward.SessionKey(query.Get("session"))}
	if text := query.Get("level"); text != "" {
		if err := a.Level.UnmarshalText([]byte(text)); err != nil {
			return a, door.NewProblem(http.StatusBadRequest, "use normal, elevated or lockdown", "level: %s is no level", door.QuoteShort(text))
		}
	}
	if as := query.Get("as"); as != "" {
		if !slices.ContainsFunc(CallerKinds, func(k callerKind) bool { return k.Value == as }) {
			return a, door.NewProblem(http.StatusBadRequest, "use agent, owner, subagent or sandbox", "as: %s is no kind of caller", door.QuoteShort(as))
		}
		a.As = as
	}
	for name, text := range map[string]string{"model": a.Model, "session": string(a.Session)} {
		if len(text) > 256 || !utf8.ValidString(text) {
			return a, door.NewProblem(http.StatusBadRequest, "", "%s: at most 256 bytes of text", name)
		}
	}
	return a, nil
}

// query is the angle as links carry it; what is usual is left out.
func (a Angle) Query() url.Values {
	q := url.Values{}
	if a.Level != toolward.Normal {
		q.Set("level", a.Level.String())
	}
	if a.As != "agent" {
		q.Set("as", a.As)
	}
	if a.Model != "" {
		q.Set("model", a.Model)
	}
	if a.Session != "" {
		q.Set("session", string(a.Session))
	}
	return q
}

// caller is an agent seen from the angle. An empty agent is any that the configuration does not name.
func (a Angle) Caller(agent string) toolward.Caller {
	c := toolward.Caller{Agent: agent, Context: "main", Surface: toolward.SurfaceMCP, Session: a.Session}
	if provider, model, ok := strings.Cut(a.Model, "/"); ok {
		c.Provider, c.Model = provider, model
	} else {
		c.Provider = a.Model
	}
	switch a.As {
	case "owner":
		c.Owner = true
	case "subagent":
		c.Depth, c.Context = 1, "subagent"
	case "sandbox":
		c.Sandboxed = true
	}
	return c
}

// Matrix is the answer of GET /v1/matrix: what may become of every tool for every agent.
type Matrix struct {
	Revision string         `json:"revision"`
	Level    toolward.Level `json:"level"`
	As       string         `json:"as"`
	Agents   []string       `json:"agents"` // "" is every agent that the configuration does not name
	Tools    []MatrixTool   `json:"tools"`
}

// MatrixTool is one line of the matrix.
type MatrixTool struct {
	visible.KnownTool
	Cells []MatrixCell `json:"cells"` // in the order of Matrix.Agents
}

// MatrixCell is one agent and one tool. A tool that is not visible has nothing possible.
type MatrixCell struct {
	Visible  bool             `json:"visible"`
	Removed  *toolward.Reason `json:"removed,omitempty"`
	Possible policy.Possible  `json:"possible"`
}

func NewMatrix(p Policy, a Angle) Matrix {
	m := Matrix{Revision: p.Revision(), Level: a.Level, As: a.As, Agents: append(p.AgentIDs(), ""), Tools: []MatrixTool{}}
	for _, known := range p.KnownTools() {
		line := MatrixTool{KnownTool: known}
		for _, agent := range m.Agents {
			o := p.Forecast(a.Caller(agent), known.Name, a.Level)
			line.Cells = append(line.Cells, MatrixCell{o.Visible, o.Removed, o.Possible})
		}
		m.Tools = append(m.Tools, line)
	}
	return m
}

// ToolForecast is the answer of GET /v1/matrix/tool: one cell of the matrix with all that makes it.
type ToolForecast struct {
	Revision string               `json:"revision"`
	Level    toolward.Level       `json:"level"`
	As       string               `json:"as"`
	Agent    string               `json:"agent"`
	Steps    []visible.StepResult `json:"steps"`
	policy.Forecast
}

// AgentLayers is the answer of GET /v1/layers: how the tools of one agent come about.
type AgentLayers struct {
	Revision string                `json:"revision"`
	As       string                `json:"as"`
	Agent    string                `json:"agent"`
	Steps    []visible.StepView    `json:"steps"`
	Warnings []visible.ListWarning `json:"warnings"`
	Sandbox  visible.SandboxPolicy `json:"sandbox"` // of the agent's sandboxed sessions, whether this is one or not
	Tools    []visible.ToolView    `json:"-"`
}

// agentOf reads the agent of a query; none is any agent that the configuration does not name.
func agentIn(query url.Values) (string, *door.Problem) {
	agent := query.Get("agent")
	if len(agent) > 256 || !utf8.ValidString(agent) {
		return "", door.NewProblem(http.StatusBadRequest, "", "agent: at most 256 bytes of text")
	}
	return agent, nil
}

// ForecastOf is one cell, as a query asks for it.
func (s *Server) ForecastOf(query url.Values) (ToolForecast, Angle, *door.Problem) {
	a, bad := ReadAngle(query)
	if bad != nil {
		return ToolForecast{}, a, bad
	}
	agent, bad := agentIn(query)
	if bad != nil {
		return ToolForecast{}, a, bad
	}
	p, tool := s.policy(), query.Get("tool")
	if !p.Knows(tool) {
		return ToolForecast{}, a, door.NewProblem(http.StatusNotFound, "the matrix lists all tools", "there is no tool %s", door.QuoteShort(tool))
	}
	c := a.Caller(agent)
	return ToolForecast{p.Revision(), a.Level, a.As, agent, p.LayerTrace(c, tool), p.Forecast(c, tool, a.Level)}, a, nil
}

// layersOf is the layers of one agent, as a query asks for them.
func (s *Server) LayersOf(query url.Values) (AgentLayers, Angle, *door.Problem) {
	a, bad := ReadAngle(query)
	if bad != nil {
		return AgentLayers{}, a, bad
	}
	agent, bad := agentIn(query)
	if bad != nil {
		return AgentLayers{}, a, bad
	}
	p, c := s.policy(), a.Caller(agent)
	return AgentLayers{
		Revision: p.Revision(), As: a.As, Agent: agent, Steps: p.Layers(c), Warnings: append([]visible.ListWarning{}, p.ListWarnings(c)...),
		Sandbox: p.SandboxTools(c), Tools: p.View(c),
	}, a, nil
}

func (s *Server) apiMatrix(w http.ResponseWriter, r *http.Request, _ Caller) error {
	a, bad := ReadAngle(r.URL.Query())
	if bad != nil {
		return bad
	}
	door.WriteJSON(w, http.StatusOK, NewMatrix(s.policy(), a))
	return nil
}

func (s *Server) apiForecast(w http.ResponseWriter, r *http.Request, _ Caller) error {
	o, _, bad := s.ForecastOf(r.URL.Query())
	if bad != nil {
		return bad
	}
	door.WriteJSON(w, http.StatusOK, o)
	return nil
}

func (s *Server) apiLayers(w http.ResponseWriter, r *http.Request, _ Caller) error {
	l, _, bad := s.LayersOf(r.URL.Query())
	if bad != nil {
		return bad
	}
	door.WriteJSON(w, http.StatusOK, l)
	return nil
}

// callerKind is a kind of caller, with what the console calls it.
type callerKind struct{ Value, Name string }
