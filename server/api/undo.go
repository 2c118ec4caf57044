package api

import (
	"net/http"
	"strconv"

	"github.com/toolward/toolward/desk"
	"github.com/toolward/toolward/server/door"
)

// UndoList is the answer of GET /v1/undo.
type UndoList struct {
	Calls []desk.UndoCall `json:"calls"` // newest first
}

func (s *Server) apiUndoCalls(w http.ResponseWriter, r *http.Request, c Caller) error {
	limit, err := strconv.Atoi(r.URL.Query().Get("limit"))
	if err != nil {
		limit = 0
	}
	calls, err := s.desk.UndoCalls(r.Context(), c.visitor(), desk.UndoFilter{Session: r.URL.Query().Get("session"), Limit: limit})
	if err != nil {
		return UndoProblem(err)
	}
	door.WriteJSON(w, http.StatusOK, UndoList{calls})
	return nil
}

func (s *Server) apiUndoCall(w http.ResponseWriter, r *http.Request, c Caller) error {
	call, err := s.desk.UndoCall(r.Context(), c.visitor(), r.PathValue("id"))
	if err != nil {
		return UndoProblem(err)
	}
	door.WriteJSON(w, http.StatusOK, call)
	return nil
}

func (s *Server) apiTakeBack(w http.ResponseWriter, r *http.Request, c Caller) error {
	var request desk.UndoRequest
	if err := door.ReadJSON(r, &request); err != nil {
		return err
	}
	answer, err := s.desk.TakeBack(r.Context(), c.visitor(), request)
	if err != nil {
		return UndoProblem(err)
	}
	door.WriteJSON(w, http.StatusOK, answer)
	return nil
}

// UndoProblem says why nothing was taken back or shown.
func UndoProblem(err error) error {
	switch desk.CodeOf(err) {
	case desk.NotKept:
		return door.NewProblem(http.StatusNotFound, "undo.enabled is false in the configuration", "this gateway keeps nothing of workspaces")
	case desk.Unknown:
		return door.NewProblem(http.StatusNotFound, "toolward undo lists what can be taken back", "%s", err.Error())
	case desk.Invalid:
		return door.NewProblem(http.StatusBadRequest, "docs/undo.md", "%s", err.Error())
	case desk.Failed:
		return door.NewProblem(http.StatusInternalServerError, "docs/undo.md", "%s", err.Error())
	case desk.Changed:
		return door.NewProblem(http.StatusConflict, "docs/undo.md", "%s", err.Error())
	}
	return Problem(err)
}
