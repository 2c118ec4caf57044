package api

import (
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/toolward/toolward/desk"
	"github.com/toolward/toolward/sandbox"
	"github.com/toolward/toolward/sandbox/fleet"
	"github.com/toolward/toolward/server/door"
)

// SandboxPatience is how long a page waits for an engine that is stuck.
const SandboxPatience = 2 * time.Second

// Sandbox is one sandbox with what it uses now.
type Sandbox struct {
	fleet.Info
	Usage *fleet.Usage `json:"usage,omitempty"` // of one that runs
}

// SandboxList is the answer of GET /v1/sandboxes.
type SandboxList struct {
	Containers []Sandbox       `json:"containers"`
	Browsers   []Sandbox       `json:"browsers"`
	Warning    string          `json:"warning,omitempty"` // what could not be found out
	Modes      []SandboxMode   `json:"modes"`             // for everybody, then for each agent that the configuration names
	Engines    []SandboxEngine `json:"engines"`
}

// Pruned is the answer of POST /v1/sandboxes/prune.
type Pruned = fleet.Pruned

// Choose picks sandboxes out of the list: all, those of an agent, or that of a session or another scope key.
func (l *SandboxList) Choose(browsersOnly, all bool, agent, session string) (chosen []Sandbox) {
	from := l.Browsers
	if !browsersOnly {
		from = slices.Concat(l.Containers, l.Browsers)
	}
	selector := fleet.Selector{All: all, Agent: agent, Session: session}
	for _, s := range from {
		if selector.Matches(s.Info) {
			chosen = append(chosen, s)
		}
	}
	return chosen
}

// SandboxDetail is the answer of GET /v1/sandboxes/{name}.
type SandboxDetail struct {
	*fleet.Detail
	Usage     *fleet.Usage          `json:"usage,omitempty"`
	Commands  []desk.SandboxCommand `json:"commands"` // the latest calls in it, newest first
	Events    []desk.SandboxEvent   `json:"events"`   // of its life, newest first
	Warning   string                `json:"warning,omitempty"`
	Forwards  []PortForward         `json:"forwards"`            // of its ports
	MorePorts bool                  `json:"morePorts,omitempty"` // than ports has
}

func NoSandboxes() error {
	return door.NewProblem(http.StatusNotFound, "", "this gateway has no sandboxes")
}

func noSandbox(name string) *door.Problem {
	return door.NewProblem(http.StatusNotFound, "toolward sandbox list", "there is no sandbox %s", door.QuoteShort(name))
}

// look lists the sandboxes and what they use, within the patience of a page.
func (s *Server) ListSandboxes(ctx context.Context) (list []Sandbox, warning string) {
	ctx, cancel := context.WithTimeout(ctx, SandboxPatience)
	defer cancel()
	infos, err := s.sandboxes.List(ctx)
	if err != nil {
		warning = err.Error()
	}
	return s.WithUsage(ctx, infos), warning
}

func (s *Server) WithUsage(ctx context.Context, infos []fleet.Info) []Sandbox {
	used := s.sandboxes.Usage(ctx, infos)
	list := make([]Sandbox, 0, len(infos))
	for _, i := range infos {
		one := Sandbox{Info: i}
		if u, read := used[i.Name]; read {
			one.Usage = &u
		}
		list = append(list, one)
	}
	return list
}

func (s *Server) apiSandboxes(w http.ResponseWriter, r *http.Request, _ Caller) error {
	if s.sandboxes == nil {
		return NoSandboxes()
	}
	list := SandboxList{Browsers: []Sandbox{}, Modes: s.SandboxModes(), Engines: s.SandboxEngines()}
	list.Containers, list.Warning = s.ListSandboxes(r.Context())
	door.WriteJSON(w, http.StatusOK, list)
	return nil
}

func (s *Server) apiSandbox(w http.ResponseWriter, r *http.Request, c Caller) error {
	if s.sandboxes == nil {
		return NoSandboxes()
	}
	d, err := s.DescribeSandbox(r, c.visitor())
	if err != nil {
		return err
	}
	door.WriteJSON(w, http.StatusOK, d)
	return nil
}

// oneSandbox is everything about the sandbox that the request names.
func (s *Server) DescribeSandbox(r *http.Request, v desk.Visitor) (*SandboxDetail, error) {
	name := r.PathValue("name")
	if name == "" {
		name = r.URL.Query().Get("name")
	}
	ctx, cancel := context.WithTimeout(r.Context(), SandboxPatience)
	defer cancel()
	detail, err := s.FindSandbox(ctx, name)
	if err != nil {
		return nil, err
	}
	d := &SandboxDetail{Detail: detail, Usage: s.WithUsage(ctx, []fleet.Info{detail.Info})[0].Usage}
	ports, err := s.desk.SandboxPorts(ctx, v, name)
	if d.Forwards = ports.Forwards; err == nil { // else what the last look has found stays
		d.Ports, d.MorePorts = ports.Ports, ports.More
	}
	if d.Commands, d.Events, d.Warning, err = s.desk.SandboxHistory(r.Context(), v, &detail.Info); err != nil {
		return nil, Problem(err)
	}
	return d, nil
}

// describe says what is known of a sandbox, within the patience of a page.
func (s *Server) FindSandbox(ctx context.Context, name string) (*fleet.Detail, error) {
	detail, err := s.sandboxes.Describe(ctx, name)
	switch {
	case sandbox.CodeOf(err) == sandbox.CodeNotFound:
		return nil, noSandbox(name)
	case err != nil:
		return nil, door.NewProblem(http.StatusBadGateway, "toolward sandbox probe", "%s", err.Error())
	}
	return detail, nil
}

func (s *Server) apiStopSandbox(w http.ResponseWriter, r *http.Request, c Caller) error {
	return s.apiEndSandbox(w, r, c, desk.StopSandbox)
}

func (s *Server) apiRemoveSandbox(w http.ResponseWriter, r *http.Request, c Caller) error {
	return s.apiEndSandbox(w, r, c, desk.RemoveSandbox)
}

func (s *Server) apiEndSandbox(w http.ResponseWriter, r *http.Request, c Caller, how desk.Ending) error {
	name := r.PathValue("name")
	if err := s.desk.EndSandbox(r.Context(), c.visitor(), name, how); err != nil {
		return SandboxProblem(name, err)
	}
	door.WriteJSON(w, http.StatusOK, map[string]string{"done": how.Done})
	return nil
}

func (s *Server) apiPruneSandboxes(w http.ResponseWriter, r *http.Request, c Caller) error {
	pruned, err := s.desk.PruneSandboxes(r.Context(), c.visitor())
	if err != nil {
		return PruneProblem(err)
	}
	door.WriteJSON(w, http.StatusOK, pruned)
	return nil
}

// SandboxProblem says why a sandbox was not ended.
func SandboxProblem(name string, err error) error {
	switch desk.CodeOf(err) {
	case desk.NotKept:
		return NoSandboxes()
	case desk.Unknown:
		return noSandbox(name)
	case desk.Failed:
		return door.NewProblem(http.StatusBadGateway, "toolward sandbox probe", "%s", err.Error())
	}
	return Problem(err)
}

// PruneProblem says why not all that is old or unused was ended.
func PruneProblem(err error) error {
	switch desk.CodeOf(err) {
	case desk.NotKept:
		return NoSandboxes()
	case desk.Failed:
		return door.NewProblem(http.StatusBadGateway, "toolward sandbox list", "%s", err.Error())
	}
	return Problem(err)
}
