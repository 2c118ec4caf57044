package identity

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// SignInWeb checks the passphrase and opens a console session. token goes into the cookie and nowhere else; source
// is the address of the browser, known its [Keeper.BrowserToken], if it has one.
func (k *Keeper) SignInWeb(ctx context.Context, source, known, passphrase string) (token string, by Authority, err error) {
	if err := k.checkPerson(ctx, k.browser(source, known), passphrase); err != nil {
		return "", Authority{}, err
	}
	token, s := k.newConsole(source)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.add(s)
	k.cookies[s.cookie] = s
	return token, k.authority(s), nil
}

// newConsole makes a session of a browser with the token of its cookie.
func (k *Keeper) newConsole(source string) (token string, s *session) {
	token = rand.Text() + rand.Text()
	s = newSession(Console, source, k.life.ConsoleMax)
	s.cookie = sha256.Sum256([]byte(token))
	return token, s
}

// Web recognizes the token of a cookie. Only its hash is compared, so the time it takes tells nothing about the
// tokens that exist.
func (k *Keeper) Web(token string) (Authority, error) {
	if len(token) == 0 || len(token) > 256 {
		return Authority{}, ErrNotSignedIn
	}
	hash := sha256.Sum256([]byte(token))
	k.mu.Lock()
	defer k.mu.Unlock()
	s := k.cookies[hash]
	if s == nil || subtle.ConstantTimeCompare(s.cookie[:], hash[:]) != 1 {
		return Authority{}, ErrNotSignedIn
	}
	if err := k.touch(s); err != nil {
		return Authority{}, err
	}
	return k.authority(s), nil
}

// SignInForeground checks the passphrase that a person typed into the terminal of the daemon itself. The session
// ends with the daemon, or by SignOut.
func (k *Keeper) SignInForeground(ctx context.Context, passphrase string) (Authority, error) {
	if err := k.checkPerson(ctx, k.known(string(Foreground)), passphrase); err != nil {
		return Authority{}, err
	}
	s := newSession(Foreground, string(Foreground), 0)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.add(s)
	return k.authority(s), nil
}

// newSession makes a session of at most life; zero means until the process ends.
func newSession(via Surface, source string, life time.Duration) *session {
	now := time.Now()
	s := &session{SignIn: SignIn{
		ID: "s-" + strings.ToLower(rand.Text()[:12]), Person: owner, Via: via, Source: source, Started: now, LastSeen: now,
	}}
	if life > 0 {
		s.Expires = now.Add(life)
	}
	return s
}

// add makes room for a session and keeps it. The caller holds the lock.
func (k *Keeper) add(s *session) {
	now := time.Now()
	for _, old := range k.sessions {
		if k.over(old, now) != nil {
			k.end(old)
		}
	}
	if len(k.sessions) >= maxSessions {
		var idlest *session
		for _, old := range k.sessions {
			if old.Via != Foreground && (idlest == nil || old.LastSeen.Before(idlest.LastSeen)) {
				idlest = old
			}
		}
		if idlest != nil {
			k.end(idlest)
		}
	}
	k.sessions[s.ID] = s
}

// end forgets a session everywhere. The caller holds the lock.
func (k *Keeper) end(s *session) {
	delete(k.sessions, s.ID)
	if k.cookies[s.cookie] == s {
		delete(k.cookies, s.cookie)
	}
	if k.shells[s.shell] == s {
		delete(k.shells, s.shell)
	}
}

// over says why a session is over; nil if it is not.
func (k *Keeper) over(s *session, now time.Time) error {
	idle := k.life.ConsoleIdle
	switch s.Via {
	case Foreground:
		return nil
	case Terminal:
		idle = k.life.TerminalIdle
	}
	if now.Sub(s.LastSeen) >= idle || !now.Before(s.Expires) {
		return fmt.Errorf("the sign-in has expired: %w", ErrNotSignedIn)
	}
	return nil
}

// touch notes that a session was used, or ends it if it is over. The caller holds the lock.
func (k *Keeper) touch(s *session) error {
	now := time.Now()
	if err := k.over(s, now); err != nil {
		k.end(s)
		return err
	}
	s.LastSeen = now
	return nil
}

// alive says whether a session is still open, without counting as use.
func (k *Keeper) alive(id string) error {
	k.mu.Lock()
	s := k.sessions[id]
	if s == nil {
		k.mu.Unlock()
		return fmt.Errorf("the sign-in has ended: %w", ErrNotSignedIn)
	}
	if err := k.over(s, time.Now()); err != nil {
		k.end(s)
		k.mu.Unlock()
		return err
	}
	shell := s.shell
	k.mu.Unlock()
	if s.Via != Terminal {
		return nil
	}
	// A terminal's sign-in ends with its shell, also for a connection that outlives it.
	if err := shell.lives(k.processes); err != nil {
		k.mu.Lock()
		k.end(s)
		k.mu.Unlock()
		return fmt.Errorf("%w: %w", err, ErrNotSignedIn)
	}
	return nil
}

func (k *Keeper) authority(s *session) Authority {
	return Authority{keeper: k, id: s.ID, person: s.Person, via: s.Via, asker: true}
}

// SignOut ends the session of an authority.
func (k *Keeper) SignOut(by Authority) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if s := k.sessions[by.id]; s != nil {
		k.end(s)
	}
}

// SignIns lists the open sign-ins, newest first, for a signed-in person.
func (k *Keeper) SignIns(by Authority) ([]SignIn, error) {
	if err := by.May(RightAdmin); err != nil {
		return nil, err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	now := time.Now()
	var out []SignIn
	for _, s := range k.sessions {
		if k.over(s, now) == nil {
			out = append(out, s.SignIn)
		}
	}
	slices.SortFunc(out, func(a, b SignIn) int { return b.Started.Compare(a.Started) })
	return out, nil
}

// EndSession ends one sign-in, named by its public id.
func (k *Keeper) EndSession(by Authority, id string) error {
	if err := by.May(RightAdmin); err != nil {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	s := k.sessions[id]
	if s == nil {
		return errors.New("no such sign-in is open")
	}
	k.end(s)
	return nil
}

// equalText compares secrets in a time that depends on their lengths only.
func equalText(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }
