package api

import (
	"net/http"
	"sync"
	"time"

	"github.com/toolward/toolward/identity"
	"github.com/toolward/toolward/server/door"
)

// configShown remembers which change each sign-in was shown, and when. A change can only be applied by somebody who
// has seen exactly this one for half a second: a click must not hit a card that has just appeared, nor apply a file
// that an agent changed again after it was read.
type configShown struct {
	mu   sync.Mutex
	seen map[string]shownChange // by sign-in
}

type shownChange struct {
	revision string
	at       time.Time
}

// leastShown is how long something must have been on the screen before an answer to it counts.
const leastShown = 500 * time.Millisecond

func (c *configShown) mark(session, revision string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.seen[session].revision == revision {
		return
	}
	if c.seen == nil || len(c.seen) >= 1000 {
		c.seen = map[string]shownChange{}
	}
	c.seen[session] = shownChange{revision, time.Now()}
}

func (c *configShown) check(session, revision string) *door.Problem {
	c.mu.Lock()
	defer c.mu.Unlock()
	seen, ok := c.seen[session]
	switch {
	case !ok || revision == "" || seen.revision != revision:
		return door.NewProblem(http.StatusPreconditionFailed, "load it again and read the difference", "this change was not shown here")
	case time.Since(seen.at) < leastShown:
		return door.NewProblem(http.StatusTooEarly, "", "answered within half a second of being shown: read it first, then answer again")
	}
	return nil
}

// applyConfig puts the shown change in force.
func (s *Server) ApplyConfig(r *http.Request, by identity.Authority, revision string) error {
	if err := by.May(identity.RightConfigure); err != nil {
		return AnswerProblem(err)
	}
	if p := s.shown.check(by.Session(), revision); p != nil {
		return p
	}
	if err := s.config.ApplyChange(r.Context(), revision, by.Name()); err != nil {
		return door.NewProblem(http.StatusConflict, "", "%s", err.Error())
	}
	return nil
}

func (s *Server) apiPendingConfig(w http.ResponseWriter, _ *http.Request, c Caller) error {
	change, ok := s.PendingChange(c.By)
	if !ok {
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
	if err := s.ApplyConfig(r, c.By, body.Revision); err != nil {
		return err
	}
	door.WriteJSON(w, http.StatusOK, body)
	return nil
}

// pendingChange is the changed configuration that waits, if one does; a person is shown it now.
func (s *Server) PendingChange(by identity.Authority) (ConfigChange, bool) {
	change, ok := s.config.PendingChange()
	if ok {
		s.shown.mark(by.Session(), change.Revision)
	}
	return change, ok
}
