package server

import (
	"net/http"
	"strings"

	"github.com/toolward/toolward/server/door"
)

// withMetricsToken lets whoever shows a token for metrics read them. They name tools and agents, so the agents under
// guard, which can reach the port as everybody on this machine, must not see them unasked.
func (s *Server) withMetricsToken(metrics http.Handler) func(http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		scheme, secret, _ := strings.Cut(r.Header.Get("Authorization"), " ")
		if !strings.EqualFold(scheme, "Bearer") || s.people.MetricsToken(r.Context(), strings.TrimSpace(secret)) != nil {
			w.Header().Set("WWW-Authenticate", `Bearer realm="toolward metrics"`)
			return door.NewProblem(http.StatusUnauthorized, "make a token with toolward token create --metrics, or sign in to the console",
				"metrics need a token of their own")
		}
		metrics.ServeHTTP(w, r)
		return nil
	}
}
