package server

import (
	"context"
	"net/http"
	"time"

	"github.com/toolward/toolward/audit"
	"github.com/toolward/toolward/identity"
	"github.com/toolward/toolward/sandbox"
	"github.com/toolward/toolward/server/door"
)

// Sandboxes has the sandboxes of the gateway. The manager of package sandbox implements it.
type Sandboxes interface {
	List(ctx context.Context) ([]sandbox.Info, error)
	// Describe says everything that is known of one; sandbox.CodeNotFound if there is none of that name.
	Describe(ctx context.Context, name string) (*sandbox.Detail, error)
	// Usage says what those use that run, by name. It returns when ctx ends with what is known by then.
	Usage(ctx context.Context, infos []sandbox.Info) map[string]sandbox.Usage
	// Found says what the engines can enforce here, without waiting for any.
	Found() []sandbox.Found
	Settings() *sandbox.Settings
	Stop(ctx context.Context, name, why string) error
	Remove(ctx context.Context, name, why string) error
	Prune(ctx context.Context) (sandbox.Pruned, error)
}

// Patience with engines. A page does not wait for one that is stuck; who ends a sandbox waits until it has ended.
const (
	lookPatience = 2 * time.Second
	endPatience  = 30 * time.Second
)

// Sandbox is one sandbox with what it uses now.
type Sandbox struct {
	sandbox.Info
	Usage *sandbox.Usage `json:"usage,omitempty"` // of one that runs
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
	*sandbox.Detail
	Usage    *sandbox.Usage   `json:"usage,omitempty"`
	Commands []SandboxCommand `json:"commands"` // the latest calls in it, newest first
	Events   []SandboxEvent   `json:"events"`   // of its life, newest first
	Warning  string           `json:"warning,omitempty"`
}

func noSandboxes() error {
	return door.NewProblem(http.StatusNotFound, "", "this gateway has no sandboxes")
}

func noSandbox(name string) *door.Problem {
	return door.NewProblem(http.StatusNotFound, "toolward sandbox list", "there is no sandbox %s", door.QuoteShort(name))
}

// look lists the sandboxes and what they use, within the patience of a page.
func (s *apiServer) look(ctx context.Context) (list []Sandbox, warning string) {
	ctx, cancel := context.WithTimeout(ctx, lookPatience)
	defer cancel()
	infos, err := s.sandboxes.List(ctx)
	if err != nil {
		warning = err.Error()
	}
	return s.withUsage(ctx, infos), warning
}

func (s *apiServer) withUsage(ctx context.Context, infos []sandbox.Info) []Sandbox {
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

func (s *apiServer) apiSandboxes(w http.ResponseWriter, r *http.Request, _ Caller) error {
	if s.sandboxes == nil {
		return noSandboxes()
	}
	list := SandboxList{Browsers: []Sandbox{}, Modes: s.sandboxModes(), Engines: s.sandboxEngines()}
	list.Containers, list.Warning = s.look(r.Context())
	door.WriteJSON(w, http.StatusOK, list)
	return nil
}

func (s *apiServer) apiSandbox(w http.ResponseWriter, r *http.Request, _ Caller) error {
	if s.sandboxes == nil {
		return noSandboxes()
	}
	d, err := s.oneSandbox(r)
	if err != nil {
		return err
	}
	door.WriteJSON(w, http.StatusOK, d)
	return nil
}

// oneSandbox is everything about the sandbox that the request names.
func (s *apiServer) oneSandbox(r *http.Request) (*SandboxDetail, error) {
	name := r.PathValue("name")
	if name == "" {
		name = r.URL.Query().Get("name")
	}
	ctx, cancel := context.WithTimeout(r.Context(), lookPatience)
	defer cancel()
	detail, err := s.describe(ctx, name)
	if err != nil {
		return nil, err
	}
	d := &SandboxDetail{Detail: detail, Usage: s.withUsage(ctx, []sandbox.Info{detail.Info})[0].Usage}
	d.Commands, d.Events, d.Warning = s.sandboxHistory(r.Context(), &detail.Info)
	return d, nil
}

// describe says what is known of a sandbox, within the patience of a page.
func (s *apiServer) describe(ctx context.Context, name string) (*sandbox.Detail, error) {
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
type ending struct {
	done string // what records call it
	do   func(Sandboxes, context.Context, string, string) error
}

var (
	stopping = ending{"stopped", Sandboxes.Stop}
	removing = ending{"removed", Sandboxes.Remove}
)

func (s *apiServer) apiStopSandbox(w http.ResponseWriter, r *http.Request, c Caller) error {
	return s.apiEndSandbox(w, r, c, stopping)
}

func (s *apiServer) apiRemoveSandbox(w http.ResponseWriter, r *http.Request, c Caller) error {
	return s.apiEndSandbox(w, r, c, removing)
}

func (s *apiServer) apiEndSandbox(w http.ResponseWriter, r *http.Request, c Caller, how ending) error {
	if s.sandboxes == nil {
		return noSandboxes()
	}
	if err := s.endSandbox(r, c.By, r.PathValue("name"), how); err != nil {
		return err
	}
	door.WriteJSON(w, http.StatusOK, map[string]string{"done": how.done})
	return nil
}

// endSandbox does what a person wants done to a sandbox, and records it. Whoever hangs up meanwhile has still done it.
func (s *apiServer) endSandbox(r *http.Request, by identity.Authority, name string, how ending) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), endPatience)
	defer cancel()
	err := how.do(s.sandboxes, ctx, name, "by "+by.Name())
	if sandbox.CodeOf(err) == sandbox.CodeNotFound {
		return noSandbox(name)
	}
	data := map[string]any{"event": "sandbox-" + how.done, "sandbox": name, "by": by.Name()}
	if err != nil {
		data["event"], data["why"] = "sandbox-not-"+how.done, err.Error()
	}
	s.note(r, audit.TypeConfig, data)
	if err != nil {
		return door.NewProblem(http.StatusBadGateway, "toolward sandbox probe", "%s", err.Error())
	}
	return nil
}

func (s *apiServer) apiPruneSandboxes(w http.ResponseWriter, r *http.Request, c Caller) error {
	if s.sandboxes == nil {
		return noSandboxes()
	}
	pruned, err := s.pruneSandboxes(r, c.By)
	if err != nil {
		return err
	}
	door.WriteJSON(w, http.StatusOK, pruned)
	return nil
}

// pruneSandboxes ends what is old or unused, and records who wanted that.
func (s *apiServer) pruneSandboxes(r *http.Request, by identity.Authority) (sandbox.Pruned, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), endPatience)
	defer cancel()
	pruned, err := s.sandboxes.Prune(ctx)
	data := map[string]any{
		"event": "sandboxes-pruned", "by": by.Name(), "stopped": pruned.Stopped, "removed": pruned.Removed, "failed": pruned.Failed,
	}
	if err != nil {
		data["why"] = err.Error()
	}
	s.note(r, audit.TypeConfig, data)
	if err != nil {
		return pruned, door.NewProblem(http.StatusBadGateway, "toolward sandbox list", "%s", err.Error())
	}
	return pruned, nil
}
