package identity

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"strconv"
	"strings"
)

// Guesses are counted by who makes them, so that nobody's guessing closes the door to the person: a browser or a shell that
// signed in before, the terminal of the gateway itself and who is signed in count each for themselves. Strangers at one kind of
// door share a limit, which says nothing to those at another kind.

// attempt is where a passphrase comes from.
type attempt struct {
	source string
	wrong  *failures
	known  bool // it has a place in the queue whatever crowd is there
}

func (k *Keeper) stranger(via Surface, source string) attempt {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.strangers[via] == nil {
		k.strangers[via] = &failures{}
	}
	return attempt{source, k.strangers[via], false}
}

func (k *Keeper) known(source string) attempt { return attempt{source, &k.familiar, true} }

// BrowserToken is what tells a browser apart later that a person has signed in. It is worth nothing but a count of wrong
// passphrases of its own, and belongs into the storage of the console's origin: pages at other ports receive cookies. A new
// passphrase makes browsers strangers again.
func (k *Keeper) BrowserToken(by Authority) (string, error) {
	if err := by.May(RightWatch); err != nil {
		return "", err
	}
	id := rand.Text()
	return id + "." + k.browserMark(id), nil
}

func (k *Keeper) browserMark(id string) string {
	k.mu.Lock()
	key := k.verifier.Check
	k.mu.Unlock()
	mark := hmac.New(sha256.New, key)
	mark.Write([]byte("toolward known browser v1\x00" + id))
	return base64.RawURLEncoding.EncodeToString(mark.Sum(nil))
}

// browser is the attempt of a browser that shows a token, or none.
func (k *Keeper) browser(source, token string) attempt {
	id, mark, ok := strings.Cut(token, ".")
	if ok && len(token) < 256 && !k.NeedsSetup() && equalText(mark, k.browserMark(id)) {
		return k.known("browser " + id)
	}
	return k.stranger(Console, "console "+source)
}

// maxShells are the shells that are remembered as having signed in. Only a sign-in adds one.
const maxShells = 256

// shell is the attempt of a shell.
func (k *Keeper) shell(a anchor) attempt {
	source := "terminal of shell " + strconv.Itoa(a.pid)
	k.mu.Lock()
	familiar := k.signedIn[a]
	k.mu.Unlock()
	if familiar {
		return k.known(source)
	}
	return k.stranger(Terminal, source)
}

// remember notes a shell that signed in. The caller holds the lock.
func (k *Keeper) remember(a anchor) {
	if len(k.signedIn) >= maxShells {
		for old := range k.signedIn {
			if old.lives(k.processes) != nil {
				delete(k.signedIn, old)
			}
		}
	}
	if len(k.signedIn) < maxShells {
		k.signedIn[a] = true
	}
}
