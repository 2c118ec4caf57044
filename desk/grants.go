package desk

import (
	"context"

	"github.com/toolward/toolward/approval"
	"github.com/toolward/toolward/audit"
)

// Grants are the answers that are kept for later calls.
func (d *Desk) Grants(v Visitor) ([]*approval.Grant, error) {
	if err := d.may(v, SeeGrants, d.approvals != nil); err != nil {
		return nil, err
	}
	return d.approvals.Grants(), nil
}

// RevokeGrant ends a grant, named by its id or its first characters. From then on no call runs on it; with an error of a store that
// failed, until the next start only.
func (d *Desk) RevokeGrant(ctx context.Context, v Visitor, id string) (*approval.Grant, error) {
	if err := d.may(v, RevokeGrants, d.approvals != nil); err != nil {
		return nil, err
	}
	grant, err := d.approvals.Revoke(ctx, v.By, id)
	if grant == nil {
		return nil, &Error{Unknown, err}
	}
	d.note(ctx, audit.Event{Type: audit.TypeGrant, Data: v.signed(map[string]any{
		"event": "revoked", "grant": grant.ID, "tool": grant.Tool, "agent": grant.Agent, "text": grant.Text,
	})})
	if err != nil {
		d.log.Error("a grant that was revoked is still in the store", "grant", grant.ID, "err", err)
		return nil, &Error{Failed, err}
	}
	return grant, nil
}
