// Package netguard lets programs reach the public internet and nothing else.
//
// A [Policy] says of a URL, a host name or an address whether it may be reached; it is pure. A [Guard] dials by it: a name
// is looked up once, every answer must pass, and one of exactly these addresses is dialed, so that a second look-up cannot
// give another one (DNS rebinding). A [Proxy] gives a sandbox without a network the same through a Unix socket.
//
// Everything is refused that is not known to be public. The tables of addresses and names are in ranges.go.
package netguard

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// Code says why something may not be reached.
type Code string

// The codes.
const (
	CodeInvalidURL      Code = "invalid_url"
	CodeScheme          Code = "scheme_not_allowed"
	CodeUserinfo        Code = "userinfo_not_allowed"
	CodePort            Code = "port_not_allowed"
	CodeInvalidHost     Code = "invalid_host"
	CodeZone            Code = "zone_id"
	CodeLegacyLiteral   Code = "legacy_ip_literal"
	CodeNotInAllowlist  Code = "hostname_not_in_allowlist"
	CodeAddress         Code = "ip_not_public"
	CodeEmbeddedAddress Code = "embedded_ip_not_public"
	CodeTransition      Code = "transition_prefix"
	CodeHostnameDenied  Code = "hostname_denied"
	CodeSingleLabel     Code = "single_label_host"
	CodeNoRecords       Code = "dns_no_records"
	CodeDNS             Code = "dns_error"
	CodeDNSAddress      Code = "dns_address_not_public"
	CodeDial            Code = "dial_blocked"
	CodeConnect         Code = "connect_error"
	CodeTimeout         Code = "timeout"
	CodeHeaderTooLarge  Code = "header_too_large"
	CodeNotPermitted    Code = "not_permitted" // whoever decides about hosts said no
	CodeSentLimit       Code = "sent_limit"    // more was to leave than is allowed
	CodeClientGone      Code = "client_gone"
	CodeProxyRequest    Code = "proxy_request_invalid"
)

// Error is why something was not reached. Its text names the code and the host only: an address in it would let a model
// ask us what a private name server answers.
type Error struct {
	Code  Code
	Host  string
	Range string // of the refused address, for records
	Why   string // with CodeNotPermitted: in words, for who uses the program that was refused
}

func (e *Error) Error() string {
	if e.Host == "" {
		return string(e.Code)
	}
	return fmt.Sprintf("%s: %s", e.Host, e.Code)
}

// Config is what the operator allows beyond the public internet, and forbids of it. The zero value is the strictest
// policy that lets everything public through.
type Config struct {
	// AllowPrivateNetwork permits private, loopback, carrier and unique-local addresses, and names that only mean
	// something inside a network. Never metadata services.
	AllowPrivateNetwork bool `json:"allowPrivateNetwork,omitempty"`
	// AllowedHostnames are exact names that may resolve into those same ranges.
	AllowedHostnames []string `json:"allowedHostnames,omitempty"`
	// AllowedCIDRs are networks that are permitted whatever else is said of them.
	AllowedCIDRs []string `json:"allowedCidrs,omitempty"`
	// HostnameAllowlist, if it has entries, refuses all other hosts: exact names, or "*.suffix" for names below one.
	HostnameAllowlist []string `json:"hostnameAllowlist,omitempty"`
	// AllowBenchmarkRange permits 198.18.0.0/15, which some VPN clients answer with.
	AllowBenchmarkRange bool `json:"allowRfc2544BenchmarkRange,omitempty"`
	// Ports, if it has entries, refuses all others. Ports of mail, shells and the like are refused in any case.
	Ports []uint16 `json:"ports,omitempty"`
	// NAT64Prefixes are /96 networks of the operator's own in which IPv4 addresses are embedded.
	NAT64Prefixes []string `json:"nat64Prefixes,omitempty"`
}

// Relaxed reports whether the configuration permits anything that is not public.
func (c Config) Relaxed() bool {
	return c.AllowPrivateNetwork || c.AllowBenchmarkRange || len(c.AllowedHostnames) > 0 || len(c.AllowedCIDRs) > 0
}

// Policy decides what may be reached. A nil policy refuses everything. It is immutable.
type Policy struct {
	private, benchmark bool
	exempt             []string // normalized names that may resolve into private ranges
	cidrs              []netip.Prefix
	only, onlyBelow    []string // normalized; both empty: every name
	ports              []uint16
	nat64              []netip.Prefix
}

// NewPolicy compiles a configuration. The error names the key and the entry.
func NewPolicy(c Config) (*Policy, error) {
	p := &Policy{private: c.AllowPrivateNetwork, benchmark: c.AllowBenchmarkRange, ports: slices.Clone(c.Ports)}
	for _, name := range c.AllowedHostnames {
		host, refused := normalize(name)
		if refused != nil {
			return nil, fmt.Errorf("allowedHostnames: %q is no host name: %w", name, refused)
		}
		p.exempt = append(p.exempt, host.text)
	}
	for _, text := range c.AllowedCIDRs {
		prefix, err := netip.ParsePrefix(text)
		if err != nil {
			return nil, fmt.Errorf("allowedCidrs: %q is no network such as 10.1.2.0/24", text)
		}
		p.cidrs = append(p.cidrs, prefix.Masked())
	}
	for _, text := range c.NAT64Prefixes {
		prefix, err := netip.ParsePrefix(text)
		if err != nil || prefix.Bits() != 96 || prefix.Addr().Is4() {
			return nil, fmt.Errorf("nat64Prefixes: %q is no IPv6 network of 96 bits", text)
		}
		p.nat64 = append(p.nat64, prefix.Masked())
	}
	for _, text := range c.HostnameAllowlist {
		if text == "*" {
			continue // it would say nothing
		}
		name, below := strings.CutPrefix(text, "*.")
		host, refused := normalize(name)
		if refused != nil {
			return nil, fmt.Errorf("hostnameAllowlist: %q is no host name: %w", text, refused)
		}
		if below {
			p.onlyBelow = append(p.onlyBelow, "."+host.text)
		} else {
			p.only = append(p.only, host.text)
		}
	}
	return p, nil
}

// Host checks a host as it is written in a URL, brackets included, as far as that is possible without a look-up. What it
// returns is the one form that is looked up, sent and compared.
func (p *Policy) Host(written string) (host string, err error) {
	h, refused := p.host(written)
	if refused != nil {
		return "", refused
	}
	return h.text, nil
}

func (p *Policy) host(written string) (host, *Error) {
	if p == nil {
		return host{}, &Error{Code: CodeNotPermitted}
	}
	h, refused := normalize(written)
	if refused != nil {
		return h, refused
	}
	if refused := p.listed(h.text); refused != nil {
		return h, refused
	}
	if h.address.IsValid() {
		return h, p.address(h.address, h.text)
	}
	return h, p.name(h.text)
}

// listed checks a host against the list of the only ones that are allowed.
func (p *Policy) listed(name string) *Error {
	if len(p.only)+len(p.onlyBelow) == 0 || slices.Contains(p.only, name) {
		return nil
	}
	if slices.ContainsFunc(p.onlyBelow, func(suffix string) bool { return strings.HasSuffix(name, suffix) && len(name) > len(suffix) }) {
		return nil
	}
	return &Error{Code: CodeNotInAllowlist, Host: name}
}

// name checks a host name. Names that only mean something inside a network are how that network is reached.
func (p *Policy) name(name string) *Error {
	if slices.Contains(p.exempt, name) {
		return nil
	}
	if slices.Contains(metadataNames, name) {
		return &Error{Code: CodeHostnameDenied, Host: name}
	}
	if p.private {
		return nil
	}
	if slices.Contains(deniedNames, name) || slices.ContainsFunc(deniedSuffixes, func(s string) bool { return strings.HasSuffix(name, s) }) {
		return &Error{Code: CodeHostnameDenied, Host: name}
	}
	if !strings.Contains(name, ".") {
		return &Error{Code: CodeSingleLabel, Host: name} // only a search domain could make it resolve
	}
	return nil
}

// Port checks a port. Nobody speaks HTTP on the ports of mail, shells and databases that browsers refuse as well; a
// request to them is an attempt to make one protocol pass for another.
func (p *Policy) Port(port uint16) error {
	if refused := p.port(port); refused != nil {
		return refused
	}
	return nil
}

func (p *Policy) port(port uint16) *Error {
	if p == nil || slices.Contains(badPorts, port) || len(p.ports) > 0 && !slices.Contains(p.ports, port) {
		return &Error{Code: CodePort}
	}
	return nil
}

// Address checks an address as a name server gives it.
func (p *Policy) Address(a netip.Addr) error {
	if p == nil {
		return &Error{Code: CodeNotPermitted}
	}
	if refused := p.address(a, a.String()); refused != nil {
		return refused
	}
	return nil
}
