package policy

import "github.com/toolward/toolward"

// weighed is what class, level and findings make of a call.
type weighed struct {
	verdict     toolward.Verdict
	grantOK     bool // a grant may answer for a person
	allowAlways bool // people may answer "always"
	listed      bool // the allowlist of commands let it through
	unanswered  bool // it runs if nobody answers
	code        toolward.Code
}

// weigh is the matrix of class and level, raised by the strictest finding. enabled says that the operator enabled
// a blocked row by name. finding is EffectNote when there is none.
func weigh(c toolward.Classification, enabled bool, level toolward.Level, finding toolward.Effect) weighed {
	if finding == toolward.EffectDeny {
		return weighed{code: toolward.CodeValidation}
	}
	w := byLevel(c, enabled, level)
	if finding == toolward.EffectAsk {
		w.verdict = toolward.Stricter(w.verdict, toolward.Ask)
	}
	if w.verdict != toolward.Ask {
		return w
	}
	// In lockdown the session may be under a stranger's control: no answer of the past or for the future counts.
	// A critical call, a blocked one that was enabled, and one with a finding are answered once, each time anew.
	ok := level != toolward.Lockdown && c.Severity != toolward.Critical && c.Class != toolward.Blocked &&
		finding != toolward.EffectAsk && c.Grant != toolward.GrantNone
	w.grantOK, w.allowAlways = ok, ok
	return w
}

func byLevel(c toolward.Classification, enabled bool, level toolward.Level) weighed {
	switch c.Class {
	case toolward.Safe:
		if level > c.From { // calmer than the level at which the row starts to ask
			return weighed{verdict: toolward.Allow}
		}
		return weighed{verdict: toolward.Ask}
	case toolward.NeedsApproval:
		return weighed{verdict: toolward.Ask}
	}
	switch {
	case !enabled:
		return weighed{code: toolward.CodeBlocked}
	case level == toolward.Lockdown:
		return weighed{code: toolward.CodeBlockedInLockdown}
	}
	return weighed{verdict: toolward.Ask}
}
