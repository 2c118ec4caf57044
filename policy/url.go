package policy

import (
	"math"
	"net/url"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Codes of findings about URLs.
const (
	findURLInvalid  = "url_invalid"
	findURLScheme   = "url_scheme"
	findURLUserinfo = "url_userinfo"
	findURLExfil    = "url_exfil"
)

// Thresholds beyond which a URL looks like a letter to a stranger.
const (
	maxPathAndQuery = 2_000 // characters
	minEncodedRun   = 64    // characters of the base64 and hex alphabets in a row
	minEntropy      = 3.5   // bits per character of such a run
	maxHostLabel    = 40    // characters
)

// URLFindings lists what is wrong with a URL by its text alone: url_invalid, url_scheme, url_userinfo, url_exfil.
func URLFindings(text string) []string {
	u, err := url.Parse(text)
	if err != nil || u.Scheme == "" {
		return []string{findURLInvalid}
	}
	web := u.Scheme == "http" || u.Scheme == "https"
	if web && (u.Hostname() == "" || !validPort(u.Port())) {
		return []string{findURLInvalid}
	}
	var findings []string
	if !web {
		findings = append(findings, findURLScheme)
	}
	if u.User != nil {
		findings = append(findings, findURLUserinfo)
	}
	if carriesData(u) {
		findings = append(findings, findURLExfil)
	}
	return findings
}

func validPort(port string) bool {
	if port == "" {
		return true
	}
	n, err := strconv.ParseUint(port, 10, 16)
	return err == nil && n > 0
}

// carriesData reports whether a URL looks made to carry data out: a long path or query, an encoded block in one of
// its parts, or a host label that is too long for a name. It raises a question, because fetching a URL is the main
// way in which a read-only agent can be made to leak.
func carriesData(u *url.URL) bool {
	path := u.EscapedPath()
	if utf8.RuneCountInString(path)+utf8.RuneCountInString(u.RawQuery) > maxPathAndQuery {
		return true
	}
	for label := range strings.SplitSeq(u.Hostname(), ".") {
		if utf8.RuneCountInString(label) > maxHostLabel && !strings.Contains(label, ":") {
			return true
		}
	}
	for segment := range strings.SplitSeq(path, "/") {
		if text := unescaped(segment); !isHash(text) && looksEncoded(text) {
			return true
		}
	}
	for pair := range strings.FieldsFuncSeq(u.RawQuery, func(r rune) bool { return r == '&' || r == ';' }) {
		name, value, _ := strings.Cut(pair, "=")
		if looksEncoded(unescaped(name)) || looksEncoded(unescaped(value)) {
			return true
		}
	}
	return false
}

// unescaped undoes percent escapes, and leaves the plus sign of base64 alone.
func unescaped(text string) string {
	if !strings.Contains(text, "%") {
		return text
	}
	if plain, err := url.PathUnescape(text); err == nil {
		return plain
	}
	return text
}

// percentDecoded undoes every well-formed percent escape, and leaves what is none as it is.
func percentDecoded(text string) string {
	first := strings.IndexByte(text, '%')
	if first < 0 {
		return text
	}
	var out []byte
	for i := first; i < len(text); i++ {
		if text[i] == '%' && i+2 < len(text) {
			if b, err := strconv.ParseUint(text[i+1:i+3], 16, 8); err == nil {
				out = append(out, byte(b))
				i += 2
				continue
			}
		}
		out = append(out, text[i])
	}
	return text[:first] + string(out)
}

// isHash recognizes the digests that commits, images and downloads are addressed by.
func isHash(text string) bool {
	switch len(text) {
	case 32, 40, 64, 128:
	default:
		return false
	}
	for _, c := range []byte(text) {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') && (c < 'A' || c > 'F') {
			return false
		}
	}
	return true
}

// looksEncoded reports whether a text holds a long run of the base64 alphabets with the entropy of encoded data.
func looksEncoded(text string) bool {
	start := 0
	for i := 0; i <= len(text); i++ {
		if i < len(text) && inBase64(text[i]) {
			continue
		}
		if i-start >= minEncodedRun && entropy(text[start:i]) >= minEntropy {
			return true
		}
		start = i + 1
	}
	return false
}

func inBase64(c byte) bool {
	switch {
	case c >= 'A' && c <= 'Z', c >= 'a' && c <= 'z', c >= '0' && c <= '9':
		return true
	}
	return strings.IndexByte("+/_=-", c) >= 0
}

// entropy is Shannon's, in bits per character.
func entropy(text string) float64 {
	var count [256]int
	for _, c := range []byte(text) {
		count[c]++
	}
	bits, n := 0.0, float64(len(text))
	for _, k := range count {
		if k > 0 {
			p := float64(k) / n
			bits -= p * math.Log2(p)
		}
	}
	return bits
}
