package policy

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/policy/report"
)

// hosts compiles teg.web.allowHosts.
func (b *builder) hosts(entries []string, at report.Path) {
	b.snapshot.allowHosts = map[string]bool{}
	for i, entry := range entries {
		host, err := hostKey(entry)
		if err != nil {
			b.Fail(at.At(i), "%v", err)
			continue
		}
		b.snapshot.allowHosts[host] = true
	}
}

// hostKey brings an entry of teg.web.allowHosts to the form of toolward.Facts.Hosts: scheme://host:port.
func hostKey(entry string) (string, error) {
	text := strings.ToLower(strings.TrimSpace(entry))
	if !strings.Contains(text, "://") {
		text = "https://" + text
	}
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Hostname() == "":
		return "", fmt.Errorf("%q is not a host; write example.org or https://example.org:8443", entry)
	case u.Scheme != "http" && u.Scheme != "https":
		return "", fmt.Errorf("%q: only http and https hosts can be allowed", entry)
	case u.User != nil || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "":
		return "", fmt.Errorf("%q: only a host and a port count here, not a path or a user", entry)
	case strings.ContainsAny(u.Host, "*?"):
		return "", fmt.Errorf("%q: hosts are not patterns; write each one", entry)
	}
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	host := u.Hostname()
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	return u.Scheme + "://" + host + ":" + port, nil
}

// hostsAllowed reports whether teg.web.allowHosts covers every host of a call that a host grant could cover.
func (s *Snapshot) hostsAllowed(r *toolward.Request, grant toolward.GrantKind) bool {
	if grant != byHost || len(r.Facts.Hosts) == 0 || len(s.allowHosts) == 0 {
		return false
	}
	for _, host := range r.Facts.Hosts {
		if !s.allowHosts[host] {
			return false
		}
	}
	return true
}

var hostsReason = toolward.Reason{Layer: "teg.web.allowHosts", Rule: "teg.web.allowHosts", Text: "the operator allows every host of the call"}
