package command

import (
	"net/netip"
	"regexp"
	"strings"
)

// numeric is a host that some resolvers take for an address though it does not look like one: 0x7f.1, 2130706433.
var numeric = regexp.MustCompile(`^(?:0[xX][0-9a-fA-F]*|[0-9]+)(?:\.(?:0[xX][0-9a-fA-F]*|[0-9]+))*\.?$`)

// publicHost reports whether a host is on the public internet, as far as its name tells: not this machine, not the
// local network, and not the address where clouds keep the keys of a machine. "" is a host that the arguments do not
// name, such as git's origin.
func publicHost(host string) bool {
	if host == "" {
		return true
	}
	name := strings.ToLower(host)
	if at := strings.LastIndexByte(name, '@'); at >= 0 {
		name = name[at+1:]
	}
	if port := strings.LastIndexByte(name, ':'); port >= 0 && (strings.Count(name, ":") == 1 || strings.HasPrefix(name, "[")) && !strings.HasSuffix(name, "]") {
		name = name[:port]
	}
	name = strings.TrimSuffix(strings.Trim(name, "[]"), ".")
	if address, err := netip.ParseAddr(name); err == nil {
		address = address.Unmap()
		return address.IsGlobalUnicast() && !address.IsPrivate() && !carrierGrade.Contains(address)
	}
	if name == "" || numeric.MatchString(name) || strings.ContainsAny(name, "$`{}*\\ \t\n") {
		return false
	}
	for _, local := range []string{"localhost", "local", "internal", "intranet", "lan", "home.arpa"} {
		if name == local || strings.HasSuffix(name, "."+local) {
			return false
		}
	}
	return true
}

var carrierGrade = netip.MustParsePrefix("100.64.0.0/10")
