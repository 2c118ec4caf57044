package server

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/toolward/toolward/server/api"
)

// A connection whose other end cannot be named, or belongs to another user, has no peer. The handlers of agents check
// nothing of the kind themselves: the door must.
func TestTheSocketServesNobodyUnknown(t *testing.T) {
	reached := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("a handler was reached") })
	s := &Server{api: api.New(&api.Options{Log: slog.New(slog.DiscardHandler)})}
	door := s.socketRoutes(&Options{MCPStream: reached, Hooks: reached})
	for _, path := range []string{"/healthz", "/v1/status", "/v1/login", "/v1/hook/claude-code/PreToolUse", StreamPath} {
		for _, method := range []string{http.MethodGet, http.MethodPost} {
			w := httptest.NewRecorder()
			door.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), method, path, http.NoBody))
			if w.Code != http.StatusForbidden {
				t.Errorf("%s %s: status %d", method, path, w.Code)
			}
		}
	}
}
