package approval

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"unicode"
	"unicode/utf8"
)

const (
	longestID      = 128
	shortestPrefix = 8   // of an id, that people may type instead of the whole
	longestReason  = 500 // characters of a person's reason
)

// How much of a call people are shown.
const (
	maxTitle       = 80
	maxReasons     = 16
	maxReasonText  = 200
	maxPreview     = 16 << 10
	maxDiff        = 64 << 10
	maxCommand     = 16 << 10
	maxTargets     = 64
	maxTargetText  = 1024
	maxPreviewDeep = 16
)

// CheckID accepts what an id may look like: 1 to 128 of A-Z a-z 0-9 : _ -. Ids are opaque text; "1" and "01" are
// two different ones.
func CheckID(id string) error {
	if id == "" || len(id) > longestID {
		return fmt.Errorf("approval id: %d characters, expected 1 to %d", len(id), longestID)
	}
	for i := range len(id) {
		switch c := id[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == ':', c == '_', c == '-':
		default:
			return fmt.Errorf("approval id %q: character %d is not one of A-Z a-z 0-9 : _ -", id, i+1)
		}
	}
	return nil
}

// newID returns a random UUID.
func newID() string {
	var b [16]byte
	rand.Read(b[:]) // never fails: the program would end instead
	b[6] = b[6]&0x0f | 0x40
	b[8] = b[8]&0x3f | 0x80
	text := make([]byte, 36)
	hex.Encode(text[0:8], b[0:4])
	hex.Encode(text[9:13], b[4:6])
	hex.Encode(text[14:18], b[6:8])
	hex.Encode(text[19:23], b[8:10])
	hex.Encode(text[24:36], b[10:16])
	text[8], text[13], text[18], text[23] = '-', '-', '-', '-'
	return string(text)
}

// checkReason accepts the words that go to the model with a denial. Control characters are refused, because the
// words are printed in terminals and logs.
func checkReason(reason string) error {
	if !utf8.ValidString(reason) {
		return errors.New("reason: not valid text (UTF-8)")
	}
	if n := utf8.RuneCountInString(reason); n > longestReason {
		return fmt.Errorf("reason: %d characters, at most %d are passed on", n, longestReason)
	}
	for _, r := range reason {
		if unicode.IsControl(r) && r != '\n' && r != '\t' {
			return fmt.Errorf("reason: has the control character %U", r)
		}
	}
	return nil
}

// cut shortens text to at most limit characters and marks that it did.
func cut(text string, limit int) string {
	if len(text) <= limit || utf8.RuneCountInString(text) <= limit {
		return text
	}
	n := 0
	for i := range text {
		if n == limit-1 {
			return text[:i] + "…"
		}
		n++
	}
	return text
}
