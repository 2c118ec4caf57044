package identity

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"
)

// Keeper knows the person's passphrase, who is signed in, the agents' tokens and the agents' processes. Its methods
// may be called from any goroutine.
type Keeper struct {
	store     Store
	key       Key
	processes Processes
	sameBuild func(Process) error
	log       *slog.Logger
	life      Lifetimes
	clients   []uint32 // users besides our own whose programs may connect

	waiting  chan struct{} // sign-ins that queue or derive
	deriving chan struct{} // one passphrase at a time: each check takes 19 MiB
	tokens   tokens
	agents   agents

	mu       sync.Mutex
	verifier Verifier
	isSetUp  bool
	code     string // setup code, normal form; "" when none is valid
	// Wrong passphrases and codes; strangers by the kind of door.
	strangers       map[Surface]*failures
	familiar, codes failures
	signedIn        map[anchor]bool       // shells that did
	sessions        map[string]*session   // by public id
	cookies         map[[32]byte]*session // by SHA-256 of the cookie token
	shells          map[anchor]*session   // by the shell that signed in
}

// session is one sign-in. Guarded by the keeper's lock.
type session struct {
	SignIn
	cookie [32]byte
	shell  anchor
}

// Key is what the passphrase opens besides the door.
type Key interface {
	// Unlock opens it, or makes it if there is none. Its error refuses the sign-in.
	Unlock(passphrase string) error
	// Reseal lets another passphrase open it, too. commit shuts out the old one.
	Reseal(old, fresh string) (commit func() error, err error)
}

// Lifetimes say how long sign-ins last. Zero fields mean the default.
type Lifetimes struct {
	ConsoleIdle  time.Duration // default 12 h
	ConsoleMax   time.Duration // default 7 days
	TerminalIdle time.Duration // default 12 h
	TerminalMax  time.Duration // default 24 h
}

// Options says what a keeper works with.
type Options struct {
	Store     Store // required
	Key       Key   // that the passphrase opens; nil: there is none
	Lifetimes Lifetimes
	Log       *slog.Logger

	// Clients are users besides our own whose programs may use the local socket.
	Clients []uint32

	// Processes inspects processes; nil means those of this machine.
	Processes Processes
	// SameBuild says whether a process is this program, as people start it in a terminal; nil compares its
	// executable with the daemon's own.
	SameBuild func(Process) error
}

const (
	owner       = "owner" // the only person so far
	maxSessions = 200
	maxWaiting  = 8 // sign-ins that may queue for the derivation
)

// Open loads the passphrase's verifier and the tokens. If there is no passphrase yet, SetupCode returns the code
// that a person needs to set one.
func Open(ctx context.Context, o Options) (*Keeper, error) {
	if o.Store == nil {
		return nil, errors.New("device keeper needs a store")
	}
	k := &Keeper{
		store: o.Store, key: o.Key, processes: o.Processes, sameBuild: o.SameBuild, log: o.Log, life: o.Lifetimes, clients: slices.Clone(o.Clients),
		waiting: make(chan struct{}, maxWaiting), deriving: make(chan struct{}, 1),
		strangers: map[Surface]*failures{}, familiar: failures{apart: true}, signedIn: map[anchor]bool{},
		sessions: map[string]*session{}, cookies: map[[32]byte]*session{}, shells: map[anchor]*session{},
	}
	if k.log == nil {
		k.log = slog.New(slog.DiscardHandler)
	}
	if k.processes == nil {
		k.processes = System()
	}
	if k.sameBuild == nil {
		k.sameBuild = newBuild().check
	}
	k.life.ConsoleIdle = cmp.Or(k.life.ConsoleIdle, 12*time.Hour)
	k.life.ConsoleMax = cmp.Or(k.life.ConsoleMax, 7*24*time.Hour)
	k.life.TerminalIdle = cmp.Or(k.life.TerminalIdle, 12*time.Hour)
	k.life.TerminalMax = cmp.Or(k.life.TerminalMax, 24*time.Hour)

	var err error
	if k.verifier, k.isSetUp, err = o.Store.Verifier(ctx); err != nil {
		return nil, fmt.Errorf("load passphrase verifier: %w", err)
	}
	if !k.isSetUp {
		text := rand.Text()
		k.code = text[:10] // 50 bits; guesses are limited
	}
	if err := k.loadTokens(ctx); err != nil {
		return nil, err
	}
	return k, nil
}

// NeedsSetup reports whether no passphrase has been set yet.
func (k *Keeper) NeedsSetup() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return !k.isSetUp
}

// SetupCode is the code to show to the person at the daemon's terminal, and nowhere else; "" once a passphrase is
// set. It works once and only in this process.
func (k *Keeper) SetupCode() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.code == "" {
		return ""
	}
	return k.code[:5] + "-" + k.code[5:]
}

// SetUp sets the first passphrase. source is where the attempt comes from, for the limit on wrong codes. The code
// proves that whoever sets it sees the daemon's terminal: an agent that only reaches the socket or the port must not
// become the owner of a fresh installation.
func (k *Keeper) SetUp(ctx context.Context, source, code, passphrase string) error {
	k.mu.Lock()
	err := k.checkCode(source, code)
	k.mu.Unlock()
	if err != nil {
		return err
	}
	if err := checkPassphrase(passphrase); err != nil {
		return err
	}
	v, err := k.newVerifier(ctx, passphrase, k.unlock)
	if err != nil {
		return err
	}
	if err := k.store.SaveVerifier(ctx, v, true); err != nil {
		return fmt.Errorf("save passphrase verifier: %w", err)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.verifier, k.isSetUp, k.code = v, true, ""
	k.codes.succeeded(source)
	return nil
}

func (k *Keeper) checkCode(source, code string) error {
	now := time.Now()
	switch {
	case k.isSetUp:
		return errors.New("a passphrase is set already: sign in with it, and change it if you like")
	case k.code == "":
		return errors.New("no setup code is valid: restart the daemon to get one")
	}
	if err := k.codes.check(source, now); err != nil {
		return err
	}
	if !equalText(normalCode(code), k.code) {
		k.codes.failed(source, now)
		return errors.New("wrong setup code: it is shown where `toolward up` was started")
	}
	return nil
}

// normalCode accepts a code as people type it.
func normalCode(code string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '-' || r == ' ':
			return -1
		case r >= 'a' && r <= 'z':
			return r - 'a' + 'A'
		}
		return r
	}, strings.TrimSpace(code))
}

// ChangePassphrase replaces the passphrase. It needs a signed-in person and the old passphrase: a screen left
// unlocked is not enough. Every other sign-in ends.
func (k *Keeper) ChangePassphrase(ctx context.Context, by Authority, old, passphrase string) error {
	if err := by.May(RightAdmin); err != nil {
		return err
	}
	if err := checkPassphrase(passphrase); err != nil {
		return err
	}
	if err := k.checkPerson(ctx, k.known("change by "+by.id), old); err != nil {
		return err
	}
	shut := func() error { return nil }
	v, err := k.newVerifier(ctx, passphrase, func(string) (err error) {
		if k.key != nil {
			shut, err = k.key.Reseal(old, passphrase)
		}
		return err
	})
	if err != nil {
		return err
	}
	if err := k.store.SaveVerifier(ctx, v, false); err != nil {
		return fmt.Errorf("save passphrase verifier: %w", err)
	}
	k.changed(by, v)
	if err := shut(); err != nil {
		return fmt.Errorf("the passphrase is changed, but the old one still opens the key of this home: %w", err)
	}
	return nil
}

func (k *Keeper) changed(by Authority, v Verifier) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.verifier = v
	for id, s := range k.sessions {
		if id != by.id {
			k.end(s)
		}
	}
}

// checkPerson checks a passphrase. Failures are counted before the answer is known to whoever tries, and attempts
// are looked at one after the other, so trying many at once gains nothing.
func (k *Keeper) checkPerson(ctx context.Context, from attempt, passphrase string) error {
	release, err := k.queue(ctx, from.known)
	if err != nil {
		return err
	}
	defer release()
	k.mu.Lock()
	now := time.Now()
	verifier, isSetUp, err := k.verifier, k.isSetUp, from.wrong.check(from.source, now)
	k.mu.Unlock()
	if err != nil {
		return err
	}
	if !isSetUp {
		return ErrNeedsSetup
	}
	ok, err := verifier.matches(passphrase)
	if ok {
		// It stops a program that put a verifier of its own into the database: its passphrase opens no key.
		err = k.unlock(passphrase)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if err != nil {
		return err
	}
	if !ok {
		from.wrong.failed(from.source, time.Now())
		k.log.Warn("wrong passphrase", "source", from.source)
		return ErrPassphrase
	}
	if !slices.Equal(verifier.Check, k.verifier.Check) {
		return ErrPassphrase // changed while this attempt was being checked
	}
	from.wrong.succeeded(from.source)
	return nil
}

func (k *Keeper) unlock(passphrase string) error {
	if k.key == nil {
		return nil
	}
	return k.key.Unlock(passphrase)
}

// newVerifier makes what recognizes a passphrase, once first has agreed to it.
func (k *Keeper) newVerifier(ctx context.Context, passphrase string, first func(passphrase string) error) (Verifier, error) {
	release, err := k.queue(ctx, true)
	if err != nil {
		return Verifier{}, err
	}
	defer release()
	if err := first(passphrase); err != nil {
		return Verifier{}, err
	}
	return newVerifier(owner, passphrase, time.Now())
}

// queue waits for the right to derive a key, of which there is one. A flood of strangers is turned away instead of
// being remembered, and keeps out nobody who is known.
func (k *Keeper) queue(ctx context.Context, known bool) (release func(), err error) {
	leave := func() {}
	if !known {
		select {
		case k.waiting <- struct{}{}:
			leave = func() { <-k.waiting }
		default:
			return nil, &RateError{Wait: time.Second, Global: true}
		}
	}
	select {
	case k.deriving <- struct{}{}:
		return func() { <-k.deriving; leave() }, nil
	case <-ctx.Done():
		leave()
		return nil, ctx.Err()
	}
}
