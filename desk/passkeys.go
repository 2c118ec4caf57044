package desk

import (
	"context"
	"errors"

	"github.com/toolward/toolward/audit"
	"github.com/toolward/toolward/identity"
)

// Passkeys are the passkeys that are kept.
func (d *Desk) Passkeys(v Visitor) ([]identity.Passkey, error) {
	if err := d.mayPasskeys(v); err != nil {
		return nil, err
	}
	list, err := d.passkeys.List(v.By)
	return list, passkeyError(err)
}

// AskPresence asks one of the passkeys, to prove that the visitor is there.
func (d *Desk) AskPresence(v Visitor, site identity.Site) (question any, err error) {
	if err := d.mayPasskeys(v); err != nil {
		return nil, err
	}
	question, err = d.passkeys.AskPresence(v.By, site)
	return question, passkeyError(err)
}

// BeginPasskey asks for a new passkey, once the visitor has shown that they are there. from is where they come from, for the record
// of a passkey of which there may be a copy.
func (d *Desk) BeginPasskey(ctx context.Context, v Visitor, from string, site identity.Site, shown identity.Presence) (question any, err error) {
	if err := d.mayPasskeys(v); err != nil {
		return nil, err
	}
	question, err = d.passkeys.BeginAdd(ctx, v.By, site, shown)
	d.noteSuspect(ctx, from, err)
	if err == nil {
		err = d.maySign() // the passphrase that was shown has opened the key; a passkey does not
	}
	return question, passkeyError(err)
}

// SignInWithPasskey signs in whoever answers the question that token names. Nobody needs a right for that.
func (d *Desk) SignInWithPasskey(ctx context.Context, from, token string, site identity.Site, answer []byte) (cookie string, err error) {
	if d.passkeys == nil {
		return "", &Error{Unknown, identity.ErrNoPasskey}
	}
	cookie, _, err = d.passkeys.SignIn(ctx, from, token, site, answer)
	d.noteSuspect(ctx, from, err)
	return cookie, passkeyError(err)
}

// AddPasskey keeps the passkey that answers the question which the visitor was asked.
func (d *Desk) AddPasskey(ctx context.Context, v Visitor, site identity.Site, name string, answer []byte) (identity.Passkey, error) {
	if err := d.mayPasskeys(v); err != nil {
		return identity.Passkey{}, err
	}
	if err := d.maySign(); err != nil {
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
		d.withdraw(ctx, v, identity.PasskeyMeans(gone.ID), "the passkey that it was given with was removed")
	}
	return gone, passkeyError(err)
}

// noteSuspect records that somebody showed a passkey of which there may be a copy, and where from.
func (d *Desk) noteSuspect(ctx context.Context, from string, err error) {
	if !errors.Is(err, identity.ErrPasskeySuspect) {
		return
	}
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
	case errors.Is(err, identity.ErrPasskey), errors.Is(err, identity.ErrPasskeyLate), errors.Is(err, identity.ErrPasskeySuspect):
		return &Error{NotProven, err}
	case errors.Is(err, identity.ErrPasskeyHere):
		return &Error{Exists, err}
	}
	return identityError(err)
}
