package identity

import (
	"errors"
	"testing"
)

// lock is a key that one passphrase opens.
type lock struct{ opens string }

var errLock = errors.New("does not open")

func (l *lock) Unlock(passphrase string) error {
	if l.opens == "" {
		l.opens = passphrase
	}
	if passphrase != l.opens {
		return errLock
	}
	return nil
}

func (l *lock) Reseal(old, fresh string) (func() error, error) {
	if err := l.Unlock(old); err != nil {
		return nil, err
	}
	return func() error { l.opens = fresh; return nil }, nil
}

// TestThePassphraseMustOpenTheKey: a verifier in the store is not enough. It stops a program that put its own there.
func TestThePassphraseMustOpenTheKey(t *testing.T) {
	key := &lock{opens: other}
	k := setUp(t, newMemory(), func(o *Options) { o.Key = key })
	if _, _, err := k.SignInWeb(t.Context(), "a", "", passphrase); !errors.Is(err, errLock) {
		t.Errorf("signed in: %v", err)
	}
	if _, err := k.SignInForeground(t.Context(), passphrase); !errors.Is(err, errLock) {
		t.Errorf("signed in at the daemon's terminal: %v", err)
	}
	fresh := open(t, newMemory(), func(o *Options) { o.Key = key })
	if err := fresh.SetUp(t.Context(), "a", fresh.SetupCode(), passphrase); !errors.Is(err, errLock) || !fresh.NeedsSetup() {
		t.Errorf("set up: %v", err)
	}
	key.opens = passphrase
	by, err := k.SignInForeground(t.Context(), passphrase)
	if err != nil {
		t.Fatal(err)
	}
	if err := k.ChangePassphrase(t.Context(), by, passphrase, other); err != nil || key.opens != other {
		t.Errorf("changed: %v, the key opens with %q", err, key.opens)
	}
}
