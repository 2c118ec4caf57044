package identity

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
)

// Whoever guesses at one door keeps the person out of none where they were before: not of a browser or a shell that signed in, nor
// of the gateway's own terminal. What they guess with counts all the same.
func TestGuessesKeepNobodyOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := setUp(t, newMemory(), nil)
		_, by := signIn(t, k)
		browser, err := k.BrowserToken(by)
		if err != nil {
			t.Fatal(err)
		}
		shell, strange := anchor{pid: 77, start: 1}, anchor{pid: 78, start: 1}
		k.signedIn[shell] = true
		guess := func(from attempt) error { return k.checkPerson(t.Context(), from, "wrong passphrase") }
		for n := range globalAllowed {
			if err := guess(k.browser(fmt.Sprint("10.0.0.", n), "")); !errors.Is(err, ErrPassphrase) {
				t.Fatal(err)
			}
		}
		var rate *RateError
		if err := k.checkPerson(t.Context(), k.browser("10.1.1.1", ""), passphrase); !errors.As(err, &rate) || !rate.Global {
			t.Errorf("a strange browser: %v", err)
		}
		for name, from := range map[string]attempt{
			"a browser that signed in": k.browser("10.0.0.1", browser), "a shell that signed in": k.shell(shell), "a shell": k.shell(strange),
			"the gateway's terminal": k.known(string(Foreground)), "who is signed in": k.known("change by " + by.SignIn()),
		} {
			if err := k.checkPerson(t.Context(), from, passphrase); err != nil {
				t.Errorf("%s, while strange browsers guess: %v", name, err)
			}
		}
		for n := range globalAllowed {
			if err := guess(k.shell(anchor{pid: 1000 + n})); !errors.Is(err, ErrPassphrase) {
				t.Fatal(err)
			}
		}
		if err := k.checkPerson(t.Context(), k.shell(strange), passphrase); !errors.As(err, &rate) || !rate.Global {
			t.Errorf("a strange shell, while shells guess: %v", err)
		}
		if err := k.checkPerson(t.Context(), k.shell(shell), passphrase); err != nil {
			t.Errorf("the shell that signed in: %v", err)
		}
		for range freeFailures { // who stole what makes a browser known guesses no faster
			if err := guess(k.browser("10.0.0.1", browser)); !errors.Is(err, ErrPassphrase) {
				t.Fatal(err)
			}
		}
		if err := k.checkPerson(t.Context(), k.browser("10.0.0.9", browser), passphrase); !errors.As(err, &rate) || rate.Global {
			t.Errorf("the known browser after %d wrong ones: %v", freeFailures, err)
		}
	})
}

// Nobody makes up a browser that is known.
func TestBrowserTokens(t *testing.T) {
	k := setUp(t, newMemory(), nil)
	_, by := signIn(t, k)
	token, err := k.BrowserToken(by)
	if err != nil || !k.browser("here", token).known {
		t.Fatalf("%q, %v", token, err)
	}
	id, mark, _ := strings.Cut(token, ".")
	for _, made := range []string{"", ".", id, id + ".", "other." + mark, "." + mark, token + "x", strings.Repeat("a", 300) + "." + mark} {
		if k.browser("here", made).known {
			t.Errorf("%q is known", made)
		}
	}
	if _, err := k.BrowserToken(Requester()); err == nil {
		t.Error("a requester gets one")
	}
	if err := k.ChangePassphrase(t.Context(), by, passphrase, other); err != nil {
		t.Fatal(err)
	}
	if k.browser("here", token).known {
		t.Error("it outlives the passphrase")
	}
}

// A crowd of strangers in the queue takes nobody's place who is known.
func TestKnownPassTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := setUp(t, newMemory(), nil)
		k.deriving <- struct{}{} // somebody's passphrase is being looked at
		var crowd sync.WaitGroup
		for n := range maxWaiting {
			crowd.Go(func() { _ = k.checkPerson(t.Context(), k.browser(fmt.Sprint(n), ""), "wrong passphrase") })
		}
		synctest.Wait()
		var rate *RateError
		if err := k.checkPerson(t.Context(), k.browser("one more", ""), passphrase); !errors.As(err, &rate) {
			t.Errorf("a stranger: %v", err)
		}
		answer := make(chan error, 1)
		go func() { answer <- k.checkPerson(t.Context(), k.known("mine"), passphrase) }()
		synctest.Wait()
		<-k.deriving
		if err := <-answer; err != nil {
			t.Errorf("who is known: %v", err)
		}
		crowd.Wait()
	})
}
