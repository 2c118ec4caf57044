package api

import (
	"net/http"

	"github.com/toolward/toolward/desk"
	"github.com/toolward/toolward/server/door"
)

// NewPassphrase is the body of POST /v1/passphrase.
type NewPassphrase struct {
	Old        string `json:"old"`
	Passphrase string `json:"passphrase"`
}

func (s *Server) apiChangePassphrase(w http.ResponseWriter, r *http.Request, c Caller) error {
	var body NewPassphrase
	if err := door.ReadJSON(r, &body); err != nil {
		return err
	}
	if err := s.desk.ChangePassphrase(r.Context(), c.visitor(), body.Old, body.Passphrase); err != nil {
		return PassphraseProblem(err)
	}
	door.WriteJSON(w, http.StatusOK, struct{}{})
	return nil
}

// PassphraseProblem says why the passphrase was not changed.
func PassphraseProblem(err error) error {
	status := http.StatusUnprocessableEntity
	switch desk.CodeOf(err) {
	case desk.NotAllowed:
		return Problem(err)
	case desk.TooOften:
		status = http.StatusTooManyRequests
	case desk.WrongPhrase:
		status = http.StatusUnauthorized
	}
	return door.NewProblem(status, "", "%s", err.Error())
}
