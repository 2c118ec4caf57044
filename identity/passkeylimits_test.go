package identity

import (
	"context"
	"crypto/rand"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolward/toolward/internal/passkeytest"
)

// Questions end and are answered once. Neither wrong answers nor a flood of questions keeps out who answers rightly, and both hold
// no memory.
func TestPasskeyLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t)
		a := passkeytest.New(here.Origin)
		a.Still = true // a synced one: its counter does not tell an answer that was seen before
		d.register(a, here, "laptop")
		ask := func() (token string, signed []byte) {
			t.Helper()
			token, options, err := d.keys.BeginSignIn(here)
			if err != nil {
				t.Fatal(err)
			}
			return token, a.Sign(t, options)
		}
		answer := func(token string, signed []byte) error {
			_, _, err := d.keys.SignIn(t.Context(), "10.0.0.1", token, here, signed)
			return err
		}
		late, signed := ask()
		time.Sleep(ceremonyLife)
		if err := answer(late, signed); !errors.Is(err, ErrPasskeyLate) {
			t.Errorf("after its time: %v", err)
		}
		token, signed := ask()
		bad := a.Copy()
		bad.Origin = "http://localhost:3000"
		for i := range 2 * globalAllowed {
			if _, err := d.try(bad, here); !errors.Is(err, ErrPasskey) {
				t.Fatalf("attempt %d: %v", i, err)
			}
		}
		for range maxWrong + 10 {
			d.keys.close(rand.Text(), time.Now().Add(ceremonyLife), false)
		}
		for range 2 * maxCeremonies {
			if _, _, err := d.keys.BeginSignIn(here); err != nil {
				t.Fatal(err)
			}
		}
		if n := len(d.keys.asked); n != 0 {
			t.Errorf("%d questions are kept", n)
		}
		if err := answer(token, signed); err != nil {
			t.Errorf("during a flood of questions and of wrong answers: %v", err)
		}
		if err := answer(token, signed); !errors.Is(err, ErrPasskeyLate) {
			t.Errorf("the same answer once more: %v", err)
		}
		if n := len(d.keys.closed); n > maxWrong+1 {
			t.Errorf("%d answered questions are kept", n)
		}
		text, mark, _ := strings.Cut(token, ".")
		for name, token := range map[string]string{
			"nothing": "", "no mark": text, "another mark": text + "." + mark[1:] + "A", "another question": "e30." + mark, "long": strings.Repeat("a", 5000) + "." + mark,
		} {
			if err := answer(token, signed); !errors.Is(err, ErrPasskeyLate) {
				t.Errorf("%s: %v", name, err)
			}
		}
		signIn(t, d.keeper)
		time.Sleep(ceremonyLife)
		token, signed = ask()
		if err := answer(token, signed); err != nil || len(d.keys.closed) != 1 {
			t.Errorf("later: %v, %d remembered", err, len(d.keys.closed))
		}
	})
}

// When the store fails nothing opens, and a removed passkey stays shut.
func TestPasskeyStoreFails(t *testing.T) {
	d := newDesk(t)
	a := passkeytest.New(here.Origin)
	made := d.register(a, here, "laptop")
	by, err := d.try(a, here)
	if err != nil {
		t.Fatal(err)
	}
	d.store.fail = errors.New("disk full")
	if _, err := d.try(a, here); !errors.Is(err, d.store.fail) {
		t.Errorf("a counter that was not kept: %v", err)
	}
	options, err := d.keys.BeginAdd(t.Context(), d.by, here, Presence{Passphrase: passphrase})
	if err != nil {
		t.Fatal(err)
	}
	second := passkeytest.New(here.Origin)
	if _, err := d.keys.Add(t.Context(), d.by, here, "second", second.Make(t, options), nil); !errors.Is(err, d.store.fail) {
		t.Errorf("a passkey that was not kept: %v", err)
	}
	if _, err := d.keys.Remove(t.Context(), d.by, made.ID); !errors.Is(err, d.store.fail) || by.MayAnswer() == nil || d.keys.Any("localhost") {
		t.Errorf("removal: %v", err)
	}
	if _, err := OpenPasskeys(t.Context(), d.keeper, d.store); err == nil {
		t.Error("opened on a store that fails")
	}
}

// What takes rights away is kept whoever goes away meanwhile: a page that is closed at once, or a thief who hangs up,
// must not bring a passkey back at the next start.
func TestPasskeyCallerGoesAway(t *testing.T) {
	d := newDesk(t)
	gone, hangUp := context.WithCancel(t.Context())
	hangUp()
	a := passkeytest.New(here.Origin)
	made := d.register(a, here, "key")
	clone := a.Copy()
	if _, err := d.try(a, here); err != nil {
		t.Fatal(err)
	}
	clone.Still, clone.Count = true, a.Count
	token, options, err := d.keys.BeginSignIn(here)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := d.keys.SignIn(gone, "10.0.0.1", token, here, clone.Sign(t, options)); !errors.Is(err, ErrPasskeySuspect) {
		t.Fatalf("the clone: %v", err)
	}
	a.Count += 10
	d.reopen()
	if _, err := d.try(a, here); !errors.Is(err, ErrPasskeySuspect) {
		t.Errorf("a passkey with a copy opens again after a restart: %v", err)
	}
	if _, err := d.keys.Remove(gone, d.by, made.ID); err != nil {
		t.Errorf("removal: %v", err)
	}
	d.reopen()
	if list, err := d.keys.List(d.by); err != nil || len(list) != 0 {
		t.Errorf("a removed passkey is back after a restart: %+v, %v", list, err)
	}
}

// Strangers at the door crowd out one another, never a person who is signed in and adds a passkey.
func TestPasskeyFloodAtTheDoor(t *testing.T) {
	d := newDesk(t)
	a := passkeytest.New(here.Origin)
	d.register(a, here, "laptop")
	flood := func() {
		t.Helper()
		for range maxCeremonies + 1 {
			if _, _, err := d.keys.BeginSignIn(here); err != nil {
				t.Fatal(err)
			}
		}
	}
	question, err := d.keys.AskPresence(d.by, here)
	if err != nil {
		t.Fatal(err)
	}
	flood()
	options, err := d.keys.BeginAdd(t.Context(), d.by, here, Presence{Answer: a.Sign(t, question)})
	if err != nil {
		t.Fatalf("presence during a flood: %v", err)
	}
	flood()
	if _, err := d.keys.Add(t.Context(), d.by, here, "phone", passkeytest.New(here.Origin).Make(t, options), nil); err != nil {
		t.Errorf("a new passkey during a flood: %v", err)
	}
}

// A panic in the middle of a proof ends that request only: passkeys can still be used and removed.
func TestPasskeyPanicHoldsNoLock(t *testing.T) {
	d := newDesk(t)
	a := passkeytest.New(here.Origin)
	d.register(a, here, "laptop")
	question, err := d.keys.AskPresence(d.by, here)
	if err != nil {
		t.Fatal(err)
	}
	d.store.crash = true
	func() {
		defer func() {
			if recover() == nil {
				t.Error("no panic")
			}
		}()
		_, _ = d.keys.BeginAdd(t.Context(), d.by, here, Presence{Answer: a.Sign(t, question)})
	}()
	d.store.crash = false
	if !d.keys.writing.TryLock() {
		t.Fatal("the lock of changes is held for ever")
	}
	d.keys.writing.Unlock()
	if _, err := d.try(a, here); err != nil {
		t.Error(err)
	}
}

// A passkey of which a person was told that it is not kept does not open the console after the next start.
func TestPasskeyHalfKept(t *testing.T) {
	d := newDesk(t)
	a := passkeytest.New(here.Origin)
	options, err := d.keys.BeginAdd(t.Context(), d.by, here, Presence{Passphrase: passphrase})
	if err != nil {
		t.Fatal(err)
	}
	d.store.half = errors.New("fsync failed")
	if _, err := d.keys.Add(t.Context(), d.by, here, "laptop", a.Make(t, options), nil); !errors.Is(err, d.store.half) {
		t.Fatalf("%v", err)
	}
	d.store.half = nil
	d.reopen()
	if _, err := d.try(a, here); !errors.Is(err, ErrPasskey) {
		t.Errorf("it opens the console: %v", err)
	}
}
