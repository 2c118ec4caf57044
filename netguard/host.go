package netguard

import (
	"net/netip"
	"strings"

	"golang.org/x/net/idna"
)

// host is a host in the one form that is compared, looked up and sent.
type host struct {
	text    string
	address netip.Addr // of a literal
}

// names folds full-width and circled characters, ideographic full stops and invisible ones before anything is compared,
// as a resolver behind us may.
var names = idna.New(idna.MapForLookup(), idna.Transitional(false), idna.StrictDomainName(false), idna.BidiRule())

const (
	maxLabel = 63
	maxName  = 253
)

// normalize turns a host as it is written into its one form.
func normalize(written string) (host, *Error) {
	bad := func(code Code) (host, *Error) { return host{}, &Error{Code: code, Host: shown(written)} }
	text := written
	if strings.HasPrefix(text, "[") || strings.HasSuffix(text, "]") {
		inner, ok := strings.CutPrefix(text, "[")
		inner, closed := strings.CutSuffix(inner, "]")
		if !ok || !closed || !strings.Contains(inner, ":") {
			return bad(CodeInvalidHost)
		}
		text = inner
	}
	if strings.Contains(text, ":") {
		if strings.Contains(text, "%") {
			return bad(CodeZone)
		}
		a, err := netip.ParseAddr(text)
		if err != nil || !a.Is6() {
			return bad(CodeInvalidHost)
		}
		return host{text: a.String(), address: a}, nil
	}
	if strings.ContainsAny(text, "%\x00") {
		return bad(CodeInvalidHost) // a host that is decoded once more is another one
	}
	mapped, err := names.ToASCII(text)
	if err != nil {
		return bad(CodeInvalidHost)
	}
	mapped = strings.TrimSuffix(strings.ToLower(mapped), ".")
	if !wellFormed(mapped) {
		return bad(CodeInvalidHost)
	}
	if looksLikeAddress(mapped) {
		a, err := netip.ParseAddr(mapped)
		if err != nil || !a.Is4() {
			// "127.1", "0x7f000001" and "0177.0.0.1" are addresses to some resolvers and names to others.
			return bad(CodeLegacyLiteral)
		}
		return host{text: a.String(), address: a}, nil
	}
	return host{text: mapped}, nil
}

func wellFormed(name string) bool {
	if name == "" || len(name) > maxName {
		return false
	}
	for label := range strings.SplitSeq(name, ".") {
		if label == "" || len(label) > maxLabel {
			return false
		}
	}
	return strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789_.-") == "" && !strings.ContainsFunc(name, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '_' && r != '.' && r != '-'
	})
}

// looksLikeAddress reports whether the last label is a number, which makes the host an attempt at an IPv4 address.
func looksLikeAddress(name string) bool {
	last := name[strings.LastIndexByte(name, '.')+1:]
	if digits, hex := strings.CutPrefix(last, "0x"); hex {
		return strings.Trim(digits, "0123456789abcdef") == ""
	}
	return strings.Trim(last, "0123456789") == ""
}

// shown keeps a host that could not be understood short in errors.
func shown(written string) string {
	const most = 100
	clean := strings.Map(func(r rune) rune {
		if r < 0x20 || r == 0x7f {
			return -1
		}
		return r
	}, written)
	if len(clean) > most {
		return strings.ToValidUTF8(clean[:most], "") + "…"
	}
	return clean
}
