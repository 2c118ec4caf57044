package api

import (
	"context"
	"net/http"
	"time"

	"github.com/toolward/toolward/sandbox/fleet"

	"github.com/toolward/toolward/audit"
	"github.com/toolward/toolward/identity"
	"github.com/toolward/toolward/sandbox"
	"github.com/toolward/toolward/server/door"
)

// Sandboxes has the sandboxes of the gateway. The manager of package sandbox implements it.
type Sandboxes interface {
	List(ctx context.Context) ([]fleet.Info, error)
	// Describe says everything that is known of one; sandbox.CodeNotFound if there is none of that name.
	Describe(ctx context.Context, name string) (*fleet.Detail, error)
	// Usage says what those use that run, by name. It returns when ctx ends with what is known by then.
	Usage(ctx context.Context, infos []fleet.Info) map[string]fleet.Usage
	// Found says what the engines can enforce here, without waiting for any.
	Found() []fleet.Found
	Settings() *sandbox.Settings
	Stop(ctx context.Context, name, why string) error
	Remove(ctx context.Context, name, why string) error
	Prune(ctx context.Context) (fleet.Pruned, error)
}

// Patience with engines. A page does not wait for one that is stuck; who ends a sandbox waits until it has ended.
const (
	SandboxPatience = 2 * time.Second
	endPatience     = 30 * time.Second
)

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

// SandboxDetail is the answer of GET /v1/sandboxes/{name}.
type SandboxDetail struct {
	*fleet.Detail
	Usage    *fleet.Usage     `json:"usage,omitempty"`
	Commands []SandboxCommand `json:"commands"` // the latest calls in it, newest first
	Events   []SandboxEvent   `json:"events"`   // of its life, newest first
	Warning  string           `json:"warning,omitempty"`
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

func (s *Server) apiSandbox(w http.ResponseWriter, r *http.Request, _ Caller) error {
	if s.sandboxes == nil {
		return NoSandboxes()
	}
	d, err := s.DescribeSandbox(r)
	if err != nil {
		return err
	}
	door.WriteJSON(w, http.StatusOK, d)
	return nil
}

// oneSandbox is everything about the sandbox that the request names.
func (s *Server) DescribeSandbox(r *http.Request) (*SandboxDetail, error) {
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
	d.Commands, d.Events, d.Warning = s.SandboxHistory(r.Context(), &detail.Info)
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

// ending is a way to end a sandbox.
type Ending struct {
	Done string // what records call it
	do   func(Sandboxes, context.Context, string, string) error
}

var (
	StopSandbox   = Ending{"stopped", Sandboxes.Stop}
	RemoveSandbox = Ending{"removed", Sandboxes.Remove}
)

func (s *Server) apiStopSandbox(w http.ResponseWriter, r *http.Request, c Caller) error {
	return s.apiEndSandbox(w, r, c, StopSandbox)
}

func (s *Server) apiRemoveSandbox(w http.ResponseWriter, r *http.Request, c Caller) error {
	return s.apiEndSandbox(w, r, c, RemoveSandbox)
}

func (s *Server) apiEndSandbox(w http.ResponseWriter, r *http.Request, c Caller, how Ending) error {
	if s.sandboxes == nil {
		return NoSandboxes()
	}
	if err := s.EndSandbox(r, c.By, r.PathValue("name"), how); err != nil {
		return err
	}
	door.WriteJSON(w, http.StatusOK, map[string]string{"done": how.Done})
	return nil
}

// endSandbox does what a person wants done to a sandbox, and records it. Whoever hangs up meanwhile has still done it.
func (s *Server) EndSandbox(r *http.Request, by identity.Authority, name string, how Ending) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), endPatience)
	defer cancel()
	err := how.do(s.sandboxes, ctx, name, "by "+by.Name())
	if sandbox.CodeOf(err) == sandbox.CodeNotFound {
		return noSandbox(name)
	}
	data := map[string]any{"event": "sandbox-" + how.Done, "sandbox": name, "by": by.Name()}
	if err != nil {
		data["event"], data["why"] = "sandbox-not-"+how.Done, err.Error()
	}
	s.Note(r, audit.TypeConfig, data)
	if err != nil {
		return door.NewProblem(http.StatusBadGateway, "toolward sandbox probe", "%s", err.Error())
	}
	return nil
}

func (s *Server) apiPruneSandboxes(w http.ResponseWriter, r *http.Request, c Caller) error {
	if s.sandboxes == nil {
		return NoSandboxes()
	}
	pruned, err := s.PruneSandboxes(r, c.By)
	if err != nil {
		return err
	}
	door.WriteJSON(w, http.StatusOK, pruned)
	return nil
}

// pruneSandboxes ends what is old or unused, and records who wanted that.
func (s *Server) PruneSandboxes(r *http.Request, by identity.Authority) (fleet.Pruned, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), endPatience)
	defer cancel()
	pruned, err := s.sandboxes.Prune(ctx)
	data := map[string]any{
		"event": "sandboxes-pruned", "by": by.Name(), "stopped": pruned.Stopped, "removed": pruned.Removed, "failed": pruned.Failed,
	}
	if err != nil {
		data["why"] = err.Error()
	}
	s.Note(r, audit.TypeConfig, data)
	if err != nil {
		return pruned, door.NewProblem(http.StatusBadGateway, "toolward sandbox list", "%s", err.Error())
	}
	return pruned, nil
}
