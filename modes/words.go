package modes

import (
	"fmt"
	"slices"
	"strings"
)

// Security says which commands may run at all. A word that is not one of these counts as deny.
type Security string

// The values of Security, strictest first.
const (
	SecurityDeny      Security = "deny"
	SecurityAllowlist Security = "allowlist" // what the allowlist covers
	SecurityFull      Security = "full"      // everything
)

// Ask says when people are asked about a command. A word that is not one of these counts as always.
type Ask string

// The values of Ask, strictest first.
const (
	AskAlways Ask = "always"
	AskOnMiss Ask = "on-miss" // when the allowlist does not cover the command
	AskOff    Ask = "off"
)

// Fallback says what a question means that nobody answered. A word that is not one of these counts as deny.
type Fallback string

// The values of Fallback. Full is a word of the file's format that counts as deny: silence is never consent.
const (
	FallbackDeny      Fallback = "deny"
	FallbackAllowlist Fallback = "allowlist" // runs if the allowlist covers the command and nothing forced the question
	FallbackFull      Fallback = "full"
)

var (
	securities = []Security{SecurityDeny, SecurityAllowlist, SecurityFull}
	asks       = []Ask{AskAlways, AskOnMiss, AskOff}
	fallbacks  = []Fallback{FallbackDeny, FallbackAllowlist, FallbackFull}
)

// Securities are the words of [Security], strictest first.
func Securities() []Security { return slices.Clone(securities) }

// Asks are the words of [Ask], strictest first.
func Asks() []Ask { return slices.Clone(asks) }

// Fallbacks are the words of [Fallback], strictest first.
func Fallbacks() []Fallback { return slices.Clone(fallbacks) }

// Choices lists words for people.
func Choices[W ~string](words []W) string {
	texts := make([]string, len(words))
	for i, w := range words {
		texts[i] = string(w)
	}
	return strings.Join(texts, ", ")
}

// ParseSecurity reads a word of a configuration; anything else is an error, and deny.
func ParseSecurity(text string) (Security, error) { return parse("security", securities, text) }

// ParseAsk reads a word of a configuration; anything else is an error, and always.
func ParseAsk(text string) (Ask, error) { return parse("ask", asks, text) }

func parse[W ~string](kind string, words []W, text string) (W, error) {
	if slices.Contains(words, W(text)) {
		return W(text), nil
	}
	return words[0], fmt.Errorf("invalid %s %q: use one of %q", kind, text, words)
}

// Denies reports whether a word that was given refuses all commands.
func (s Security) Denies() bool { return s != "" && known(securities, s) == SecurityDeny }

// StricterThan reports whether fewer commands may run than by another word.
func (s Security) StricterThan(other Security) bool {
	return known(securities, s) != known(securities, other) && stricter(securities, s, other) == known(securities, s)
}

// StricterThan reports whether people are asked about more commands than by another word.
func (a Ask) StricterThan(other Ask) bool {
	return known(asks, a) != known(asks, other) && stricter(asks, a, other) == known(asks, a)
}

// known is the word itself, or the strictest one.
func known[W ~string](words []W, word W) W { return stricter(words, word, word) }

// stricter is the stricter of two words of a list that begins with the strictest. An unknown word is the strictest.
func stricter[W ~string](words []W, a, b W) W {
	return words[max(0, min(slices.Index(words, a), slices.Index(words, b)))]
}
