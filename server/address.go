package server

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"syscall"

	"github.com/toolward/toolward/identity"
	"github.com/toolward/toolward/server/protocol"
)

// ConsoleURL is where people reach the console: the public origin if there is one.
func (s *Server) ConsoleURL() string {
	if s.public.Set() {
		return s.public.String()
	}
	return s.URL()
}

// isEncrypted reports whether a request reached us encrypted, as far as the browser is concerned. A reverse proxy ends
// the encryption before us; what counts is whether the browser asked for the public origin. Somebody who asks for that name
// without encryption only gets a cookie that their browser does not keep.
func (s *Server) isEncrypted(r *http.Request) bool {
	return r.TLS != nil || s.public.TLS() && s.public.Is(r.Host)
}

// originOf is the origin that a browser shows for a request.
func (s *Server) originOf(r *http.Request) string {
	switch {
	case s.public.Is(r.Host):
		return s.public.String()
	case r.TLS != nil:
		return "https://" + r.Host
	}
	return "http://" + r.Host
}

// transportSecurity makes browsers ask for the public origin encrypted for a year, so that nobody on the way can lead
// them to it without. Other hosts of the domain are not ours to decide about, nor are other ports of this machine, which
// the promise would bind too: at a loopback name nothing is promised, and nobody is on the way.
const transportSecurity = "max-age=31536000"

// encrypted adds Strict-Transport-Security to what is answered at an encrypted public origin, refusals included.
func (s *Server) encrypted(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.isEncrypted(r) && !s.public.IsLoopback() {
			w.Header().Set("Strict-Transport-Security", transportSecurity)
		}
		next.ServeHTTP(w, r)
	})
}

// listenTCP opens the TCP door and its twin. If the system chooses the port, it is one that both can have.
func (s *Server) listenTCP(address string) (err error) {
	for range 8 {
		if s.tcpDoor, err = net.Listen("tcp", address); err != nil {
			return err
		}
		taken := s.openTwin()
		if taken == nil {
			return nil
		}
		if !strings.HasSuffix(address, ":0") {
			s.log.Warn("another program may be behind localhost: passkeys cannot be used there", "err", taken)
			return nil
		}
		_ = s.tcpDoor.Close()
	}
	return errors.New("no port is free on both loopback addresses")
}

// openTwin listens on the other loopback address, too, or says who has it. Browsers take "localhost" for either: a
// program of this machine that listens there would stand between a person and the console, and could pass their
// passkey's answers on.
func (s *Server) openTwin() (taken error) {
	addr, ok := s.tcpDoor.Addr().(*net.TCPAddr)
	if !ok {
		return nil
	}
	ip := addr.AddrPort().Addr().Unmap()
	twin := "::1"
	switch ip {
	case netip.AddrFrom4([4]byte{127, 0, 0, 1}):
	case netip.IPv6Loopback():
		twin = "127.0.0.1"
	default:
		// Localhost is not us, or, with all addresses of a container, that of another machine than the browser's.
		return nil
	}
	door, err := net.Listen("tcp", net.JoinHostPort(twin, strconv.Itoa(addr.Port)))
	switch {
	case err == nil:
		s.twinDoor, s.ownsLocalhost = door, true
	case errors.Is(err, syscall.EADDRNOTAVAIL) || errors.Is(err, syscall.EAFNOSUPPORT):
		s.ownsLocalhost = true // there is no such address here: nobody can listen on it
	default:
		return err
	}
	return nil
}

// passkeysElsewhere is an origin at which a passkey may open the console, for people who came to another; "" if there
// is none. Only people who are on this machine are sent to localhost: on another one it is whatever runs there.
func (s *Server) passkeysElsewhere(r *http.Request) string {
	_, port, _ := net.SplitHostPort(s.tcpDoor.Addr().String())
	switch {
	case s.passkeys == nil:
	case s.public.TLS() && s.passkeys.Any(s.public.Name()):
		return s.public.String()
	case s.ownsLocalhost && protocol.IsLoopbackHost(r.Host) && s.passkeys.Any("localhost"):
		return "http://localhost:" + port
	}
	return ""
}

// siteOf is where the browser of a request sees the console, for passkeys; or why they cannot be used there. It never
// believes the port that a browser names: a page that an agent serves on another port of localhost would ask a person for
// their passkey and use the answer here.
func (s *Server) siteOf(r *http.Request) (site identity.Site, why string) {
	name := strings.ToLower(r.Host)
	if host, _, err := net.SplitHostPort(name); err == nil {
		name = host
	}
	_, err := netip.ParseAddr(strings.Trim(name, "[]"))
	_, port, _ := net.SplitHostPort(s.tcpDoor.Addr().String())
	local := "localhost:" + port
	switch {
	case s.passkeys == nil:
		return identity.Site{}, "This gateway keeps no passkeys."
	case err == nil && s.ownsLocalhost && !s.public.Is(r.Host):
		return identity.Site{}, fmt.Sprintf("Passkeys belong to a name, and %s is an address. Open the console at http://%s to use them.", name, local)
	case err == nil:
		return identity.Site{}, fmt.Sprintf("Passkeys belong to a name, and %s is an address.", name)
	case s.public.Is(r.Host) && (s.public.TLS() || name == "localhost"):
		return identity.Site{Name: s.public.Name(), Origin: s.public.String()}, ""
	case name == "localhost" && !s.ownsLocalhost:
		return identity.Site{}, fmt.Sprintf("Another program may be behind localhost, so passkeys cannot be used there. If you know that none is, set server.publicOrigin to http://%s.", local)
	case strings.EqualFold(r.Host, local):
		return identity.Site{Name: "localhost", Origin: "http://" + local}, ""
	case name == "localhost":
		return identity.Site{}, fmt.Sprintf("Passkeys can be used at http://%s.", local)
	case s.public.TLS():
		return identity.Site{}, fmt.Sprintf("Passkeys can be used at %s, the public origin of the configuration.", s.public)
	}
	return identity.Site{}, "Passkeys need https here: put a reverse proxy with TLS in front and name its address in server.publicOrigin."
}
