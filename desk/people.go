package desk

import (
	"context"
	"errors"

	"github.com/toolward/toolward/audit"
	"github.com/toolward/toolward/identity"
)

// Tokens are the agents' tokens, revoked ones too.
func (d *Desk) Tokens(v Visitor) ([]identity.Token, error) {
	if err := d.may(v, SeeTokens, d.people != nil); err != nil {
		return nil, err
	}
	list, err := d.people.Tokens(v.By)
	return list, identityError(err)
}

// CreateToken makes a token. The secret is returned this once and kept nowhere.
func (d *Desk) CreateToken(ctx context.Context, v Visitor, spec identity.TokenSpec) (secret string, made identity.Token, err error) {
	if err := d.may(v, ManageTokens, d.people != nil); err != nil {
		return "", identity.Token{}, err
	}
	if err := d.maySign(); err != nil {
		return "", identity.Token{}, err
	}
	secret, made, err = d.people.CreateToken(ctx, v.By, spec, func(t identity.Token) error {
		return d.record(ctx, audit.Event{Type: audit.TypeConfig, Data: v.signed(map[string]any{
			"event": "token-created", "token": t.ID, "agent": t.Agent, "owner": t.Owner, "metrics": t.ForMetrics(), "gateway": t.Gateway,
		})})
	})
	return secret, made, identityError(err)
}

// RevokeToken ends a token at once: name is its id or its first characters.
func (d *Desk) RevokeToken(ctx context.Context, v Visitor, name string) (identity.Token, error) {
	if err := d.may(v, ManageTokens, d.people != nil); err != nil {
		return identity.Token{}, err
	}
	token, err := d.people.RevokeToken(ctx, v.By, name)
	if token.ID == "" {
		return token, &Error{Unknown, err}
	}
	d.note(ctx, audit.Event{Type: audit.TypeConfig, Data: v.signed(map[string]any{"event": "token-revoked", "token": token.ID})})
	return token, identityError(err)
}

// SignIns are the sign-ins that are open.
func (d *Desk) SignIns(v Visitor) ([]identity.SignIn, error) {
	if err := d.may(v, SeeSignIns, d.people != nil); err != nil {
		return nil, err
	}
	list, err := d.people.SignIns(v.By)
	return list, identityError(err)
}

// EndSignIn ends a sign-in.
func (d *Desk) EndSignIn(v Visitor, id string) error {
	if err := d.may(v, EndSignIns, d.people != nil); err != nil {
		return err
	}
	err := d.people.EndSession(v.By, id)
	if err == nil || errors.Is(err, identity.ErrNotSignedIn) {
		return identityError(err)
	}
	return &Error{Unknown, err}
}

// ChangePassphrase replaces the passphrase, for whoever knows the old one. Every other sign-in ends.
func (d *Desk) ChangePassphrase(ctx context.Context, v Visitor, old, fresh string) error {
	if err := d.may(v, ChangePassphrase, d.people != nil); err != nil {
		return err
	}
	// Whoever goes away while it is hashed must not leave it unknown whether it counts.
	if err := d.people.ChangePassphrase(context.WithoutCancel(ctx), v.By, old, fresh); err != nil {
		return identityError(err)
	}
	d.note(ctx, audit.Event{Type: audit.TypeConfig, Data: v.signed(map[string]any{"event": "passphrase-changed"})})
	return nil
}

// maySign stops what would be recorded and then fail, because the key that it needs is locked.
func (d *Desk) maySign() error {
	if d.locked == nil {
		return nil
	}
	if err := d.locked(); err != nil {
		return &Error{Locked, err}
	}
	return nil
}

// identityError gives an error about people and what they prove themselves with its code.
func identityError(err error) error {
	var known *Error
	var rate *identity.RateError
	switch {
	case err == nil, errors.As(err, &known):
		return err
	case errors.As(err, &rate):
		return &Error{TooOften, rate}
	case errors.Is(err, identity.ErrNotSignedIn):
		return &Error{NotAllowed, err}
	case errors.Is(err, identity.ErrPassphrase):
		return &Error{WrongPhrase, err}
	case errors.Is(err, identity.ErrNoPasskey):
		return &Error{Unknown, err}
	case errors.Unwrap(err) != nil:
		return &Error{Failed, err} // of the store
	}
	return &Error{Invalid, err}
}
