package sandbox

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// MaxSlugBase bounds what of a text is read in its slug.
const MaxSlugBase = 32

// Slug turns any text into a name for files and containers. Texts that look alike keep apart by a digest.
func Slug(text string) string {
	base, digest := SlugParts(text, MaxSlugBase)
	return base + "-" + digest
}

// SlugParts is a slug in its two parts: what people read, cut to the longest, and the digest.
func SlugParts(text string, longest int) (base, digest string) {
	if text = Trim(text); text == "" {
		text = "session"
	}
	sum := sha256.Sum256([]byte(text))
	var b strings.Builder
	gap := false
	for _, r := range strings.ToLower(text) {
		if (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '.' && r != '_' && r != '-' {
			gap = true
			continue
		}
		if gap {
			b.WriteByte('-')
			gap = false
		}
		b.WriteRune(r)
	}
	base = strings.Trim(b.String(), "-")
	if len(base) > longest {
		base = base[:longest]
	}
	if base == "" {
		base = "session"[:min(longest, len("session"))]
	}
	return base, hex.EncodeToString(sum[:4])
}

// Trim takes the white space off both ends of a text, also the mark that some editors put at the beginning of files.
func Trim(s string) string {
	return strings.TrimFunc(s, func(r rune) bool {
		switch {
		case r >= '\t' && r <= '\r', r == ' ', r == 0xa0, r == 0x1680, r >= 0x2000 && r <= 0x200a,
			r == 0x2028, r == 0x2029, r == 0x202f, r == 0x205f, r == 0x3000, r == 0xfeff:
			return true
		}
		return false
	})
}
