package netguard

import (
	"net/url"
	"strconv"
	"strings"
)

// URL is a URL that may be reached as far as its text tells.
type URL struct {
	Scheme string
	Host   string // in its one form; IPv6 without brackets
	Port   uint16
}

// URL checks a URL without a look-up.
func (p *Policy) URL(text string) (URL, error) {
	u, refused := p.url(text)
	if refused != nil {
		return URL{}, refused
	}
	return u, nil
}

// Refuses says why a URL may not be reached; "" if its text says nothing against it.
func (p *Policy) Refuses(text string) string {
	if _, refused := p.url(text); refused != nil {
		if refused.Range != "" {
			return string(refused.Code) + " (" + refused.Range + ")"
		}
		return string(refused.Code)
	}
	return ""
}

func (p *Policy) url(text string) (URL, *Error) {
	invalid := &Error{Code: CodeInvalidURL}
	// What a browser drops or turns around, others keep: no two programs agree on where such a URL leads.
	if text == "" || strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r == 0x7f || r == '\\' }) {
		return URL{}, invalid
	}
	scheme, rest, found := strings.Cut(text, ":")
	if !found || !isScheme(scheme) {
		return URL{}, invalid
	}
	scheme = strings.ToLower(scheme)
	if scheme != "http" && scheme != "https" {
		return URL{}, &Error{Code: CodeScheme}
	}
	rest, found = strings.CutPrefix(rest, "//")
	if !found {
		return URL{}, invalid
	}
	authority := rest
	if end := strings.IndexAny(rest, "/?#"); end >= 0 {
		authority = rest[:end]
	}
	if strings.Contains(authority, "@") {
		return URL{}, &Error{Code: CodeUserinfo}
	}
	name, port, ok := splitPort(authority, scheme)
	if !ok {
		return URL{}, invalid
	}
	if refused := p.port(port); refused != nil {
		return URL{}, refused
	}
	h, refused := p.host(name)
	if refused != nil {
		return URL{}, refused
	}
	// The library that sends the request reads the URL again: both must mean the same host.
	parsed, err := url.Parse(text)
	if err != nil || parsed.Opaque != "" || parsed.User != nil {
		return URL{}, invalid
	}
	if again, refused := normalize(bracketed(parsed.Hostname())); refused != nil || again.text != h.text {
		return URL{}, &Error{Code: CodeInvalidHost, Host: shown(name)}
	}
	return URL{Scheme: scheme, Host: h.text, Port: port}, nil
}

func bracketed(name string) string {
	if strings.Contains(name, ":") {
		return "[" + name + "]"
	}
	return name
}

func isScheme(s string) bool {
	for i, r := range s {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
		if !letter && (i == 0 || (r < '0' || r > '9') && r != '+' && r != '-' && r != '.') {
			return false
		}
	}
	return s != ""
}

// splitPort parts host and port. The host keeps its brackets.
func splitPort(authority, scheme string) (name string, port uint16, ok bool) {
	name, text := authority, ""
	if end := strings.LastIndexByte(authority, ']'); end >= 0 {
		name, text = authority[:end+1], authority[end+1:]
		if text != "" && text[0] != ':' || !strings.HasPrefix(name, "[") {
			return "", 0, false
		}
		text = strings.TrimPrefix(text, ":")
	} else {
		name, text, _ = strings.Cut(authority, ":")
		if strings.HasPrefix(name, "[") {
			return "", 0, false
		}
	}
	if text == "" {
		return name, map[string]uint16{"http": 80, "https": 443}[scheme], true
	}
	if strings.Trim(text, "0123456789") != "" {
		return "", 0, false
	}
	n, err := strconv.ParseUint(text, 10, 16)
	return name, uint16(n), err == nil
}

// Logged is the part of a URL that may be written to a log: paths and queries carry tokens.
func Logged(text string) string {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" {
		return "[invalid-url]"
	}
	scheme := strings.ToLower(u.Scheme)
	def, ok := map[string]string{"http": "80", "https": "443"}[scheme]
	if !ok {
		return "[invalid-url]"
	}
	logged := scheme + "://" + bracketed(strings.ToLower(u.Hostname()))
	if port := u.Port(); port != "" && port != def {
		logged += ":" + port
	}
	switch {
	case u.EscapedPath() != "" && u.EscapedPath() != "/":
		return logged + "/..."
	case u.RawQuery != "":
		return logged + "/?..."
	}
	return logged
}

func unbracketed(name string) string {
	return strings.TrimSuffix(strings.TrimPrefix(name, "["), "]")
}
