package approval

import (
	"time"

	"github.com/toolward/toolward"
)

// freshAfter is after how many prompts of a session in lockdown the next ones offer the clean way out. Whoever is
// asked about every call begins to click; a fresh context asks less, for a good reason.
const freshAfter = 3

// offerReset is the reason that offers it. It says how, because Toolward cannot empty a client's context.
const offerReset = "This session has been in lockdown for several questions. The clean way out is to reset the session: " +
	"start a new conversation in the client. Or clear it: toolward level clear"

// advise adds the offer to a question of a session that has asked in lockdown too often, as the first reason, where
// nothing cuts it off. A session that is no longer in lockdown begins anew.
func (p *people) advise(d *Details) {
	p.mu.Lock()
	defer p.mu.Unlock()
	t := p.tense[d.Session]
	switch {
	case t == nil:
	case d.Level != toolward.Lockdown:
		delete(p.tense, d.Session)
	case t.prompts >= freshAfter:
		d.Reasons = append([]string{offerReset}, d.Reasons...)
	}
}

// prompted counts a question that people were shown.
func (p *people) prompted(d *Details, now time.Time) {
	if d.Level != toolward.Lockdown {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	t := p.tense[d.Session]
	if t == nil {
		if len(p.tense) >= maxSilences {
			dropOldest(p.tense, func(t *tension) time.Time { return t.last })
		}
		t = &tension{}
		p.tense[d.Session] = t
	}
	t.prompts++
	t.last = now
}
