// Package desk is what people may do: change the allowlist, let programs in, set a session's level, take a grant back, end a
// sandbox, open one of its ports, take calls back, apply a changed configuration, read records and what follows from them. The table rights says who may, for the rows
// of every adapter.
//
// Each operation stands here once, for every adapter that people come through, and has the same steps in the same order:
//
//  1. the visitor has the right, see [Visitor.May];
//  2. what the visitor wants can be done;
//  3. what loosens something is recorded before it is done: no record, no change. What takes something away is recorded
//     afterwards, since a disk that is full must not keep a person from revoking a stolen token;
//  4. it is done;
//  5. what went wrong has a [Code], which the adapter maps to the form of its own wire.
package desk

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/toolward/toolward/approval"
	"github.com/toolward/toolward/audit"
	"github.com/toolward/toolward/command/allowlist"
	"github.com/toolward/toolward/identity"
	"github.com/toolward/toolward/undo/kept"
)

// Recorder writes records. The audit log implements it.
type Recorder interface {
	Append(ctx context.Context, event audit.Event) (int64, error)
}

// Options says what a desk works with. What is not there cannot be done: the operation fails with [NotKept].
type Options struct {
	Audit     Recorder         // required
	Allowlist *allowlist.Store // exec-approvals.json
	People    *identity.Keeper
	Passkeys  *identity.Passkeys
	Devices   *identity.Pairings
	Locked    func() error // why nothing that lasts can be given now; optional
	Levels    Levels
	Approvals *approval.Manager
	Sandboxes Sandboxes
	Forwards  Forwards
	Undo      *kept.Workspaces
	Config    Configuration
	Records   Records      // for reading
	Source    audit.Source // what the record is kept in, for exports
	Log       *slog.Logger // optional
}

// Desk does what people ask for. Its methods may be called from any goroutine.
type Desk struct {
	audit     Recorder
	allowlist *allowlist.Store
	people    *identity.Keeper
	passkeys  *identity.Passkeys
	devices   *identity.Pairings
	locked    func() error
	levels    Levels
	approvals *approval.Manager
	sandboxes Sandboxes
	forwards  Forwards
	undo      *kept.Workspaces
	config    Configuration
	records   Records
	source    audit.Source
	shown     shownChanges
	log       *slog.Logger
}

// New makes a desk.
func New(o Options) (*Desk, error) {
	if o.Audit == nil {
		return nil, errors.New("desk: nothing may be done that is not recorded, and there is no record")
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &Desk{
		audit: o.Audit, allowlist: o.Allowlist, people: o.People, passkeys: o.Passkeys, devices: o.Devices, locked: o.Locked, levels: o.Levels,
		approvals: o.Approvals, sandboxes: o.Sandboxes, forwards: o.Forwards, undo: o.Undo, config: o.Config, records: o.Records, source: o.Source, log: o.Log,
	}, nil
}

// may checks the visitor's right to an operation, and that this gateway has the part which does it.
func (d *Desk) may(v Visitor, o Operation, has bool) error {
	if err := v.May(o); err != nil {
		return err
	}
	if !has {
		return &Error{NotKept, fmt.Errorf("this gateway has nothing to %s with", o)}
	}
	return nil
}

// record writes what is about to be done. Its error stops the operation: nothing gets looser without a trace.
func (d *Desk) record(ctx context.Context, event audit.Event) error {
	event.Durable = true
	if _, err := d.audit.Append(ctx, event); err != nil {
		d.log.Error("a change could not be recorded, so it is not made", "type", event.Type, "session", event.Session, "err", err)
		return &Error{Unrecorded, err}
	}
	return nil
}

// note records what was done. That it cannot be recorded does not undo it; whoever hangs up meanwhile has not done it unseen.
func (d *Desk) note(ctx context.Context, event audit.Event) {
	event.Durable = true
	if _, err := d.audit.Append(context.WithoutCancel(ctx), event); err != nil {
		d.log.Error("what was done could not be recorded", "type", event.Type, "event", event.Data["event"], "err", err)
	}
}
