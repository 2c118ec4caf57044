package server

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/toolward/toolward/bridge/runclient"
	"github.com/toolward/toolward/server/door"
	"github.com/toolward/toolward/server/protocol"
)

// contentPolicy lets a console page load our own scripts and styles and nothing else, so that a hostile argument
// which ever escaped the templates could still neither run nor phone home.
const contentPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; " +
	"img-src 'self' data:; frame-ancestors 'none'; base-uri 'none'; form-action 'self'"

// maxBody bounds the body of console and API requests in bytes. The MCP and hook handlers bound their own.
const maxBody = 256 << 10

// hostNames are the names under which the TCP door may be addressed.
type hostNames map[string]bool

// newHostNames checks and collects additional host names; loopback names and addresses are always accepted.
func newHostNames(extra []string) (hostNames, error) {
	names := hostNames{"localhost": true}
	for _, name := range extra {
		clean := strings.ToLower(strings.TrimSuffix(name, "."))
		if clean == "" || strings.ContainsAny(clean, "*/:@ \t\r\n") {
			return nil, fmt.Errorf("host name %q: give a plain name such as gate.example.org, without scheme, port or wildcard", name)
		}
		names[clean] = true
	}
	return names, nil
}

// accepts reports whether a Host header names this server. It stops DNS rebinding: a page of evil.example whose name
// suddenly resolves to 127.0.0.1 reaches us, but with its own name in the Host header.
func (n hostNames) accepts(host string) bool {
	name := host
	if h, port, err := net.SplitHostPort(host); err == nil {
		if !digitsOnly(port) {
			return false
		}
		name = h
	} else if strings.HasPrefix(host, "[") && strings.HasSuffix(host, "]") {
		name = host[1 : len(host)-1]
	}
	if addr, err := netip.ParseAddr(name); err == nil {
		// Zones and IPv4-mapped spellings have no business in a browser's address bar.
		return addr.IsLoopback() && addr.Zone() == "" && !addr.Is4In6() || n[name]
	}
	return n[strings.ToLower(strings.TrimSuffix(name, "."))]
}

func digitsOnly(s string) bool {
	for _, c := range []byte(s) {
		if c < '0' || c > '9' {
			return false
		}
	}
	return s != ""
}

// guardTCP is what every request at the TCP door passes first: host, smuggling oddities, origin, headers. A WebSocket
// goes to sockets, wherever it is addressed: the gateway protocol checks itself which pages may connect, and says so in
// its own words.
func guardTCP(names hostNames, sockets, next http.Handler) http.Handler {
	crossOrigin := http.NewCrossOriginProtection()
	inner := crossOrigin.Handler(limitBody(next))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		setSafeHeaders(w.Header())
		switch {
		case !names.accepts(r.Host):
			refuse(w, r, http.StatusMisdirectedRequest, "this server does not answer to the host name "+door.QuoteShort(r.Host),
				"open it as http://127.0.0.1:<port>, or add the name to server.hosts in toolward.jsonc")
		case sockets != nil && protocol.IsUpgrade(r) && odd(r) == "":
			sockets.ServeHTTP(w, r)
		case !sameOriginHeader(names, r):
			// CrossOriginProtection lets safe methods through; a cross-origin read of the event stream or the MCP
			// endpoint is refused here as well, as the MCP transport specification demands.
			refuse(w, r, http.StatusForbidden, "requests from another web page are refused", "open the console itself")
		case odd(r) != "":
			refuse(w, r, http.StatusBadRequest, odd(r), "")
		default:
			inner.ServeHTTP(w, r)
		}
	})
}

// sameOriginHeader reports whether the Origin header, if there is one, names the very host that was addressed.
func sameOriginHeader(names hostNames, r *http.Request) bool {
	origins := r.Header.Values("Origin")
	if len(origins) == 0 {
		return true
	}
	if len(origins) > 1 {
		return false
	}
	rest, ok := strings.CutPrefix(origins[0], "http://")
	if !ok {
		rest, ok = strings.CutPrefix(origins[0], "https://")
	}
	return ok && strings.EqualFold(rest, r.Host) && names.accepts(rest)
}

// odd names what is wrong with a request that a front proxy and this server could read in two ways, or "".
// net/http already refuses conflicting lengths; this closes what is legal but has no honest use here.
func odd(r *http.Request) string {
	switch {
	case r.Method == http.MethodConnect || r.Method == http.MethodTrace:
		return "method not allowed here"
	case r.URL.Scheme != "" || r.URL.User != nil:
		return "the request target must be a plain path"
	case strings.Contains(r.URL.EscapedPath(), "%00"):
		return "the path contains a NUL byte"
	case r.Header.Get("X-HTTP-Method-Override") != "" || r.Header.Get("X-Original-URL") != "" || r.Header.Get("X-Rewrite-URL") != "":
		return "headers that rewrite the request are refused"
	}
	return ""
}

// setSafeHeaders sets what every answer carries, errors included.
func setSafeHeaders(h http.Header) {
	h.Set("Content-Security-Policy", contentPolicy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	// The console's path is half of its key (console/cookie.go): no other origin may see it. "no-referrer" would do that too, but
	// browsers then send forms with "Origin: null".
	h.Set("Referrer-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=(), payment=(), usb=()")
	h.Set("Cache-Control", "no-store")
}

// bodyPatience is how long a request's body may take to arrive.
const bodyPatience = 15 * time.Second

// limitBody reads the bodies of console and API requests before their handlers run, within a size and a time. A body
// that trickles in byte by byte must not hold a handler, nor a lock that a handler takes.
func limitBody(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !boundsItsOwnBody(r.URL.Path) && r.Body != http.NoBody {
			body, p := readBody(w, r)
			if p != nil {
				w.Header().Set("Connection", "close") // what is left of the body is not read
				door.WriteJSON(w, p.Status, p)
				return
			}
			r.Body = io.NopCloser(bytes.NewReader(body))
		}
		next.ServeHTTP(w, r)
	})
}

func readBody(w http.ResponseWriter, r *http.Request) ([]byte, *door.Problem) {
	if r.ContentLength > maxBody {
		return nil, door.NewProblem(http.StatusRequestEntityTooLarge, "", "the body is larger than %d bytes", maxBody)
	}
	control := http.NewResponseController(w)
	if err := control.SetReadDeadline(time.Now().Add(bodyPatience)); err != nil {
		return nil, door.NewProblem(http.StatusInternalServerError, "", "this connection cannot be timed")
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		if p := door.ProblemOf(err); p.Status == http.StatusRequestEntityTooLarge {
			return nil, p
		}
		return nil, door.NewProblem(http.StatusRequestTimeout, "", "the body did not arrive whole")
	}
	if err := control.SetReadDeadline(time.Time{}); err != nil {
		return nil, door.NewProblem(http.StatusInternalServerError, "", "this connection cannot be timed")
	}
	return body, nil
}

// boundsItsOwnBody names the injected handlers, whose messages may carry whole files.
func boundsItsOwnBody(path string) bool {
	return path == "/mcp" || path == "/v1/mcp" || path == protocol.ToolsPath || strings.HasPrefix(path, "/v1/hook/") || path == runclient.Path
}

// transportSecurity makes browsers ask for the public origin encrypted for a year, so that nobody on the way can lead
// them to it without. Other hosts of the domain are not ours to decide about, nor are other ports of this machine, which
// the promise would bind too: at a loopback name nothing is promised, and nobody is on the way.
const transportSecurity = "max-age=31536000"

// refuse answers with a problem as JSON. Console pages use showProblem instead.
func refuse(w http.ResponseWriter, _ *http.Request, status int, message, hint string) {
	door.WriteJSON(w, status, &door.Problem{Status: status, Message: message, Hint: hint})
}

// encrypted adds Strict-Transport-Security to what is answered at an encrypted public origin, refusals included.
func encrypted(address *door.Address, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if address.IsEncrypted(r) && !address.Public.IsLoopback() {
			w.Header().Set("Strict-Transport-Security", transportSecurity)
		}
		next.ServeHTTP(w, r)
	})
}
