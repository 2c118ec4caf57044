package api

import (
	"net/http"

	"github.com/toolward/toolward/identity"
	"github.com/toolward/toolward/server/door"
)

// routes is the JSON API, the same at both doors; docs/api.md is its reference. What each route needs is checked
// by the right in its row, before its handler runs.
func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()
	for _, route := range []struct {
		pattern string
		right   identity.Right
		handle  func(http.ResponseWriter, *http.Request, Caller) error
	}{
		{"GET /v1/status", identity.RightRequest, s.apiStatus},
		{"GET /v1/approvals", identity.RightWatch, s.apiApprovals},
		{"GET /v1/approvals/events", identity.RightAnswer, s.apiWatch},
		{"GET /v1/approvals/{id}", identity.RightWatch, s.apiApproval},
		{"POST /v1/approvals/{id}", identity.RightAnswer, s.apiResolve},
		{"GET /v1/decisions", identity.RightWatch, s.apiDecisions},
		{"GET /v1/grants", identity.RightWatch, s.apiGrants},
		{"POST /v1/grants/{id}/revoke", identity.RightAdmin, s.apiRevokeGrant},
		{"GET /v1/audit", identity.RightWatch, s.apiAudit},
		{"GET /v1/audit/tail", identity.RightWatch, s.apiAuditTail},
		{"GET /v1/audit/verify", identity.RightWatch, s.apiAuditVerify},
		{"GET /v1/audit/export", identity.RightWatch, s.apiAuditExport},
		{"GET /v1/sessions", identity.RightWatch, s.apiSessions},
		{"GET /v1/anomalies", identity.RightWatch, s.apiAnomalies},
		{"GET /v1/level", identity.RightWatch, s.apiLevel},
		{"POST /v1/level", identity.RightClearLevel, s.apiSetLevel},
		{"DELETE /v1/level", identity.RightClearLevel, s.apiClearLevel},
		{"GET /v1/tokens", identity.RightAdmin, s.apiTokens},
		{"POST /v1/tokens", identity.RightAdmin, s.apiCreateToken},
		{"POST /v1/tokens/{id}/revoke", identity.RightAdmin, s.apiRevokeToken},
		{"POST /v1/passphrase", identity.RightAdmin, s.apiChangePassphrase},
		{"POST /v1/explain", identity.RightWatch, s.apiExplain},
		{"GET /v1/matrix", identity.RightWatch, s.apiMatrix},
		{"GET /v1/matrix/tool", identity.RightWatch, s.apiOutlook},
		{"GET /v1/layers", identity.RightWatch, s.apiLayers},
		{"GET /v1/config/pending", identity.RightWatch, s.apiPendingConfig},
		{"POST /v1/config/apply", identity.RightConfigure, s.apiApplyConfig},
		{"GET /v1/exec-approvals", identity.RightAdmin, s.apiCommands},
		{"PUT /v1/exec-approvals", identity.RightConfigure, s.apiSetCommands},
		{"POST /v1/exec-approvals/allowlist", identity.RightConfigure, s.apiAllowCommand},
		{"DELETE /v1/exec-approvals/allowlist", identity.RightConfigure, s.apiDisallowCommand},
		{"GET /v1/devices", identity.RightAdmin, s.apiDevices},
		{"POST /v1/devices/{id}/approve", identity.RightAdmin, s.apiApproveDevice},
		{"POST /v1/devices/{id}/reject", identity.RightAdmin, s.apiRejectDevice},
		{"POST /v1/devices/{id}/remove", identity.RightAdmin, s.apiRemoveDevice},
		{"GET /v1/sign-ins", identity.RightAdmin, s.apiSignIns},
		{"POST /v1/sign-ins/{id}/end", identity.RightAdmin, s.apiEndSignIn},
		{"GET /v1/sandboxes", identity.RightWatch, s.apiSandboxes},
		{"GET /v1/sandboxes/{name}", identity.RightWatch, s.apiSandbox},
		{"POST /v1/sandboxes/prune", identity.RightAdmin, s.apiPruneSandboxes},
		{"POST /v1/sandboxes/{name}/stop", identity.RightAdmin, s.apiStopSandbox},
		{"POST /v1/sandboxes/{name}/remove", identity.RightAdmin, s.apiRemoveSandbox},
		{"POST /v1/shutdown", identity.RightAdmin, s.apiShutdown},
	} {
		mux.HandleFunc(route.pattern, door.JSON(s.log, func(w http.ResponseWriter, r *http.Request) error {
			c, ok := r.Context().Value(callerKey{}).(Caller)
			if !ok {
				return door.NewProblem(http.StatusForbidden, "", "nobody is known to ask")
			}
			if err := c.By.May(route.right); err != nil {
				if c.Why != nil {
					err = c.Why // says what is wrong with this terminal, not only that it is not signed in
				}
				return door.NewProblem(http.StatusUnauthorized, "run: toolward login", "%s", err.Error())
			}
			return route.handle(w, r, c)
		}))
	}
	mux.HandleFunc("/", door.JSON(s.log, func(_ http.ResponseWriter, r *http.Request) error {
		return door.NewProblem(http.StatusNotFound, "docs/api.md lists all routes", "there is no %s %s", r.Method, door.QuoteShort(r.URL.Path))
	}))
	return mux
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
