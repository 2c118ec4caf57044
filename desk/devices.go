package desk

import (
	"context"
	"errors"
	"time"

	"github.com/toolward/toolward/audit"
	"github.com/toolward/toolward/identity"
)

// Devices are the devices that wait to be paired and those that are, newest first.
func (d *Desk) Devices(v Visitor) (waiting []identity.PairRequest, paired []identity.PairedDevice, err error) {
	if err := d.mayDevices(v, SeeDevices); err != nil {
		return nil, nil, err
	}
	waiting, paired = d.devices.List()
	return waiting, paired, nil
}

// ApproveDevice pairs the device of a request, or vouches for one that was paired without asking: name is the id of the request or
// of the device. Whoever holds the device's key then has the person's rights as far as its scopes go.
func (d *Desk) ApproveDevice(ctx context.Context, v Visitor, name string) (identity.PairedDevice, error) {
	if err := d.mayDevices(v, PairDevices); err != nil {
		return identity.PairedDevice{}, err
	}
	if err := d.maySign(); err != nil {
		return identity.PairedDevice{}, err
	}
	paired, err := d.devices.Approve(ctx, v.By, name, d.recordPairing(ctx, v))
	return paired, deviceError(err)
}

// ApproveDeviceSeen is ApproveDevice for exactly what the visitor was shown: seen is the stamp of that.
func (d *Desk) ApproveDeviceSeen(ctx context.Context, v Visitor, name, seen string) (identity.PairedDevice, error) {
	if err := d.mayDevices(v, PairDevices); err != nil {
		return identity.PairedDevice{}, err
	}
	if err := d.maySign(); err != nil {
		return identity.PairedDevice{}, err
	}
	paired, err := d.devices.ApproveSeen(ctx, v.By, name, seen, d.recordPairing(ctx, v))
	return paired, deviceError(err)
}

// RejectDevice declines a device that waits. It may ask again.
func (d *Desk) RejectDevice(ctx context.Context, v Visitor, request string) (identity.PairRequest, error) {
	if err := d.mayDevices(v, PairDevices); err != nil {
		return identity.PairRequest{}, err
	}
	r, err := d.devices.Reject(v.By, request)
	if err == nil {
		d.note(ctx, pairingEvent(v, identity.PairRejected, r))
	}
	return r, deviceError(err)
}

// RemoveDevice forgets a device; its connections end.
func (d *Desk) RemoveDevice(ctx context.Context, v Visitor, device string) error {
	if err := d.mayDevices(v, PairDevices); err != nil {
		return err
	}
	err := deviceError(d.devices.Remove(ctx, v.By, device))
	if tookAway(err) {
		d.note(ctx, deviceEvent(identity.PairRemoved, device, v.By.Name()))
		d.withdraw(ctx, v, identity.DeviceMeans(device), "the paired device that it was given with was removed")
	}
	return err
}

// DeviceToken is a device's own credential, new.
type DeviceToken struct {
	Secret string
	Scopes []string
	Issued time.Time
}

// RotateDeviceToken replaces the token of a device: a person does it for any device, a device for itself. The new one may be told to
// that device only.
func (d *Desk) RotateDeviceToken(ctx context.Context, v Visitor, device string, role identity.Role, scopes []string) (DeviceToken, error) {
	if d.devices == nil {
		return DeviceToken{}, noDevices()
	}
	by := v.manager()
	secret, held, issued, err := d.devices.Rotate(ctx, by, device, role, scopes)
	if err == nil {
		d.noteToken(ctx, identity.TokenRotated, device, role, by)
	}
	return DeviceToken{secret, held, issued}, deviceError(err)
}

// RevokeDeviceToken ends the token of a device, and says when: a person does it for any device, a device for itself.
func (d *Desk) RevokeDeviceToken(ctx context.Context, v Visitor, device string, role identity.Role) (time.Time, error) {
	if d.devices == nil {
		return time.Time{}, noDevices()
	}
	by := v.manager()
	at, err := d.devices.Revoke(ctx, by, device, role)
	if err = deviceError(err); tookAway(err) {
		d.noteToken(ctx, identity.TokenRevoked, device, role, by)
		d.withdraw(ctx, v, identity.DeviceMeans(device), "the token of the paired device that it was given with was revoked")
	}
	return at, err
}

// tookAway reports whether something was taken away. A store that failed does not bring it back before the next start.
func tookAway(err error) bool { return err == nil || CodeOf(err) == Failed }

// manager is the visitor as one who manages tokens of devices. Package identity decides how far: the right depends on the device.
func (v Visitor) manager() identity.Caller {
	return identity.Caller{By: v.By, Device: v.Device, Scopes: v.Scopes}
}

func (d *Desk) mayDevices(v Visitor, o Operation) error {
	if err := v.May(o); err != nil {
		return err
	}
	if d.devices == nil {
		return noDevices()
	}
	return nil
}

func noDevices() error { return &Error{NotKept, errors.New("this gateway pairs no devices")} }

// recordPairing records who lets which device in, before it is let in.
func (d *Desk) recordPairing(ctx context.Context, v Visitor) func(identity.PairRequest) error {
	return func(r identity.PairRequest) error { return d.record(ctx, pairingEvent(v, identity.PairApproved, r)) }
}

func (d *Desk) noteToken(ctx context.Context, what, device string, role identity.Role, by identity.Caller) {
	event := deviceEvent(what, device, by.Name())
	event.Data["role"] = string(role)
	d.note(ctx, event)
}

func pairingEvent(v Visitor, what string, r identity.PairRequest) audit.Event {
	event := deviceEvent(what, r.DeviceID, v.By.Name())
	event.Data["scopes"], event.Data["role"], event.Data["client"], event.Data["address"] = r.Scopes, string(r.Role), r.ClientID, r.IP
	return event
}

// deviceEvent names the device as its client, not the visitor's.
func deviceEvent(what, device, by string) audit.Event {
	return audit.Event{Type: audit.TypeConfig, Data: map[string]any{"event": "device-" + what, "device": device, "by": by}}
}

// deviceError gives an error of pairing its code.
func deviceError(err error) error {
	var known *Error
	switch {
	case err == nil, errors.As(err, &known):
		return err
	case errors.Is(err, identity.ErrNotSignedIn):
		return &Error{NotAllowed, err}
	case errors.Is(err, identity.ErrScopeHeld):
		return &Error{ScopeHeld, err}
	case errors.Is(err, identity.ErrNoDevice), errors.Is(err, identity.ErrNoRequest):
		return &Error{Unknown, err}
	case errors.Is(err, identity.ErrPairChanged):
		return &Error{Changed, err}
	case errors.Is(err, identity.ErrDeviceScope), errors.Is(err, identity.ErrTooManyPair):
		return &Error{Invalid, err}
	}
	return &Error{Failed, err}
}
