package console

import (
	"net/http"

	"github.com/toolward/toolward/identity"
	"github.com/toolward/toolward/server/door"
)

// passkeysElsewhere is an origin at which a passkey may open the console, for people who came to another; "" if there
// is none. Only people who are on this machine are sent to localhost: on another one it is whatever runs there.
func (s *Server) passkeysElsewhere(r *http.Request) string {
	switch {
	case s.passkeys == nil:
	case s.address.Public.TLS() && s.passkeys.Any(s.address.Public.Name()):
		return s.address.Public.String()
	case s.address.OwnsLocalhost && door.IsLoopbackHost(r.Host) && s.passkeys.Any("localhost"):
		return "http://" + s.address.Localhost()
	}
	return ""
}

// siteOf is where the browser of a request sees the console, for passkeys; or why they cannot be used there.
func (s *Server) siteOf(r *http.Request) (site identity.Site, why string) {
	if s.passkeys == nil {
		return identity.Site{}, "This gateway keeps no passkeys."
	}
	return s.address.SiteOf(r)
}

// passkeySite is where passkeys are used, or a problem that says why they cannot be.
func (s *Server) passkeySite(r *http.Request) (identity.Site, error) {
	site, why := s.siteOf(r)
	if why != "" {
		return identity.Site{}, door.NewProblem(http.StatusConflict, "", "%s", why)
	}
	return site, nil
}
