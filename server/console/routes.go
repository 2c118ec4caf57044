package console

import (
	"net/http"

	"github.com/toolward/toolward/desk"
	"github.com/toolward/toolward/server/api"
	"github.com/toolward/toolward/server/door"
)

// rows are the pages below /c/{key}/. Only a signed-in person gets to any of them, and only if they may do
// what its row is for: desk knows the right of each operation.
func (s *Server) rows() []door.Row[*visitor] {
	rows := []door.Row[*visitor]{
		door.On("GET /{$}", desk.SeeApprovals, s.showQueue),
		door.On("GET /events", desk.SeeApprovals, s.follow),
		door.On("GET /approvals/{id}", desk.OpenApprovals, s.showOne),
		door.On("POST /approvals/{id}", desk.AnswerApprovals, s.answer),
		door.On("POST /approvals", desk.AnswerApprovals, s.answerAll),
		door.On("GET /approvals/{id}/past/{proposal}", desk.OpenApprovals, s.showPast),
		door.On("GET /decisions", desk.SeeRecords, s.showDecisions),
		door.On("GET /record/{seq}", desk.SeeRecords, s.showRecord),
		door.On("GET /log", desk.SeeRecords, s.showLog),
		door.On("GET /log/events", desk.SeeRecords, s.followLog),
		door.On("GET /tools", desk.SeePolicy, s.showMatrix),
		door.On("GET /tools/one", desk.SeePolicy, s.showForecast),
		door.On("GET /tools/layers", desk.SeePolicy, s.showLayers),
		door.On("GET /sessions", desk.SeeSessions, s.showSessions),
		door.On("GET /sessions/one", desk.SeeSessions, s.showSession),
		door.On("POST /sessions/floor", desk.ChangeLevel, s.setFloorFromPage),
		door.On("POST /sessions/clear", desk.ChangeLevel, s.clearFromPage),
		door.On("GET /anomalies", desk.SeeAnomalies, s.showAnomalies),
		door.On("GET /sandboxes", desk.SeeSandboxes, s.showSandboxes),
		door.On("GET /sandboxes/one", desk.SeeSandboxes, s.showSandbox),
		door.On("GET /sandboxes/events", desk.SeeSandboxes, s.followSandboxes),
		door.On("POST /sandboxes/stop", desk.EndSandboxes, s.stopFromPage),
		door.On("POST /sandboxes/recreate", desk.EndSandboxes, s.recreateFromPage),
		door.On("POST /sandboxes/forward", desk.ForwardPorts, s.forwardFromPage),
		door.On("POST /sandboxes/unforward", desk.ForwardPorts, s.unforwardFromPage),
		door.On("POST /sandboxes/prune", desk.EndSandboxes, s.pruneFromPage),
		door.On("GET /undo", desk.SeeUndo, s.showUndo),
		door.On("GET /undo/one", desk.SeeUndo, s.showUndoOne),
		door.On("POST /undo", desk.TakeCallsBack, s.takeBackFromPage),
		door.On("GET /grants", desk.SeeGrants, s.showGrants),
		door.On("POST /grants/{id}/revoke", desk.RevokeGrants, s.revokeFromPage),
		door.On("GET /sign-ins", desk.SeeSignIns, s.showSignIns),
		door.On("POST /sign-ins/{id}/end", desk.EndSignIns, s.endSignIn),
		door.On("GET /tokens", desk.SeeTokens, s.showTokens),
		door.On("POST /tokens", desk.ManageTokens, s.createFromPage),
		door.On("POST /tokens/{id}/revoke", desk.ManageTokens, s.revokeTokenFromPage),
		door.On("GET /passkeys", desk.ManagePasskeys, s.showPasskeys),
		door.On("POST /passkeys/presence", desk.ManagePasskeys, s.askPresence),
		door.On("POST /passkeys/new", desk.ManagePasskeys, s.beginPasskey),
		door.On("POST /passkeys", desk.ManagePasskeys, s.addPasskey),
		door.On("POST /passkeys/{id}/rename", desk.ManagePasskeys, s.renamePasskey),
		door.On("POST /passkeys/{id}/remove", desk.ManagePasskeys, s.removePasskey),
		door.On("GET /devices", desk.SeeDevices, s.showDevices),
		door.On("POST /devices/{id}/approve", desk.ManageDevices, s.approveFromPage),
		door.On("POST /devices/{id}/reject", desk.ManageDevices, s.rejectFromPage),
		door.On("POST /devices/{id}/remove", desk.ManageDevices, s.removeFromPage),
		door.On("POST /devices/{id}/tokens/{role}/rotate", desk.ManageDevices, s.rotateFromPage),
		door.On("POST /devices/{id}/tokens/{role}/revoke", desk.ManageDevices, s.revokeDeviceTokenFromPage),
		door.On("GET /passphrase", desk.ChangePassphrase, s.showPassphrase),
		door.On("POST /passphrase", desk.ChangePassphrase, s.changeFromPage),
		door.On("POST /sign-out", desk.SignOut, s.signOut),
		door.On("GET /browser", desk.OpenApprovals, s.tellBrowser),
		door.On("POST /config", desk.ApplyConfiguration, s.applyFromPage),
	}
	if s.metrics != nil {
		rows = append(rows, door.On("GET /metrics", desk.SeeMetrics, s.showMetrics))
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

// serveRow runs the handler of a row for somebody who may do what it is for.
func serveRow(row door.Row[*visitor], w http.ResponseWriter, r *http.Request, v *visitor) error {
	if err := v.atDesk().May(row.Does); err != nil {
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
