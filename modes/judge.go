package modes

import (
	"slices"

	"github.com/toolward/toolward"
)

// Findings that ask by themselves: no setting of "ask" switches them off.
const (
	FindingHeredoc     = "heredoc"
	FindingInlineEval  = "inline-eval"
	FindingObfuscation = "obfuscation"
	FindingRule        = "rule"
)

// notAnalyzed stands for a command that nobody looked at.
var notAnalyzed toolward.CommandAnalysis

// Judge is the verdict about a command on a host at a level: the only one there is. A nil analysis is a command that
// nobody looked at. It is never more permissive than at a calmer level: settings that refuse without asking at level
// normal must not start to ask when the session gets tense.
func Judge(m Modes, host toolward.Host, level toolward.Level, a *toolward.CommandAnalysis) toolward.Verdict {
	if level > toolward.Normal {
		level = toolward.Lockdown // no level that we know must not pass for a calm one
	}
	verdict := toolward.Allow
	if a == nil {
		// Nobody looked at what the command does, so no setting can vouch for it, not even for the sandbox.
		a, verdict = &notAnalyzed, toolward.Ask
	}
	for l := toolward.Normal; ; l-- {
		verdict = toolward.Stricter(verdict, m.At(host, Tension(host, l, a)).judge(a))
		if l <= level {
			return verdict
		}
	}
}

// Tension is the level that counts for a command on a host. What the sandbox guards while a session is calm it guards as well while
// one is elevated: how much a command may touch there does not depend on what its agent has read. Lockdown is lockdown everywhere.
func Tension(host toolward.Host, level toolward.Level, a *toolward.CommandAnalysis) toolward.Level {
	if level == toolward.Elevated && host == toolward.HostSandbox && a != nil && a.Contained {
		return toolward.Normal
	}
	return level
}

// judge says what modes that are already those of the level make of an analyzed command.
func (m Modes) judge(a *toolward.CommandAnalysis) toolward.Verdict {
	m = m.For(a)
	switch {
	case m.Security == SecurityDeny, a.Forbidden != "":
		return toolward.Deny
	case m.asks(a):
		return toolward.Ask
	case m.Security == SecurityFull, covered(a):
		return toolward.Allow
	default:
		return toolward.Deny // not on the list, and nobody is to be asked
	}
}

// asks reports whether a person is asked about a command that is not refused.
func (m Modes) asks(a *toolward.CommandAnalysis) bool {
	return m.Ask == AskAlways || m.mustAsk(a) || m.Ask == AskOnMiss && m.Security == SecurityAllowlist && !covered(a)
}

func covered(a *toolward.CommandAnalysis) bool { return a.Understood && a.Covered }

// mustAsk reports whether a finding asks by itself. Here-documents and inline code are a matter of what the
// allowlist can vouch for; obfuscation, and any reason that we do not know, always counts.
func (m Modes) mustAsk(a *toolward.CommandAnalysis) bool {
	return slices.ContainsFunc(a.Findings, func(reason string) bool {
		switch reason {
		case FindingHeredoc, FindingInlineEval:
			return m.Security == SecurityAllowlist
		}
		return true
	})
}
