package desk

import (
	"context"

	"github.com/toolward/toolward/approval"
	"github.com/toolward/toolward/audit"
)

// withdraw takes back what somebody gave for later calls whose device or passkey is taken away: it may have been a thief's. Remembered
// answers end; entries of exec-approvals.json wait for a person again, with the difference.
func (d *Desk) withdraw(ctx context.Context, v Visitor, givenBy, why string) {
	ctx = context.WithoutCancel(ctx) // who closes the page meanwhile keeps nothing in force
	answers, entries := 0, 0
	var err error
	if d.approvals != nil {
		if answers, err = d.approvals.DropGrants(ctx, why, func(g *approval.Grant) bool { return g.GivenBy == givenBy }); err != nil {
			d.log.Error("remembered answers end until the next start only", "given by", givenBy, "err", err)
		}
	}
	if d.allowlist != nil {
		if entries, err = d.allowlist.Withdraw(givenBy); err != nil {
			d.log.Error("entries of exec-approvals.json still count", "given by", givenBy, "err", err)
		}
	}
	if answers+entries > 0 {
		d.note(ctx, audit.Event{Type: audit.TypeGrant, Data: v.signed(map[string]any{
			"event": "withdrawn", "givenBy": givenBy, "why": why, "answers": answers, "entries": entries,
		})})
	}
}
