package identity

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"
)

// Passkey is a key of the person's own hardware or password manager that opens the console in place of the passphrase.
type Passkey struct {
	ID        string    // public; "p-" and twelve characters
	Name      string    // the person's
	Site      string    // name of the console that it is bound to: its relying party id
	Synced    bool      // it may be on several devices: its maker keeps copies
	Created   time.Time //
	CreatedBy string    // who was signed in
	Used      time.Time // zero: never
	// Suspect is when its counter of signatures ran backwards: there may be a copy of a key that has none. It opens
	// nothing from then on. Zero: nothing is wrong.
	Suspect time.Time
}

// PasskeyRecord is a passkey as stored. Nothing in it is secret: the private key never leaves its device.
type PasskeyRecord struct {
	Passkey
	Credential []byte   // id that the authenticator gave
	Handle     []byte   // what the authenticator knows the person by
	Key        []byte   // public key, COSE
	Transports []string // how browsers reach it
	Count      uint32   // signatures at the last sign-in, as the authenticator counts them; 0 if it does not
	Backup     bool     // it is in more places than one right now
}

// PasskeyStore keeps passkeys. Writes are durable when they return.
type PasskeyStore interface {
	// Passkeys returns every passkey.
	Passkeys(ctx context.Context) ([]PasskeyRecord, error)
	// SavePasskey inserts or replaces a passkey.
	SavePasskey(ctx context.Context, r PasskeyRecord) error
	// RemovePasskey forgets a passkey; it is no error if there is none.
	RemovePasskey(ctx context.Context, id string) error
}

// Errors of passkeys that callers branch on.
var (
	ErrNoPasskey      = errors.New("no such passkey")
	ErrPasskey        = errors.New("the passkey was not accepted")
	ErrPasskeyLate    = errors.New("the question to the passkey has expired or was answered already: begin again")
	ErrPasskeySuspect = errors.New("this passkey's counter ran backwards, so there may be a copy of it: sign in with the passphrase, remove it under Access, and look at who signed in")
	ErrPasskeyHere    = errors.New("passkeys cannot be used at this address")
)

// Bounds of passkeys.
const (
	maxPasskeys    = 50
	maxPasskeyName = 60 // characters
)

// Passkeys knows the person's passkeys. Its methods may be called from any goroutine.
//
// They are bound to the console's name by the browser, so that no other site can use them, and to its exact origin by
// [Site]: without that, a page that an agent serves on another port of localhost could ask for a signature and use it
// here.
type Passkeys struct {
	keeper *Keeper
	store  PasskeyStore
	log    *slog.Logger

	writing sync.Mutex // one sign-in or change at a time: counters only go up
	mu      sync.Mutex
	keys    map[string]*PasskeyRecord // by public id
	asked   ceremonies
	sealer  [32]byte              // key of the questions at the door
	closed  map[[32]byte]answered // those that had their answer, by SHA-256 of the token
}

// OpenPasskeys loads the passkeys of a keeper's person.
func OpenPasskeys(ctx context.Context, k *Keeper, store PasskeyStore) (*Passkeys, error) {
	if k == nil || store == nil {
		return nil, errors.New("passkeys need a keeper and a store")
	}
	list, err := store.Passkeys(ctx)
	if err != nil {
		return nil, fmt.Errorf("load passkeys: %w", err)
	}
	p := &Passkeys{keeper: k, store: store, log: k.log, keys: map[string]*PasskeyRecord{}, closed: map[[32]byte]answered{}}
	rand.Read(p.sealer[:]) // never fails: the program would end instead
	for _, r := range list {
		p.keys[r.ID] = &r
	}
	return p, nil
}

// List returns the passkeys, newest first, for a signed-in person.
func (p *Passkeys) List(by Authority) ([]Passkey, error) {
	if err := by.May(RightAdmin); err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	out := make([]Passkey, 0, len(p.keys))
	for _, r := range p.keys {
		out = append(out, r.Passkey)
	}
	slices.SortFunc(out, func(a, b Passkey) int {
		if c := b.Created.Compare(a.Created); c != 0 {
			return c
		}
		return strings.Compare(a.ID, b.ID)
	})
	return out, nil
}

// Any reports whether there is a passkey that may open the console at a site.
func (p *Passkeys) Any(site string) bool {
	return len(p.of(site, func(r *PasskeyRecord) bool { return r.Suspect.IsZero() })) > 0
}

// of returns the passkeys of a site that are fit.
func (p *Passkeys) of(site string, fit func(*PasskeyRecord) bool) []PasskeyRecord {
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []PasskeyRecord
	for _, r := range p.keys {
		if r.Site == site && fit(r) {
			out = append(out, *r)
		}
	}
	return out
}

func (p *Passkeys) find(id string) (PasskeyRecord, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if r := p.keys[id]; r != nil {
		return *r, true
	}
	return PasskeyRecord{}, false
}

// save makes a change durable and then lets it count. The caller holds the writing lock.
func (p *Passkeys) save(ctx context.Context, r PasskeyRecord) error {
	if err := p.store.SavePasskey(ctx, r); err != nil {
		return fmt.Errorf("save passkey: %w", err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.keys[r.ID] = &r
	return nil
}

// Rename gives a passkey another name.
func (p *Passkeys) Rename(ctx context.Context, by Authority, id, name string) error {
	if err := by.May(RightAdmin); err != nil {
		return err
	}
	name, err := checkPasskeyName(name)
	if err != nil {
		return err
	}
	p.writing.Lock()
	defer p.writing.Unlock()
	r, ok := p.find(id)
	if !ok {
		return ErrNoPasskey
	}
	r.Name = name
	return p.save(ctx, r)
}

// Remove forgets a passkey and ends every sign-in that it opened, the caller's own too.
func (p *Passkeys) Remove(ctx context.Context, by Authority, id string) (Passkey, error) {
	if err := by.May(RightAdmin); err != nil {
		return Passkey{}, err
	}
	p.writing.Lock()
	defer p.writing.Unlock()
	r, ok := p.find(id)
	if !ok {
		return Passkey{}, ErrNoPasskey
	}
	p.mu.Lock()
	delete(p.keys, id) // first in memory: a failing store must not keep it alive
	p.mu.Unlock()
	p.keeper.endPasskey(id)
	// Whoever closes the page meanwhile must not find the passkey back after the next start.
	if err := p.store.RemovePasskey(context.WithoutCancel(ctx), id); err != nil {
		return r.Passkey, fmt.Errorf("the passkey is removed until the next start only, the store failed: %w", err)
	}
	return r.Passkey, nil
}

// checkPasskeyName says what is wrong with a name, or returns it without space around it.
func checkPasskeyName(name string) (string, error) {
	name = strings.TrimSpace(name)
	switch n := utf8.RuneCountInString(name); {
	case name == "" || !utf8.ValidString(name):
		return "", errors.New("give the passkey a name, for instance the device that holds it")
	case n > maxPasskeyName:
		return "", fmt.Errorf("the name has %d characters, at most %d are kept", n, maxPasskeyName)
	case strings.ContainsFunc(name, unicode.IsControl):
		return "", errors.New("the name has a control character")
	}
	return name, nil
}

func newPasskeyID() string { return "p-" + strings.ToLower(rand.Text()[:12]) }

// signInWith opens a console session with a passkey that was just proven. The caller holds the writing lock, so that a
// passkey which is being removed opens nothing.
func (k *Keeper) signInWith(source, passkey string) (token string, by Authority) {
	token, s := k.newConsole(source)
	s.Passkey = passkey
	k.mu.Lock()
	defer k.mu.Unlock()
	k.add(s)
	k.cookies[s.cookie] = s
	return token, k.authority(s)
}

// endPasskey ends every sign-in that a passkey opened.
func (k *Keeper) endPasskey(id string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, s := range k.sessions {
		if s.Passkey == id {
			k.end(s)
		}
	}
}
