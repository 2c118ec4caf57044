package desk_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/toolward/toolward/command/allowlist"
	"github.com/toolward/toolward/desk"
	"github.com/toolward/toolward/identity"
)

// asks makes a device wait that wants to answer, and returns the id of its request.
func (w *world) asks(t *testing.T) string {
	t.Helper()
	r, err := w.devices.Request(identity.PairRequest{
		DeviceID: "phone", Key: []byte("key"), Role: identity.RoleOperator, Scopes: []string{identity.ScopeApprovals}, ClientID: "cli", IP: "10.0.0.7",
	})
	must(t, err)
	return r.ID
}

// pairs makes a paired device.
func (w *world) pairs(t *testing.T) {
	t.Helper()
	must(t, w.devices.PairSilently(t.Context(), identity.PairRequest{
		DeviceID: "phone", Key: []byte("key"), Role: identity.RoleOperator, Scopes: []string{identity.ScopeApprovals}, ClientID: "cli",
	}))
}

func (w *world) waiting() string {
	waiting, _ := w.devices.List()
	if len(waiting) == 0 {
		return ""
	}
	return waiting[0].ID
}

func vouchedFor(w *world) bool {
	d, _ := w.devices.Device("phone")
	return len(d.Vouched) > 0
}

func TestDevicesAreLetIn(t *testing.T) {
	wait := func(t *testing.T, w *world) { w.asks(t) }
	for _, o := range []operation{
		{"approve", "device-approved", wait, func(ctx context.Context, w *world, v desk.Visitor) error {
			_, err := w.desk.ApproveDevice(ctx, v, w.waiting())
			return err
		}, vouchedFor},
		{"approve what was seen", "device-approved", wait, func(ctx context.Context, w *world, v desk.Visitor) error {
			waiting, _ := w.devices.List()
			_, err := w.desk.ApproveDeviceSeen(ctx, v, w.waiting(), waiting[0].Stamp())
			return err
		}, vouchedFor},
		{"vouch", "device-approved", func(t *testing.T, w *world) { w.pairs(t) }, func(ctx context.Context, w *world, v desk.Visitor) error {
			_, err := w.desk.ApproveDevice(ctx, v, "phone")
			return err
		}, vouchedFor},
	} {
		o.loosens(t)
	}
}

func TestDevicesAreSentAway(t *testing.T) {
	paired := func(t *testing.T, w *world) {
		w.pairs(t)
		_, err := w.desk.RotateDeviceToken(t.Context(), w.person(), "phone", identity.RoleOperator, []string{identity.ScopeApprovals})
		must(t, err)
	}
	for _, o := range []operation{
		{"reject", "device-rejected", func(t *testing.T, w *world) { w.asks(t) }, func(ctx context.Context, w *world, v desk.Visitor) error {
			_, err := w.desk.RejectDevice(ctx, v, w.waiting())
			return err
		}, func(w *world) bool { return w.waiting() == "" }},
		{"remove", "device-removed", paired, func(ctx context.Context, w *world, v desk.Visitor) error {
			return w.desk.RemoveDevice(ctx, v, "phone")
		}, func(w *world) bool {
			_, known := w.devices.Device("phone")
			return !known
		}},
		{"rotate", "device-rotated", paired, func(ctx context.Context, w *world, v desk.Visitor) error {
			_, err := w.desk.RotateDeviceToken(ctx, v, "phone", identity.RoleOperator, nil)
			return err
		}, func(w *world) bool {
			d, _ := w.devices.Device("phone")
			return !slices.Equal(d.Tokens[identity.RoleOperator].Salt, w.salt)
		}},
		{"revoke", "device-revoked", paired, func(ctx context.Context, w *world, v desk.Visitor) error {
			_, err := w.desk.RevokeDeviceToken(ctx, v, "phone", identity.RoleOperator)
			return err
		}, func(w *world) bool {
			d, _ := w.devices.Device("phone")
			return !d.Tokens[identity.RoleOperator].Revoked.IsZero()
		}},
	} {
		prepare := o.prepare
		o.prepare = func(t *testing.T, w *world) {
			prepare(t, w)
			d, _ := w.devices.Device("phone")
			w.salt = d.Tokens[identity.RoleOperator].Salt
		}
		o.takesAway(t)
	}
}

// A device manages its own token, and nobody else's; it gets nothing that its connection has not.
func TestDeviceManagesItself(t *testing.T) {
	w := newWorld(t)
	w.pairs(t)
	own := desk.Visitor{By: identity.Requester(), Device: "phone", Scopes: []string{identity.ScopeApprovals}}
	if _, err := w.desk.RotateDeviceToken(t.Context(), own, "phone", identity.RoleOperator, []string{identity.ScopeApprovals}); err != nil {
		t.Error(err)
	}
	if len(w.events) != 1 || w.events[0].Data["by"] != "device phone" {
		t.Errorf("recorded: %+v", w.events)
	}
	for want, v := range map[desk.Code]desk.Visitor{
		desk.NotAllowed: {By: identity.Requester(), Device: "tablet", Scopes: []string{identity.ScopeApprovals}},
		desk.ScopeHeld:  {By: identity.Requester(), Device: "phone"},
	} {
		if _, err := w.desk.RotateDeviceToken(t.Context(), v, "phone", identity.RoleOperator, []string{identity.ScopeApprovals}); desk.CodeOf(err) != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if len(w.events) != 1 {
		t.Errorf("recorded: %+v", w.events)
	}
}

// Without a person, devices are seen by those only whom the adapter lets.
func TestDevicesAreSeen(t *testing.T) {
	w := newWorld(t)
	w.pairs(t)
	for want, v := range map[desk.Code]desk.Visitor{
		"": {Holds: []desk.Operation{desk.SeeDevices}}, desk.NotAllowed: {Holds: []desk.Operation{desk.PairDevices}},
	} {
		if _, paired, err := w.desk.Devices(v); desk.CodeOf(err) != want || (len(paired) == 1) != (err == nil) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

func TestDeviceCodes(t *testing.T) {
	w := newWorld(t)
	id := w.asks(t)
	person := w.person()
	if _, err := w.desk.ApproveDeviceSeen(t.Context(), person, id, "what it asked for before"); desk.CodeOf(err) != desk.Changed {
		t.Errorf("asks for something else by now: %v", err)
	}
	if _, err := w.desk.ApproveDevice(t.Context(), person, "no-such"); desk.CodeOf(err) != desk.Unknown {
		t.Errorf("no such request: %v", err)
	}
	if err := w.desk.RemoveDevice(t.Context(), person, "no-such"); desk.CodeOf(err) != desk.Unknown || !errors.Is(err, identity.ErrNoDevice) {
		t.Errorf("no such device: %v", err)
	}
	if _, err := w.desk.RotateDeviceToken(t.Context(), person, "no-such", identity.RoleOperator, nil); desk.CodeOf(err) != desk.Unknown {
		t.Errorf("no such device: %v", err)
	}
	if len(w.events) != 0 {
		t.Errorf("recorded, though nothing was done: %v", w.events)
	}
}

// TestWhatADeviceGaveEndsWithIt: entries that a person gave by answering on a paired device wait for a person again once it is sent
// away, or its token is revoked; others stay.
func TestWhatADeviceGaveEndsWithIt(t *testing.T) {
	for name, sendAway := range map[string]func(w *world) error{
		"removed": func(w *world) error { return w.desk.RemoveDevice(t.Context(), w.person(), "phone") },
		"revoked": func(w *world) error {
			_, err := w.desk.RevokeDeviceToken(t.Context(), w.person(), "phone", identity.RoleOperator)
			return err
		},
	} {
		w := newWorld(t)
		w.pairs(t)
		_, err := w.desk.ApproveDevice(t.Context(), w.person(), "phone")
		must(t, err)
		_, err = w.desk.RotateDeviceToken(t.Context(), w.person(), "phone", identity.RoleOperator, []string{identity.ScopeApprovals})
		must(t, err)
		means := w.devices.Authority("phone", []string{identity.ScopeApprovals}).Means()
		_, err = w.allowlist.Permit(t.Context(), func(f *allowlist.File) bool {
			return f.Allow("coder", allowlist.Entry{Pattern: "/usr/bin/jq", GivenBy: means}, 1) && f.Allow("coder", allowlist.Entry{Pattern: "/usr/bin/wc", GivenBy: somebody.here.Means()}, 1)
		}, nil)
		must(t, err)
		if waiting := w.allowlist.Current().Unaccepted(); len(waiting) != 0 {
			t.Fatalf("before: %+v", waiting)
		}
		must(t, sendAway(w))
		if waiting := w.allowlist.Current().Unaccepted(); len(waiting) != 1 || waiting[0].Pattern != "/usr/bin/jq" {
			t.Errorf("%s: %+v", name, waiting)
		}
		last := w.events[len(w.events)-1]
		if last.Data["event"] != "withdrawn" || last.Data["entries"] != 1 || last.Data["givenBy"] != "device:phone" {
			t.Errorf("%s: %+v", name, last)
		}
	}
}
