package redact

import (
	"encoding/base64"
	"encoding/hex"
	"net/url"
	"strings"
)

// shortestHeld is the least length of a held secret, and of any of its encoded forms.
const shortestHeld = 6

// compileHeld prepares every form in which a held secret may leave.
func compileHeld(secrets []string) *finder {
	seen := map[string]bool{}
	var patterns []*pattern
	add := func(text string, fold bool) {
		if fold {
			text = strings.ToLower(text)
		}
		if len(text) >= shortestHeld && !seen[text] {
			seen[text] = true
			patterns = append(patterns, &pattern{text: text, fold: fold})
		}
	}
	for _, secret := range secrets {
		secret = strings.TrimSpace(secret)
		if len(secret) < shortestHeld {
			continue
		}
		add(secret, false)
		add(hex.EncodeToString([]byte(secret)), true)
		add(url.QueryEscape(secret), false)
		add(url.PathEscape(secret), false)
		add(percent(secret), true)
		for offset := range 3 {
			form := base64Within(secret, offset)
			add(form, false)
			add(strings.NewReplacer("+", "-", "/", "_").Replace(form), false)
		}
	}
	return newFinder(patterns)
}

// base64Within is what of a secret's base64 form does not depend on what stands before and after it, when so many
// bytes of its first group of three stand before: a secret inside a longer encoded text is found as well.
func base64Within(secret string, offset int) string {
	full := base64.RawStdEncoding.EncodeToString(append(make([]byte, offset), secret...))
	start := (offset*8 + 5) / 6
	end := (offset + len(secret)) * 8 / 6
	return full[start:end]
}

// percent writes every byte as %xx.
func percent(s string) string {
	var b strings.Builder
	for i := range len(s) {
		b.WriteByte('%')
		b.WriteString(hex.EncodeToString([]byte{s[i]}))
	}
	return b.String()
}
