package door

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"

	"github.com/toolward/toolward/identity"
)

// Address is where people and programs reach the doors. It is complete before the first request.
type Address struct {
	Listen  net.Addr // of the TCP door
	Public  PublicOrigin
	Proxies Proxies
	// OwnsLocalhost says that whoever asks for localhost at our port reaches us.
	OwnsLocalhost bool
}

// URL is the console's address on this machine.
func (a *Address) URL() string { return "http://" + a.Listen.String() }

// Localhost is the name and the port of the TCP door on this machine.
func (a *Address) Localhost() string {
	_, port, _ := net.SplitHostPort(a.Listen.String())
	return "localhost:" + port
}

// ConsoleURL is where people reach the console: the public origin if there is one.
func (a *Address) ConsoleURL() string {
	if a.Public.Set() {
		return a.Public.String()
	}
	return a.URL()
}

// IsEncrypted reports whether a request reached us encrypted, as far as the browser is concerned. A reverse proxy ends
// the encryption before us; what counts is whether the browser asked for the public origin. Somebody who asks for that name
// without encryption only gets a cookie that their browser does not keep.
func (a *Address) IsEncrypted(r *http.Request) bool {
	return r.TLS != nil || a.Public.TLS() && a.Public.Is(r.Host)
}

// OriginOf is the origin that a browser shows for a request.
func (a *Address) OriginOf(r *http.Request) string {
	switch {
	case a.Public.Is(r.Host):
		return a.Public.String()
	case r.TLS != nil:
		return "https://" + r.Host
	}
	return "http://" + r.Host
}

// SiteOf is where the browser of a request sees the console, for passkeys; or why they cannot be used there. It never
// believes the port that a browser names: a page that an agent serves on another port of localhost would ask a person for
// their passkey and use the answer here.
func (a *Address) SiteOf(r *http.Request) (site identity.Site, why string) {
	name := strings.ToLower(r.Host)
	if host, _, err := net.SplitHostPort(name); err == nil {
		name = host
	}
	_, err := netip.ParseAddr(strings.Trim(name, "[]"))
	local := a.Localhost()
	switch {
	case err == nil && a.OwnsLocalhost && !a.Public.Is(r.Host):
		return identity.Site{}, fmt.Sprintf("Passkeys belong to a name, and %s is an address. Open the console at http://%s to use them.", name, local)
	case err == nil:
		return identity.Site{}, fmt.Sprintf("Passkeys belong to a name, and %s is an address.", name)
	case a.Public.Is(r.Host) && (a.Public.TLS() || name == "localhost"):
		return identity.Site{Name: a.Public.Name(), Origin: a.Public.String()}, ""
	case name == "localhost" && !a.OwnsLocalhost:
		return identity.Site{}, fmt.Sprintf("Another program may be behind localhost, so passkeys cannot be used there. If you know that none is, set server.publicOrigin to http://%s.", local)
	case strings.EqualFold(r.Host, local):
		return identity.Site{Name: "localhost", Origin: "http://" + local}, ""
	case name == "localhost":
		return identity.Site{}, fmt.Sprintf("Passkeys can be used at http://%s.", local)
	case a.Public.TLS():
		return identity.Site{}, fmt.Sprintf("Passkeys can be used at %s, the public origin of the configuration.", a.Public)
	}
	return identity.Site{}, "Passkeys need https here: put a reverse proxy with TLS in front and name its address in server.publicOrigin."
}

// SourceOf names where a browser is, for the limit on wrong passphrases. Behind a reverse proxy that is not trusted all
// browsers are in one place: what anybody may write into a header must not give a guesser a new start. This machine is
// one place, too: a program may connect from every address of 127.0.0.0/8, and to either loopback address.
func (a *Address) SourceOf(r *http.Request) string {
	switch client := a.Proxies.Client(r); {
	case !client.IsValid():
		return "unknown"
	case client.IsLoopback():
		return "127.0.0.1"
	default:
		return client.String()
	}
}
