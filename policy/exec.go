package policy

import (
	"fmt"
	"slices"

	"github.com/toolward/toolward"
)

// Security says which commands may run at all. The zero value is none.
type Security uint8

// The values of Security, strictest first.
const (
	SecurityDeny      Security = iota
	SecurityAllowlist          // what the allowlist covers
	SecurityFull               // everything
)

// AskMode says when people are asked about a command. The zero value is always.
type AskMode uint8

// The values of AskMode, strictest first.
const (
	AskAlways AskMode = iota
	AskOnMiss         // when the allowlist does not cover the command
	AskOff
)

var (
	securityNames = []string{"deny", "allowlist", "full"}
	askNames      = []string{"always", "on-miss", "off"}
)

func (s Security) String() string { return word(securityNames, int(s)) }
func (a AskMode) String() string  { return word(askNames, int(a)) }

// MarshalText writes "deny", "allowlist" or "full".
func (s Security) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// MarshalText writes "always", "on-miss" or "off".
func (a AskMode) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

// UnmarshalText reads what MarshalText writes; anything else is an error and leaves deny.
func (s *Security) UnmarshalText(text []byte) error {
	i, err := fromWord("security", securityNames, string(text))
	*s = Security(i)
	return err
}

// UnmarshalText reads what MarshalText writes; anything else is an error and leaves always.
func (a *AskMode) UnmarshalText(text []byte) error {
	i, err := fromWord("ask", askNames, string(text))
	*a = AskMode(i)
	return err
}

func word(words []string, i int) string {
	if i < len(words) {
		return words[i]
	}
	return words[0]
}

func fromWord(kind string, words []string, text string) (int, error) {
	if i := slices.Index(words, text); i >= 0 {
		return i, nil
	}
	return 0, fmt.Errorf("invalid %s %q: use one of %q", kind, text, words)
}

// Reasons for a prompt that no setting switches off.
const (
	ForcedHeredoc     = "heredoc"
	ForcedInlineEval  = "inline-eval"
	ForcedObfuscation = "obfuscation"
	ForcedRule        = "rule"
)

// ExecRules are the settings that commands are judged by.
type ExecRules struct {
	Security   Security
	Ask        AskMode
	SandboxAsk bool // teg.exec.sandbox: "ask": people are asked in the sandbox too
}

// At gives the settings in force for a host at a level. In the sandbox at level normal the container is the guard;
// everywhere else a tenser level only ever tightens.
func (r ExecRules) At(host toolward.Host, level toolward.Level) ExecRules {
	sandbox := host == toolward.HostSandbox
	if sandbox {
		r.Security, r.Ask = SecurityFull, AskOff
		if r.SandboxAsk {
			r.Ask = AskAlways
		}
	}
	switch level {
	case toolward.Normal:
		return r
	case toolward.Elevated:
		r.Security, r.Ask = min(r.Security, SecurityAllowlist), min(r.Ask, AskOnMiss)
	default:
		r.Security, r.Ask = min(r.Security, SecurityAllowlist), AskAlways
	}
	return r
}

// tightened are the settings together with what the host's own file and the call say.
func (r ExecRules) tightened(a *toolward.CommandAnalysis) ExecRules {
	if a.Security != "" {
		var own Security
		_ = own.UnmarshalText([]byte(a.Security)) // an unknown word leaves deny
		r.Security = min(r.Security, own)
	}
	if a.Ask != "" {
		var own AskMode
		_ = own.UnmarshalText([]byte(a.Ask)) // an unknown word leaves always
		r.Ask = min(r.Ask, own)
	}
	return r
}

// Judge says what settings that are already those of the level make of an analyzed command.
func (r ExecRules) Judge(a *toolward.CommandAnalysis) toolward.Verdict {
	r = r.tightened(a)
	covered := a.Understood && a.Covered
	switch {
	case r.Security == SecurityDeny, a.Forbidden != "":
		return toolward.Deny
	case r.Ask == AskAlways, r.forced(a):
		return toolward.Ask
	case r.Security == SecurityFull, covered:
		return toolward.Allow
	case r.Ask == AskOnMiss:
		return toolward.Ask
	default:
		return toolward.Deny // not on the list, and nobody is to be asked
	}
}

// forced reports whether a reason for a prompt applies. Here-documents and inline code are a matter of what the
// allowlist can vouch for; obfuscation, and any reason that we do not know, always counts.
func (r ExecRules) forced(a *toolward.CommandAnalysis) bool {
	return slices.ContainsFunc(a.Forced, func(reason string) bool {
		switch reason {
		case ForcedHeredoc, ForcedInlineEval:
			return r.Security == SecurityAllowlist
		}
		return true
	})
}

// verdictAt judges a command at a level. It is never more permissive than at a calmer one: settings that refuse
// without asking at level normal must not start to ask when the session gets tense.
func (r ExecRules) verdictAt(host toolward.Host, level toolward.Level, a *toolward.CommandAnalysis) toolward.Verdict {
	verdict := toolward.Allow
	for l := toolward.Normal; ; l-- {
		verdict = toolward.Stricter(verdict, r.At(host, l).Judge(a))
		if l <= level {
			return verdict
		}
	}
}
