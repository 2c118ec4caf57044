package rule

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/idna"
)

// longestURL bounds the texts that hostIn takes, in bytes.
const longestURL = 8192

// address is where a URL or a host with a port points to, in the one form in which hosts are compared: lower case,
// international names as ASCII ("xn--…"), no dot at the end, IP addresses in their shortest form.
type address struct {
	host string
	port string // "" if it is not stated and the scheme has none
}

// addressOf reads a URL, "host:port" or "host". What different programs would read differently is an error: a text
// with credentials and no scheme, a backslash, a number that some take for an IP address.
func addressOf(text string) (address, error) {
	if len(text) > longestURL {
		return address{}, errors.New("the text is too long for an address")
	}
	if a, ok := plainAddress(text); ok {
		return a, nil
	}
	if !utf8.ValidString(text) {
		return address{}, errors.New("an address is UTF-8")
	}
	if strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r == 0x7f || r == '\\' }) {
		return address{}, errors.New("an address holds no blanks, control characters or backslashes")
	}
	scheme := ""
	if before, _, ok := strings.Cut(text, "://"); ok {
		scheme = strings.ToLower(before)
	} else {
		if strings.ContainsAny(text, "/@?#%") {
			return address{}, errors.New("without a scheme only a host and a port can be read")
		}
		if ip, err := netip.ParseAddr(text); err == nil && ip.Is6() {
			text = "[" + text + "]"
		}
		text = "//" + text
	}
	u, err := url.Parse(text)
	if err != nil {
		return address{}, errors.New("not an address")
	}
	host, err := canonicalHost(u.Hostname())
	if err != nil {
		return address{}, err
	}
	a := address{host: host, port: u.Port()}
	if a.port == "" {
		a.port = defaultPorts[scheme]
	} else if n, err := strconv.ParseUint(a.port, 10, 16); err != nil || n == 0 {
		return address{}, errors.New("the port is not a number from 1 to 65535")
	} else {
		a.port = strconv.FormatUint(n, 10) // no zeros in front
	}
	return a, nil
}

// plainAddress reads what most addresses look like, https://docs.example.org:8443/a?b, without taking them apart. What
// it does not know it leaves to addressOf.
func plainAddress(text string) (address, bool) {
	scheme, rest, ok := strings.Cut(text, "://")
	if !ok || scheme != "https" && scheme != "http" {
		return address{}, false
	}
	host, port, end := rest, defaultPorts[scheme], len(rest)
	for i := 0; i < len(rest); i++ {
		if c := rest[i]; c == '/' || c == '?' || c == '#' {
			end = i
			break
		}
	}
	host = rest[:end]
	if i := strings.IndexByte(host, ':'); i >= 0 {
		host, port = host[:i], host[i+1:]
		if len(port) < 1 || len(port) > 4 || port[0] < '1' || strings.Trim(port, "0123456789") != "" {
			return address{}, false
		}
	}
	for i := end; i < len(rest); i++ {
		if c := rest[i]; c <= ' ' || c >= 0x7f || c == '\\' || c == '%' {
			return address{}, false
		}
	}
	return address{host, port}, plainHost(host)
}

// plainHost reports whether a host is written in its only form: labels of lower case letters, digits and single
// hyphens, the last of letters.
func plainHost(host string) bool {
	label := 0 // where the present one begins
	for i := 0; i <= len(host); i++ {
		switch {
		case i == len(host) || host[i] == '.':
			if i == label || i-label > 63 {
				return false
			}
			if i < len(host) {
				label = i + 1
			}
		case host[i] >= 'a' && host[i] <= 'z', host[i] >= '0' && host[i] <= '9':
		case host[i] == '-' && i > label && i+1 < len(host) && host[i+1] != '-' && host[i+1] != '.' && host[i-1] != '-':
		default:
			return false
		}
	}
	return strings.Trim(host[label:], "abcdefghijklmnopqrstuvwxyz") == ""
}

var defaultPorts = map[string]string{"http": "80", "ws": "80", "https": "443", "wss": "443", "ftp": "21", "ssh": "22"}

// lookup maps international names the way browsers and resolvers do before they look them up.
var lookup = idna.New(idna.MapForLookup(), idna.BidiRule(), idna.StrictDomainName(false), idna.Transitional(false))

func canonicalHost(host string) (string, error) {
	if ip, err := netip.ParseAddr(host); err == nil {
		if ip.Zone() != "" {
			return "", errors.New("an address with a zone names no host of its own")
		}
		return ip.Unmap().String(), nil
	}
	ascii, err := lookup.ToASCII(host)
	if err != nil {
		return "", errors.New("not a host name")
	}
	ascii = strings.TrimSuffix(ascii, ".")
	if again, err := lookup.ToASCII(ascii); err != nil || again != ascii {
		return "", errors.New("not a host name") // an encoded name that stands for no name
	}
	if ascii == "" || strings.HasPrefix(ascii, ".") || strings.HasSuffix(ascii, ".") || strings.Contains(ascii, "..") ||
		strings.ContainsFunc(ascii, func(r rune) bool { return !inHost(r) }) {
		return "", errors.New("not a host name")
	}
	// The mapping turns full-width digits into plain ones, so an address may only show now.
	if ip, err := netip.ParseAddr(ascii); err == nil {
		return ip.Unmap().String(), nil
	}
	if last := ascii[strings.LastIndexByte(ascii, '.')+1:]; looksNumeric(last) {
		// 0x7f.1, 2130706433, 127.1: some programs reach 127.0.0.1 by these.
		return "", errors.New("a number in the place of a host name")
	}
	return ascii, nil
}

func inHost(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '-' || r == '.' || r == '_'
}

func looksNumeric(label string) bool {
	if rest, ok := strings.CutPrefix(label, "0x"); ok {
		return strings.Trim(rest, "0123456789abcdef") == ""
	}
	return strings.Trim(label, "0123456789") == ""
}

// hostEntry is one entry of the list of hostIn.
type hostEntry struct {
	host       string
	subdomains bool   // the names below host, not host itself
	port       string // "": any
}

// hostList is the second argument of hostIn.
type hostList []hostEntry

// newHostList reads entries: "example.org" is that host, "*.example.org" every host below it but not itself,
// "example.org:8443" that port of it only.
func newHostList(entries []string) (hostList, error) {
	list := make(hostList, len(entries))
	for i, entry := range entries {
		rest, below := strings.CutPrefix(entry, "*.")
		if strings.ContainsAny(rest, "*/@?#") {
			return nil, fmt.Errorf(`%q is not a host: write "example.org", "*.example.org" for all hosts below it, or "example.org:8443"`, entry)
		}
		a, err := addressOf(rest)
		if err != nil {
			return nil, fmt.Errorf("%q: %w", entry, err)
		}
		if _, err := netip.ParseAddr(a.host); err == nil && below {
			return nil, fmt.Errorf("%q: nothing is below an IP address", entry)
		}
		list[i] = hostEntry{host: a.host, subdomains: below, port: a.port}
	}
	return list, nil
}

// contains reports whether an entry covers the host of a URL or of "host:port".
func (l hostList) contains(text string) (bool, error) {
	a, err := addressOf(text)
	if err != nil {
		return false, err
	}
	return l.covers(a), nil
}

func (l hostList) covers(a address) bool {
	return slices.ContainsFunc(l, func(e hostEntry) bool { return e.covers(a) })
}

func (e *hostEntry) covers(a address) bool {
	if e.port != "" && e.port != a.port {
		return false
	}
	if !e.subdomains {
		return a.host == e.host
	}
	// The dot in front keeps evil-example.org out of *.example.org.
	return len(a.host) > len(e.host)+1 && strings.HasSuffix(a.host, e.host) && a.host[len(a.host)-len(e.host)-1] == '.'
}
