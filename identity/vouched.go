package identity

import "fmt"

// Device is the surface of a device that a signed-in person vouched for.
const Device Surface = "device"

// Authority is who stands behind a connection of a device that has proven its key, with the scopes of that connection.
// It is a person's only as far as a signed-in person vouched for these scopes, and only while that holds: it is looked
// up each time.
func (p *Pairings) Authority(deviceID string, scopes []string) Authority {
	d, known := p.Device(deviceID)
	if !known || len(d.Vouched) == 0 {
		return Requester()
	}
	name := d.Name
	if name == "" {
		name = deviceID[:min(len(deviceID), 12)]
	}
	return Authority{pairings: p, id: "device:" + deviceID, device: deviceID, scopes: scopes, person: owner + ", " + name, via: Device, asker: true}
}

// scopeOf is the scope that a device needs for a person's right.
var scopeOf = map[Right]string{
	RightWatch:      ScopeRead,
	RightAnswer:     ScopeApprovals,
	RightGrant:      ScopeApprovals,
	RightClearLevel: ScopeAdmin,
	RightConfigure:  ScopeAdmin,
	RightPair:       ScopePairing,
	RightAdmin:      ScopeAdmin,
}

// mayAs is May for a paired device.
func (a Authority) mayAs(right Right) error {
	if right == RightRequest {
		return nil
	}
	scope, known := scopeOf[right]
	if !known || !a.vouched(scope) {
		return fmt.Errorf("may not %s: this device is not paired by a signed-in person for %s: %w", right, scope, ErrNotSignedIn)
	}
	return nil
}

// vouched reports whether this connection has a scope that a person vouched for.
func (a Authority) vouched(scope string) bool {
	d, known := a.pairings.Device(a.device)
	return known && Covers(a.scopes, scope) && Covers(d.Vouched, scope) && Covers(d.Scopes, scope)
}

// mayPair returns nil if the authority may give these scopes to a device: a person who signed in holds all of them, a
// person's device those that were vouched for. Otherwise a device could be used to make a mightier one.
func (a Authority) mayPair(scopes []string) error {
	if err := a.May(RightPair); err != nil || a.pairings == nil {
		return err
	}
	for _, scope := range scopes {
		if !a.vouched(scope) {
			return fmt.Errorf("%w: %s", ErrScopeHeld, scope)
		}
	}
	return nil
}
