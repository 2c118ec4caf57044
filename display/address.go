package display

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// MisleadingAddresses says of every URL in a text where it leads, if that is not what a reader takes from it at first
// sight: "leads to evil.example: …" of https://apple.com@evil.example/. URLs that lead where they seem to are not listed.
func MisleadingAddresses(text string) []string {
	var list []string
	for rest := text; ; {
		at := strings.Index(rest, "://")
		if at < 0 {
			return list
		}
		start := at
		for start > 0 && isSchemeByte(rest[start-1]) {
			start--
		}
		end := at + len("://")
		for end < len(rest) && !strings.ContainsRune(" \t\r\n\"'`<>(){}|", rune(rest[end])) {
			end++
		}
		authority := rest[at+len("://") : end]
		if i := strings.IndexAny(authority, "/?#"); i >= 0 {
			authority = authority[:i]
		}
		if where := misleads(authority); where != "" && start < at {
			list = append(list, where+": "+rest[start:end])
		}
		rest = rest[end:]
	}
}

func isSchemeByte(b byte) bool {
	return b|0x20 >= 'a' && b|0x20 <= 'z' || b >= '0' && b <= '9' || b == '+' || b == '-' || b == '.'
}

// misleads says where an authority leads; "" if it leads where it seems to.
func misleads(authority string) string {
	if before, after, split := strings.Cut(authority, `\`); split {
		// Browsers end the host there, other programs go on reading.
		return fmt.Sprintf("leads to %s or to %s, depending on the program", hostOf(before), hostOf(after))
	}
	host := hostOf(authority)
	ip, odd := numericHost(host)
	switch {
	case odd:
		return "leads to " + ip.String()
	case strings.ContainsRune(host, '%') && !strings.HasPrefix(host, "["):
		return "leads to a host whose name is hidden by % signs"
	case strings.HasPrefix(host, "xn--") || strings.Contains(host, ".xn--"):
		return "leads to " + host + ", a name of other letters in disguise"
	case strings.ContainsRune(authority, '@'):
		return "leads to " + host + ", not to what stands before the @"
	}
	return ""
}

// hostOf is the host of an authority: what follows the last @, without the port.
func hostOf(authority string) string {
	host := strings.ToLower(authority[strings.LastIndexByte(authority, '@')+1:])
	if end := strings.IndexByte(host, ']'); strings.HasPrefix(host, "[") && end > 0 {
		return host[:end+1]
	}
	host, _, _ = strings.Cut(host, ":")
	return host
}

// numericHost is the address of a host that is written as numbers in another way than as four decimal ones: 2130706433,
// 0x7f.1 and 0177.0.0.1 are 127.0.0.1.
func numericHost(host string) (ip netip.Addr, odd bool) {
	if plain, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil {
		return plain.Unmap(), plain.Is4In6()
	}
	parts := strings.Split(strings.TrimSuffix(host, "."), ".")
	if len(parts) > 4 {
		return ip, false
	}
	var value uint64
	for i, part := range parts {
		base, digits := 10, part
		switch {
		case strings.HasPrefix(part, "0x"):
			base, digits = 16, part[2:]
		case len(part) > 1 && part[0] == '0':
			base, digits = 8, part[1:]
		}
		n, err := strconv.ParseUint(digits, base, 32)
		if digits == "" && base == 16 {
			n, err = 0, nil
		}
		last := i == len(parts)-1
		if err != nil || !last && n > 255 || last && n >= 1<<(8*(5-len(parts))) {
			return ip, false
		}
		if last {
			value |= n
		} else {
			value |= n << (8 * (3 - i))
		}
	}
	return netip.AddrFrom4([4]byte{byte(value >> 24), byte(value >> 16), byte(value >> 8), byte(value)}), true
}
