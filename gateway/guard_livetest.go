//go:build livetest

package gateway

import (
	"context"
	"net"
	"net/netip"
	"os"
	"strings"

	"github.com/toolward/toolward/netguard"
)

// Programs that are built with this tag, for live tests and nothing else, reach servers of the test on this machine by the
// names of TOOLWARD_TEST_EGRESS, "name=address,…". What people install has no such door.
func init() {
	names := testNames{}
	for pair := range strings.SplitSeq(os.Getenv("TOOLWARD_TEST_EGRESS"), ",") {
		if name, address, ok := strings.Cut(pair, "="); ok {
			names[name+"."] = netip.MustParseAddr(address)
		}
	}
	policy, err := netguard.NewPolicy(netguard.Config{AllowedCIDRs: []string{"127.0.0.1/32"}})
	if err != nil {
		panic(err)
	}
	egressGuard = netguard.NewGuard(policy, names)
}

type testNames map[string]netip.Addr

func (n testNames) LookupNetIP(_ context.Context, _, name string) ([]netip.Addr, error) {
	if a, ok := n[name]; ok {
		return []netip.Addr{a}, nil
	}
	return nil, &net.DNSError{Err: "no such host", Name: name, IsNotFound: true}
}
