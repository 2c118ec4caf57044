package server

import (
	"net/http"

	"github.com/toolward/toolward/bridge/runclient"
	"github.com/toolward/toolward/server/door"
	"github.com/toolward/toolward/server/protocol"
)

// health says that the daemon answers, and nothing else.
func (s *Server) health(w http.ResponseWriter, _ *http.Request) {
	door.WriteJSON(w, http.StatusOK, map[string]bool{"ok": true})
}

// readiness says whether the gateway takes work: not while it ends.
func (s *Server) readiness(w http.ResponseWriter, r *http.Request) {
	ready, details := true, map[string]any(nil)
	if s.ready != nil {
		ready, details = s.ready(r)
	}
	if s.streams.Stopping() {
		ready = false
	}
	body, status := map[string]any{"ready": ready}, http.StatusOK
	if details != nil {
		body["details"] = details
	}
	if !ready {
		status = http.StatusServiceUnavailable
	}
	door.WriteJSON(w, status, body)
}

// tcpRoutes are the routes of the TCP door.
func (s *Server) tcpRoutes(o *Options) http.Handler {
	mux := http.NewServeMux()
	for _, path := range []string{"/healthz", "/health"} {
		mux.HandleFunc("GET "+path, s.health)
	}
	for _, path := range []string{"/readyz", "/ready"} {
		mux.HandleFunc("GET "+path, s.readiness)
	}
	s.console.Routes(mux)
	if o.MCP != nil {
		mux.Handle("/mcp", o.MCP)
	}
	if o.Invoke != nil {
		mux.Handle(protocol.ToolsPath, o.Invoke)
	}
	if o.Metrics != nil {
		mux.HandleFunc("GET /metrics", door.JSON(s.log, s.withMetricsToken(o.Metrics)))
	}
	return mux
}

// socketRoutes are the routes of the socket door. Only processes of the daemon's own user get in at all.
func (s *Server) socketRoutes(o *Options) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", s.health)
	s.api.SocketRoutes(mux)
	if o.Hooks != nil {
		mux.Handle("/v1/hook/", o.Hooks)
	}
	if o.Runs != nil {
		mux.Handle("POST "+runclient.Path, o.Runs)
	}
	if o.MCPStream != nil {
		mux.Handle(StreamPath, o.MCPStream)
	}
	guarded := limitBody(mux)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		setSafeHeaders(w.Header())
		// The socket's mode keeps other users out; root and a socket passed on to somebody are stopped here.
		if _, ok := door.PeerOf(r.Context()); !ok {
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
