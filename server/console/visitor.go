package console

import (
	"errors"
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
func (v *visitor) atDesk() desk.Visitor { return desk.Visitor{By: v.by, Connection: v.connection()} }

func (v *visitor) connection() string { return "console:" + v.by.SignIn() }

func (s *Server) visitorOf(r *http.Request) (*visitor, error) {
	notSignedIn := door.NewProblem(http.StatusUnauthorized, "sign in at "+s.address.ConsoleURL(), "not signed in")
	token, ok := signInToken(r)
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

func parseForm(r *http.Request) error {
	if err := r.ParseForm(); err != nil {
		var tooLarge *http.MaxBytesError
		if errors.As(err, &tooLarge) {
			return err
		}
		return door.NewProblem(http.StatusBadRequest, "", "the form cannot be read")
	}
	return nil
}

// newPage is the frame of a console page; here is the path of the page in the navigation.
func (s *Server) newPage(v *visitor, title, here string) page {
	p := page{Title: title, Base: v.base, Waiting: s.approvals.Count(), Observe: s.observes}
	if s.notices != nil {
		p.Trouble = s.notices()
	}
	for _, item := range []navItem{
		{Name: "Waiting", Path: "/", Count: true},
		{Name: "Decisions", Path: "/decisions"},
		{Name: "Tools", Path: "/tools"},
		{Name: "Sessions", Path: "/sessions"},
		{Name: "Sandboxes", Path: "/sandboxes"},
		{Name: "Grants", Path: "/grants"},
		{Name: "Access", Path: "/sign-ins"},
	} {
		item.Here = item.Path == here
		p.Nav = append(p.Nav, item)
	}
	return p
}
