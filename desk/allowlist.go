package desk

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/toolward/toolward/audit"
	"github.com/toolward/toolward/command/allowlist"
)

// Allowlist is exec-approvals.json, which is made if it is not there.
func (d *Desk) Allowlist(ctx context.Context, v Visitor) (*allowlist.Snapshot, error) {
	if err := d.mayAllowlist(v, ReadAllowlist); err != nil {
		return nil, err
	}
	snapshot, err := d.allowlist.Ensure(ctx)
	return snapshot, allowlistError(err)
}

// ReplaceAllowlist puts other content into exec-approvals.json. base is the hash of the state that the content was made from.
func (d *Desk) ReplaceAllowlist(ctx context.Context, v Visitor, content []byte, base string) (*allowlist.Snapshot, error) {
	if err := d.mayAllowlist(v, ChangeAllowlist); err != nil {
		return nil, err
	}
	snapshot, err := d.allowlist.Set(ctx, content, base, func(changes []string) error { return d.recordAllowlist(ctx, v, changes) })
	return snapshot, allowlistError(err)
}

// AllowlistChange is what became of the wish to add or remove an entry.
type AllowlistChange struct {
	Changed bool     // false: it was so already
	Changes []string // in words
}

// AllowProgram lets the commands of a program run without a question, for one agent or, if agent is "", for all.
func (d *Desk) AllowProgram(ctx context.Context, v Visitor, agent string, entry allowlist.Entry) (AllowlistChange, error) {
	return d.editAllowlist(ctx, v, entry.Check, func(f *allowlist.File) bool {
		return f.Allow(agentOrAny(agent), entry, time.Now().UnixMilli())
	})
}

// DisallowProgram takes that back. pattern is the pattern of the entry, or its id.
func (d *Desk) DisallowProgram(ctx context.Context, v Visitor, agent, pattern string) (AllowlistChange, error) {
	sound := func() error { return nil }
	return d.editAllowlist(ctx, v, sound, func(f *allowlist.File) bool { return f.Remove(agentOrAny(agent), pattern) })
}

func agentOrAny(agent string) string {
	if agent = strings.TrimSpace(agent); agent != "" {
		return agent
	}
	return allowlist.AnyAgent
}

func (d *Desk) editAllowlist(ctx context.Context, v Visitor, check func() error, edit func(*allowlist.File) bool) (AllowlistChange, error) {
	if err := d.mayAllowlist(v, ChangeAllowlist); err != nil {
		return AllowlistChange{}, err
	}
	if err := check(); err != nil {
		return AllowlistChange{}, allowlistError(err)
	}
	change := AllowlistChange{}
	changed, err := d.allowlist.Permit(ctx, edit, func(changes []string) error {
		change.Changes = changes
		return d.recordAllowlist(ctx, v, changes)
	})
	if err != nil {
		return AllowlistChange{}, allowlistError(err)
	}
	change.Changed = changed
	return change, nil
}

func (d *Desk) mayAllowlist(v Visitor, o Operation) error {
	if err := v.May(o); err != nil {
		return err
	}
	if d.allowlist == nil {
		return &Error{NotKept, errors.New("this gateway keeps no " + allowlist.FileName)}
	}
	return nil
}

func (d *Desk) recordAllowlist(ctx context.Context, v Visitor, changes []string) error {
	data := map[string]any{"event": "exec-approvals changed", "changes": changes}
	return d.record(ctx, audit.Event{Type: audit.TypeConfig, Data: v.signed(data)})
}

// allowlistError gives an error of the file its code.
func allowlistError(err error) error {
	var known *Error
	var corrupt *allowlist.CorruptError
	var invalid *allowlist.InvalidContent
	switch {
	case err == nil, errors.As(err, &known):
		return err
	case errors.Is(err, allowlist.ErrBaseRequired):
		return &Error{BaseRequired, err}
	case errors.Is(err, allowlist.ErrBaseChanged):
		return &Error{BaseChanged, err}
	case errors.As(err, &invalid):
		return &Error{Invalid, err}
	case errors.As(err, &corrupt):
		return &Error{Corrupt, err}
	case errors.Is(err, context.DeadlineExceeded):
		return &Error{TimedOut, err}
	}
	return &Error{Failed, err}
}
