package console

import (
	"net/http"

	"github.com/toolward/toolward/identity"
	"github.com/toolward/toolward/server/api"
	"github.com/toolward/toolward/server/door"
)

// rows are the pages below /c/{key}/. Only a signed-in person gets to any of them, and only with the right of its row:
// no handler asks again who may do what it does.
func (s *Server) rows() []door.Row[*visitor] {
	rows := []door.Row[*visitor]{
		door.On("GET /{$}", identity.RightAnswer, s.showQueue),
		door.On("GET /events", identity.RightAnswer, s.follow),
		door.On("GET /approvals/{id}", identity.RightWatch, s.showOne),
		door.On("POST /approvals/{id}", identity.RightAnswer, s.answer),
		door.On("POST /approvals", identity.RightAnswer, s.answerAll),
		door.On("GET /approvals/{id}/past/{proposal}", identity.RightWatch, s.showPast),
		door.On("GET /decisions", identity.RightWatch, s.showDecisions),
		door.On("GET /record/{seq}", identity.RightWatch, s.showRecord),
		door.On("GET /log", identity.RightWatch, s.showLog),
		door.On("GET /log/events", identity.RightWatch, s.followLog),
		door.On("GET /tools", identity.RightWatch, s.showMatrix),
		door.On("GET /tools/one", identity.RightWatch, s.showForecast),
		door.On("GET /tools/layers", identity.RightWatch, s.showLayers),
		door.On("GET /sessions", identity.RightWatch, s.showSessions),
		door.On("GET /sessions/one", identity.RightWatch, s.showSession),
		door.On("POST /sessions/floor", identity.RightClearLevel, s.setFloorFromPage),
		door.On("POST /sessions/clear", identity.RightClearLevel, s.clearFromPage),
		door.On("GET /anomalies", identity.RightWatch, s.showAnomalies),
		door.On("GET /sandboxes", identity.RightWatch, s.showSandboxes),
		door.On("GET /sandboxes/one", identity.RightWatch, s.showSandbox),
		door.On("GET /sandboxes/events", identity.RightWatch, s.followSandboxes),
		door.On("POST /sandboxes/stop", identity.RightAdmin, s.stopFromPage),
		door.On("POST /sandboxes/recreate", identity.RightAdmin, s.recreateFromPage),
		door.On("POST /sandboxes/prune", identity.RightAdmin, s.pruneFromPage),
		door.On("GET /grants", identity.RightWatch, s.showGrants),
		door.On("POST /grants/{id}/revoke", identity.RightAdmin, s.revokeFromPage),
		door.On("GET /sign-ins", identity.RightAdmin, s.showSignIns),
		door.On("POST /sign-ins/{id}/end", identity.RightAdmin, s.endSignIn),
		door.On("GET /tokens", identity.RightAdmin, s.showTokens),
		door.On("POST /tokens", identity.RightAdmin, s.createFromPage),
		door.On("POST /tokens/{id}/revoke", identity.RightAdmin, s.revokeTokenFromPage),
		door.On("GET /passkeys", identity.RightAdmin, s.showPasskeys),
		door.On("POST /passkeys/presence", identity.RightAdmin, s.askPresence),
		door.On("POST /passkeys/new", identity.RightAdmin, s.beginPasskey),
		door.On("POST /passkeys", identity.RightAdmin, s.addPasskey),
		door.On("POST /passkeys/{id}/rename", identity.RightAdmin, s.renamePasskey),
		door.On("POST /passkeys/{id}/remove", identity.RightAdmin, s.removePasskey),
		door.On("GET /devices", identity.RightAdmin, s.showDevices),
		door.On("POST /devices/{id}/approve", identity.RightAdmin, s.approveFromPage),
		door.On("POST /devices/{id}/reject", identity.RightAdmin, s.rejectFromPage),
		door.On("POST /devices/{id}/remove", identity.RightAdmin, s.removeFromPage),
		door.On("POST /devices/{id}/tokens/{role}/rotate", identity.RightAdmin, s.rotateFromPage),
		door.On("POST /devices/{id}/tokens/{role}/revoke", identity.RightAdmin, s.revokeDeviceTokenFromPage),
		door.On("GET /passphrase", identity.RightAdmin, s.showPassphrase),
		door.On("POST /passphrase", identity.RightAdmin, s.changeFromPage),
		door.On("POST /sign-out", identity.RightWatch, s.signOut),
		door.On("POST /config", identity.RightConfigure, s.applyFromPage),
	}
	if s.metrics != nil {
		rows = append(rows, door.On("GET /metrics", identity.RightWatch, s.showMetrics))
	}
	return rows
}

// Routes adds the console to the TCP door.
func (s *Server) Routes(mux *http.ServeMux) {
	mux.HandleFunc("GET /web/{version}/{file}", serveWeb)
	mux.HandleFunc("GET /{$}", s.page(s.showDoor))
	mux.HandleFunc("GET /approvals/{id}", s.page(s.showDoor)) // where links in clients and chats lead
	mux.HandleFunc("POST /sign-in", s.page(s.signIn))
	mux.HandleFunc("POST /setup", s.page(s.setUp))
	mux.HandleFunc("POST "+passkeyPrefix, s.page(s.askPasskey))
	mux.HandleFunc("POST "+passkeyPrefix+"/{key}", s.page(s.signInWithPasskey))
	door.AddRows(mux, "/c/{key}", s.rows(), s.guard)
	mux.HandleFunc("/c/{key}/v1/", door.JSON(s.log, func(w http.ResponseWriter, r *http.Request) error {
		v, err := s.visitorOf(r)
		if err != nil {
			return err
		}
		http.StripPrefix(v.base, s.api.As(api.Caller{By: v.by, Connection: v.connection()})).ServeHTTP(w, r)
		return nil
	}))
	mux.HandleFunc("/", s.page(func(http.ResponseWriter, *http.Request) error {
		return door.NewProblem(http.StatusNotFound, "", "there is no such page")
	}))
}

// showMetrics is GET /c/{key}/metrics.
func (s *Server) showMetrics(w http.ResponseWriter, r *http.Request, _ *visitor) error {
	s.metrics.ServeHTTP(w, r)
	return nil
}

// guard gives the handler of a row its signed-in person, or refuses. Every request asks anew whether the sign-in still
// holds.
func (s *Server) guard(row door.Row[*visitor]) http.Handler {
	return s.page(func(w http.ResponseWriter, r *http.Request) error {
		v, err := s.visitorOf(r)
		if err != nil {
			return err
		}
		return serveRow(row, w, r, v)
	})
}

// serveRow runs the handler of a row for somebody who has its right.
func serveRow(row door.Row[*visitor], w http.ResponseWriter, r *http.Request, v *visitor) error {
	if err := v.by.May(row.Right); err != nil {
		return api.AnswerProblem(err)
	}
	return row.Handle(w, r, v)
}

// page turns an error of a handler into a page, or JSON for the console's script.
func (s *Server) page(handle func(http.ResponseWriter, *http.Request) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		p := door.Run(s.log, handle, w, r)
		switch {
		case p == nil:
		case r.Header.Get("Accept") == "application/json":
			door.WriteJSON(w, p.Status, p)
		case p.Status == http.StatusUnauthorized:
			http.Redirect(w, r, afterSignIn(r.PathValue("id"))+"?out=1", http.StatusSeeOther)
		default:
			s.showProblem(w, r, p)
		}
	}
}
