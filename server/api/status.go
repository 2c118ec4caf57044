package api

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/desk"
	"github.com/toolward/toolward/identity"
	"github.com/toolward/toolward/server/door"
)

// Caller is who makes an API request.
type Caller struct {
	By         identity.Authority
	Connection string
	Terminal   bool  // through the socket, by a command that a person typed
	Why        error // why this is no signed-in person; nil if it is one, or nobody tried
}

type callerKey struct{}

func withCaller(next http.Handler, c Caller) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), callerKey{}, c)))
	})
}

// Status is the answer of GET /v1/status. It holds nothing that a requester must not know.
type Status struct {
	Version  string    `json:"version"`
	PID      int       `json:"pid"`
	Started  time.Time `json:"started"`
	Console  string    `json:"console"`           // URL
	Mode     string    `json:"mode"`              // enforce, or shadow: what would ask runs
	Setup    bool      `json:"setup"`             // no passphrase has been set yet
	SignedIn bool      `json:"signedIn"`          // the caller is a signed-in person
	Name     string    `json:"name"`              // what records call the caller
	Notices  []string  `json:"notices,omitempty"` // what is wrong with the gateway itself
	Waiting  *int      `json:"waiting,omitempty"`
}

// mode is teg.mode as it is in force.
func (s *Server) mode() string {
	if s.observes {
		return "shadow"
	}
	return "enforce"
}

func (s *Server) apiStatus(w http.ResponseWriter, _ *http.Request, c Caller) error {
	status := Status{
		Version: s.version, PID: os.Getpid(), Started: s.started, Console: s.address.URL(), Mode: s.mode(), Setup: s.people.NeedsSetup(),
		SignedIn: c.visitor().May(desk.OpenApprovals) == nil, Name: c.By.Name(),
	}
	if s.notices != nil {
		status.Notices = s.notices()
	}
	if status.SignedIn {
		n := s.approvals.Count()
		status.Waiting = &n
	}
	door.WriteJSON(w, http.StatusOK, status)
	return nil
}

// ExplainRequest is the body of POST /v1/explain: the call to explain. Nothing is asked, run or recorded.
type ExplainRequest struct {
	Tool      string          `json:"tool"`
	Arguments json.RawMessage `json:"arguments,omitempty"`
	Agent     string          `json:"agent"`
	Session   string          `json:"session,omitempty"` // default: a session of the agent that has seen nothing
	WorkDir   string          `json:"workDir,omitempty"`
	Workspace string          `json:"workspace,omitempty"`
	Depth     int             `json:"depth,omitempty"`
	Owner     bool            `json:"owner,omitempty"`
	Context   string          `json:"context,omitempty"`
	Host      string          `json:"host,omitempty"`
	Hooks     bool            `json:"hooks,omitempty"` // call plug-ins too

	// What layers of the tool policy look at besides.
	Surface   toolward.Surface `json:"surface,omitempty"` // default: mcp
	Provider  string           `json:"provider,omitempty"`
	Model     string           `json:"model,omitempty"`
	Sandboxed bool             `json:"sandboxed,omitempty"`
	Sender    string           `json:"sender,omitempty"`
}

func (e *ExplainRequest) call() (toolward.Call, error) {
	agent := strings.ToLower(e.Agent)
	key := toolward.SessionKey(e.Session)
	if e.Session == "" {
		var err error
		if key, err = toolward.NewSessionKey(agent, "explain"); err != nil {
			return toolward.Call{}, door.NewProblem(http.StatusBadRequest, "name the agent, for instance \"main\"", "%s", err.Error())
		}
	}
	if len(e.Arguments) == 0 {
		e.Arguments = json.RawMessage("{}")
	}
	call := toolward.Call{
		Tool: e.Tool, Arguments: e.Arguments, Session: key, Surface: cmp.Or(e.Surface, toolward.SurfaceMCP),
		WorkDir: e.WorkDir, Host: toolward.Host(e.Host),
		Caller: toolward.Caller{
			Agent: agent, Depth: e.Depth, Owner: e.Owner, Context: e.Context, Workspace: e.Workspace,
			Provider: e.Provider, Model: e.Model, Sandboxed: e.Sandboxed, Sender: e.Sender,
		},
	}
	if call.Caller.Context == "" {
		call.Caller.Context = "main"
	}
	if call.WorkDir == "" {
		call.WorkDir = e.Workspace
	}
	if call.Host == "" {
		call.Host = toolward.HostGateway
	}
	return call, nil
}

func (s *Server) apiShutdown(w http.ResponseWriter, _ *http.Request, c Caller) error {
	s.log.Info("shutdown asked for", "by", c.By.Name())
	door.WriteJSON(w, http.StatusOK, struct {
		Stopping bool `json:"stopping"`
	}{true})
	go s.stop() // after the answer: stopping waits for requests in flight
	return nil
}
