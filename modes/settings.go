package modes

import (
	"cmp"

	"github.com/toolward/toolward"
)

// Settings are the modes as one source gives them: the configuration, a session, or a part of exec-approvals.json. What
// is "" or nil is not given. Words that are given but not known close.
type Settings struct {
	Security        Security `json:"security,omitempty"`
	Ask             Ask      `json:"ask,omitempty"`
	AskFallback     Fallback `json:"askFallback,omitempty"`
	AutoAllowSkills *bool    `json:"autoAllowSkills,omitempty"` // kept for other programs that share the file
}

// Over lays settings of a narrower scope over those of a wider one, each field by itself: an agent's over the
// gateway's, a session's over both. They replace and may loosen; who may set them is decided before.
func (s Settings) Over(wider Settings) Settings {
	return Settings{
		Security: cmp.Or(s.Security, wider.Security), Ask: cmp.Or(s.Ask, wider.Ask),
		AskFallback: cmp.Or(s.AskFallback, wider.AskFallback), AutoAllowSkills: cmp.Or(s.AutoAllowSkills, wider.AutoAllowSkills),
	}
}

// Tightened are the settings with the stricter of two words wherever both are given.
func (s Settings) Tightened(security Security, ask Ask) Settings {
	s.Security, s.Ask = stricterGiven(securities, s.Security, security), stricterGiven(asks, s.Ask, ask)
	return s
}

// Stricter are the settings, no looser than others in any field: what they alone would loosen is as in the others.
func (s Settings) Stricter(others Settings) Settings {
	t := s.Tightened(others.Security, others.Ask)
	if fallback := stricter(fallbacks, cmp.Or(s.AskFallback, FallbackDeny), cmp.Or(others.AskFallback, FallbackDeny)); fallback != known(fallbacks, cmp.Or(s.AskFallback, FallbackDeny)) {
		t.AskFallback = fallback
	}
	if s.AutoAllowSkills != nil && *s.AutoAllowSkills && (others.AutoAllowSkills == nil || !*others.AutoAllowSkills) {
		t.AutoAllowSkills = new(bool)
	}
	return t
}

// stricterGiven is the stricter of two words of which either may be missing.
func stricterGiven[W ~string](words []W, a, b W) W {
	if a == "" || b == "" {
		return cmp.Or(a, b)
	}
	return stricter(words, a, b)
}

// Modes are the settings in force for the commands of one agent. The zero value refuses every command.
type Modes struct {
	Security    Security
	Ask         Ask
	AskFallback Fallback
	SandboxAsk  bool // teg.exec.sandbox: "ask": people are asked in the sandbox too
}

// Default are the modes where nobody has said anything: what the allowlist does not cover asks.
func Default() Modes {
	return Modes{Security: SecurityAllowlist, Ask: AskOnMiss, AskFallback: FallbackDeny}
}

// Closed are the settings that stand in the place of a file that cannot be trusted.
func Closed() Settings {
	return Settings{Security: SecurityDeny, Ask: AskOnMiss, AskFallback: FallbackDeny}
}

// Merge is what is in force where the configuration and the file of the executing host meet: for security and ask the
// stricter of both, on every host. A loose file never overrides a strict configuration, nor the reverse.
func Merge(config, file Settings) Modes {
	m := Modes{Security: cmp.Or(config.Security, SecurityAllowlist), Ask: cmp.Or(config.Ask, AskOnMiss)}
	m = m.Tightened(file.Security, file.Ask)
	m.AskFallback = known(fallbacks, cmp.Or(file.AskFallback, FallbackDeny))
	return m
}

// Tightened is the stricter of the modes and what is given. Words that are not known close.
func (m Modes) Tightened(security Security, ask Ask) Modes {
	m.Security = stricter(securities, m.Security, cmp.Or(security, m.Security))
	m.Ask = stricter(asks, m.Ask, cmp.Or(ask, m.Ask))
	return m
}

// For are the modes together with what the host's own file and the call say about a command.
func (m Modes) For(a *toolward.CommandAnalysis) Modes {
	return m.Tightened(Security(a.Security), Ask(a.Ask))
}

// At gives the modes in force for a host at a level. In the sandbox at level normal the container is the guard;
// everywhere else a tenser level only ever tightens.
func (m Modes) At(host toolward.Host, level toolward.Level) Modes {
	if host == toolward.HostSandbox {
		m.Security, m.Ask = SecurityFull, AskOff
		if m.SandboxAsk {
			m.Ask = AskAlways
		}
	}
	switch level {
	case toolward.Normal:
		return m
	case toolward.Elevated:
		return m.Tightened(SecurityAllowlist, AskOnMiss)
	default:
		return m.Tightened(SecurityAllowlist, AskAlways)
	}
}
