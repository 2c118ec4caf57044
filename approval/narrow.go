package approval

import (
	"fmt"
	"time"
)

// Narrow makes what "always" keeps less than what was proposed: for a shorter time, or for a number of calls. The zero
// value keeps the proposal.
type Narrow struct {
	Life time.Duration // at most the proposal's
	Uses int64         // later calls that the grant allows; 0 is any number
}

// maxUses is the largest number of uses that can be asked for; who wants more wants any number.
const maxUses = 1_000_000

// of returns the proposal made narrower. More than was proposed is refused: a screen has shown less.
func (n Narrow) of(p Proposal) (Proposal, error) {
	switch {
	case n == Narrow{}:
		return p, nil
	case len(p.Match.Entries) > 0:
		return p, fmt.Errorf("%w: what the allowlist gains has no end and no count; choose another proposal, or allow once", ErrNotOffered)
	case n.Life < 0 || n.Life > 0 && n.Life < time.Second || n.Life.Milliseconds() > p.LifeMs:
		return p, fmt.Errorf("%w: %s is not between 1s and %s, which was proposed", ErrNotOffered, n.Life, lifeWords(time.Duration(p.LifeMs)*time.Millisecond))
	case n.Uses < 0 || n.Uses > maxUses:
		return p, fmt.Errorf("%w: %d uses, expected 1 to %d", ErrNotOffered, n.Uses, maxUses)
	}
	if n.Life > 0 {
		p.LifeMs = n.Life.Milliseconds()
		p.Text += "; shortened to " + lifeWords(n.Life)
	}
	if n.Uses > 0 {
		p.MaxUses = n.Uses
		p.Text += fmt.Sprintf("; for %d more calls at most", n.Uses)
	}
	return p, nil
}
