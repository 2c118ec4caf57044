package api

import (
	"errors"
	"net/http"
	"strconv"

	"github.com/toolward/toolward/identity"
	"github.com/toolward/toolward/server/door"
)

// callerAtSocket says who is behind a socket request: the person who signed in the terminal of the process that
// asks, else a requester. Being able to open the socket proves nothing.
func (s *Server) callerAtSocket(r *http.Request) (Caller, error) {
	peer, ok := door.PeerOf(r.Context())
	if !ok {
		return Caller{}, door.NewProblem(http.StatusForbidden, "", "the process that asks cannot be told")
	}
	c := Caller{By: identity.Requester(), Connection: "socket:" + strconv.Itoa(peer.PID), Terminal: true}
	by, err := s.people.Terminal(peer)
	if err != nil {
		c.Why = err
		return c, nil
	}
	c.By = by
	return c, nil
}

// Passphrase is the body of POST /v1/login.
type Passphrase struct {
	Passphrase string `json:"passphrase"`
}

// SignedIn is the answer of POST /v1/login and /v1/setup.
type SignedIn struct {
	Name string `json:"name"`           // what records will call the person
	Note string `json:"note,omitempty"` // the passphrase is set, but this terminal could not be signed in: why
}

// signInTerminal is POST /v1/login: "toolward login" in a terminal.
func (s *Server) signInTerminal(w http.ResponseWriter, r *http.Request) error {
	var body Passphrase
	if err := door.ReadJSON(r, &body); err != nil {
		return err
	}
	peer, ok := door.PeerOf(r.Context())
	if !ok {
		return door.NewProblem(http.StatusForbidden, "", "the process that asks cannot be told")
	}
	by, err := s.people.SignInTerminal(r.Context(), peer, body.Passphrase)
	if err != nil {
		return SignInProblem(err)
	}
	door.WriteJSON(w, http.StatusOK, SignedIn{Name: by.Name()})
	return nil
}

// FirstPassphrase is the body of POST /v1/setup.
type FirstPassphrase struct {
	Code       string `json:"code"` // printed by "toolward up"
	Passphrase string `json:"passphrase"`
}

// setUpTerminal is POST /v1/setup: the first passphrase, set from a terminal, which is then signed in.
func (s *Server) setUpTerminal(w http.ResponseWriter, r *http.Request) error {
	var body FirstPassphrase
	if err := door.ReadJSON(r, &body); err != nil {
		return err
	}
	peer, ok := door.PeerOf(r.Context())
	if !ok {
		return door.NewProblem(http.StatusForbidden, "", "the process that asks cannot be told")
	}
	if err := s.people.SetUp(r.Context(), "socket", body.Code, body.Passphrase); err != nil {
		return SignInProblem(err)
	}
	by, err := s.people.SignInTerminal(r.Context(), peer, body.Passphrase)
	if err != nil {
		door.WriteJSON(w, http.StatusOK, SignedIn{Note: err.Error()})
		return nil
	}
	door.WriteJSON(w, http.StatusOK, SignedIn{Name: by.Name()})
	return nil
}

// signOutTerminal is POST /v1/logout.
func (s *Server) signOutTerminal(w http.ResponseWriter, r *http.Request) error {
	c, err := s.callerAtSocket(r)
	if err != nil {
		return err
	}
	if !c.By.IsPerson() {
		return door.NewProblem(http.StatusConflict, "", "this terminal is not signed in")
	}
	s.people.SignOut(c.By)
	door.WriteJSON(w, http.StatusOK, struct{}{})
	return nil
}

// signInProblem says why a sign-in failed. What the device package says is meant for the person who tries.
func SignInProblem(err error) *door.Problem {
	var rate *identity.RateError
	switch {
	case errors.As(err, &rate):
		return door.NewProblem(http.StatusTooManyRequests, "", "%s", rate.Error())
	case errors.Is(err, identity.ErrPassphrase):
		return door.NewProblem(http.StatusUnauthorized, "", "%s", err.Error())
	case errors.Is(err, identity.ErrNeedsSetup):
		return door.NewProblem(http.StatusConflict, "run: toolward login", "%s", err.Error())
	}
	return door.NewProblem(http.StatusForbidden, "", "%s", err.Error())
}
