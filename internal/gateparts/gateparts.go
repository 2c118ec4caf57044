// Package gateparts opens what a gateway keeps, for tests that need the parts themselves: store, record, approvals, people, levels,
// and the gate upon them. Tests of a whole gateway open one with package gateway.
package gateparts

import (
	"context"
	"errors"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/approval"
	"github.com/toolward/toolward/audit"
	"github.com/toolward/toolward/identity"
	"github.com/toolward/toolward/session"
	"github.com/toolward/toolward/store"
)

// Options says how parts differ from the usual ones.
type Options struct {
	Home      string
	Redact    func(string) string     // default: nothing is a secret
	Escape    func(string) string     // for the record; default: nothing
	Approvals func(*approval.Options) // what the approver is opened with besides
	People    func(*identity.Options) // what the keeper is opened with besides
}

// Parts are open until Close.
type Parts struct {
	DB        *store.DB
	Records   audit.Store
	Audit     *audit.Log
	Approvals *approval.Manager
	People    *identity.Keeper
	Pairings  *identity.Pairings
	Levels    *session.Tracker
}

// Open opens the parts of a home. A failure leaves nothing open.
func Open(ctx context.Context, o Options) (_ *Parts, err error) {
	p := &Parts{}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.Close())
		}
	}()
	same := func(s string) string { return s }
	if o.Redact == nil {
		o.Redact = same
	}
	if o.Escape == nil {
		o.Escape = same
	}
	if p.DB, err = store.Open(ctx, o.Home, store.Options{}); err != nil {
		return nil, err
	}
	if p.Records, err = p.DB.Audit(ctx); err != nil {
		return nil, err
	}
	key, _, err := audit.LoadKey(o.Home)
	if err != nil {
		return nil, err
	}
	if p.Audit, err = audit.Open(ctx, p.Records, audit.Options{Key: key, Redact: o.Redact, Escape: o.Escape}); err != nil {
		return nil, err
	}
	approvals := approval.Options{Store: store.NewApprovals(p.DB), Redact: o.Redact}
	if o.Approvals != nil {
		o.Approvals(&approvals)
	}
	if p.Approvals, err = approval.Open(ctx, approvals); err != nil {
		return nil, err
	}
	people := identity.Options{Store: store.NewDevices(p.DB)}
	if o.People != nil {
		o.People(&people)
	}
	if p.People, err = identity.Open(ctx, people); err != nil {
		return nil, err
	}
	if p.Pairings, err = identity.OpenPairings(ctx, store.NewPaired(p.DB), make([]byte, 32)); err != nil {
		return nil, err
	}
	p.Levels, err = session.New(session.Options{Store: store.NewSessions(p.DB), Settings: session.Settings{DefaultLevel: toolward.Normal}})
	return p, err
}

// Gate is a gate upon the parts, with what change puts in the place of some or beside them.
func (p *Parts) Gate(policy toolward.Policy, change func(*toolward.Config)) (*toolward.Gateway, error) {
	c := toolward.Config{Policy: policy, Approver: p.Approvals, Auditor: p.Audit, Sessions: p.Levels}
	if change != nil {
		change(&c)
	}
	return toolward.New(c)
}

// Close closes them, as a gateway does: who waits is told, then what records them ends.
func (p *Parts) Close() error {
	if p.Approvals != nil {
		p.Approvals.Close()
	}
	if p.Audit != nil {
		p.Audit.Close()
	}
	if p.DB != nil {
		return p.DB.Close()
	}
	return nil
}
