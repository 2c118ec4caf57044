package identity

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolward/toolward/internal/passkeytest"
)

// Questions end, wrong answers have to wait, and a flood of questions holds no memory. None of it closes the passphrase.
func TestPasskeyLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t)
		a := passkeytest.New(here.Origin)
		d.register(a, here, "laptop")
		token, options, err := d.keys.BeginSignIn("10.0.0.1", here)
		if err != nil {
			t.Fatal(err)
		}
		signed := a.Sign(t, options)
		time.Sleep(ceremonyLife)
		if _, _, err := d.keys.SignIn(t.Context(), "10.0.0.1", token, here, signed); !errors.Is(err, ErrPasskeyLate) {
			t.Errorf("after its time: %v", err)
		}
		bad := a.Copy()
		bad.Origin = "http://localhost:3000"
		for i := range freeFailures {
			if _, err := d.try(bad, here); !errors.Is(err, ErrPasskey) {
				t.Fatalf("attempt %d: %v", i, err)
			}
		}
		var rate *RateError
		if _, err := d.try(a, here); !errors.As(err, &rate) || rate.Wait > firstWait {
			t.Errorf("after %d failures: %v", freeFailures, err)
		}
		signIn(t, d.keeper)
		time.Sleep(firstWait)
		if _, err := d.try(a, here); err != nil {
			t.Errorf("after the pause: %v", err)
		}
		token, options, err = d.keys.BeginSignIn("10.0.0.1", here)
		if err != nil {
			t.Fatal(err)
		}
		for i := range 2 * maxCeremonies {
			time.Sleep(time.Millisecond)
			if _, _, err := d.keys.BeginSignIn(fmt.Sprint("flood ", i), here); err != nil {
				t.Fatal(err)
			}
		}
		if n := len(d.keys.asked); n > maxCeremonies {
			t.Errorf("%d open questions", n)
		}
		if _, _, err := d.keys.SignIn(t.Context(), "10.0.0.1", token, here, a.Sign(t, options)); !errors.Is(err, ErrPasskeyLate) {
			t.Errorf("a question that was crowded out: %v", err)
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
	token, options, err := d.keys.BeginSignIn("10.0.0.1", here)
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
		for i := range maxCeremonies + 1 {
			if _, _, err := d.keys.BeginSignIn(fmt.Sprint("flood ", i), here); err != nil {
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

// Wrong answers from everywhere close the door for a while; who is signed in can still prove that it is them.
func TestPasskeyProofDuringGuessing(t *testing.T) {
	d := newDesk(t)
	a := passkeytest.New(here.Origin)
	d.register(a, here, "laptop")
	for i := range globalAllowed {
		source := fmt.Sprint("10.0.1.", i)
		token, _, err := d.keys.BeginSignIn(source, here)
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := d.keys.SignIn(t.Context(), source, token, here, []byte("{}")); !errors.Is(err, ErrPasskey) {
			t.Fatal(err)
		}
	}
	var rate *RateError
	if _, err := d.try(a, here); !errors.As(err, &rate) || !rate.Global {
		t.Errorf("the door: %v", err)
	}
	question, err := d.keys.AskPresence(d.by, here)
	if err != nil {
		t.Fatalf("a question to who is signed in: %v", err)
	}
	if _, err := d.keys.BeginAdd(t.Context(), d.by, here, Presence{Answer: a.Sign(t, question)}); err != nil {
		t.Errorf("the proof: %v", err)
	}
	for range freeFailures {
		if _, err := d.keys.AskPresence(d.by, here); err != nil {
			t.Fatal(err)
		}
		if _, err := d.keys.BeginAdd(t.Context(), d.by, here, Presence{Answer: []byte("{}")}); !errors.Is(err, ErrPasskey) {
			t.Fatal(err)
		}
	}
	if _, err := d.keys.AskPresence(d.by, here); !errors.As(err, &rate) || rate.Global {
		t.Errorf("wrong proofs have to wait, too: %v", err)
	}
}
