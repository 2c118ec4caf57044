package api

import (
	"net/http"
	"time"

	"github.com/toolward/toolward/desk"
	"github.com/toolward/toolward/server/door"
)

// rows are the JSON API, the same at both doors; docs/api.md is its reference.
func (s *Server) rows() []door.Row[Caller] {
	return []door.Row[Caller]{
		door.On("GET /v1/status", desk.SeeStatus, s.apiStatus),
		door.On("GET /v1/approvals", desk.OpenApprovals, s.apiApprovals),
		door.On("GET /v1/approvals/events", desk.SeeApprovals, s.apiWatch),
		door.On("GET /v1/approvals/{id}", desk.OpenApprovals, s.apiApproval),
		door.On("POST /v1/approvals/{id}", desk.AnswerApprovals, s.apiResolve),
		door.On("GET /v1/decisions", desk.SeeRecords, s.apiDecisions),
		door.On("GET /v1/grants", desk.SeeGrants, s.apiGrants),
		door.On("POST /v1/grants/{id}/revoke", desk.RevokeGrants, s.apiRevokeGrant),
		door.On("GET /v1/audit", desk.SeeRecords, s.apiAudit),
		door.On("GET /v1/audit/tail", desk.SeeRecords, s.apiAuditTail),
		door.On("GET /v1/audit/verify", desk.SeeRecords, s.apiAuditVerify),
		door.On("GET /v1/audit/export", desk.SeeRecords, s.apiAuditExport),
		door.On("GET /v1/sessions", desk.SeeSessions, s.apiSessions),
		door.On("GET /v1/anomalies", desk.SeeAnomalies, s.apiAnomalies),
		door.On("GET /v1/level", desk.SeeSessions, s.apiLevel),
		door.On("POST /v1/level", desk.ChangeLevel, s.apiSetLevel),
		door.On("DELETE /v1/level", desk.ChangeLevel, s.apiClearLevel),
		door.On("GET /v1/tokens", desk.SeeTokens, s.apiTokens),
		door.On("POST /v1/tokens", desk.ManageTokens, s.apiCreateToken),
		door.On("POST /v1/tokens/{id}/revoke", desk.ManageTokens, s.apiRevokeToken),
		door.On("POST /v1/passphrase", desk.ChangePassphrase, s.apiChangePassphrase),
		door.On("POST /v1/explain", desk.ExplainCalls, s.apiExplain),
		door.On("GET /v1/matrix", desk.SeePolicy, s.apiMatrix),
		door.On("GET /v1/matrix/tool", desk.SeePolicy, s.apiForecast),
		door.On("GET /v1/layers", desk.SeePolicy, s.apiLayers),
		door.On("GET /v1/config/pending", desk.SeeConfiguration, s.apiPendingConfig),
		door.On("POST /v1/config/apply", desk.ApplyConfiguration, s.apiApplyConfig),
		door.On("GET /v1/exec-approvals", desk.ReadAllowlist, s.apiCommands),
		door.On("PUT /v1/exec-approvals", desk.ChangeAllowlist, s.apiSetCommands),
		door.On("POST /v1/exec-approvals/allowlist", desk.ChangeAllowlist, s.apiAllowCommand),
		door.On("DELETE /v1/exec-approvals/allowlist", desk.ChangeAllowlist, s.apiDisallowCommand),
		door.On("GET /v1/devices", desk.SeeDevices, s.apiDevices),
		door.On("POST /v1/devices/{id}/approve", desk.ManageDevices, s.apiApproveDevice),
		door.On("POST /v1/devices/{id}/reject", desk.ManageDevices, s.apiRejectDevice),
		door.On("POST /v1/devices/{id}/remove", desk.ManageDevices, s.apiRemoveDevice),
		door.On("GET /v1/sign-ins", desk.SeeSignIns, s.apiSignIns),
		door.On("POST /v1/sign-ins/{id}/end", desk.EndSignIns, s.apiEndSignIn),
		door.On("GET /v1/sandboxes", desk.SeeSandboxes, s.apiSandboxes),
		door.On("GET /v1/sandboxes/{name}", desk.SeeSandboxes, s.apiSandbox),
		door.On("POST /v1/sandboxes/prune", desk.EndSandboxes, s.apiPruneSandboxes),
		door.On("POST /v1/sandboxes/{name}/stop", desk.EndSandboxes, s.apiStopSandbox),
		door.On("POST /v1/sandboxes/{name}/remove", desk.EndSandboxes, s.apiRemoveSandbox),
		door.On("GET /v1/sandboxes/{name}/ports", desk.SeeSandboxes, s.apiSandboxPorts),
		door.On("GET /v1/forwards", desk.SeeSandboxes, s.apiForwards),
		door.On("POST /v1/sandboxes/{name}/forwards", desk.ForwardPorts, s.apiForward),
		door.On("POST /v1/sandboxes/{name}/forwards/{port}/stop", desk.ForwardPorts, s.apiStopForward),
		door.On("GET /v1/undo", desk.SeeUndo, s.apiUndoCalls),
		door.On("GET /v1/undo/{id}", desk.SeeUndo, s.apiUndoCall),
		door.On("POST /v1/undo", desk.TakeCallsBack, s.apiTakeBack),
		door.On("POST /v1/shutdown", desk.ShutDown, s.apiShutdown),
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

// guard checks that the caller may do what a row is for, before its handler runs.
func (s *Server) guard(row door.Row[Caller]) http.Handler {
	return door.JSON(s.log, func(w http.ResponseWriter, r *http.Request) error {
		c, ok := r.Context().Value(callerKey{}).(Caller)
		if !ok {
			return door.NewProblem(http.StatusForbidden, "", "nobody is known to ask")
		}
		if err := c.visitor().May(row.Does); err != nil {
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
		people: o.People, approvals: o.Approvals, gateway: o.Gateway,
		policy: o.Policy, desk: o.Desk, sandboxes: o.Sandboxes,
		observes: o.ObserveOnly, notices: o.Notices, version: o.Version, stop: o.Stop, log: o.Log, started: time.Now(),
	}
	s.handler = s.routes()
	return s
}
