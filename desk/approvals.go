package desk

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/approval"
	"github.com/toolward/toolward/identity"
)

// Waiting is what waits for an answer, the next to expire first.
func (d *Desk) Waiting(ctx context.Context, v Visitor) ([]*approval.Record, error) {
	if err := d.may(v, SeeApprovals, d.approvals != nil); err != nil {
		return nil, err
	}
	list, err := d.approvals.Pending(ctx, v.By)
	return list, approvalError(err)
}

// RecentlyAnswered is what ended last, newest first.
func (d *Desk) RecentlyAnswered(ctx context.Context, v Visitor, limit int) ([]*approval.Record, error) {
	if err := d.may(v, SeeApprovals, d.approvals != nil); err != nil {
		return nil, err
	}
	list, err := d.approvals.Recent(ctx, v.By, limit)
	return list, approvalError(err)
}

// Approval is one approval, waiting or past, named by its id or, while it waits, by its first characters.
func (d *Desk) Approval(ctx context.Context, v Visitor, id string) (*approval.Record, error) {
	if err := d.may(v, SeeApprovals, d.approvals != nil); err != nil {
		return nil, err
	}
	record, err := d.approvals.Get(ctx, v.By, id)
	return record, approvalError(err)
}

// Answer is what a visitor says to a call that waits. How they saw it is in Seen or Typed.
type Answer struct {
	ID       string // of the approval, or its first characters
	Decision string // one of the three exact words
	Reason   string // with deny: for the model
	Proposal int    // with allow-always: which of the proposals that were shown
	Narrow   approval.Narrow
	Binding  string // digest of what the visitor was shown; "" if the adapter does not bring it back
	Seen     string // stamp of the showing
	Typed    bool   // the visitor wrote the id: there was nothing to click by accident
}

// Answer answers a call that waits. The approval's own row is the record of it, and is written before the answer counts: an "allow"
// that cannot be written allows nothing; a "deny" counts all the same.
func (d *Desk) Answer(ctx context.Context, v Visitor, a Answer) (*approval.Record, error) {
	if err := d.may(v, AnswerApprovals, d.approvals != nil); err != nil {
		return nil, err
	}
	record, err := d.approvals.Resolve(ctx, approval.Response{
		ID: a.ID, Decision: a.Decision, Reason: a.Reason, Proposal: a.Proposal, Narrow: a.Narrow, By: v.By,
		Connection: v.Connection, Device: v.Device, Binding: a.Binding, Shown: a.Seen, Typed: a.Typed,
	})
	if record == nil {
		return nil, approvalError(err)
	}
	if err != nil {
		d.log.Error("an answer counts, but could not be recorded", "approval", record.ID, "err", err)
	}
	return record, nil
}

// Shown is a call that waits, with the stamp of its showing.
type Shown struct{ ID, Seen string }

// Answered is what became of one of several calls: Err says why the answer to it did not count.
type Answered struct {
	ID     string
	Record *approval.Record
	Err    error
}

// AnswerAlike answers several identical calls, for this once. Each is answered on its own, with the stamp of its own showing, so that
// a call which has just come in is never among those that a person meant. All are refused if two of them differ in what they are
// bound to: whoever says "these are all the same" was shown one of them.
func (d *Desk) AnswerAlike(ctx context.Context, v Visitor, calls []Shown, decision string) ([]Answered, error) {
	if err := d.may(v, AnswerApprovals, d.approvals != nil); err != nil {
		return nil, err
	}
	if decision != toolward.DenyCall.String() && decision != toolward.AllowOnce.String() {
		return nil, &Error{Invalid, fmt.Errorf("several calls at once cannot be answered with %q", decision)}
	}
	alike, err := d.alike(ctx, v, calls)
	if err != nil {
		return nil, err
	}
	var all []Answered
	for _, c := range alike {
		record, err := d.Answer(ctx, v, Answer{ID: c.ID, Decision: decision, Seen: c.Seen})
		all = append(all, Answered{c.ID, record, err})
	}
	return all, nil
}

// alike checks that calls are identical.
func (d *Desk) alike(ctx context.Context, v Visitor, calls []Shown) ([]Shown, error) {
	var out []Shown
	same := ""
	for _, c := range calls {
		record, err := d.Approval(ctx, v, c.ID)
		switch {
		case CodeOf(err) == Unknown:
			c.Seen = "" // ended long ago, and never to be resolved without having been compared
		case err != nil:
			return nil, err
		case BoundTo(record) == "" || same != "" && BoundTo(record) != same:
			return nil, &Error{Different, errors.New("these calls are not identical")}
		default:
			same = BoundTo(record)
		}
		out = append(out, c)
	}
	return out, nil
}

// BoundTo names what an approval is bound to: two with the same name let exactly the same call run. It is "" if the approval is
// bound to nothing that could be compared.
func BoundTo(r *approval.Record) string {
	if r.Binding == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(r.Binding + "\x00" + r.Request.Digest))
	return hex.EncodeToString(sum[:12])
}

// approvalError gives a refusal of the approver its code.
func approvalError(err error) error {
	if err == nil {
		return nil
	}
	for _, known := range []struct {
		err  error
		code Code
	}{
		{approval.ErrTooSoon, TooSoon},
		{approval.ErrNotShown, NotShown},
		{approval.ErrChanged, Changed},
		{approval.ErrResolved, Resolved},
		{approval.ErrUnknown, Unknown},
		{approval.ErrNotOffered, NotOffered},
		{approval.ErrSelfApproval, OwnQuestion},
		{approval.ErrNotAllowed, NotAllowed},
		{identity.ErrNotSignedIn, NotAllowed},
	} {
		if errors.Is(err, known.err) {
			return &Error{known.code, err}
		}
	}
	return &Error{Failed, err}
}
