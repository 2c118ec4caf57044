package identity

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"fmt"
	"slices"
	"time"
)

// Credential returns the token of a paired device for a role, making one that covers scopes if there is none. The same
// token is told again until it is rotated or revoked. The caller has checked that the device is paired for this.
func (p *Pairings) Credential(ctx context.Context, deviceID string, role Role, scopes []string) (token string, issued time.Time, err error) {
	p.writing.Lock()
	defer p.writing.Unlock()
	d, known := p.Device(deviceID)
	if !known || !slices.Contains(d.Roles, role) || !CoversAll(d.Scopes, scopes) {
		return "", time.Time{}, ErrDeviceScope
	}
	t, have := d.Tokens[role]
	if have && t.Revoked.IsZero() && CoversAll(t.Scopes, scopes) {
		return p.tokenText(deviceID, role, t.Salt), latest(t.Created, t.Rotated), nil
	}
	if have && t.Revoked.IsZero() {
		scopes = union(t.Scopes, scopes) // the same token now covers more; it was proven anew
	}
	return p.renew(ctx, d, role, scopes, have && t.Revoked.IsZero())
}

// renew writes a new token, or with same the old one with other scopes. The caller holds the writing lock.
func (p *Pairings) renew(ctx context.Context, d PairedDevice, role Role, scopes []string, same bool) (string, time.Time, error) {
	now := time.Now()
	t, had := d.Tokens[role]
	if !same {
		t.Salt = make([]byte, 32)
		rand.Read(t.Salt) // never fails: the program would end instead
		if had {
			t.Rotated = now
		} else {
			t.Created = now
		}
	}
	t.Scopes, t.Revoked = union(nil, scopes), time.Time{}
	if d.Tokens == nil {
		d.Tokens = map[Role]DeviceToken{}
	}
	d.Tokens[role] = t
	if err := p.save(ctx, d); err != nil {
		return "", time.Time{}, err
	}
	return p.tokenText(d.ID, role, t.Salt), latest(t.Created, t.Rotated), nil
}

// CheckCredential accepts a device's own token for a role and scopes: ErrDeviceToken if it is not one of this device's
// in force, ErrDeviceScope if it is but does not cover them. The device has proven its key; a token alone is nothing.
func (p *Pairings) CheckCredential(deviceID string, role Role, scopes []string, token string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	d := p.devices[deviceID]
	if d == nil || token == "" {
		return ErrDeviceToken
	}
	found := Role("")
	for of, t := range d.Tokens { // all of them, so that the time tells nothing
		if subtle.ConstantTimeCompare([]byte(p.tokenText(deviceID, of, t.Salt)), []byte(token)) == 1 && t.Revoked.IsZero() {
			found = of
		}
	}
	switch {
	case found == "":
		return ErrDeviceToken
	case found != role || !CoversAll(d.Tokens[role].Scopes, scopes):
		return ErrDeviceScope
	}
	return nil
}

// Connected notes that a device connected, and pins what it had not told before. At most once a minute it is written.
func (p *Pairings) Connected(ctx context.Context, r *PairRequest) error {
	p.writing.Lock()
	defer p.writing.Unlock()
	d, known := p.Device(r.DeviceID)
	if !known {
		return ErrNoDevice
	}
	platform, family := FoldPlatform(r.Platform), FoldPlatform(r.Family)
	pins := d.Platform == "" && platform != "" || d.Family == "" && family != ""
	now := time.Now()
	if !pins && now.Sub(d.Seen) < touchDevices {
		return nil
	}
	if d.Platform == "" {
		d.Platform = shorten(platform)
	}
	if d.Family == "" {
		d.Family = shorten(family)
	}
	d.Seen = now
	if t, ok := d.Tokens[r.Role]; ok {
		t.Used = now
		d.Tokens[r.Role] = t
	}
	return p.save(ctx, d)
}

// Rotate replaces a device's token; the old one is worth nothing from then on. A person may do that for every device;
// a device may do it for its own operator token.
func (p *Pairings) Rotate(ctx context.Context, by Caller, deviceID string, role Role, scopes []string) (token string, held []string, issued time.Time, err error) {
	p.writing.Lock()
	d, known := p.Device(deviceID)
	switch {
	case !known:
		err = ErrNoDevice
	case !slices.Contains(d.Roles, role):
		err = fmt.Errorf("%w: the device is not paired as %q", ErrDeviceScope, role)
	}
	if err == nil {
		if scopes == nil {
			scopes = d.Tokens[role].Scopes
		}
		if !CoversAll(d.Scopes, scopes) {
			err = ErrDeviceScope
		} else {
			err = by.mayManage(deviceID, role, scopes)
		}
	}
	if err == nil {
		token, issued, err = p.renew(ctx, d, role, scopes, false)
	}
	p.writing.Unlock()
	if err != nil {
		return "", nil, time.Time{}, err
	}
	p.tell(PairEvent{Kind: TokenRotated, DeviceID: deviceID, Role: role, By: by.Name()})
	return token, union(nil, scopes), issued, nil
}

// Revoke ends a device's token at once.
func (p *Pairings) Revoke(ctx context.Context, by Caller, deviceID string, role Role) (time.Time, error) {
	p.writing.Lock()
	d, known := p.Device(deviceID)
	t, have := d.Tokens[role]
	err, kept := by.mayManage(deviceID, role, nil), error(nil)
	switch {
	case err != nil:
	case !known:
		err = ErrNoDevice
	case !have:
		err = fmt.Errorf("%w: the device has no token as %q", ErrNoDevice, role)
	default:
		t.Revoked = time.Now()
		d.Tokens[role] = t
		kept = p.shut(ctx, d)
	}
	p.writing.Unlock()
	if err != nil {
		return time.Time{}, err
	}
	p.tell(PairEvent{Kind: TokenRevoked, DeviceID: deviceID, Role: role, By: by.Name()})
	if kept != nil {
		return time.Time{}, fmt.Errorf("the token is revoked until the next start only, the store failed: %w", kept)
	}
	return t.Revoked, nil
}

// shut makes a change that takes rights away count at once, and then durable: a failing store, or a caller who goes
// away, must not keep what was revoked in force. The caller holds the writing lock.
func (p *Pairings) shut(ctx context.Context, d PairedDevice) error {
	p.mu.Lock()
	p.devices[d.ID] = &d
	p.mu.Unlock()
	return p.store.SavePairedDevice(context.WithoutCancel(ctx), d)
}

// Caller is who manages tokens of devices: a person, or a device that manages its own.
type Caller struct {
	By     Authority
	Device string   // of the connection, proven; "" if it has none
	Scopes []string // of the connection
}

// Name is what records call the caller.
func (c Caller) Name() string {
	if c.By.IsPerson() {
		return c.By.Name()
	}
	return "device " + c.Device
}

// mayManage stops a device from giving itself, or another one, what nobody gave it.
func (c Caller) mayManage(deviceID string, role Role, scopes []string) error {
	if c.By.mayPair(scopes) == nil {
		return nil
	}
	switch {
	case c.Device == "" || c.Device != deviceID || role != RoleOperator:
		return ErrNotSignedIn
	case !CoversAll(c.Scopes, scopes):
		return ErrScopeHeld
	}
	return nil
}

func latest(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
