package identity

import (
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/crypto/argon2"
	"golang.org/x/text/unicode/norm"
)

// Cost of guessing one passphrase. 19 MiB and two passes is the smallest memory-hard setting that is still
// recommended; the daemon derives one key at a time and gives the memory back, so that it stays small.
const (
	deriveMemory = 19 * 1024 // KiB
	derivePasses = 2
	deriveLanes  = 1
	deriveKeyLen = 32
	saltLen      = 16
)

// Bounds of what a verifier read from the store may ask for. They stop a tampered row from exhausting the
// machine, and from making guesses cheap.
const (
	maxDeriveMemory = 256 * 1024
	maxDerivePasses = 16
)

// Limits of a passphrase.
const (
	minPassphrase = 10   // characters
	maxPassphrase = 1024 // bytes
)

// checkPassphrase says whether a new passphrase is good enough, and if not why. An agent with its user's uid can
// read the verifier and guess at leisure, so short and repetitive ones are refused.
func checkPassphrase(passphrase string) error {
	if !utf8.ValidString(passphrase) {
		return errors.New("passphrase: not valid text (UTF-8)")
	}
	if len(passphrase) > maxPassphrase {
		return fmt.Errorf("passphrase: longer than %d bytes", maxPassphrase)
	}
	text := normalPassphrase(passphrase)
	if n := utf8.RuneCountInString(text); n < minPassphrase {
		return fmt.Errorf("passphrase: %d characters are too few, use at least %d; several random words are easy to remember", n, minPassphrase)
	}
	kinds := map[rune]bool{}
	for _, r := range text {
		if unicode.IsControl(r) {
			return errors.New("passphrase: has a control character, which cannot be typed again reliably")
		}
		kinds[unicode.ToLower(r)] = true
	}
	if len(kinds) < 5 {
		return errors.New("passphrase: too repetitive, use at least five different characters")
	}
	lower := strings.ToLower(text)
	for _, weak := range []string{"password", "passphrase", "toolward", "qwertyuiop", "1234567890"} {
		if rest := strings.ReplaceAll(lower, weak, ""); utf8.RuneCountInString(rest) < 4 {
			return fmt.Errorf("passphrase: little more than %q, which is guessed first", weak)
		}
	}
	return nil
}

// normalPassphrase maps the different encodings of the same typed text to one: keyboards and systems compose
// accented letters differently.
func normalPassphrase(passphrase string) string { return norm.NFKC.String(passphrase) }

func newVerifier(person, passphrase string, now time.Time) (Verifier, error) {
	v := Verifier{
		Person: person, Salt: make([]byte, saltLen), Changed: now,
		Memory: deriveMemory, Passes: derivePasses, Lanes: deriveLanes,
	}
	rand.Read(v.Salt) // never fails: the program would end instead
	check, err := v.derive(passphrase)
	v.Check = check
	return v, err
}

// matches reports whether passphrase is the one the verifier was made from. It takes the same time for every
// wrong passphrase.
func (v Verifier) matches(passphrase string) (bool, error) {
	if len(passphrase) > maxPassphrase {
		return false, nil
	}
	if len(v.Salt) < saltLen || len(v.Check) != sha256.Size ||
		v.Memory < deriveMemory || v.Memory > maxDeriveMemory ||
		v.Passes < derivePasses || v.Passes > maxDerivePasses || v.Lanes < 1 || v.Lanes > 16 {
		return false, errors.New("stored passphrase verifier is damaged or weaker than allowed; refusing every sign-in")
	}
	check, err := v.derive(passphrase)
	if err != nil {
		return false, err
	}
	return subtle.ConstantTimeCompare(check, v.Check) == 1, nil
}

// derive computes the stored check value. The derived key exists only inside this function.
func (v Verifier) derive(passphrase string) ([]byte, error) {
	key := argon2.IDKey([]byte(normalPassphrase(passphrase)), v.Salt, v.Passes, v.Memory, v.Lanes, deriveKeyLen)
	check, err := hkdf.Key(sha256.New, key, nil, "toolward passphrase check v1", sha256.Size)
	clear(key)
	// The 19 MiB go back to the system now; a daemon that once had a sign-in must not stay large.
	debug.FreeOSMemory()
	if err != nil {
		return nil, fmt.Errorf("derive passphrase check: %w", err)
	}
	return check, nil
}
