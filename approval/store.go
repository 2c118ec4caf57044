package approval

import (
	"context"

	"github.com/toolward/toolward"
)

// Store keeps approvals and grants. Unless it says otherwise, a method is durable when it returns nil.
type Store interface {
	// AddApproval inserts a record as it is, usually pending.
	AddApproval(context.Context, *Record) error
	// ResolveApproval writes the end of a pending approval and, in the same transaction, the grant that the answer
	// saves, if any. It fails if the record is not pending: an answer never changes.
	ResolveApproval(context.Context, Key, Resolution, *Grant) error
	// ExpireApprovals writes ends without a decision. Those no longer pending are left alone. It need not be
	// durable: an approval past its deadline is as good as ended.
	ExpireApprovals(context.Context, []Expiry) error
	// ConsumeApproval marks an allowing answer as used; false if it was used before or allows nothing.
	ConsumeApproval(ctx context.Context, key Key, atMs int64) (bool, error)
	// VoidAnswers marks every allowing answer that was not used as void.
	VoidAnswers(context.Context) error
	// PendingApprovals returns every pending record, without a deadline check.
	PendingApprovals(context.Context) ([]*Record, error)
	// Approval returns the newest record of an id; nil if there is none.
	Approval(ctx context.Context, id string) (*Record, error)
	// ApprovalByKey returns one record; nil if there is none.
	ApprovalByKey(context.Context, Key) (*Record, error)
	// RecentApprovals returns the records resolved last, newest first.
	RecentApprovals(ctx context.Context, limit int) ([]*Record, error)
	// Denials returns what people denied since a moment.
	Denials(ctx context.Context, sinceMs int64, limit int) ([]Denial, error)
	// PruneApprovals removes ended records that were created before a moment.
	PruneApprovals(ctx context.Context, beforeMs int64) error

	// Grants returns every grant that is neither revoked nor used up nor expired at a moment.
	Grants(ctx context.Context, nowMs int64) ([]*Grant, error)
	// RevokeGrants marks grants as revoked.
	RevokeGrants(ctx context.Context, ids []string, by string, atMs int64) error
	// SpendGrant takes one of the uses of a grant that has a number of them, durably; false if there is none left, or
	// the grant was revoked.
	SpendGrant(ctx context.Context, id string, atMs int64) (bool, error)
	// CountGrantUses adds to the counts of uses. It need not be durable.
	CountGrantUses(context.Context, []GrantUse) error
}

// Resolution is the end of an approval.
type Resolution struct {
	Decision toolward.Decision
	By       string
	Reason   string
	AtMs     int64
}

// Expiry is the end of an approval without a decision.
type Expiry struct {
	Key  Key
	By   string
	AtMs int64
}

// Denial is a call that a person refused.
type Denial struct {
	Session toolward.SessionKey
	Run     string
	Digest  string
}

// GrantUse is how often a grant was used since the last time it was written.
type GrantUse struct {
	ID     string
	Uses   int64
	LastMs int64
}
