package api

import (
	"net/http"
	"time"

	"github.com/toolward/toolward/identity"
	"github.com/toolward/toolward/server/door"
)

// rows are the JSON API, the same at both doors; docs/api.md is its reference.
func (s *Server) rows() []door.Row[Caller] {
	return []door.Row[Caller]{
		door.On("GET /v1/status", identity.RightRequest, s.apiStatus),
		door.On("GET /v1/approvals", identity.RightWatch, s.apiApprovals),
		door.On("GET /v1/approvals/events", identity.RightAnswer, s.apiWatch),
		door.On("GET /v1/approvals/{id}", identity.RightWatch, s.apiApproval),
		door.On("POST /v1/approvals/{id}", identity.RightAnswer, s.apiResolve),
		door.On("GET /v1/decisions", identity.RightWatch, s.apiDecisions),
		door.On("GET /v1/grants", identity.RightWatch, s.apiGrants),
		door.On("POST /v1/grants/{id}/revoke", identity.RightAdmin, s.apiRevokeGrant),
		door.On("GET /v1/audit", identity.RightWatch, s.apiAudit),
		door.On("GET /v1/audit/tail", identity.RightWatch, s.apiAuditTail),
		door.On("GET /v1/audit/verify", identity.RightWatch, s.apiAuditVerify),
		door.On("GET /v1/audit/export", identity.RightWatch, s.apiAuditExport),
		door.On("GET /v1/sessions", identity.RightWatch, s.apiSessions),
		door.On("GET /v1/anomalies", identity.RightWatch, s.apiAnomalies),
		door.On("GET /v1/level", identity.RightWatch, s.apiLevel),
		door.On("POST /v1/level", identity.RightClearLevel, s.apiSetLevel),
		door.On("DELETE /v1/level", identity.RightClearLevel, s.apiClearLevel),
		door.On("GET /v1/tokens", identity.RightAdmin, s.apiTokens),
		door.On("POST /v1/tokens", identity.RightAdmin, s.apiCreateToken),
		door.On("POST /v1/tokens/{id}/revoke", identity.RightAdmin, s.apiRevokeToken),
		door.On("POST /v1/passphrase", identity.RightAdmin, s.apiChangePassphrase),
		door.On("POST /v1/explain", identity.RightWatch, s.apiExplain),
		door.On("GET /v1/matrix", identity.RightWatch, s.apiMatrix),
		door.On("GET /v1/matrix/tool", identity.RightWatch, s.apiForecast),
		door.On("GET /v1/layers", identity.RightWatch, s.apiLayers),
		door.On("GET /v1/config/pending", identity.RightWatch, s.apiPendingConfig),
		door.On("POST /v1/config/apply", identity.RightConfigure, s.apiApplyConfig),
		door.On("GET /v1/exec-approvals", identity.RightAdmin, s.apiCommands),
		door.On("PUT /v1/exec-approvals", identity.RightConfigure, s.apiSetCommands),
		door.On("POST /v1/exec-approvals/allowlist", identity.RightConfigure, s.apiAllowCommand),
		door.On("DELETE /v1/exec-approvals/allowlist", identity.RightConfigure, s.apiDisallowCommand),
		door.On("GET /v1/devices", identity.RightAdmin, s.apiDevices),
		door.On("POST /v1/devices/{id}/approve", identity.RightAdmin, s.apiApproveDevice),
		door.On("POST /v1/devices/{id}/reject", identity.RightAdmin, s.apiRejectDevice),
		door.On("POST /v1/devices/{id}/remove", identity.RightAdmin, s.apiRemoveDevice),
		door.On("GET /v1/sign-ins", identity.RightAdmin, s.apiSignIns),
		door.On("POST /v1/sign-ins/{id}/end", identity.RightAdmin, s.apiEndSignIn),
		door.On("GET /v1/sandboxes", identity.RightWatch, s.apiSandboxes),
		door.On("GET /v1/sandboxes/{name}", identity.RightWatch, s.apiSandbox),
		door.On("POST /v1/sandboxes/prune", identity.RightAdmin, s.apiPruneSandboxes),
		door.On("POST /v1/sandboxes/{name}/stop", identity.RightAdmin, s.apiStopSandbox),
		door.On("POST /v1/sandboxes/{name}/remove", identity.RightAdmin, s.apiRemoveSandbox),
		door.On("POST /v1/shutdown", identity.RightAdmin, s.apiShutdown),
	}
}

// routes answers requests that have a caller.
func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()
	door.AddRows(mux, "", s.rows(), s.guard)
	mux.HandleFunc("/", door.JSON(s.log, func(_ http.ResponseWriter, r *http.Request) error {
		return door.NewProblem(http.StatusNotFound, "docs/api.md lists all routes", "there is no %s %s", r.Method, door.QuoteShort(r.URL.Path))
	}))
	return mux
}

// guard checks the right of a row before its handler runs.
func (s *Server) guard(row door.Row[Caller]) http.Handler {
	return door.JSON(s.log, func(w http.ResponseWriter, r *http.Request) error {
		c, ok := r.Context().Value(callerKey{}).(Caller)
		if !ok {
			return door.NewProblem(http.StatusForbidden, "", "nobody is known to ask")
		}
		if err := c.By.May(row.Right); err != nil {
			if c.Why != nil {
				err = c.Why // says what is wrong with this terminal, not only that it is not signed in
			}
			return door.NewProblem(http.StatusUnauthorized, "run: toolward login", "%s", err.Error())
		}
		return row.Handle(w, r, c)
	})
}

// As is the API for requests of a caller.
func (s *Server) As(c Caller) http.Handler { return withCaller(s.handler, c) }

// SocketRoutes adds the API to the socket door, with the sign-in of terminals.
func (s *Server) SocketRoutes(mux *http.ServeMux) {
	mux.HandleFunc("/v1/", door.JSON(s.log, func(w http.ResponseWriter, r *http.Request) error {
		c, err := s.callerAtSocket(r)
		if err != nil {
			return err
		}
		s.As(c).ServeHTTP(w, r)
		return nil
	}))
	mux.HandleFunc("POST /v1/login", door.JSON(s.log, s.signInTerminal))
	mux.HandleFunc("POST /v1/setup", door.JSON(s.log, s.setUpTerminal))
	mux.HandleFunc("POST /v1/logout", door.JSON(s.log, s.signOutTerminal))
}

// New makes the API.
func New(o *Options) *Server {
	s := &Server{
		home: o.Home, address: o.Address, streams: o.Streams,
		people: o.People, approvals: o.Approvals, audit: o.Audit, levels: o.Levels, gateway: o.Gateway,
		policy: o.Policy, desk: o.Desk, sandboxes: o.Sandboxes,
		observes: o.ObserveOnly, version: o.Version, stop: o.Stop, log: o.Log, started: time.Now(),
	}
	s.handler = s.routes()
	return s
}
