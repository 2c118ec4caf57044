package netguard

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"syscall"
	"time"
)

// Resolver looks names up. *net.Resolver does.
type Resolver interface {
	LookupNetIP(ctx context.Context, network, name string) ([]netip.Addr, error)
}

// Bounds of one dial.
const (
	maxAnswers  = 32
	maxDials    = 3
	dialTimeout = 10 * time.Second
)

// Guard dials what its policy lets through. The zero value refuses everything.
type Guard struct {
	policy   *Policy
	resolver Resolver
	pinned   *pinned // takes the place of both
}

// NewGuard makes a guard. A nil resolver is the system's.
func NewGuard(policy *Policy, resolver Resolver) *Guard {
	if resolver == nil {
		resolver = net.DefaultResolver
	}
	return &Guard{policy: policy, resolver: resolver}
}

// Policy is what the guard dials by.
func (g *Guard) Policy() *Policy { return g.policy }

// Resolve looks a host up once and checks every answer: one bad answer refuses all, because the program behind us would
// pick whichever it likes.
func (g *Guard) Resolve(ctx context.Context, written string) ([]netip.Addr, error) {
	h, refused := g.policy.host(written)
	if refused != nil {
		return nil, refused
	}
	if h.address.IsValid() {
		return []netip.Addr{h.address.Unmap()}, nil
	}
	// With the root dot no search domain is tried: "wiki" must not become "wiki.corp.example".
	found, err := g.resolver.LookupNetIP(ctx, "ip", h.text+".")
	if err != nil {
		return nil, lookupError(ctx, h.text, err)
	}
	if len(found) > maxAnswers {
		return nil, &Error{Code: CodeDNS, Host: h.text}
	}
	var list []netip.Addr
	for _, a := range found {
		a = a.WithZone("")
		if refused := g.policy.address(a, h.text); refused != nil {
			return nil, &Error{Code: CodeDNSAddress, Host: h.text, Range: refused.Range}
		}
		if a = a.Unmap(); !slices.Contains(list, a) {
			list = append(list, a)
		}
	}
	if len(list) == 0 {
		return nil, &Error{Code: CodeNoRecords, Host: h.text}
	}
	slices.SortStableFunc(list, func(a, b netip.Addr) int { return a.BitLen() - b.BitLen() }) // IPv4 first
	return list, nil
}

func lookupError(ctx context.Context, name string, err error) *Error {
	var dns *net.DNSError
	switch {
	case ctx.Err() != nil:
		return &Error{Code: CodeTimeout, Host: name}
	case errors.As(err, &dns) && dns.IsNotFound:
		return &Error{Code: CodeNoRecords, Host: name}
	}
	return &Error{Code: CodeDNS, Host: name}
}

// DialContext connects to "host:port". It is what an http.Transport takes; set its Proxy to nil, or the environment
// decides where the request goes.
func (g *Guard) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	name, text, err := net.SplitHostPort(address)
	if err != nil || network != "tcp" && network != "tcp4" && network != "tcp6" {
		return nil, &Error{Code: CodeInvalidURL}
	}
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return nil, &Error{Code: CodeInvalidURL}
	}
	return g.Dial(ctx, bracketed(name), uint16(port))
}

// Dial connects to a host, written as in a URL.
func (g *Guard) Dial(ctx context.Context, written string, port uint16) (net.Conn, error) {
	list, err := g.addresses(ctx, written, port)
	if err != nil {
		return nil, err
	}
	dialer := net.Dialer{Timeout: dialTimeout, FallbackDelay: -1, ControlContext: func(_ context.Context, _, address string, _ syscall.RawConn) error {
		return g.dialed(address, list)
	}}
	for _, a := range list[:min(len(list), maxDials)] {
		var conn net.Conn
		if conn, err = dialer.DialContext(ctx, "tcp", netip.AddrPortFrom(a, port).String()); err == nil {
			return conn, nil
		}
	}
	if refused, ok := errors.AsType[*Error](err); ok {
		return nil, refused
	}
	if ctx.Err() != nil || errors.Is(err, context.DeadlineExceeded) {
		return nil, &Error{Code: CodeTimeout, Host: shown(written)}
	}
	return nil, &Error{Code: CodeConnect, Host: shown(written)}
}

// addresses are those that may be dialed for a host and a port.
func (g *Guard) addresses(ctx context.Context, written string, port uint16) ([]netip.Addr, error) {
	if g.pinned != nil {
		if refused := g.pinned.check(unbracketed(written), port); refused != nil {
			return nil, refused
		}
		return g.pinned.at, nil
	}
	if refused := g.policy.port(port); refused != nil {
		return nil, refused
	}
	return g.Resolve(ctx, written)
}

// dialed looks at the very address that the system is asked to connect to: whatever happened on the way, it must be one
// of those that were checked.
func (g *Guard) dialed(address string, checked []netip.Addr) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil || !slices.Contains(checked, at.Addr().Unmap()) {
		return &Error{Code: CodeDial}
	}
	return nil
}
