package approval

import (
	"slices"
	"time"

	"github.com/toolward/toolward"
)

// Lookback tells whether what an "always" would save would have let calls of the past run without a question. It
// answers for the grant that would be made, never for more; what the record does not hold counts as not covered.
type Lookback struct {
	details  *Details
	proposal Proposal
	grant    *Grant
	now      time.Time
}

// PastCall is a recorded call as far as grants look at it.
type PastCall struct {
	Request *toolward.Request
	Digest  string // with agent and session, as a Record's
	Command string // as it was shown, "" if the tool runs none
}

// Lookback looks at the past through one of the record's proposals; false if there is no such proposal.
func (r *Record) Lookback(proposal int) (*Lookback, bool) {
	if r.Request == nil || proposal < 0 || proposal >= len(r.Request.Proposals) {
		return nil, false
	}
	now := time.Now()
	p := r.Request.Proposals[proposal]
	return &Lookback{r.Request, p, grantFrom(r.Request, p, "lookback", now), now}, true
}

// Agent and Tool are those of every call that can be covered.
func (l *Lookback) Agent() string { return l.details.Agent }

// Tool is the tool of every call that can be covered.
func (l *Lookback) Tool() string { return l.details.Tool }

// Partial reports whether more may have been covered than Covers says: the record keeps neither the whole arguments of
// a call nor the entries that a command would have needed, so only the very same call is recognized.
func (l *Lookback) Partial() bool {
	switch l.proposal.Match.Kind {
	case toolward.GrantPath, toolward.GrantHost, toolward.GrantRecipient, toolward.GrantSession, toolward.GrantAgent, toolward.GrantNode, toolward.GrantProcess:
		return false
	}
	return true
}

// Covers reports whether a call of the past would have been covered.
func (l *Lookback) Covers(c *PastCall) bool {
	r := c.Request
	if r == nil || r.Tool == nil {
		return false
	}
	a := attemptOf(r, l.now)
	if len(l.proposal.Match.Entries) > 0 {
		return a.Tool == l.details.Tool && a.Agent == l.details.Agent && a.Level != toolward.Lockdown &&
			r.Call.WorkDir == l.details.WorkDir && l.same(c)
	}
	if l.Partial() {
		if !l.same(c) || r.Call.WorkDir != l.details.WorkDir {
			return false
		}
		a.Digest, a.Bound = l.proposal.Match.Digest, l.proposal.Match.Bound // it is the same call
	}
	if len(a.Addresses) > 0 && slices.Contains(a.Addresses, Address{}) {
		return false // not understood
	}
	return l.grant.Refuses(a) == ""
}

// same reports whether it is the very call that people are asked about.
func (l *Lookback) same(c *PastCall) bool {
	return c.Digest != "" && c.Digest == l.details.Digest || c.Command != "" && c.Command == l.details.Command
}
