package server

import (
	"context"
	"net/http"

	"github.com/toolward/toolward/audit"
	"github.com/toolward/toolward/sandbox"
)

// Sandboxes has the sandboxes of the gateway. The manager of package sandbox implements it.
type Sandboxes interface {
	List(ctx context.Context) ([]sandbox.Info, error)
	Stop(ctx context.Context, name, why string) error
	Remove(ctx context.Context, name, why string) error
	Prune(ctx context.Context) (sandbox.Pruned, error)
}

// SandboxList is the answer of GET /v1/sandboxes.
type SandboxList struct {
	Containers []sandbox.Info `json:"containers"`
	Browsers   []sandbox.Info `json:"browsers"`
	Warning    string         `json:"warning,omitempty"` // what could not be found out
}

func noSandboxes() error { return problem(http.StatusNotFound, "", "this gateway has no sandboxes") }

func (s *Server) apiSandboxes(w http.ResponseWriter, r *http.Request, _ caller) error {
	if s.sandboxes == nil {
		return noSandboxes()
	}
	list := SandboxList{Browsers: []sandbox.Info{}}
	infos, err := s.sandboxes.List(r.Context())
	list.Containers = infos
	if err != nil {
		list.Warning = err.Error()
	}
	writeJSON(w, http.StatusOK, list)
	return nil
}

func (s *Server) apiStopSandbox(w http.ResponseWriter, r *http.Request, c caller) error {
	return s.endSandbox(w, r, c, "stopped", Sandboxes.Stop)
}

func (s *Server) apiRemoveSandbox(w http.ResponseWriter, r *http.Request, c caller) error {
	return s.endSandbox(w, r, c, "removed", Sandboxes.Remove)
}

// endSandbox records what a person does to a sandbox, and does it.
func (s *Server) endSandbox(w http.ResponseWriter, r *http.Request, c caller, done string, end func(Sandboxes, context.Context, string, string) error) error {
	if s.sandboxes == nil {
		return noSandboxes()
	}
	name := r.PathValue("name")
	err := end(s.sandboxes, r.Context(), name, "by "+c.by.Name())
	if sandbox.CodeOf(err) == sandbox.CodeNotFound {
		return problem(http.StatusNotFound, "toolward sandbox list", "there is no sandbox %s", quoteShort(name))
	}
	if err != nil {
		return problem(http.StatusBadGateway, "toolward sandbox probe", "%s", err.Error())
	}
	s.note(r, audit.TypeConfig, map[string]any{"event": "sandbox-" + done, "sandbox": name, "by": c.by.Name()})
	writeJSON(w, http.StatusOK, map[string]string{"done": done})
	return nil
}

func (s *Server) apiPruneSandboxes(w http.ResponseWriter, r *http.Request, _ caller) error {
	if s.sandboxes == nil {
		return noSandboxes()
	}
	pruned, err := s.sandboxes.Prune(r.Context())
	if err != nil {
		return problem(http.StatusBadGateway, "toolward sandbox list", "%s", err.Error())
	}
	writeJSON(w, http.StatusOK, pruned)
	return nil
}
