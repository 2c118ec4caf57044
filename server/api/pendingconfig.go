package api

import (
	"net/http"

	"github.com/toolward/toolward/desk"
	"github.com/toolward/toolward/server/door"
)

func (s *Server) apiPendingConfig(w http.ResponseWriter, _ *http.Request, c Caller) error {
	change, waits, err := s.desk.PendingChange(c.visitor())
	if err != nil {
		return ConfigProblem(err)
	}
	if !waits {
		return door.NewProblem(http.StatusNotFound, "", "no changed configuration is waiting")
	}
	door.WriteJSON(w, http.StatusOK, change)
	return nil
}

// ConfigAnswer is the body of POST /v1/config/apply.
type ConfigAnswer struct {
	Revision string `json:"revision"` // of the change that was shown
}

func (s *Server) apiApplyConfig(w http.ResponseWriter, r *http.Request, c Caller) error {
	var body ConfigAnswer
	if err := door.ReadJSON(r, &body); err != nil {
		return err
	}
	if err := s.desk.ApplyChange(r.Context(), c.visitor(), body.Revision); err != nil {
		return ConfigProblem(err)
	}
	door.WriteJSON(w, http.StatusOK, body)
	return nil
}

// ConfigProblem says why a changed configuration was not put in force.
func ConfigProblem(err error) error {
	switch desk.CodeOf(err) {
	case desk.NotAllowed:
		return Problem(err)
	case desk.NotShown:
		return door.NewProblem(http.StatusPreconditionFailed, "load it again and read the difference", "%s", err.Error())
	case desk.TooSoon:
		return door.NewProblem(http.StatusTooEarly, "", "%s", err.Error())
	case desk.Unrecorded:
		return door.NewProblem(http.StatusConflict, "", "the change could not be recorded, so it is not applied: %s", err.Error())
	}
	return door.NewProblem(http.StatusConflict, "", "%s", err.Error())
}
