package netguard

import (
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/net/publicsuffix"
)

// Pattern is a host as an operator lists it: "api.github.com", "*.npmjs.org" for every name below one, each with ":port" for
// that port alone; without one, the ports of the web. The zero value matches nothing.
type Pattern struct {
	host  string // in its one form
	below bool
	port  uint16 // 0: 80 and 443
}

// ParsePattern reads a pattern. It takes nothing that stands for hosts which nobody has thought of: no "*" alone, nothing
// below a suffix under which anybody registers a name, no ranges of addresses, no host that no guard would dial.
func ParsePattern(text string) (Pattern, error) {
	bad := func(format string, args ...any) (Pattern, error) {
		return Pattern{}, fmt.Errorf("%q: %s", shown(text), fmt.Sprintf(format, args...))
	}
	rest, below := strings.CutPrefix(strings.TrimSpace(text), "*.")
	switch {
	case strings.Contains(rest, "/"):
		return bad("write a host, neither an address range nor a URL")
	case strings.Contains(rest, "*"):
		return bad(`a "*" stands only at the beginning, before a dot: *.example.org`)
	}
	name, port, ok := splitPort(rest, "")
	if !ok || strings.HasSuffix(rest, ":") || port == 0 && strings.Contains(rest[len(name):], ":") {
		return bad("write host or host:port, the port from 1 to 65535")
	}
	var strict Policy
	h, refused := strict.host(name)
	suffix, managed := publicsuffix.PublicSuffix(h.text)
	switch {
	case refused != nil && refused.Code == CodeInvalidHost, name == "":
		return bad("it is no host name")
	case below && h.text != "" && suffix == h.text && (managed || !strings.Contains(suffix, ".")):
		return bad("anybody can have a name below %s: list the names that are meant", h.text)
	case below && h.address.IsValid():
		return bad("an address has no names below it")
	case refused != nil:
		return bad("it is never reached, whoever lists it (%s)", refused.Code)
	}
	if refused := strict.port(port); port != 0 && refused != nil {
		return bad("port %d is never reached, whoever lists it", port)
	}
	return Pattern{h.text, below, port}, nil
}

// Matches reports whether the pattern covers a host in its one form, and a port.
func (p Pattern) Matches(host string, port uint16) bool {
	return p.Covers(host) && (p.port == port || p.port == 0 && (port == 80 || port == 443))
}

// Covers reports whether the pattern covers a host in its one form, at one port at least.
func (p Pattern) Covers(host string) bool {
	if p.host == "" || !p.below {
		return p.host != "" && host == p.host
	}
	return len(host) > len(p.host)+1 && strings.HasSuffix(host, "."+p.host)
}

// Broad reports whether strangers have names that the pattern covers, such as everything below github.io.
func (p Pattern) Broad() bool {
	suffix, _ := publicsuffix.PublicSuffix(p.host)
	return p.below && suffix == p.host
}

// String is the pattern in its one form.
func (p Pattern) String() string {
	text := bracketed(p.host)
	if p.below {
		text = "*." + text
	}
	if p.port != 0 {
		text += ":" + strconv.Itoa(int(p.port))
	}
	return text
}
