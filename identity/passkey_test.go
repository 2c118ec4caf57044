package identity

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/toolward/toolward/internal/passkeytest"
)

// keyStore is a store of passkeys that can be made to fail.
type keyStore struct {
	mu    sync.Mutex
	keys  map[string]PasskeyRecord
	fail  error
	half  error // told although the record is kept, as when only the last step to the disk fails
	crash bool
}

func (s *keyStore) Passkeys(context.Context) ([]PasskeyRecord, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []PasskeyRecord
	for _, r := range s.keys {
		out = append(out, r)
	}
	return out, s.fail
}

func (s *keyStore) SavePasskey(ctx context.Context, r PasskeyRecord) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.crash {
		panic("the store crashed")
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if s.fail == nil {
		s.keys[r.ID] = r
	}
	return errors.Join(s.fail, s.half)
}

func (s *keyStore) RemovePasskey(ctx context.Context, id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	if s.fail == nil {
		delete(s.keys, id)
	}
	return s.fail
}

var (
	here  = Site{"localhost", "http://localhost:7411"}
	there = Site{"gate.example.org", "https://gate.example.org"}
)

// desk is a keeper with passkeys and a person who signed in with the passphrase.
type desk struct {
	t      *testing.T
	keeper *Keeper
	keys   *Passkeys
	store  *keyStore
	by     Authority
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	d := &desk{t: t, keeper: setUp(t, newMemory(), nil), store: &keyStore{keys: map[string]PasskeyRecord{}}}
	d.reopen()
	_, d.by = signIn(t, d.keeper)
	return d
}

func (d *desk) reopen() {
	d.t.Helper()
	var err error
	if d.keys, err = OpenPasskeys(d.t.Context(), d.keeper, d.store); err != nil {
		d.t.Fatal(err)
	}
}

// register adds a passkey of an authenticator.
func (d *desk) register(a *passkeytest.Authenticator, site Site, name string) Passkey {
	d.t.Helper()
	options, err := d.keys.BeginAdd(d.t.Context(), d.by, site, Presence{Passphrase: passphrase})
	if err != nil {
		d.t.Fatal(err)
	}
	made, err := d.keys.Add(d.t.Context(), d.by, site, name, a.Make(d.t, options), nil)
	if err != nil {
		d.t.Fatal(err)
	}
	return made
}

// try answers a new question of the door.
func (d *desk) try(a *passkeytest.Authenticator, site Site) (Authority, error) {
	d.t.Helper()
	token, options, err := d.keys.BeginSignIn(site)
	if err != nil {
		return Authority{}, err
	}
	_, by, err := d.keys.SignIn(d.t.Context(), "10.0.0.1", token, site, a.Sign(d.t, options))
	return by, err
}

// A passkey signs in, also after a restart, and does not after it was removed; its sign-ins end with it.
func TestPasskeySignIn(t *testing.T) {
	d := newDesk(t)
	a := passkeytest.New(here.Origin)
	made := d.register(a, here, "  laptop ")
	if made.Name != "laptop" || made.Site != "localhost" || made.CreatedBy != "owner (console)" || !d.keys.Any("localhost") || d.keys.Any(there.Name) {
		t.Errorf("%+v", made)
	}
	by, err := d.try(a, here)
	if err != nil || by.MayAnswer() != nil || by.May(RightAdmin) != nil || by.Name() != "owner (console)" {
		t.Fatalf("%v, %v", by.Name(), err)
	}
	if err := d.keys.Rename(t.Context(), d.by, made.ID, "old laptop"); err != nil {
		t.Fatal(err)
	}
	d.reopen()
	again, err := d.try(a, here)
	if err != nil {
		t.Fatal(err)
	}
	list, err := d.keys.List(d.by)
	if err != nil || len(list) != 1 || list[0].Name != "old laptop" || list[0].Used.IsZero() {
		t.Errorf("%+v, %v", list, err)
	}
	sessions, err := d.keeper.SignIns(d.by)
	if err != nil || !slices.ContainsFunc(sessions, func(s SignIn) bool { return s.ID == again.SignIn() && s.Passkey == made.ID }) {
		t.Errorf("%+v, %v", sessions, err)
	}
	if _, err := d.keys.Remove(t.Context(), again, made.ID); err != nil {
		t.Fatal(err)
	}
	for name, by := range map[string]Authority{"the first": by, "the one that removed it": again} {
		if err := by.MayAnswer(); !errors.Is(err, ErrNotSignedIn) {
			t.Errorf("%s goes on: %v", name, err)
		}
	}
	if err := d.by.MayAnswer(); err != nil {
		t.Errorf("the passphrase's sign-in ended: %v", err)
	}
	if _, err := d.try(a, here); !errors.Is(err, ErrPasskey) || d.keys.Any("localhost") {
		t.Errorf("a removed passkey: %v", err)
	}
	if _, err := d.keys.Remove(t.Context(), d.by, made.ID); !errors.Is(err, ErrNoPasskey) {
		t.Errorf("removed twice: %v", err)
	}
}

// Whatever is not exactly the answer of the person's passkey to this question, at this address, is refused.
func TestPasskeyWrongAnswers(t *testing.T) {
	d := newDesk(t)
	a := passkeytest.New(here.Origin)
	d.register(a, here, "laptop")
	stranger := passkeytest.New(here.Origin)
	options, err := d.keys.BeginAdd(t.Context(), d.by, there, Presence{Passphrase: passphrase})
	if err != nil {
		t.Fatal(err)
	}
	stranger.Make(t, options) // never registered
	for name, wrong := range map[string]func(*passkeytest.Authenticator){
		"another port of localhost": func(a *passkeytest.Authenticator) { a.Origin = "http://localhost:3000" },
		"another scheme":            func(a *passkeytest.Authenticator) { a.Origin = "https://localhost:7411" },
		"the address":               func(a *passkeytest.Authenticator) { a.Origin = "http://127.0.0.1:7411" },
		"a name that begins so":     func(a *passkeytest.Authenticator) { a.Origin = "http://localhost:7411.evil.example" },
		"no origin":                 func(a *passkeytest.Authenticator) { a.Origin = "null" },
		"in a frame":                func(a *passkeytest.Authenticator) { a.Framed = true },
		"another site":              func(a *passkeytest.Authenticator) { a.Site = "evil.example" },
		"not verified":              func(a *passkeytest.Authenticator) { a.Unverified = true },
		"not touched":               func(a *passkeytest.Authenticator) { a.Absent = true },
		"a stranger's key":          func(a *passkeytest.Authenticator) { *a = *stranger },
		"a stranger's key, our id":  func(a *passkeytest.Authenticator) { id := a.ID; *a = *stranger; a.ID = id },
	} {
		t.Run(name, func(t *testing.T) {
			d.reopen()
			wrongly := a.Copy()
			wrong(wrongly)
			wrongly.Count += 100
			if _, err := d.try(wrongly, here); !errors.Is(err, ErrPasskey) {
				t.Errorf("got %v", err)
			}
		})
	}
	d.reopen()
	begin := func() (string, []byte) {
		token, options, err := d.keys.BeginSignIn(here)
		if err != nil {
			t.Fatal(err)
		}
		return token, a.Sign(t, options)
	}
	answer := func(token string, site Site, answer []byte) error {
		_, _, err := d.keys.SignIn(t.Context(), "10.0.0.1", token, site, answer)
		return err
	}
	token, signed := begin()
	other, _ := begin()
	if err := answer(other, here, signed); !errors.Is(err, ErrPasskey) {
		t.Errorf("the answer to another browser's question: %v", err)
	}
	if err := answer(token, here, signed); err != nil {
		t.Errorf("the right browser: %v", err)
	}
	if err := answer(token, here, signed); !errors.Is(err, ErrPasskeyLate) {
		t.Errorf("the same answer again: %v", err)
	}
	token, signed = begin()
	if err := answer("", here, signed); !errors.Is(err, ErrPasskeyLate) {
		t.Errorf("without a cookie: %v", err)
	}
	if err := answer(token, there, signed); !errors.Is(err, ErrPasskeyLate) {
		t.Errorf("at another address: %v", err)
	}
	token, signed = begin()
	if err := answer(token, here, []byte(strings.Replace(string(signed), `"signature":"`, `"signature":"AAAA`, 1))); !errors.Is(err, ErrPasskey) {
		t.Errorf("a damaged signature: %v", err)
	}
	if err := answer(token, here, signed); !errors.Is(err, ErrPasskeyLate) {
		t.Errorf("a second try at one question: %v", err)
	}
	for _, raw := range []string{"", "{}", "null", "[1]", `{"id":""}`, strings.Repeat("x", maxAnswer+1)} {
		token, _ := begin()
		if err := answer(token, here, []byte(raw)); !errors.Is(err, ErrPasskey) {
			t.Errorf("%.20q: %v", raw, err)
		}
	}
}

// Adding one needs the passphrase or a passkey at this very moment, and an answer that was made for it.
func TestPasskeyAddNeedsPresence(t *testing.T) {
	d := newDesk(t)
	ctx, a := t.Context(), passkeytest.New(here.Origin)
	for name, c := range map[string]struct {
		by    Authority
		shown Presence
		want  error
	}{
		"nothing":                       {d.by, Presence{}, ErrPassphrase},
		"a wrong passphrase":            {d.by, Presence{Passphrase: "wrong and wrong"}, ErrPassphrase},
		"an answer nobody asked for":    {d.by, Presence{Answer: []byte("{}")}, ErrPasskeyLate},
		"the passphrase, not signed in": {Requester(), Presence{Passphrase: passphrase}, ErrNotSignedIn},
	} {
		if _, err := d.keys.BeginAdd(ctx, c.by, here, c.shown); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := d.keys.AskPresence(Requester(), here); !errors.Is(err, ErrNotSignedIn) {
		t.Errorf("presence of nobody: %v", err)
	}
	if _, err := d.keys.BeginAdd(ctx, d.by, Site{}, Presence{Passphrase: passphrase}); !errors.Is(err, ErrPasskeyHere) {
		t.Errorf("at no site: %v", err)
	}
	d.register(a, here, "first")

	// With the first passkey in place of the passphrase.
	question, err := d.keys.AskPresence(d.by, here)
	if err != nil {
		t.Fatal(err)
	}
	signed := a.Sign(t, question)
	options, err := d.keys.BeginAdd(ctx, d.by, here, Presence{Answer: signed})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.keys.BeginAdd(ctx, d.by, here, Presence{Answer: signed}); !errors.Is(err, ErrPasskeyLate) {
		t.Errorf("one proof for two passkeys: %v", err)
	}
	second := passkeytest.New(here.Origin)
	answer := second.Make(t, options)
	_, other := signIn(t, d.keeper)
	if _, err := d.keys.Add(ctx, other, here, "stolen", answer, nil); !errors.Is(err, ErrPasskeyLate) {
		t.Errorf("the answer from another sign-in: %v", err)
	}
	if _, err := d.keys.Add(ctx, d.by, here, "second", answer, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := d.keys.Add(ctx, d.by, here, "again", answer, nil); !errors.Is(err, ErrPasskeyLate) {
		t.Errorf("the same answer again: %v", err)
	}
	for name, wrong := range map[string]func(*passkeytest.Authenticator){
		"another origin": func(a *passkeytest.Authenticator) { a.Origin = "http://localhost:3000" },
		"not verified":   func(a *passkeytest.Authenticator) { a.Unverified = true },
		"another site":   func(a *passkeytest.Authenticator) { a.Site = "evil.example" },
	} {
		options, err := d.keys.BeginAdd(ctx, d.by, here, Presence{Passphrase: passphrase})
		if err != nil {
			t.Fatal(err)
		}
		bad := passkeytest.New(here.Origin)
		wrong(bad)
		if _, err := d.keys.Add(ctx, d.by, here, "bad", bad.Make(t, options), nil); !errors.Is(err, ErrPasskey) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, name := range []string{"", "  ", strings.Repeat("n", maxPasskeyName+1), "a\nb", "\xff"} {
		if err := d.keys.Rename(ctx, d.by, first(d).ID, name); err == nil {
			t.Errorf("the name %q", name)
		}
	}
	if list, _ := d.keys.List(d.by); len(list) != 2 {
		t.Errorf("%d passkeys", len(list))
	}
}

func first(d *desk) Passkey {
	list, err := d.keys.List(d.by)
	if err != nil || len(list) == 0 {
		d.t.Fatal(err)
	}
	return list[0]
}

// A counter that runs backwards shuts the passkey and what it opened; the passphrase still opens.
func TestPasskeyClone(t *testing.T) {
	d := newDesk(t)
	a := passkeytest.New(here.Origin)
	d.register(a, here, "key")
	clone := a.Copy()
	owner, err := d.try(a, here)
	if err != nil {
		t.Fatal(err)
	}
	clone.Still, clone.Count = true, a.Count
	if _, err := d.try(clone, here); !errors.Is(err, ErrPasskeySuspect) {
		t.Fatalf("the clone: %v", err)
	}
	if err := owner.MayAnswer(); err == nil {
		t.Error("a sign-in of a passkey that was copied goes on")
	}
	a.Count += 10
	d.reopen()
	if _, err := d.try(a, here); !errors.Is(err, ErrPasskeySuspect) || d.keys.Any("localhost") || first(d).Suspect.IsZero() {
		t.Errorf("a suspect passkey: %v", err)
	}
	signIn(t, d.keeper)

	// Many passkeys never count; that is no sign of a copy.
	still := passkeytest.New(here.Origin)
	still.Still = true
	d.register(still, here, "phone")
	for range 3 {
		if _, err := d.try(still, here); err != nil {
			t.Errorf("a passkey that does not count: %v", err)
		}
	}
}
