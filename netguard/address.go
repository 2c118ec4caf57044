package netguard

import (
	"net/netip"
	"slices"
)

// address checks an address that stands for a host. Nil: it may be reached.
func (p *Policy) address(a netip.Addr, host string) *Error {
	if a.Zone() != "" {
		return &Error{Code: CodeZone, Host: host}
	}
	exempt := p.private || slices.Contains(p.exempt, host)
	if a.Is4() {
		return p.address4(a, host, exempt, CodeAddress)
	}
	return p.address6(a, host, exempt)
}

func (p *Policy) address4(a netip.Addr, host string, exempt bool, code Code) *Error {
	if p.inCIDR(a) {
		return nil
	}
	for _, r := range ranges4 {
		switch {
		case !r.prefix.Contains(a):
		case r.inner && exempt && !slices.Contains(metadataAddresses, a), r.name == rangeBenchmark && p.benchmark:
			return nil
		default:
			return &Error{Code: code, Host: host, Range: r.name}
		}
	}
	return nil
}

func (p *Policy) address6(a netip.Addr, host string, exempt bool) *Error {
	if mapped.Contains(netip.AddrFrom16(a.As16())) || a.Is4In6() {
		return p.address4(a.Unmap(), host, exempt, CodeEmbeddedAddress)
	}
	for _, r := range transitions {
		// "::" and "::1" lie in ::/96 too, but are what they are.
		if r.prefix.Contains(a) && a != netip.IPv6Unspecified() && a != netip.IPv6Loopback() {
			return &Error{Code: CodeTransition, Host: host, Range: r.name}
		}
	}
	if p.inCIDR(a) {
		return nil
	}
	for _, r := range ranges6 {
		switch {
		case !r.prefix.Contains(a):
		case r.inner && exempt && !slices.Contains(metadataAddresses, a):
			return nil
		default:
			return &Error{Code: CodeAddress, Host: host, Range: r.name}
		}
	}
	if nat64.Contains(a) || slices.ContainsFunc(p.nat64, func(prefix netip.Prefix) bool { return prefix.Contains(a) }) {
		return p.address4(lastFour(a), host, exempt, CodeEmbeddedAddress)
	}
	if protocols6.prefix.Contains(a) {
		return &Error{Code: CodeAddress, Host: host, Range: protocols6.name}
	}
	if !globalScope6.Contains(a) {
		return &Error{Code: CodeAddress, Host: host, Range: "not_global_unicast"}
	}
	if isISATAP(a) {
		return p.address4(lastFour(a), host, exempt, CodeEmbeddedAddress)
	}
	return nil
}

func (p *Policy) inCIDR(a netip.Addr) bool {
	return slices.ContainsFunc(p.cidrs, func(prefix netip.Prefix) bool { return prefix.Contains(a) })
}

func lastFour(a netip.Addr) netip.Addr {
	b := a.As16()
	return netip.AddrFrom4([4]byte(b[12:]))
}

// isISATAP recognizes interface ids that tunnel to the IPv4 address in their last half.
func isISATAP(a netip.Addr) bool {
	b := a.As16()
	return b[8]&0xfc == 0 && b[9] == 0 && b[10] == 0x5e && b[11] == 0xfe
}
