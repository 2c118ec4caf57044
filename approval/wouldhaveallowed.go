package approval

import (
	"slices"
	"time"

	"github.com/toolward/toolward"
)

// PastGrant tells whether what an "always" would save would have let calls of the past run without a question. It
// answers for the grant that would be made, never for more; what the record does not hold counts as not covered.
type PastGrant struct {
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

// WouldHaveAllowed looks at the past through one of the record's proposals; false if there is no such proposal.
func (r *Record) WouldHaveAllowed(proposal int) (*PastGrant, bool) {
	if r.Request == nil || proposal < 0 || proposal >= len(r.Request.Proposals) {
		return nil, false
	}
	now := time.Now()
	p := r.Request.Proposals[proposal]
	return &PastGrant{r.Request, p, grantFrom(r.Request, p, "nobody", now), now}, true
}

// Agent and Tool are those of every call that can be covered.
func (g *PastGrant) Agent() string { return g.details.Agent }

// Tool is the tool of every call that can be covered.
func (g *PastGrant) Tool() string { return g.details.Tool }

// Partial reports whether more may have been covered than Covers says: the record keeps neither the whole arguments of
// a call nor the entries that a command would have needed, so only the very same call is recognized.
func (g *PastGrant) Partial() bool {
	switch g.proposal.Match.Kind {
	case toolward.GrantPath, toolward.GrantHost, toolward.GrantRecipient, toolward.GrantSession, toolward.GrantAgent, toolward.GrantNode, toolward.GrantProcess:
		return false
	}
	return true
}

// Covers reports whether a call of the past would have been covered.
func (g *PastGrant) Covers(c *PastCall) bool {
	r := c.Request
	if r == nil || r.Tool == nil {
		return false
	}
	a := attemptOf(r, g.now)
	if len(g.proposal.Match.Entries) > 0 {
		return a.Tool == g.details.Tool && a.Agent == g.details.Agent && a.Level != toolward.Lockdown &&
			r.Call.WorkDir == g.details.WorkDir && g.same(c)
	}
	if g.Partial() {
		if !g.same(c) || r.Call.WorkDir != g.details.WorkDir {
			return false
		}
		a.Digest, a.Bound = g.proposal.Match.Digest, g.proposal.Match.Bound // it is the same call
	}
	if len(a.Addresses) > 0 && slices.Contains(a.Addresses, Address{}) {
		return false // not understood
	}
	return g.grant.Refuses(a) == ""
}

// same reports whether it is the very call that people are asked about.
func (g *PastGrant) same(c *PastCall) bool {
	return c.Digest != "" && c.Digest == g.details.Digest || c.Command != "" && c.Command == g.details.Command
}
