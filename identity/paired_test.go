package identity

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// pairStore keeps devices in memory, and can fail.
type pairStore struct {
	devices map[string]PairedDevice
	err     error
}

func (s *pairStore) PairedDevices(context.Context) (out []PairedDevice, err error) {
	for _, d := range s.devices {
		out = append(out, d)
	}
	return out, nil
}

func (s *pairStore) SavePairedDevice(ctx context.Context, d PairedDevice) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if s.err == nil {
		s.devices[d.ID] = d
	}
	return s.err
}

func (s *pairStore) RemovePairedDevice(ctx context.Context, id string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	delete(s.devices, id)
	return s.err
}

func openPairings(t *testing.T, store *pairStore) *Pairings {
	t.Helper()
	p, err := OpenPairings(t.Context(), store, make([]byte, 32))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func phone(scopes ...string) PairRequest {
	return PairRequest{
		DeviceID: "d1", Key: []byte("key of d1"), Name: "phone", Platform: "ios", ClientID: "openclaw-ios", Mode: "ui",
		Role: RoleOperator, Scopes: scopes,
	}
}

// person is somebody who signed in with the passphrase.
func person(t *testing.T) Authority {
	t.Helper()
	by, err := setUp(t, newMemory(), nil).SignInForeground(t.Context(), passphrase)
	if err != nil {
		t.Fatal(err)
	}
	return by
}

// What a device may have without asking anybody is never what only people may do.
func TestSilentPairingIsNobodysVouch(t *testing.T) {
	p := openPairings(t, &pairStore{devices: map[string]PairedDevice{}})
	if err := p.PairSilently(t.Context(), phone(ScopeAdmin)); err != nil {
		t.Fatal(err)
	}
	by := p.Authority("d1", []string{ScopeAdmin})
	if by.IsPerson() || by.MayAnswer() == nil || by.May(RightWatch) == nil || by.May(RightAdmin) == nil {
		t.Error("a silently paired device has a person's rights")
	}
	if _, err := p.Approve(t.Context(), by, "d1", nil); !errors.Is(err, ErrNotSignedIn) {
		t.Errorf("it vouches for itself: %v", err)
	}
	if _, err := p.Approve(t.Context(), Requester(), "d1", nil); !errors.Is(err, ErrNotSignedIn) {
		t.Errorf("a requester vouches: %v", err)
	}
}

// A person's word gives the rights of the scopes that were shown, no more, and as long as the device is paired.
func TestVouchedDevice(t *testing.T) {
	store := &pairStore{devices: map[string]PairedDevice{}}
	p := openPairings(t, store)
	r, err := p.Request(phone(ScopeApprovals, ScopePairing))
	if err != nil {
		t.Fatal(err)
	}
	owner := person(t)
	if _, err := p.Approve(t.Context(), owner, r.ID, nil); err != nil {
		t.Fatal(err)
	}
	all := []string{ScopeApprovals, ScopePairing}
	by := p.Authority("d1", all)
	if err := by.MayAnswer(); err != nil {
		t.Errorf("it may not answer: %v", err)
	}
	if by.May(RightAdmin) == nil || by.May(RightWatch) == nil {
		t.Error("it may do what its scopes do not cover")
	}
	if p.Authority("d1", nil).MayAnswer() == nil {
		t.Error("a connection without the scope may answer")
	}
	// More scopes that nobody was asked about do not count.
	if err := p.PairSilently(t.Context(), phone(ScopeAdmin)); err != nil {
		t.Fatal(err)
	}
	if p.Authority("d1", []string{ScopeAdmin}).May(RightAdmin) == nil {
		t.Error("a silent upgrade gave a person's rights")
	}
	// The device may let others in, with no more than it holds itself.
	other := phone(ScopeAdmin)
	other.DeviceID, other.Key = "d2", []byte("key of d2")
	r, err = p.Request(other)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Approve(t.Context(), by, r.ID, nil); !errors.Is(err, ErrScopeHeld) {
		t.Errorf("it gave what it does not hold: %v", err)
	}
	// A restart keeps it, removing it ends it.
	p = openPairings(t, store)
	by = p.Authority("d1", all)
	if by.MayAnswer() != nil {
		t.Error("the restart forgot it")
	}
	if err := p.Remove(t.Context(), owner, "d1"); err != nil {
		t.Fatal(err)
	}
	if by.MayAnswer() == nil || len(store.devices) != 0 {
		t.Error("a removed device may answer")
	}
}

func TestNeedsPairing(t *testing.T) {
	p := openPairings(t, &pairStore{devices: map[string]PairedDevice{}})
	if err := p.PairSilently(t.Context(), phone(ScopeWrite)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name   string
		change func(*PairRequest)
		want   PairReason
	}{
		{"as it is", func(*PairRequest) {}, ""},
		{"an implied scope", func(r *PairRequest) { r.Scopes = []string{ScopeRead} }, ""},
		{"platform in other letters", func(r *PairRequest) { r.Platform = " iOS " }, ""},
		{"another key", func(r *PairRequest) { r.Key = []byte("x") }, NotPaired},
		{"unknown", func(r *PairRequest) { r.DeviceID = "d9" }, NotPaired},
		{"another role", func(r *PairRequest) { r.Role = RoleNode }, RoleUpgrade},
		{"more scopes", func(r *PairRequest) { r.Scopes = []string{ScopeApprovals} }, ScopeUpgrade},
		{"another platform", func(r *PairRequest) { r.Platform = "linux" }, MetadataUpgrade},
		{"no platform", func(r *PairRequest) { r.Platform = "" }, MetadataUpgrade},
	} {
		r := phone(ScopeWrite)
		c.change(&r)
		if got := p.Needs(&r); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

func TestPairRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := openPairings(t, &pairStore{devices: map[string]PairedDevice{}})
		first, err := p.Request(phone(ScopeRead))
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(4 * time.Minute)
		second, err := p.Request(phone(ScopeApprovals))
		if err != nil {
			t.Fatal(err)
		}
		if second.ID != first.ID || !slices.Equal(second.Scopes, []string{ScopeApprovals, ScopeRead}) {
			t.Errorf("a repeat is another request: %+v", second)
		}
		time.Sleep(5*time.Minute - time.Millisecond)
		if pending, _ := p.List(); len(pending) != 1 {
			t.Errorf("%d wait, want 1", len(pending))
		}
		time.Sleep(time.Millisecond)
		if pending, _ := p.List(); len(pending) != 0 {
			t.Error("it waits longer than five minutes")
		}
	})
}

func TestCredentials(t *testing.T) {
	store := &pairStore{devices: map[string]PairedDevice{}}
	p := openPairings(t, store)
	ctx, scopes := t.Context(), []string{ScopeRead}
	if _, _, err := p.Credential(ctx, "d1", RoleOperator, scopes); err == nil {
		t.Fatal("a device that is not paired got a token")
	}
	if err := p.PairSilently(ctx, phone(ScopeWrite)); err != nil {
		t.Fatal(err)
	}
	token, _, err := p.Credential(ctx, "d1", RoleOperator, scopes)
	if err != nil {
		t.Fatal(err)
	}
	check := func(p *Pairings, want error, role Role, scopes ...string) {
		t.Helper()
		if err := p.CheckCredential("d1", role, scopes, token); !errors.Is(err, want) {
			t.Errorf("%s %v: %v, want %v", role, scopes, err, want)
		}
	}
	check(p, nil, RoleOperator, ScopeRead)
	check(p, ErrDeviceScope, RoleOperator, ScopeWrite)
	check(p, ErrDeviceScope, RoleNode)
	check(openPairings(t, store), nil, RoleOperator, ScopeRead)
	if again, _, err := p.Credential(ctx, "d1", RoleOperator, scopes); err != nil || again != token {
		t.Errorf("another token: %v", err)
	}
	if err := p.CheckCredential("d2", RoleOperator, nil, token); !errors.Is(err, ErrDeviceToken) {
		t.Errorf("another device uses it: %v", err)
	}
	own := Caller{Device: "d1", Scopes: scopes}
	if _, _, _, err := p.Rotate(ctx, Caller{Device: "d2", Scopes: scopes}, "d1", RoleOperator, nil); err == nil {
		t.Error("another device rotated it")
	}
	if _, _, _, err := p.Rotate(ctx, own, "d1", RoleOperator, []string{ScopeWrite}); !errors.Is(err, ErrScopeHeld) {
		t.Errorf("it gave itself more than its connection holds: %v", err)
	}
	fresh, _, _, err := p.Rotate(ctx, own, "d1", RoleOperator, nil)
	if err != nil || fresh == token {
		t.Fatalf("rotate: %v", err)
	}
	check(p, ErrDeviceToken, RoleOperator, ScopeRead)
	token = fresh
	check(p, nil, RoleOperator, ScopeRead)
	if _, err := p.Revoke(ctx, own, "d1", RoleOperator); err != nil {
		t.Fatal(err)
	}
	check(p, ErrDeviceToken, RoleOperator, ScopeRead)
}

// A change that the store does not take does not count.
func TestPairingNeedsTheStore(t *testing.T) {
	store := &pairStore{devices: map[string]PairedDevice{}, err: errors.New("disk full")}
	p := openPairings(t, store)
	r := phone(ScopeRead)
	if err := p.PairSilently(t.Context(), r); err == nil {
		t.Error("it is paired without a trace")
	}
	if p.Needs(&r) != NotPaired {
		t.Error("it counts as paired")
	}
}

// Who goes away in the middle of it has still taken a device's rights away, for the next start too.
func TestCallerGoesAwayWhileADeviceIsRemoved(t *testing.T) {
	store := &pairStore{devices: map[string]PairedDevice{}}
	p, by := openPairings(t, store), person(t)
	r, err := p.Request(phone(ScopeApprovals))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Approve(t.Context(), by, r.ID, nil); err != nil {
		t.Fatal(err)
	}
	token, _, err := p.Credential(t.Context(), "d1", RoleOperator, []string{ScopeApprovals})
	if err != nil {
		t.Fatal(err)
	}
	gone, hangUp := context.WithCancel(t.Context())
	hangUp()
	if _, err := p.Revoke(gone, Caller{By: by}, "d1", RoleOperator); err != nil {
		t.Errorf("revocation: %v", err)
	}
	if p.CheckCredential("d1", RoleOperator, nil, token) == nil || openPairings(t, store).CheckCredential("d1", RoleOperator, nil, token) == nil {
		t.Error("a revoked token works")
	}
	if err := p.Remove(gone, by, "d1"); err != nil {
		t.Errorf("removal: %v", err)
	}
	if _, known := openPairings(t, store).Device("d1"); known {
		t.Error("a removed device is back after a restart")
	}
}

// A store that fails keeps no revoked token in force.
func TestRevokedWhileTheStoreFails(t *testing.T) {
	store := &pairStore{devices: map[string]PairedDevice{}}
	p, by := openPairings(t, store), person(t)
	if err := p.PairSilently(t.Context(), phone(ScopeRead)); err != nil {
		t.Fatal(err)
	}
	token, _, err := p.Credential(t.Context(), "d1", RoleOperator, []string{ScopeRead})
	if err != nil {
		t.Fatal(err)
	}
	told := 0
	p.Watch(func(e PairEvent) {
		if e.Kind == TokenRevoked {
			told++ // ends the connections
		}
	})
	store.err = errors.New("disk full")
	if _, err := p.Revoke(t.Context(), Caller{By: by}, "d1", RoleOperator); !errors.Is(err, store.err) {
		t.Errorf("the failing store was not mentioned: %v", err)
	}
	if err := p.CheckCredential("d1", RoleOperator, nil, token); !errors.Is(err, ErrDeviceToken) || told != 1 {
		t.Errorf("a revoked token: %v, told %d times", err, told)
	}
}

// A crowd that waits to be paired keeps out no device that is, and none that asks from elsewhere than the crowd.
func TestAFloodOfPairing(t *testing.T) {
	p := openPairings(t, &pairStore{devices: map[string]PairedDevice{}})
	mine := phone(ScopeRead)
	if err := p.PairSilently(t.Context(), mine); err != nil {
		t.Fatal(err)
	}
	stranger := func(n int, ip string) error {
		r := phone(ScopeRead)
		r.DeviceID, r.Key, r.IP = fmt.Sprint("stranger ", n, ip), fmt.Append(nil, "key ", n, ip), ip
		_, err := p.Request(r)
		return err
	}
	for n := range 2 * maxPending {
		_ = stranger(n, fmt.Sprintf("127.0.0.%d", n%200+1))
	}
	if err := stranger(0, "::1"); !errors.Is(err, ErrTooManyPair) {
		t.Errorf("one more of this machine: %v", err)
	}
	if err := stranger(0, "192.0.2.7"); err != nil {
		t.Errorf("a phone in the house: %v", err)
	}
	for n := range 2 * maxPending {
		_ = stranger(n, fmt.Sprintf("198.51.100.%d", n%200+1))
	}
	if err := stranger(1, "192.0.2.7"); !errors.Is(err, ErrTooManyPair) {
		t.Errorf("when everything is full: %v", err)
	}
	more := mine
	more.Scopes = []string{ScopeApprovals}
	if _, err := p.Request(more); err != nil {
		t.Errorf("a paired device that asks for more: %v", err)
	}
	if len(p.pending) > maxPending+1 {
		t.Errorf("%d wait", len(p.pending))
	}
}
