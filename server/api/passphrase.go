package api

import (
	"context"
	"net/http"

	"github.com/toolward/toolward/audit"
	"github.com/toolward/toolward/identity"
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
	if err := s.ChangePassphrase(r, c.By, body.Old, body.Passphrase); err != nil {
		return err
	}
	door.WriteJSON(w, http.StatusOK, struct{}{})
	return nil
}

func (s *Server) ChangePassphrase(r *http.Request, by identity.Authority, old, fresh string) error {
	// Whoever goes away while it is hashed must not leave it unknown whether it counts.
	if err := s.people.ChangePassphrase(context.WithoutCancel(r.Context()), by, old, fresh); err != nil {
		if p := SignInProblem(err); p.Status != http.StatusForbidden {
			return p
		}
		return door.NewProblem(http.StatusUnprocessableEntity, "", "%s", err.Error())
	}
	s.Note(r, audit.TypeConfig, map[string]any{"event": "passphrase-changed", "by": by.Name()})
	return nil
}
