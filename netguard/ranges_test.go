package netguard

import (
	"net/netip"
	"testing"

	"code.dny.dev/ssrf"
)

// TestSpecialPurposeRegistry compares the tables with a list that is generated from the registries of special-purpose
// addresses: nothing that is registered there may be missing here.
func TestSpecialPurposeRegistry(t *testing.T) {
	p := allowing(t, Config{})
	for _, prefix := range append(append([]netip.Prefix{}, ssrf.IPv4DeniedPrefixes...), ssrf.IPv6DeniedPrefixes...) {
		first := prefix.Masked().Addr()
		for _, a := range []netip.Addr{first, first.Next(), lastOf(prefix)} {
			if prefix.Contains(a) && p.Address(a) == nil {
				t.Errorf("%s of %s passes", a, prefix)
			}
		}
	}
}

func lastOf(prefix netip.Prefix) netip.Addr {
	b := prefix.Masked().Addr().AsSlice()
	for bit := prefix.Bits(); bit < len(b)*8; bit++ {
		b[bit/8] |= 0x80 >> (bit % 8)
	}
	a, _ := netip.AddrFromSlice(b)
	return a
}
