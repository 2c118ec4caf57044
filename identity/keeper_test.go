package identity

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// memory is a store for tests that survives the keeper and can be made to fail.
type memory struct {
	mu       sync.Mutex
	verifier *Verifier
	tokens   map[string]TokenRecord
	fail     error
}

func newMemory() *memory { return &memory{tokens: map[string]TokenRecord{}} }

func (s *memory) Verifier(context.Context) (Verifier, bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.verifier == nil {
		return Verifier{}, false, s.fail
	}
	return *s.verifier, true, s.fail
}

func (s *memory) SaveVerifier(_ context.Context, v Verifier, first bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if first && s.verifier != nil {
		return errors.New("exists")
	}
	if s.fail == nil {
		s.verifier = &v
	}
	return s.fail
}

func (s *memory) AgentTokens(context.Context) ([]TokenRecord, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []TokenRecord
	for _, t := range s.tokens {
		out = append(out, t)
	}
	return out, s.fail
}

func (s *memory) AddAgentToken(_ context.Context, t TokenRecord) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fail == nil {
		s.tokens[t.ID] = t
	}
	return s.fail
}

func (s *memory) RevokeAgentToken(ctx context.Context, id string, at time.Time) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return false, err
	}
	t, ok := s.tokens[id]
	if ok && s.fail == nil {
		t.Revoked = at
		s.tokens[id] = t
	}
	return ok, s.fail
}

func (s *memory) TouchAgentToken(_ context.Context, id string, at time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.tokens[id]
	t.LastUsed = at
	s.tokens[id] = t
	return s.fail
}

const (
	passphrase = "correct horse battery"
	other      = "another long passphrase"
)

func open(t *testing.T, store Store, change func(*Options)) *Keeper {
	t.Helper()
	o := Options{Store: store, SameBuild: func(Process) error { return nil }}
	if change != nil {
		change(&o)
	}
	k, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// known is a verifier of passphrase, derived once: deriving is slow on purpose, above all under the race detector.
var known = sync.OnceValues(func() (Verifier, error) { return newVerifier(owner, passphrase, time.Now()) })

// setUp is a keeper with the passphrase set.
func setUp(t *testing.T, store *memory, change func(*Options)) *Keeper {
	t.Helper()
	v, err := known()
	if err != nil {
		t.Fatal(err)
	}
	store.verifier = &v
	return open(t, store, change)
}

func signIn(t *testing.T, k *Keeper) (string, Authority) {
	t.Helper()
	token, by, err := k.SignInWeb(t.Context(), "127.0.0.1", "", passphrase)
	if err != nil {
		t.Fatal(err)
	}
	return token, by
}

func TestSetUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newMemory()
		k := open(t, store, nil)
		code := k.SetupCode()
		if !k.NeedsSetup() || len(code) != 11 {
			t.Fatalf("code %q", code)
		}
		if _, _, err := k.SignInWeb(t.Context(), "a", "", passphrase); !errors.Is(err, ErrNeedsSetup) {
			t.Errorf("sign-in before setup: %v", err)
		}
		if err := k.SetUp(t.Context(), "a", "AAAAA-AAAAA", passphrase); err == nil {
			t.Fatal("a wrong code set the passphrase")
		}
		for _, weak := range []string{"", "short", "aaaaaaaaaaaaaaa", "password123", "tooooolwaaard\x00", strings.Repeat("abcde", 300), "\xff\xfe\xfd12345678"} {
			if err := k.SetUp(t.Context(), "a", code, weak); err == nil {
				t.Errorf("%q was accepted as a passphrase", weak)
			}
		}
		if err := k.SetUp(t.Context(), "a", " "+strings.ToLower(code)+" ", passphrase); err != nil {
			t.Fatal(err)
		}
		if k.NeedsSetup() || k.SetupCode() != "" {
			t.Error("still needs setup")
		}
		if err := k.SetUp(t.Context(), "a", code, other); err == nil {
			t.Error("the code worked twice")
		}
		signIn(t, k)
		again := open(t, store, nil) // a restart
		if again.NeedsSetup() {
			t.Error("setup is forgotten")
		}
		signIn(t, again)
	})
}

func TestStoredVerifier(t *testing.T) {
	v, err := known()
	if err != nil {
		t.Fatal(err)
	}
	if v.Memory != 19*1024 || v.Passes != 2 || len(v.Salt) != 16 || len(v.Check) != 32 || strings.Contains(fmt.Sprint(v), passphrase) {
		t.Errorf("%+v", v)
	}
	for name, damage := range map[string]func(*Verifier){
		"cheap memory":   func(v *Verifier) { v.Memory = 8 },
		"one pass":       func(v *Verifier) { v.Passes = 1 },
		"huge memory":    func(v *Verifier) { v.Memory = 1 << 30 },
		"short salt":     func(v *Verifier) { v.Salt = nil },
		"short check":    func(v *Verifier) { v.Check = nil },
		"no lanes":       func(v *Verifier) { v.Lanes = 0 },
		"endless passes": func(v *Verifier) { v.Passes = 1 << 30 },
	} {
		bad := v
		damage(&bad)
		if ok, err := bad.matches(passphrase); ok || err == nil {
			t.Errorf("%s: %v %v", name, ok, err)
		}
	}
	// The same text typed on another keyboard: composed and decomposed ä.
	v2, err := newVerifier("owner", "m\u00e4dchen im regen", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if ok, _ := v2.matches("ma\u0308dchen im regen"); !ok {
		t.Error("the same letters in another encoding are refused")
	}
}

func TestGuessing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := setUp(t, newMemory(), nil)
		try := func(source, passphrase string) error {
			_, _, err := k.SignInWeb(t.Context(), source, "", passphrase)
			return err
		}
		for i := range freeFailures {
			if err := try("a", "wrong passphrase"); !errors.Is(err, ErrPassphrase) {
				t.Fatalf("attempt %d: %v", i+1, err)
			}
		}
		var limited *RateError
		if err := try("a", passphrase); !errors.As(err, &limited) || limited.Global || limited.Wait != firstWait {
			t.Errorf("even the right one has to wait: %v", err)
		}
		if err := try("b", passphrase); err != nil {
			t.Errorf("another source: %v", err)
		}
		time.Sleep(firstWait)
		if err := try("a", "wrong passphrase"); !errors.Is(err, ErrPassphrase) {
			t.Error(err)
		}
		if err := try("a", passphrase); !errors.As(err, &limited) || limited.Wait != 2*firstWait {
			t.Errorf("the wait does not grow: %v", err)
		}
		time.Sleep(2 * firstWait)
		if err := try("a", passphrase); err != nil {
			t.Error(err)
		}
		// Inventing sources does not help.
		for n := range globalAllowed - 10 {
			k.strangers[Console].failed(fmt.Sprint("source ", n), time.Now())
		}
		if err := try("b", passphrase); err != nil {
			t.Errorf("just below the limit: %v", err)
		}
		for n := range 10 {
			k.strangers[Console].failed(fmt.Sprint("more ", n), time.Now())
		}
		if err := try("fresh source", passphrase); !errors.As(err, &limited) || !limited.Global {
			t.Errorf("%d failures from everywhere: %v", globalAllowed, err)
		}
		time.Sleep(globalWindow)
		if err := try("a", passphrase); err != nil {
			t.Errorf("after the window: %v", err)
		}
	})
}

func TestParallelGuessesAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := setUp(t, newMemory(), nil)
		var wg sync.WaitGroup
		looked := make(chan struct{}, 100)
		for range 40 {
			wg.Go(func() {
				if _, _, err := k.SignInWeb(t.Context(), "a", "", "wrong passphrase"); errors.Is(err, ErrPassphrase) {
					looked <- struct{}{}
				}
			})
		}
		wg.Wait()
		if len(looked) > freeFailures {
			t.Errorf("%d of 40 parallel guesses were looked at", len(looked))
		}
	})
}

func TestSourcesAreBounded(t *testing.T) {
	f := &failures{}
	now := time.Now()
	for i := range 3 * maxSources {
		f.failed(fmt.Sprint(i), now.Add(time.Duration(i)))
	}
	if len(f.sources) > maxSources {
		t.Errorf("%d sources remembered", len(f.sources))
	}
	f.prune(now.Add(time.Hour))
	if len(f.sources)+len(f.recent) != 0 {
		t.Errorf("%d sources, %d failures left", len(f.sources), len(f.recent))
	}
}

func TestWebSessions(t *testing.T) {
	tests := map[string]struct {
		then func(*testing.T, *Keeper, Authority)
		open bool
	}{
		"fresh":      {func(*testing.T, *Keeper, Authority) {}, true},
		"idle":       {func(*testing.T, *Keeper, Authority) { time.Sleep(12 * time.Hour) }, false},
		"not idle":   {func(*testing.T, *Keeper, Authority) { time.Sleep(12*time.Hour - 1) }, true},
		"signed out": {func(_ *testing.T, k *Keeper, by Authority) { k.SignOut(by) }, false},
		"ended by id": {func(t *testing.T, k *Keeper, by Authority) {
			if err := k.EndSession(by, by.SignIn()); err != nil {
				t.Error(err)
			}
		}, false},
		"passphrase changed here": {func(t *testing.T, k *Keeper, by Authority) {
			if err := k.ChangePassphrase(t.Context(), by, passphrase, other); err != nil {
				t.Error(err)
			}
		}, true},
		"passphrase changed elsewhere": {func(t *testing.T, k *Keeper, _ Authority) {
			_, there := signIn(t, k)
			if err := k.ChangePassphrase(t.Context(), there, passphrase, other); err != nil {
				t.Error(err)
			}
		}, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				k := setUp(t, newMemory(), nil)
				token, by := signIn(t, k)
				if by.Name() != "owner (console)" || !by.IsPerson() {
					t.Errorf("%q", by.Name())
				}
				tt.then(t, k, by)
				// An authority that was given out earlier, and the cookie, agree.
				if err := by.MayAnswer(); (err == nil) != tt.open {
					t.Errorf("may answer: %v", err)
				}
				if _, err := k.Web(token); (err == nil) != tt.open {
					t.Errorf("cookie: %v", err)
				}
			})
		})
	}
	synctest.Test(t, func(t *testing.T) {
		k := setUp(t, newMemory(), nil)
		token, _ := signIn(t, k)
		used := 0
		for ; used < 1000; used++ {
			time.Sleep(time.Hour)
			if _, err := k.Web(token); err != nil {
				break
			}
		}
		if used != 7*24-1 {
			t.Errorf("a session in use ended after %d hours, want 7 days", used+1)
		}
		for _, token := range []string{"", "x", token + "x", strings.Repeat("x", 1000)} {
			if _, err := k.Web(token); !errors.Is(err, ErrNotSignedIn) {
				t.Errorf("%.10q: %v", token, err)
			}
		}
	})
}

func TestChangePassphrase(t *testing.T) {
	k := setUp(t, newMemory(), nil)
	_, by := signIn(t, k)
	if err := k.ChangePassphrase(t.Context(), Requester(), passphrase, other); !errors.Is(err, ErrNotSignedIn) {
		t.Errorf("requester: %v", err)
	}
	if err := k.ChangePassphrase(t.Context(), by, "not the old one", other); !errors.Is(err, ErrPassphrase) {
		t.Errorf("without the old one: %v", err)
	}
	if err := k.ChangePassphrase(t.Context(), by, passphrase, "short"); err == nil {
		t.Error("weak one")
	}
	if err := k.ChangePassphrase(t.Context(), by, passphrase, other); err != nil {
		t.Fatal(err)
	}
	if _, _, err := k.SignInWeb(t.Context(), "a", "", passphrase); !errors.Is(err, ErrPassphrase) {
		t.Errorf("old one: %v", err)
	}
	if _, _, err := k.SignInWeb(t.Context(), "a", "", other); err != nil {
		t.Error(err)
	}
}

func TestAuthority(t *testing.T) {
	rights := []Right{RightWatch, RightAnswer, RightGrant, RightClearLevel, RightConfigure, RightAdmin, Right("anything")}
	k := setUp(t, newMemory(), nil)
	_, by := signIn(t, k)
	for _, right := range rights {
		for name, a := range map[string]Authority{"zero": {}, "requester": Requester(), "made up": {id: "s-1", keeper: k, person: "owner"}} {
			if err := a.May(right); !errors.Is(err, ErrNotSignedIn) {
				t.Errorf("%s may %s: %v", name, right, err)
			}
		}
		if err := by.May(right); err != nil {
			t.Errorf("person may not %s: %v", right, err)
		}
	}
	if err := (Authority{}).May(RightRequest); err == nil {
		t.Error("the zero authority may send calls")
	}
	if err := Requester().May(RightRequest); err != nil {
		t.Error(err)
	}
	fg, err := k.SignInForeground(t.Context(), passphrase)
	if err != nil || fg.MayGrant() != nil || fg.Name() != "owner (daemon terminal)" {
		t.Errorf("%v %q", err, fg.Name())
	}
	list, err := k.SignIns(by)
	if err != nil || len(list) != 2 {
		t.Errorf("%+v %v", list, err)
	}
	if _, err := k.SignIns(Requester()); err == nil {
		t.Error("a requester lists sign-ins")
	}
}

func TestSessionsAreBounded(t *testing.T) {
	k := open(t, newMemory(), nil)
	k.mu.Lock()
	defer k.mu.Unlock()
	first := newSession(Console, "a", time.Hour)
	first.LastSeen = first.LastSeen.Add(-time.Minute)
	k.add(first)
	for range 2 * maxSessions {
		k.add(newSession(Console, "a", time.Hour))
	}
	if len(k.sessions) > maxSessions || k.sessions[first.ID] != nil {
		t.Errorf("%d sessions, the idlest kept: %v", len(k.sessions), k.sessions[first.ID] != nil)
	}
}

func TestFailingStore(t *testing.T) {
	store := newMemory()
	store.fail = errors.New("disk is full")
	if _, err := Open(t.Context(), Options{Store: store}); err == nil {
		t.Error("opened without knowing whether a passphrase is set")
	}
	store.fail = nil
	k := open(t, store, nil)
	store.fail = errors.New("disk is full")
	if err := k.SetUp(t.Context(), "a", k.SetupCode(), passphrase); err == nil || !k.NeedsSetup() {
		t.Errorf("%v", err)
	}
}
