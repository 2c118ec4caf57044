package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/approval"
)

// Approvals keeps approvals and grants; it implements [approval.Store].
type Approvals struct{ db *DB }

var _ approval.Store = (*Approvals)(nil)

// NewApprovals returns the part of the store that the approval manager works with.
func NewApprovals(db *DB) *Approvals { return &Approvals{db} }

// ErrNotPending is returned when an approval that should be answered is not pending any more.
var ErrNotPending = errors.New("approval is not pending")

const approvalColumns = `id, created_ms, expires_ms, kind, state, binding, connection, device, client, detached,
	allowed, request, decision, resolved_by, reason, resolved_ms, consumed_ms, grant_id`

// AddApproval inserts a record, durably.
func (s *Approvals) AddApproval(ctx context.Context, r *approval.Record) error {
	if r.Request == nil {
		return fmt.Errorf("store approval %s: it has no request", r.ID)
	}
	request, err := plainJSON(r.Request)
	if err != nil {
		return fmt.Errorf("store approval %s: %w", r.ID, err)
	}
	allowed := make([]string, len(r.Allowed))
	for i, d := range r.Allowed {
		allowed[i] = d.String()
	}
	return s.db.Write(ctx, true, func(tx *Tx) error {
		_, err := tx.Exec(`INSERT INTO approvals (`+approvalColumns+`, session_key, run_id, digest)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
			r.ID, r.CreatedMs, r.ExpiresMs, string(r.Kind), string(r.State), r.Binding, r.Connection, r.Device, r.Client,
			r.Detached, strings.Join(allowed, ","), request, r.Decision.String(), r.ResolvedBy, r.Reason,
			r.ResolvedMs, r.ConsumedMs, r.Grant, string(r.Request.Session), r.Request.Run, r.Request.Digest)
		return wrap(err, "store approval %s", r.ID)
	})
}

// ResolveApproval writes an answer and the grant it saves, durably and together. The row must be pending: an answer
// never changes.
func (s *Approvals) ResolveApproval(ctx context.Context, key approval.Key, end approval.Resolution, g *approval.Grant) error {
	return s.db.Write(ctx, true, func(tx *Tx) error {
		grant := ""
		if g != nil {
			grant = g.ID
			if err := insertGrant(tx, g); err != nil {
				return err
			}
		}
		n, err := affected(tx.Exec(`UPDATE approvals SET state = 'resolved', decision = ?, resolved_by = ?, reason = ?, resolved_ms = ?, grant_id = ?
			WHERE id = ? AND created_ms = ? AND state = 'pending'`,
			end.Decision.String(), end.By, end.Reason, end.AtMs, grant, key.ID, key.CreatedMs))
		if err != nil {
			return fmt.Errorf("store answer to approval %s: %w", key.ID, err)
		}
		if n != 1 {
			return fmt.Errorf("store answer to approval %s: %w", key.ID, ErrNotPending)
		}
		return nil
	})
}

// ExpireApprovals writes ends without a decision.
func (s *Approvals) ExpireApprovals(ctx context.Context, ends []approval.Expiry) error {
	return s.db.Write(ctx, false, func(tx *Tx) error {
		update, err := tx.Prepare(`UPDATE approvals SET state = 'resolved', resolved_by = ?, resolved_ms = ?
			WHERE id = ? AND created_ms = ? AND state = 'pending'`)
		if err != nil {
			return fmt.Errorf("end approvals: %w", err)
		}
		defer update.Close()
		for _, e := range ends {
			if _, err := update.Exec(e.By, e.AtMs, e.Key.ID, e.Key.CreatedMs); err != nil {
				return fmt.Errorf("end approval %s: %w", e.Key.ID, err)
			}
		}
		return nil
	})
}

// ConsumeApproval marks an allowing answer as used, durably; false if it was used before or allows nothing.
func (s *Approvals) ConsumeApproval(ctx context.Context, key approval.Key, atMs int64) (first bool, err error) {
	err = s.db.Write(ctx, true, func(tx *Tx) error {
		n, err := affected(tx.Exec(`UPDATE approvals SET state = 'consumed', consumed_ms = ?
			WHERE id = ? AND created_ms = ? AND state = 'resolved' AND decision IN ('allow-once', 'allow-always')`,
			atMs, key.ID, key.CreatedMs))
		first = n == 1
		return wrap(err, "use approval %s", key.ID)
	})
	return first && err == nil, err
}

// VoidAnswers marks every allowing answer that was not used as void, durably.
func (s *Approvals) VoidAnswers(ctx context.Context) error {
	return s.db.Write(ctx, true, func(tx *Tx) error {
		_, err := tx.Exec(`UPDATE approvals SET state = 'void' WHERE state = 'resolved' AND decision IN ('allow-once', 'allow-always')`)
		return wrap(err, "void unused answers")
	})
}

// PruneApprovals removes ended records created before a moment.
func (s *Approvals) PruneApprovals(ctx context.Context, beforeMs int64) error {
	return s.db.Write(ctx, false, func(tx *Tx) error {
		_, err := tx.Exec(`DELETE FROM approvals WHERE created_ms < ? AND state <> 'pending'`, beforeMs)
		return wrap(err, "remove old approvals")
	})
}

// PendingApprovals returns every pending record.
func (s *Approvals) PendingApprovals(ctx context.Context) ([]*approval.Record, error) {
	return s.query(ctx, `WHERE state = 'pending' ORDER BY expires_ms, id`)
}

// RecentApprovals returns the records resolved last, newest first.
func (s *Approvals) RecentApprovals(ctx context.Context, limit int) ([]*approval.Record, error) {
	return s.query(ctx, `WHERE resolved_ms > 0 ORDER BY resolved_ms DESC, id LIMIT ?`, limit)
}

// Approval returns the newest record of an id; nil if there is none.
func (s *Approvals) Approval(ctx context.Context, id string) (*approval.Record, error) {
	return one(s.query(ctx, `WHERE id = ? ORDER BY created_ms DESC LIMIT 1`, id))
}

// ApprovalByKey returns one record; nil if there is none.
func (s *Approvals) ApprovalByKey(ctx context.Context, key approval.Key) (*approval.Record, error) {
	return one(s.query(ctx, `WHERE id = ? AND created_ms = ?`, key.ID, key.CreatedMs))
}

func one(list []*approval.Record, err error) (*approval.Record, error) {
	if err != nil || len(list) == 0 {
		return nil, err
	}
	return list[0], nil
}

func (s *Approvals) query(ctx context.Context, rest string, args ...any) ([]*approval.Record, error) {
	rows, err := s.db.Reader().QueryContext(ctx, `SELECT `+approvalColumns+` FROM approvals `+rest, args...)
	if err != nil {
		return nil, fmt.Errorf("read approvals: %w", err)
	}
	defer rows.Close()
	var out []*approval.Record
	for rows.Next() {
		r, err := scanApproval(rows)
		if err != nil {
			return nil, fmt.Errorf("read approvals: %w", err)
		}
		out = append(out, r)
	}
	return out, wrap(rows.Err(), "read approvals")
}

func scanApproval(rows *sql.Rows) (*approval.Record, error) {
	r := &approval.Record{Request: &approval.Details{}}
	var allowed, request, decision string
	err := rows.Scan(&r.ID, &r.CreatedMs, &r.ExpiresMs, &r.Kind, &r.State, &r.Binding, &r.Connection, &r.Device, &r.Client,
		&r.Detached, &allowed, &request, &decision, &r.ResolvedBy, &r.Reason, &r.ResolvedMs, &r.ConsumedMs, &r.Grant)
	if err != nil {
		return nil, err
	}
	for word := range strings.SplitSeq(allowed, ",") {
		d, err := toolward.ParseDecision(word)
		if err != nil {
			return nil, fmt.Errorf("approval %s: %w", r.ID, err)
		}
		r.Allowed = append(r.Allowed, d)
	}
	if err := r.Decision.UnmarshalText([]byte(decision)); err != nil {
		return nil, fmt.Errorf("approval %s: %w", r.ID, err)
	}
	if err := json.Unmarshal([]byte(request), r.Request); err != nil {
		return nil, fmt.Errorf("approval %s: %w", r.ID, err)
	}
	return r, nil
}

// Denials returns what people denied since a moment.
func (s *Approvals) Denials(ctx context.Context, sinceMs int64, limit int) ([]approval.Denial, error) {
	rows, err := s.db.Reader().QueryContext(ctx, `SELECT session_key, run_id, digest FROM approvals
		WHERE resolved_ms >= ? AND resolved_ms > 0 AND decision = 'deny' ORDER BY resolved_ms DESC LIMIT ?`, sinceMs, limit)
	if err != nil {
		return nil, fmt.Errorf("read denials: %w", err)
	}
	defer rows.Close()
	var out []approval.Denial
	for rows.Next() {
		var d approval.Denial
		if err := rows.Scan(&d.Session, &d.Run, &d.Digest); err != nil {
			return nil, fmt.Errorf("read denials: %w", err)
		}
		out = append(out, d)
	}
	return out, wrap(rows.Err(), "read denials")
}

// plainJSON writes JSON without escaping what only matters inside HTML, so that what people see is as it was.
func plainJSON(v any) (string, error) {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return "", err
	}
	return strings.TrimSuffix(b.String(), "\n"), nil
}

// affected is the number of rows that a statement changed.
func affected(result sql.Result, err error) (int64, error) {
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

// wrap adds what was being done to an error; nil stays nil.
func wrap(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", fmt.Sprintf(format, args...), err)
}
