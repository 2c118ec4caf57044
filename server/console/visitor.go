package console

import (
	"net/http"

	"github.com/toolward/toolward/desk"
	"github.com/toolward/toolward/identity"
	"github.com/toolward/toolward/server/door"
)

// visitor is a signed-in person in a browser.
type visitor struct {
	by   identity.Authority
	base string // path of their console
	key  string
}

// atDesk is the visitor at the desk.
func (v *visitor) atDesk() desk.Visitor { return desk.Visitor{By: v.by} }

func (v *visitor) connection() string { return "console:" + v.by.Session() }

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
