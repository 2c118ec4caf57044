package console

import (
	"net/http"

	"github.com/toolward/toolward/identity"
	"github.com/toolward/toolward/server/door"
)

// visitor is a signed-in person in a browser.
type visitor struct {
	by   identity.Authority
	base string // path of their console
	key  string
}

func (v *visitor) connection() string { return "console:" + v.by.Session() }

// visited gives a console handler its signed-in person, or refuses. Every request asks anew whether the sign-in
// still holds.
func (s *Server) visited(handle func(http.ResponseWriter, *http.Request, *visitor) error) func(http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		v, err := s.visitorOf(r)
		if err != nil {
			return err
		}
		return handle(w, r, v)
	}
}

func (s *Server) visitorOf(r *http.Request) (*visitor, error) {
	notSignedIn := door.NewProblem(http.StatusUnauthorized, "sign in at "+s.address.ConsoleURL(), "not signed in")
	token, ok := sessionToken(r)
	if !ok {
		return nil, notSignedIn
	}
	by, err := s.people.Web(token)
	if err != nil {
		return nil, notSignedIn
	}
	key := r.PathValue("key")
	return &visitor{by: by, base: consolePrefix + key, key: key}, nil
}
