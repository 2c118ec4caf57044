package command

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

// Settings are the modes as one source gives them: the configuration, a session, or a part of exec-approvals.json. What
// is "" or nil is not given. Words that are given but not known close.
type Settings struct {
	Security        Security `json:"security,omitempty"`
	Ask             Ask      `json:"ask,omitempty"`
	AskFallback     Fallback `json:"askFallback,omitempty"`
	AutoAllowSkills *bool    `json:"autoAllowSkills,omitempty"`
}

// Over lays settings of a narrower scope over those of a wider one, each field by itself: an agent's over the
// gateway's, a session's over both. They replace and may loosen; who may set them is decided before.
func (s Settings) Over(wider Settings) Settings {
	return Settings{
		Security: given(s.Security, wider.Security), Ask: given(s.Ask, wider.Ask),
		AskFallback: given(s.AskFallback, wider.AskFallback), AutoAllowSkills: given(s.AutoAllowSkills, wider.AutoAllowSkills),
	}
}

func given[T comparable](values ...T) T {
	var zero T
	for _, v := range values {
		if v != zero {
			return v
		}
	}
	return zero
}

// Modes are the settings in force for one agent on one host. The zero value refuses every command.
type Modes struct {
	Security        Security
	Ask             Ask
	AskFallback     Fallback
	AutoAllowSkills bool
}

// closed are the modes of a file that cannot be trusted.
var closed = Modes{Security: SecurityDeny, Ask: AskOnMiss, AskFallback: FallbackDeny}

// mergeModes is what is in force where the configuration and the file of the executing host meet: for security and ask
// the stricter of both, on every host. A loose file never overrides a strict configuration, nor the reverse.
func mergeModes(config, file Settings) Modes {
	configured := Modes{
		Security: known(securities, given(config.Security, SecurityAllowlist)),
		Ask:      known(asks, given(config.Ask, AskOnMiss)),
	}
	skills := file.AutoAllowSkills != nil && *file.AutoAllowSkills
	return configured.tightened(file.Security, file.Ask).with(known(fallbacks, given(file.AskFallback, FallbackDeny)), skills)
}

func (m Modes) with(fallback Fallback, skills bool) Modes {
	m.AskFallback, m.AutoAllowSkills = fallback, skills
	return m
}

// tightened is the stricter of the modes and what is given.
func (m Modes) tightened(security Security, ask Ask) Modes {
	m.Security = stricter(securities, m.Security, given(security, m.Security))
	m.Ask = stricter(asks, m.Ask, given(ask, m.Ask))
	return m
}

// known is the word itself, or the strictest one.
func known[W ~string](words []W, word W) W { return stricter(words, word, word) }

// stricter is the stricter of two words of a list that begins with the strictest. An unknown word is the strictest.
func stricter[W ~string](words []W, a, b W) W {
	return words[max(0, min(slices.Index(words, a), slices.Index(words, b)))]
}

// word reads a parameter of a call or of a person: trimmed, in any case. "" stands for not given.
func word[W ~string](words []W, code, text string) (W, error) {
	text = strings.ToLower(strings.TrimSpace(text))
	if text == "" || slices.Contains(words, W(text)) {
		return W(text), nil
	}
	return words[0], &HostError{Code: code, Text: fmt.Sprintf("%q is none of %s", text, choices(words))}
}

func choices[W ~string](words []W) string {
	texts := make([]string, len(words))
	for i, w := range words {
		texts[i] = string(w)
	}
	return strings.Join(texts, ", ")
}
