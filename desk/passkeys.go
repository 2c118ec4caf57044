package desk

import (
	"context"
	"errors"

	"github.com/toolward/toolward/audit"
	"github.com/toolward/toolward/identity"
)

// AddPasskey keeps the passkey that answers the question which the visitor was asked.
func (d *Desk) AddPasskey(ctx context.Context, v Visitor, site identity.Site, name string, answer []byte) (identity.Passkey, error) {
	if err := d.mayPasskeys(v); err != nil {
		return identity.Passkey{}, err
	}
	made, err := d.passkeys.Add(ctx, v.By, site, name, answer, func(key identity.Passkey) error {
		return d.record(ctx, passkeyEvent(v, "passkey-added", key))
	})
	return made, passkeyError(err)
}

// RenamePasskey gives a passkey another name.
func (d *Desk) RenamePasskey(ctx context.Context, v Visitor, id, name string) error {
	if err := d.mayPasskeys(v); err != nil {
		return err
	}
	return passkeyError(d.passkeys.Rename(ctx, v.By, id, name))
}

// RemovePasskey ends a passkey and every sign-in that it opened, perhaps the visitor's own. With an error of a store that failed the
// passkey is returned: it is gone until the next start only.
func (d *Desk) RemovePasskey(ctx context.Context, v Visitor, id string) (identity.Passkey, error) {
	if err := d.mayPasskeys(v); err != nil {
		return identity.Passkey{}, err
	}
	gone, err := d.passkeys.Remove(ctx, v.By, id)
	if gone.ID != "" {
		d.note(ctx, passkeyEvent(v, "passkey-removed", gone))
	}
	return gone, passkeyError(err)
}

// NoteSuspectPasskey records that somebody showed a passkey of which there may be a copy, and where from.
func (d *Desk) NoteSuspectPasskey(ctx context.Context, from string) {
	d.note(ctx, audit.Event{Type: audit.TypeConfig, Data: map[string]any{"event": "passkey-suspect", "from": from}})
}

func (d *Desk) mayPasskeys(v Visitor) error {
	if err := v.May(ManagePasskeys); err != nil {
		return err
	}
	if d.passkeys == nil {
		return &Error{Unknown, identity.ErrNoPasskey}
	}
	return nil
}

func passkeyEvent(v Visitor, what string, key identity.Passkey) audit.Event {
	return audit.Event{Type: audit.TypeConfig, Data: v.signed(map[string]any{
		"event": what, "passkey": key.ID, "name": key.Name, "site": key.Site,
	})}
}

// passkeyError gives an error about passkeys its code.
func passkeyError(err error) error {
	switch {
	case errors.Is(err, identity.ErrPasskey), errors.Is(err, identity.ErrPasskeyLate):
		return &Error{NotProven, err}
	case errors.Is(err, identity.ErrPasskeyHere):
		return &Error{Exists, err}
	}
	return identityError(err)
}
