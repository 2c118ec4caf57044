package door

import (
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

// OriginRules say which web pages may connect.
type OriginRules struct {
	Allowed      []string // exact origins, such as https://console.example.org
	HostFallback bool     // the page of whatever host name the browser used
}

// Accepts reports whether a page of this origin may open a connection that was addressed to host. It is what keeps any
// page that a person happens to look at from talking to the gateway on the same machine.
func (r OriginRules) Accepts(origin, host string) bool {
	page, ok := parseOrigin(origin)
	if !ok {
		return false
	}
	if slices.ContainsFunc(r.Allowed, func(allowed string) bool {
		a, ok := parseOrigin(allowed)
		return ok && a == page
	}) {
		return true
	}
	if page.scheme != "http" && page.scheme != "https" {
		return false // pages of browser extensions and files are named exactly or not at all
	}
	if isLoopbackName(page.name) && isLoopbackName(hostName(host)) {
		return true
	}
	return r.HostFallback && host != "" && page.host() == (webOrigin{page.scheme, hostName(host), portOf(host, page.scheme)}).host()
}

// webOrigin is an origin in comparable form.
type webOrigin struct{ scheme, name, port string }

func (o webOrigin) host() string { return net.JoinHostPort(o.name, o.port) }

// IsOrigin reports whether a text is an origin, such as https://console.example.org.
func IsOrigin(text string) bool {
	_, ok := parseOrigin(text)
	return ok
}

func parseOrigin(text string) (webOrigin, bool) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme == "" || u.Host == "" || u.User != nil || u.Opaque != "" ||
		u.Path != "" && u.Path != "/" || u.RawQuery != "" || u.Fragment != "" {
		return webOrigin{}, false
	}
	scheme := strings.ToLower(u.Scheme)
	return webOrigin{scheme, strings.ToLower(u.Hostname()), portOf(u.Host, scheme)}, u.Hostname() != ""
}

// hostName is the name in a Host header, without port and brackets.
func hostName(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		return strings.ToLower(name)
	}
	return strings.ToLower(strings.TrimSuffix(strings.TrimPrefix(host, "["), "]"))
}

func portOf(host, scheme string) string {
	if _, port, err := net.SplitHostPort(host); err == nil && port != "" {
		return port
	}
	if scheme == "https" || scheme == "wss" {
		return "443"
	}
	return "80"
}

// IsLoopbackHost reports whether a Host header can only mean this machine.
func IsLoopbackHost(host string) bool { return isLoopbackName(hostName(host)) }

// isLoopbackName reports whether a host name can only mean this machine.
func isLoopbackName(name string) bool {
	if name == "localhost" {
		return true
	}
	ip, err := netip.ParseAddr(name)
	return err == nil && ip.IsLoopback() && ip.Zone() == "" && !ip.Is4In6()
}

// PublicOrigin is where people reach the console through a reverse proxy, such as https://gate.example.org. The zero
// value is none.
type PublicOrigin struct{ page webOrigin }

// ParsePublicOrigin reads an origin: http or https, a host and at most a port. "" is none.
func ParsePublicOrigin(text string) (PublicOrigin, error) {
	if text == "" {
		return PublicOrigin{}, nil
	}
	page, ok := parseOrigin(text)
	if !ok || page.scheme != "http" && page.scheme != "https" || strings.ContainsAny(page.name, "*% ") || strings.HasSuffix(page.name, ".") {
		return PublicOrigin{}, fmt.Errorf("%s: expected an exact origin such as https://gate.example.org", QuoteShort(text))
	}
	return PublicOrigin{page}, nil
}

// Set reports whether there is one.
func (o PublicOrigin) Set() bool { return o.page.name != "" }

// Name is the host without its port.
func (o PublicOrigin) Name() string { return o.page.name }

// TLS reports whether people reach it encrypted.
func (o PublicOrigin) TLS() bool { return o.page.scheme == "https" }

// IsLoopback reports whether its host can only mean the machine that a browser runs on.
func (o PublicOrigin) IsLoopback() bool {
	return isLoopbackName(o.page.name) || strings.HasSuffix(o.page.name, ".localhost")
}

// String is the origin as browsers write it; "" for none.
func (o PublicOrigin) String() string {
	if !o.Set() {
		return ""
	}
	host := o.page.name
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	if o.page.port != portOf("", o.page.scheme) {
		host += ":" + o.page.port
	}
	return o.page.scheme + "://" + host
}

// Is reports whether a Host header names it. With a dot at its end a name is the same, to DNS and to the certificate.
func (o PublicOrigin) Is(host string) bool {
	return o.Set() && strings.TrimSuffix(hostName(host), ".") == o.page.name && portOf(host, o.page.scheme) == o.page.port
}
