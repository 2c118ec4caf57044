package gatetest_test

import (
	"context"
	"errors"
	"sync"

	"github.com/toolward/toolward/approval"
)

// rows is an approval store in memory.
type rows struct {
	mu        sync.Mutex
	approvals map[approval.Key]*approval.Record
	grants    map[string]*approval.Grant
}

func newRows() *rows {
	return &rows{approvals: map[approval.Key]*approval.Record{}, grants: map[string]*approval.Grant{}}
}

func (s *rows) AddApproval(_ context.Context, r *approval.Record) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	copied := *r
	s.approvals[r.Key()] = &copied
	return nil
}

func (s *rows) ResolveApproval(_ context.Context, key approval.Key, end approval.Resolution, g *approval.Grant) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.approvals[key]
	if r == nil || r.State != approval.StatePending {
		return errors.New("not pending")
	}
	r.State, r.Decision, r.ResolvedBy, r.ResolvedMs = approval.StateResolved, end.Decision, end.By, end.AtMs
	if g != nil {
		s.grants[g.ID] = g
	}
	return nil
}

func (s *rows) ExpireApprovals(_ context.Context, ends []approval.Expiry) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range ends {
		if r := s.approvals[e.Key]; r != nil && r.State == approval.StatePending {
			r.State, r.ResolvedBy, r.ResolvedMs = approval.StateResolved, e.By, e.AtMs
		}
	}
	return nil
}

func (s *rows) ConsumeApproval(_ context.Context, key approval.Key, atMs int64) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.approvals[key]
	if r == nil || r.State != approval.StateResolved || !r.Decision.Allows() {
		return false, nil
	}
	r.State, r.ConsumedMs = approval.StateConsumed, atMs
	return true, nil
}

func (s *rows) Approval(_ context.Context, id string) (*approval.Record, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, r := range s.approvals {
		if key.ID == id {
			copied := *r
			return &copied, nil
		}
	}
	return nil, nil
}

func (s *rows) ApprovalByKey(_ context.Context, key approval.Key) (*approval.Record, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r := s.approvals[key]; r != nil {
		copied := *r
		return &copied, nil
	}
	return nil, nil
}

func (s *rows) VoidAnswers(context.Context) error                              { return nil }
func (s *rows) PendingApprovals(context.Context) ([]*approval.Record, error)   { return nil, nil }
func (s *rows) PruneApprovals(context.Context, int64) error                    { return nil }
func (s *rows) Grants(context.Context, int64) ([]*approval.Grant, error)       { return nil, nil }
func (s *rows) RevokeGrants(context.Context, []string, string, int64) error    { return nil }
func (s *rows) SpendGrant(context.Context, string, int64) (bool, error)        { return true, nil }
func (s *rows) CountGrantUses(context.Context, []approval.GrantUse) error      { return nil }
func (s *rows) Denials(context.Context, int64, int) ([]approval.Denial, error) { return nil, nil }

func (s *rows) RecentApprovals(context.Context, int) ([]*approval.Record, error) { return nil, nil }
