package identity

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// PairedDevice is a device that may connect: a phone, another machine, a program with a key of its own.
//
// Scopes are what its connections may have. Vouched are those of them that a signed-in person approved. The difference
// matters: whoever holds the gateway's shared secret can pair a device of this machine without asking anybody, and an
// agent of the same user can read that secret. What only people may do needs a vouched scope.
type PairedDevice struct {
	ID       string
	Key      []byte // raw Ed25519 public key
	Name     string // for people
	Roles    []Role
	Scopes   []string
	Vouched  []string
	Person   string // who vouched last; "" if nobody did
	Platform string // pinned: a device that claims another one is asked about
	Family   string
	ClientID string
	Mode     string
	IP       string // of the connection that asked to be paired
	Created  time.Time
	Approved time.Time
	Seen     time.Time
	Tokens   map[Role]DeviceToken
}

// DeviceToken is a device's own credential for one role. The token itself is not kept: it is derived from Salt with a
// key of the gateway, so that it can be told to its device again while a copy of the store is worth nothing.
type DeviceToken struct {
	Salt    []byte    `json:"salt"`
	Scopes  []string  `json:"scopes"`
	Created time.Time `json:"created"`
	Rotated time.Time `json:"rotated,omitzero"`
	Revoked time.Time `json:"revoked,omitzero"`
	Used    time.Time `json:"used,omitzero"`
}

func (d *PairedDevice) clone() PairedDevice {
	c := *d
	c.Roles, c.Scopes, c.Vouched = slices.Clone(d.Roles), slices.Clone(d.Scopes), slices.Clone(d.Vouched)
	c.Tokens = maps.Clone(d.Tokens)
	return c
}

// PairStore keeps paired devices. Writes are durable when they return.
type PairStore interface {
	// PairedDevices returns every device.
	PairedDevices(ctx context.Context) ([]PairedDevice, error)
	// SavePairedDevice inserts or replaces a device.
	SavePairedDevice(ctx context.Context, d PairedDevice) error
	// RemovePairedDevice forgets a device; it is no error if there is none.
	RemovePairedDevice(ctx context.Context, id string) error
}

// PairReason says why a connection needs pairing.
type PairReason string

// The reasons.
const (
	NotPaired       PairReason = "not-paired"
	RoleUpgrade     PairReason = "role-upgrade"
	ScopeUpgrade    PairReason = "scope-upgrade"
	MetadataUpgrade PairReason = "metadata-upgrade"
)

// PairRequest is a device that wants to be paired, or to get more than it has.
type PairRequest struct {
	ID       string
	DeviceID string
	Key      []byte
	Name     string
	Platform string
	Family   string
	ClientID string
	Mode     string
	Role     Role
	Scopes   []string
	IP       string
	Reason   PairReason
	Repair   bool // the device is known
	Created  time.Time
}

// Stamp names what a person is asked: which key gets what, under which name.
func (r *PairRequest) Stamp() string {
	sum := sha256.New()
	for _, part := range append([]string{r.DeviceID, string(r.Key), r.Name, r.Platform, r.Family, r.ClientID, string(r.Role)}, union(nil, r.Scopes)...) {
		fmt.Fprintf(sum, "%d:%s", len(part), part)
	}
	return hex.EncodeToString(sum.Sum(nil)[:16])
}

// Stamp names what a person vouches for with the device as it is.
func (d *PairedDevice) Stamp() string {
	r := d.again()
	return r.Stamp()
}

// again is the request that would make the device what it is.
func (d *PairedDevice) again() PairRequest {
	r := PairRequest{
		ID: newPairID(), DeviceID: d.ID, Key: d.Key, Name: d.Name, Platform: d.Platform, Family: d.Family,
		ClientID: d.ClientID, Mode: d.Mode, Scopes: d.Scopes, IP: d.IP, Repair: true,
	}
	if len(d.Roles) > 0 {
		r.Role = d.Roles[0]
	}
	return r
}

// PairEvent is news about pairing.
type PairEvent struct {
	Kind     string // requested, approved, rejected, removed, rotated or revoked
	Request  PairRequest
	DeviceID string
	Role     Role   // with rotated and revoked
	By       string // "" for what nobody was asked about
	At       time.Time
}

// Kinds of PairEvent.
const (
	PairRequested = "requested"
	PairApproved  = "approved"
	PairRejected  = "rejected"
	PairRemoved   = "removed"
	TokenRotated  = "rotated"
	TokenRevoked  = "revoked"
)

// Errors of pairing that callers branch on.
var (
	ErrNoRequest   = errors.New("unknown requestId")
	ErrNoDevice    = errors.New("unknown deviceId")
	ErrDeviceToken = errors.New("device token mismatch")
	ErrDeviceScope = errors.New("the device's credential does not cover the role or the scopes that were asked for")
	ErrScopeHeld   = errors.New("whoever gives a scope must hold it")
	ErrTooManyPair = errors.New("too many devices")
	ErrPairChanged = errors.New("the device asks for something else by now: look again")
)

// Bounds of pairing.
const (
	pendingLife   = 5 * time.Minute
	maxPending    = 100
	maxDevices    = 1000
	touchDevices  = time.Minute
	longestDevice = 100 // bytes of a name, a platform or an address
)

// Pairings knows which devices may connect. Its methods may be called from any goroutine.
type Pairings struct {
	store PairStore
	key   []byte
	watch atomic.Pointer[func(PairEvent)]

	writing sync.Mutex // one change at a time: it is in the store before it counts
	mu      sync.Mutex
	devices map[string]*PairedDevice
	pending map[string]*PairRequest // by device
}

// OpenPairings loads the paired devices. key is a secret of the gateway of at least 32 bytes, the same after a restart.
func OpenPairings(ctx context.Context, store PairStore, key []byte) (*Pairings, error) {
	if store == nil || len(key) < 32 {
		return nil, errors.New("pairing needs a store and a key of 32 bytes")
	}
	p := &Pairings{store: store, key: key, devices: map[string]*PairedDevice{}, pending: map[string]*PairRequest{}}
	list, err := store.PairedDevices(ctx)
	if err != nil {
		return nil, fmt.Errorf("load paired devices: %w", err)
	}
	for _, d := range list {
		p.devices[d.ID] = &d
	}
	return p, nil
}

// Watch tells tell about everything that happens from now on. It is called after the change counts and must not call
// back.
func (p *Pairings) Watch(tell func(PairEvent)) { p.watch.Store(&tell) }

func (p *Pairings) tell(e PairEvent) {
	e.At = time.Now()
	if tell := p.watch.Load(); tell != nil {
		(*tell)(e)
	}
}

// Needs says why a connection that asks for this needs pairing; "" if it does not. The key has been proven.
func (p *Pairings) Needs(r *PairRequest) PairReason {
	p.mu.Lock()
	defer p.mu.Unlock()
	d := p.devices[r.DeviceID]
	switch {
	case d == nil || !slices.Equal(d.Key, r.Key):
		return NotPaired
	case !slices.Contains(d.Roles, r.Role):
		return RoleUpgrade
	case !CoversAll(d.Scopes, r.Scopes):
		return ScopeUpgrade
	case d.Platform != "" && d.Platform != FoldPlatform(r.Platform), d.Family != "" && d.Family != FoldPlatform(r.Family):
		return MetadataUpgrade
	}
	return ""
}

// Request makes a request wait for a person for five minutes. There is one for each device: a repeat adds to it.
func (p *Pairings) Request(r PairRequest) (PairRequest, error) {
	now := time.Now()
	p.mu.Lock()
	p.forget(now)
	if old := p.pending[r.DeviceID]; old != nil && old.Role == r.Role && slices.Equal(old.Key, r.Key) {
		old.Scopes = union(old.Scopes, r.Scopes)
		old.Platform, old.Family, old.Reason, old.Created = FoldPlatform(r.Platform), FoldPlatform(r.Family), r.Reason, now
		merged := *old
		p.mu.Unlock()
		return merged, nil
	}
	if !p.hasRoom(&r) {
		p.mu.Unlock()
		return PairRequest{}, fmt.Errorf("%w wait to be paired already", ErrTooManyPair)
	}
	r.ID, r.Created = newPairID(), now
	r.Platform, r.Family = FoldPlatform(r.Platform), FoldPlatform(r.Family)
	_, r.Repair = p.devices[r.DeviceID]
	p.pending[r.DeviceID] = &r
	p.mu.Unlock()
	p.tell(PairEvent{Kind: PairRequested, Request: r, DeviceID: r.DeviceID})
	return r, nil
}

// hasRoom reports whether a request finds a place. A device that is paired asks for more whatever crowd of strangers waits, and who
// floods from one address, or from this machine, leaves room for a stranger that is elsewhere. The caller holds the lock.
func (p *Pairings) hasRoom(r *PairRequest) bool {
	if p.knows(r) {
		return true // there are at most as many as devices
	}
	strangers, here := 0, 0
	for _, waits := range p.pending {
		if p.knows(waits) {
			continue
		}
		strangers++
		if originOf(waits) == originOf(r) {
			here++
		}
	}
	return strangers < maxPending && here < maxPending/2
}

// knows reports whether a device is paired already. The caller holds the lock.
func (p *Pairings) knows(r *PairRequest) bool {
	d := p.devices[r.DeviceID]
	return d != nil && slices.Equal(d.Key, r.Key)
}

// originOf is where a request comes from: this machine is one place, whatever addresses of it a program takes.
func originOf(r *PairRequest) string {
	ip, err := netip.ParseAddr(r.IP)
	if err != nil || ip.Unmap().IsLoopback() {
		return ""
	}
	return ip.Unmap().String()
}

// forget drops requests that nobody answered. The caller holds the lock.
func (p *Pairings) forget(now time.Time) {
	for id, r := range p.pending {
		if now.Sub(r.Created) >= pendingLife {
			delete(p.pending, id)
		}
	}
}

// PairSilently pairs a program of this machine, or gives it more scopes, without asking anybody. Nothing of it is
// vouched for. The caller has checked that this may be.
func (p *Pairings) PairSilently(ctx context.Context, r PairRequest) error {
	r.ID, r.Created = newPairID(), time.Now()
	if err := p.admit(ctx, r, "", nil); err != nil {
		return err
	}
	p.tell(PairEvent{Kind: PairApproved, Request: r, DeviceID: r.DeviceID})
	return nil
}

// Approve lets a person pair the device of a waiting request, or vouch for a device that was paired silently: name is
// the id of the request or of the device. It needs a signed-in person who holds every scope that is given. record, if not nil,
// is told of it before it is done; its error stops it.
func (p *Pairings) Approve(ctx context.Context, by Authority, name string, record func(PairRequest) error) (PairedDevice, error) {
	return p.approve(ctx, by, name, "", record)
}

// ApproveSeen is Approve for exactly what was shown: seen is the stamp of that. A device may ask for more between the
// showing and the answer; what the person did not see is not theirs to have given.
func (p *Pairings) ApproveSeen(ctx context.Context, by Authority, name, seen string, record func(PairRequest) error) (PairedDevice, error) {
	if seen == "" {
		return PairedDevice{}, ErrPairChanged
	}
	return p.approve(ctx, by, name, seen, record)
}

func (p *Pairings) approve(ctx context.Context, by Authority, name, seen string, record func(PairRequest) error) (PairedDevice, error) {
	if err := by.mayPair(nil); err != nil {
		return PairedDevice{}, err
	}
	r, ok := p.waiting(name)
	if !ok {
		d, known := p.Device(name)
		if !known {
			return PairedDevice{}, ErrNoRequest
		}
		r = d.again()
	}
	if seen != "" && seen != r.Stamp() {
		return PairedDevice{}, ErrPairChanged
	}
	if err := by.mayPair(r.Scopes); err != nil {
		return PairedDevice{}, err
	}
	if err := p.admit(ctx, r, by.Name(), record); err != nil {
		return PairedDevice{}, err
	}
	p.drop(r.ID)
	p.tell(PairEvent{Kind: PairApproved, Request: r, DeviceID: r.DeviceID, By: by.Name()})
	d, _ := p.Device(r.DeviceID)
	return d, nil
}

// admit writes what a request asked for. person is who vouches, "" for nobody. record, if not nil, can still stop it.
func (p *Pairings) admit(ctx context.Context, r PairRequest, person string, record func(PairRequest) error) error {
	p.writing.Lock()
	defer p.writing.Unlock()
	now := time.Now()
	p.mu.Lock()
	var d PairedDevice
	old := p.devices[r.DeviceID]
	switch {
	case old != nil && slices.Equal(old.Key, r.Key):
		d = old.clone()
	case len(p.devices) >= maxDevices && old == nil:
		p.mu.Unlock()
		return fmt.Errorf("%w are paired; remove some", ErrTooManyPair)
	default:
		d = PairedDevice{ID: r.DeviceID, Key: r.Key, Created: now}
	}
	p.mu.Unlock()
	if r.Role != "" && !slices.Contains(d.Roles, r.Role) {
		d.Roles = append(d.Roles, r.Role)
	}
	d.Scopes = union(d.Scopes, r.Scopes)
	if person != "" {
		d.Vouched, d.Person = union(d.Vouched, r.Scopes), person
	}
	d.Name, d.ClientID, d.Mode = shorten(cmp.Or(r.Name, d.Name)), cmp.Or(r.ClientID, d.ClientID), cmp.Or(r.Mode, d.Mode)
	d.Platform, d.Family = shorten(FoldPlatform(r.Platform)), shorten(FoldPlatform(r.Family))
	d.IP, d.Approved = cmp.Or(shorten(r.IP), d.IP), now
	if record != nil {
		if err := record(r); err != nil {
			return err
		}
	}
	return p.save(ctx, d)
}

// save makes a change durable and then lets it count. The caller holds the writing lock.
func (p *Pairings) save(ctx context.Context, d PairedDevice) error {
	if err := p.store.SavePairedDevice(ctx, d); err != nil {
		return fmt.Errorf("save device: %w", err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.devices[d.ID] = &d
	return nil
}

// Reject declines a waiting request. It needs a signed-in person.
func (p *Pairings) Reject(by Authority, requestID string) (PairRequest, error) {
	if err := by.mayPair(nil); err != nil {
		return PairRequest{}, err
	}
	r, ok := p.waiting(requestID)
	if !ok {
		return PairRequest{}, ErrNoRequest
	}
	p.drop(r.ID)
	p.tell(PairEvent{Kind: PairRejected, Request: r, DeviceID: r.DeviceID, By: by.Name()})
	return r, nil
}

// Remove forgets a device. It needs a signed-in person.
func (p *Pairings) Remove(ctx context.Context, by Authority, deviceID string) error {
	if err := by.mayPair(nil); err != nil {
		return err
	}
	p.writing.Lock()
	p.mu.Lock()
	_, known := p.devices[deviceID]
	delete(p.devices, deviceID) // first in memory: a failing store must not keep it alive
	p.mu.Unlock()
	// Whoever closes the page meanwhile must not find the device back after the next start.
	err := p.store.RemovePairedDevice(context.WithoutCancel(ctx), deviceID)
	p.writing.Unlock()
	if !known {
		return ErrNoDevice
	}
	p.tell(PairEvent{Kind: PairRemoved, DeviceID: deviceID, By: by.Name()})
	if err != nil {
		return fmt.Errorf("the device is removed until the next start only, the store failed: %w", err)
	}
	return nil
}

func (p *Pairings) waiting(requestID string) (PairRequest, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.forget(time.Now())
	for _, r := range p.pending {
		if r.ID == requestID {
			return *r, true
		}
	}
	return PairRequest{}, false
}

func (p *Pairings) drop(requestID string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for id, r := range p.pending {
		if r.ID == requestID {
			delete(p.pending, id)
		}
	}
}

// Device returns a paired device.
func (p *Pairings) Device(id string) (PairedDevice, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if d := p.devices[id]; d != nil {
		return d.clone(), true
	}
	return PairedDevice{}, false
}

// List returns what waits to be paired and what is paired, newest first.
func (p *Pairings) List() ([]PairRequest, []PairedDevice) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.forget(time.Now())
	pending := make([]PairRequest, 0, len(p.pending))
	for _, r := range p.pending {
		pending = append(pending, *r)
	}
	paired := make([]PairedDevice, 0, len(p.devices))
	for _, d := range p.devices {
		paired = append(paired, d.clone())
	}
	slices.SortFunc(pending, func(a, b PairRequest) int {
		return cmp.Or(b.Created.Compare(a.Created), strings.Compare(a.ID, b.ID))
	})
	slices.SortFunc(paired, func(a, b PairedDevice) int {
		return cmp.Or(b.Approved.Compare(a.Approved), strings.Compare(a.ID, b.ID))
	})
	return pending, paired
}

// tokenText is the credential that belongs to a salt.
func (p *Pairings) tokenText(deviceID string, role Role, salt []byte) string {
	mac := hmac.New(sha256.New, p.key)
	for _, part := range [][]byte{[]byte("device token v1"), []byte(deviceID), []byte(role), salt} {
		fmt.Fprintf(mac, "%d:", len(part))
		mac.Write(part)
	}
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

func newPairID() string {
	var b [16]byte
	rand.Read(b[:]) // never fails: the program would end instead
	return hex.EncodeToString(b[:])
}

func shorten(text string) string {
	return strings.ToValidUTF8(text[:min(len(text), longestDevice)], "")
}
