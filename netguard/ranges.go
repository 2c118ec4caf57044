package netguard

import "net/netip"

// addressRange is a part of the address space that is not the public internet.
type addressRange struct {
	prefix netip.Prefix
	name   string
	// inner ranges are those of networks that an operator may open as a whole.
	inner bool
}

func addresses(cidr, name string) addressRange {
	return addressRange{prefix: netip.MustParsePrefix(cidr), name: name}
}

func innerAddresses(cidr, name string) addressRange {
	return addressRange{prefix: netip.MustParsePrefix(cidr), name: name, inner: true}
}

// ranges4 are the IPv4 addresses that are not public, the more special ones first.
var ranges4 = []addressRange{
	addresses("168.63.129.16/32", "cloud_metadata"), // host agent of a cloud, outside of all special ranges
	addresses("255.255.255.255/32", "broadcast"),
	addresses("0.0.0.0/8", "this_network"),
	innerAddresses("10.0.0.0/8", "private"),
	innerAddresses("100.64.0.0/10", "cgnat"),
	innerAddresses("127.0.0.0/8", "loopback"),
	addresses("169.254.0.0/16", "link_local"),
	innerAddresses("172.16.0.0/12", "private"),
	addresses("192.0.0.0/24", "ietf_protocol"),
	addresses("192.0.2.0/24", "documentation"),
	addresses("192.31.196.0/24", "as112"),
	addresses("192.52.193.0/24", "amt"),
	addresses("192.88.99.0/24", "6to4_relay"),
	innerAddresses("192.168.0.0/16", "private"),
	addresses("192.175.48.0/24", "as112"),
	addresses("198.18.0.0/15", rangeBenchmark),
	addresses("198.51.100.0/24", "documentation"),
	addresses("203.0.113.0/24", "documentation"),
	addresses("224.0.0.0/4", "multicast"),
	addresses("240.0.0.0/4", "reserved"),
}

const rangeBenchmark = "benchmarking"

// ranges6 are the IPv6 addresses that are not public. What is not in 2000::/3 is not public either.
var ranges6 = []addressRange{
	addresses("::/128", "unspecified"),
	innerAddresses("::1/128", "loopback"),
	addresses("fe80::/10", "link_local"),
	innerAddresses("fec0::/10", "site_local"),
	innerAddresses("fc00::/7", "unique_local"),
	addresses("ff00::/8", "multicast"),
	addresses("100::/64", "discard"),
	addresses("100:0:0:1::/64", "dummy"),
	addresses("5f00::/16", "srv6_sid"),
	addresses("2001:db8::/32", "documentation"),
	addresses("3fff::/20", "documentation"),
	addresses("2620:4f:8000::/48", "as112"),
}

// transitions carry an IPv4 address somewhere. No public site lives there, and where the address stands depends on the
// network, so they are refused whatever it is.
var transitions = []addressRange{
	addresses("64:ff9b:1::/48", "nat64_local"),
	addresses("2002::/16", "6to4"),
	addresses("2001::/32", "teredo"),
	addresses("::/96", "ipv4_compatible"),
	addresses("::ffff:0:0:0/96", "ipv4_translated"),
}

var (
	mapped       = netip.MustParsePrefix("::ffff:0:0/96")
	nat64        = netip.MustParsePrefix("64:ff9b::/96")
	protocols6   = addresses("2001::/23", "ietf_protocol")
	globalScope6 = netip.MustParsePrefix("2000::/3")
)

// metadataAddresses give out the credentials of a machine; they lie in ranges that an operator may open.
var metadataAddresses = []netip.Addr{
	netip.MustParseAddr("100.100.100.200"),
	netip.MustParseAddr("fd00:ec2::254"),
	netip.MustParseAddr("fd20:ce::254"),
}

// metadataNames are refused whatever is opened.
var metadataNames = []string{"metadata.google.internal", "metadata", "metadata.goog", "instance-data"}

// deniedNames and deniedSuffixes only mean something inside a machine or a network.
var (
	deniedNames = []string{
		"localhost", "localhost.localdomain", "localhost6", "localhost6.localdomain6", "ip6-localhost", "ip6-loopback",
	}
	deniedSuffixes = []string{
		".localhost", ".local", ".internal", ".localdomain", ".localdomain6", ".home.arpa", ".lan", ".intranet", ".corp",
		".home", ".private", ".svc", ".onion", ".invalid", ".test", ".in-addr.arpa", ".ip6.arpa",
	}
)

// badPorts are those that the fetch standard forbids to browsers.
var badPorts = []uint16{
	0, 1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95, 101, 102, 103, 104, 109, 110, 111,
	113, 115, 117, 119, 123, 135, 137, 139, 143, 161, 179, 389, 427, 465, 512, 513, 514, 515, 526, 530, 531, 532, 540, 548,
	554, 556, 563, 587, 601, 636, 989, 990, 993, 995, 1719, 1720, 1723, 2049, 3659, 4045, 4190, 5060, 5061, 6000, 6566, 6665,
	6666, 6667, 6668, 6669, 6679, 6697, 10080,
}
