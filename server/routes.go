package server

import (
	"fmt"
	"net/http"
	"runtime/debug"
	"strings"

	"github.com/toolward/toolward/identity"
	"github.com/toolward/toolward/server/protocol"
)

// tcpRoutes are the routes of the TCP door. Everything under /c/{key}/ needs a signed-in person.
func (s *Server) tcpRoutes(o Options) http.Handler {
	mux := http.NewServeMux()
	for _, path := range []string{"/healthz", "/health"} {
		mux.HandleFunc("GET "+path, s.health)
	}
	for _, path := range []string{"/readyz", "/ready"} {
		mux.HandleFunc("GET "+path, s.readiness)
	}
	mux.HandleFunc("GET /web/{version}/{file}", serveWeb)
	mux.HandleFunc("GET /{$}", s.page(s.showDoor))
	mux.HandleFunc("GET /approvals/{id}", s.page(s.showDoor)) // where links in clients and chats lead
	mux.HandleFunc("POST /sign-in", s.page(s.signIn))
	mux.HandleFunc("POST /setup", s.page(s.setUp))
	mux.HandleFunc("POST "+passkeyPrefix, s.page(s.askPasskey))
	mux.HandleFunc("POST "+passkeyPrefix+"/{key}", s.page(s.signInWithPasskey))

	person := func(pattern string, handle func(http.ResponseWriter, *http.Request, *visitor) error) {
		method, path, _ := strings.Cut(pattern, " ")
		mux.HandleFunc(method+" /c/{key}"+path, s.page(s.visited(handle)))
	}
	person("GET /{$}", s.showQueue)
	person("GET /events", s.follow)
	person("GET /approvals/{id}", s.showOne)
	person("POST /approvals/{id}", s.answer)
	person("POST /approvals", s.answerAll)
	person("GET /approvals/{id}/past/{proposal}", s.showPast)
	person("GET /decisions", s.showDecisions)
	person("GET /record/{seq}", s.showRecord)
	person("GET /log", s.showLog)
	person("GET /log/events", s.followLog)
	person("GET /tools", s.showMatrix)
	person("GET /tools/one", s.showOutlook)
	person("GET /tools/layers", s.showLayers)
	person("GET /sessions", s.showSessions)
	person("GET /sessions/one", s.showSession)
	person("POST /sessions/floor", s.setFloorFromPage)
	person("POST /sessions/clear", s.clearFromPage)
	person("GET /anomalies", s.showAnomalies)
	person("GET /sandboxes", s.showSandboxes)
	person("GET /sandboxes/one", s.showSandbox)
	person("GET /sandboxes/events", s.followSandboxes)
	person("POST /sandboxes/stop", s.stopFromPage)
	person("POST /sandboxes/recreate", s.recreateFromPage)
	person("POST /sandboxes/prune", s.pruneFromPage)
	person("GET /grants", s.showGrants)
	person("POST /grants/{id}/revoke", s.revokeFromPage)
	person("GET /sign-ins", s.showSignIns)
	person("POST /sign-ins/{id}/end", s.endSignIn)
	person("GET /tokens", s.showTokens)
	person("POST /tokens", s.createFromPage)
	person("POST /tokens/{id}/revoke", s.revokeTokenFromPage)
	person("GET /passkeys", s.showPasskeys)
	person("POST /passkeys/presence", s.askPresence)
	person("POST /passkeys/new", s.beginPasskey)
	person("POST /passkeys", s.addPasskey)
	person("POST /passkeys/{id}/rename", s.renamePasskey)
	person("POST /passkeys/{id}/remove", s.removePasskey)
	person("GET /devices", s.showDevices)
	person("POST /devices/{id}/approve", s.approveFromPage)
	person("POST /devices/{id}/reject", s.rejectFromPage)
	person("POST /devices/{id}/remove", s.removeFromPage)
	person("POST /devices/{id}/tokens/{role}/rotate", s.rotateFromPage)
	person("POST /devices/{id}/tokens/{role}/revoke", s.revokeDeviceTokenFromPage)
	person("GET /passphrase", s.showPassphrase)
	person("POST /passphrase", s.changeFromPage)
	person("POST /sign-out", s.signOut)
	person("POST /config", s.applyFromPage)

	api := s.apiRoutes()
	mux.HandleFunc("/c/{key}/v1/", s.api(func(w http.ResponseWriter, r *http.Request) error {
		v, err := s.visitorOf(r)
		if err != nil {
			return err
		}
		http.StripPrefix(v.base, withCaller(api, caller{by: v.by, connection: v.connection()})).ServeHTTP(w, r)
		return nil
	}))
	if o.MCP != nil {
		mux.Handle("/mcp", o.MCP)
	}
	if o.Invoke != nil {
		mux.Handle(protocol.ToolsPath, o.Invoke)
	}
	if o.Metrics != nil {
		mux.HandleFunc("GET /metrics", s.api(s.withMetricsToken(o.Metrics)))
		person("GET /metrics", func(w http.ResponseWriter, r *http.Request, _ *visitor) error {
			o.Metrics.ServeHTTP(w, r)
			return nil
		})
	}
	mux.HandleFunc("/", s.page(func(http.ResponseWriter, *http.Request) error {
		return problem(http.StatusNotFound, "", "there is no such page")
	}))
	return mux
}

// socketRoutes are the routes of the socket door. Only processes of the daemon's own user get in at all.
func (s *Server) socketRoutes(o Options) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", s.health)
	api := s.apiRoutes()
	mux.HandleFunc("/v1/", s.api(func(w http.ResponseWriter, r *http.Request) error {
		c, err := s.callerAtSocket(r)
		if err != nil {
			return err
		}
		withCaller(api, c).ServeHTTP(w, r)
		return nil
	}))
	mux.HandleFunc("POST /v1/login", s.api(s.signInTerminal))
	mux.HandleFunc("POST /v1/setup", s.api(s.setUpTerminal))
	mux.HandleFunc("POST /v1/logout", s.api(s.signOutTerminal))
	if o.Hooks != nil {
		mux.Handle("/v1/hook/", o.Hooks)
	}
	if o.MCPStream != nil {
		mux.Handle(StreamPath, o.MCPStream)
	}
	guarded := limitBody(mux)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		setSafeHeaders(w.Header())
		// The socket's mode keeps other users out; root and a socket passed on to somebody are stopped here.
		if _, ok := PeerOf(r.Context()); !ok {
			refuse(w, r, http.StatusForbidden, "this socket serves programs of its own user only", "")
			return
		}
		if o.WebSocket != nil && protocol.IsUpgrade(r) && odd(r) == "" {
			o.WebSocket.ServeHTTP(w, r)
			return
		}
		guarded.ServeHTTP(w, r)
	})
}

// apiRoutes is the JSON API, the same at both doors; docs/api.md is its reference. What each route needs is checked
// by the right in its row, before its handler runs.
func (s *Server) apiRoutes() http.Handler {
	mux := http.NewServeMux()
	for _, route := range []struct {
		pattern string
		right   identity.Right
		handle  func(http.ResponseWriter, *http.Request, caller) error
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
		mux.HandleFunc(route.pattern, s.api(func(w http.ResponseWriter, r *http.Request) error {
			c, ok := r.Context().Value(callerKey{}).(caller)
			if !ok {
				return problem(http.StatusForbidden, "", "nobody is known to ask")
			}
			if err := c.by.May(route.right); err != nil {
				if c.why != nil {
					err = c.why // says what is wrong with this terminal, not only that it is not signed in
				}
				return problem(http.StatusUnauthorized, "run: toolward login", "%s", err.Error())
			}
			return route.handle(w, r, c)
		}))
	}
	mux.HandleFunc("/", s.api(func(_ http.ResponseWriter, r *http.Request) error {
		return problem(http.StatusNotFound, "docs/api.md lists all routes", "there is no %s %s", r.Method, quoteShort(r.URL.Path))
	}))
	return mux
}

// api turns an error of a handler into a JSON answer, and a panic into an error.
func (s *Server) api(handle func(http.ResponseWriter, *http.Request) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if p := s.run(handle, w, r); p != nil {
			writeJSON(w, p.Status, p)
		}
	}
}

// page turns an error of a handler into a page, or JSON for the console's script.
func (s *Server) page(handle func(http.ResponseWriter, *http.Request) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		p := s.run(handle, w, r)
		switch {
		case p == nil:
		case r.Header.Get("Accept") == "application/json":
			writeJSON(w, p.Status, p)
		case p.Status == http.StatusUnauthorized:
			http.Redirect(w, r, afterSignIn(r.PathValue("id"))+"?out=1", http.StatusSeeOther)
		default:
			s.showProblem(w, r, p)
		}
	}
}

func (s *Server) run(handle func(http.ResponseWriter, *http.Request) error, w http.ResponseWriter, r *http.Request) (p *Problem) {
	defer func() {
		if v := recover(); v != nil && v != http.ErrAbortHandler {
			s.log.Error("a request panicked", "route", r.Pattern, "panic", v, "stack", string(debug.Stack()))
			p = problemOf(fmt.Errorf("panic: %v", v))
		}
	}()
	err := handle(w, r)
	if err == nil {
		return nil
	}
	p = problemOf(err)
	if p.Status == http.StatusInternalServerError {
		s.log.Error("a request failed", "route", r.Pattern, "err", err)
	}
	return p
}

// health says that the daemon answers, and nothing else.
func (s *Server) health(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, map[string]bool{"ok": true})
}

// readiness says whether the gateway takes work: not while it ends.
func (s *Server) readiness(w http.ResponseWriter, r *http.Request) {
	ready, details := true, map[string]any(nil)
	if s.ready != nil {
		ready, details = s.ready(r)
	}
	select {
	case <-s.stopping:
		ready = false
	default:
	}
	body, status := map[string]any{"ready": ready}, http.StatusOK
	if details != nil {
		body["details"] = details
	}
	if !ready {
		status = http.StatusServiceUnavailable
	}
	writeJSON(w, status, body)
}
