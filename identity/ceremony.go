package identity

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/go-webauthn/webauthn/protocol"
	"github.com/go-webauthn/webauthn/webauthn"
)

// Site is where a browser sees the console.
type Site struct {
	Name   string // host name: what passkeys are bound to
	Origin string // exactly, such as https://gate.example.org or http://localhost:7411
}

// A ceremony is one question to an authenticator: made by the gateway, answered once, within a time, by the browser
// that asked. That is what makes an answer that somebody saw worthless.
type ceremony struct {
	site    Site
	session webauthn.SessionData
	handle  []byte // with a new passkey
	ends    time.Time
}

// Bounds of ceremonies.
const (
	ceremonyLife  = 3 * time.Minute
	maxCeremonies = 256      // of one purpose
	maxAnswer     = 64 << 10 // bytes
)

// ceremonies are the open ones by what their answer must come with. The caller holds a lock.
type ceremonies map[ceremonyKey]*ceremony

// ceremonyKey is the session of who is signed in. Questions at the door are not kept ([Passkeys.sealed]).
type ceremonyKey struct {
	purpose string
	holder  string
}

// put makes room among the questions of the same purpose only.
func (c *ceremonies) put(key ceremonyKey, asked *ceremony) {
	if *c == nil {
		*c = ceremonies{}
	}
	now, same, oldest := time.Now(), 0, key
	for k, open := range *c {
		switch {
		case !now.Before(open.ends):
			delete(*c, k)
		case k.purpose == key.purpose:
			if same++; same == 1 || open.ends.Before((*c)[oldest].ends) {
				oldest = k
			}
		}
	}
	if same >= maxCeremonies {
		delete(*c, oldest)
	}
	asked.ends = now.Add(ceremonyLife)
	(*c)[key] = asked
}

// take returns an open ceremony of a site and closes it, whatever becomes of the answer.
func (c *ceremonies) take(key ceremonyKey, site Site) (*ceremony, error) {
	asked := (*c)[key]
	delete(*c, key)
	if asked == nil || asked.site != site || !time.Now().Before(asked.ends) {
		return nil, ErrPasskeyLate
	}
	return asked, nil
}

func proofKey(by Authority) ceremonyKey { return ceremonyKey{"proof", by.id} }
func addKey(by Authority) ceremonyKey   { return ceremonyKey{"add", by.id} }

// party is the gateway as authenticators see it at a site: who uses a passkey must have proven to its device that they are its
// owner, since a passkey alone opens the console.
func (s Site) party() (*webauthn.WebAuthn, error) {
	if s.Name == "" || s.Origin == "" {
		return nil, ErrPasskeyHere
	}
	life := webauthn.TimeoutConfig{Enforce: true, Timeout: ceremonyLife, TimeoutUVD: ceremonyLife}
	resident := true
	party, err := webauthn.New(&webauthn.Config{
		RPID: s.Name, RPDisplayName: "Toolward", RPOrigins: []string{s.Origin},
		AttestationPreference: protocol.PreferNoAttestation,
		AuthenticatorSelection: protocol.AuthenticatorSelection{
			ResidentKey: protocol.ResidentKeyRequirementRequired, RequireResidentKey: &resident,
			UserVerification: protocol.VerificationRequired,
		},
		Timeouts: webauthn.TimeoutsConfig{Login: life, Registration: life},
	})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrPasskeyHere, err)
	}
	return party, nil
}

// holder is the person as the library wants to see them: with the passkeys of one site.
type holder struct {
	handle []byte
	keys   []PasskeyRecord
}

func (h *holder) WebAuthnID() []byte          { return h.handle }
func (h *holder) WebAuthnName() string        { return owner }
func (h *holder) WebAuthnDisplayName() string { return owner }
func (h *holder) WebAuthnCredentials() []webauthn.Credential {
	var out []webauthn.Credential
	for _, r := range h.keys {
		c := webauthn.Credential{
			ID: r.Credential, PublicKey: r.Key, Authenticator: webauthn.Authenticator{SignCount: r.Count},
			Flags: webauthn.CredentialFlags{UserPresent: true, UserVerified: true, BackupEligible: r.Synced, BackupState: r.Backup},
		}
		for _, t := range r.Transports {
			c.Transport = append(c.Transport, protocol.AuthenticatorTransport(t))
		}
		out = append(out, c)
	}
	return out
}

// BeginSignIn makes the question of a sign-in. token must come back with the answer and belongs into a cookie of the
// browser; options are for navigator.credentials.get. It names no passkey: who stands at the door learns none.
func (p *Passkeys) BeginSignIn(site Site) (token string, options any, err error) {
	options, session, err := site.question()
	if err != nil {
		return "", nil, err
	}
	token, err = p.seal(&ceremony{site: site, session: *session, ends: time.Now().Add(ceremonyLife)})
	return token, options, err
}

// AskPresence makes the question by which a person who is signed in proves anew that it is them.
func (p *Passkeys) AskPresence(by Authority, site Site) (options any, err error) {
	if err := by.May(RightAdmin); err != nil {
		return nil, err
	}
	options, session, err := site.question()
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked.put(proofKey(by), &ceremony{site: site, session: *session})
	return options, nil
}

// question is one to any passkey of a site.
func (s Site) question() (options any, session *webauthn.SessionData, err error) {
	party, err := s.party()
	if err != nil {
		return nil, nil, err
	}
	asked, session, err := party.BeginDiscoverableLogin(webauthn.WithLoginOrigin(s.Origin), webauthn.WithUserVerification(protocol.VerificationRequired))
	if err != nil {
		return nil, nil, fmt.Errorf("ask for a passkey: %w", err)
	}
	return asked.Response, session, nil
}

// SignIn opens a console session for whoever answered the question of token. cookie goes into the session's cookie and
// nowhere else. An answer is always looked at, however many wrong ones came before: a signature cannot be guessed, and whoever
// sends wrong ones would keep the person out.
func (p *Passkeys) SignIn(ctx context.Context, source, token string, site Site, answer []byte) (cookie string, by Authority, err error) {
	p.writing.Lock()
	defer p.writing.Unlock()
	asked, err := p.unseal(token, site)
	if err != nil {
		return "", Authority{}, err
	}
	r, err := p.verify(ctx, "console "+source, asked, answer)
	p.close(token, asked.ends, err == nil)
	if err != nil {
		return "", Authority{}, err
	}
	cookie, by = p.keeper.signInWith(source, r.ID)
	return cookie, by, nil
}

// prove is verify for who is signed in already. The lock ends with it even if what reads the answer panics.
func (p *Passkeys) prove(ctx context.Context, by Authority, site Site, answer []byte) error {
	p.writing.Lock()
	defer p.writing.Unlock()
	p.mu.Lock()
	asked, err := p.asked.take(proofKey(by), site)
	p.mu.Unlock()
	if err == nil {
		_, err = p.verify(ctx, "proof by "+by.id, asked, answer)
	}
	return err
}

// verify checks an answer, and makes the passkey's new counter durable before it counts. The caller holds the writing lock.
func (p *Passkeys) verify(ctx context.Context, source string, asked *ceremony, answer []byte) (PasskeyRecord, error) {
	r, used, err := p.check(asked, answer)
	if err != nil {
		p.log.Warn("a passkey was not accepted", "source", source, "why", explain(err))
		if errors.Is(err, ErrPasskeySuspect) {
			return PasskeyRecord{}, err
		}
		return PasskeyRecord{}, ErrPasskey
	}
	if used.Authenticator.CloneWarning {
		return r, p.suspect(ctx, r)
	}
	r.Count, r.Backup, r.Used = used.Authenticator.SignCount, used.Flags.BackupState, time.Now()
	if err := p.save(ctx, r); err != nil {
		return PasskeyRecord{}, err
	}
	return r, nil
}

// check finds the passkey of an answer and verifies its signature over the question.
func (p *Passkeys) check(asked *ceremony, answer []byte) (PasskeyRecord, *webauthn.Credential, error) {
	party, err := asked.site.party()
	if err != nil {
		return PasskeyRecord{}, nil, err
	}
	if len(answer) > maxAnswer {
		return PasskeyRecord{}, nil, fmt.Errorf("an answer of %d bytes", len(answer))
	}
	parsed, err := protocol.ParseCredentialRequestResponseBytes(answer)
	if err != nil {
		return PasskeyRecord{}, nil, err
	}
	var found PasskeyRecord
	used, err := party.ValidateDiscoverableLogin(func(id, handle []byte) (webauthn.User, error) {
		for _, r := range p.of(asked.site.Name, func(r *PasskeyRecord) bool { return bytes.Equal(r.Credential, id) }) {
			found = r
			return &holder{r.Handle, []PasskeyRecord{r}}, nil
		}
		return nil, ErrNoPasskey
	}, asked.session, parsed)
	if err != nil {
		return PasskeyRecord{}, nil, err
	}
	if !found.Suspect.IsZero() {
		return PasskeyRecord{}, nil, ErrPasskeySuspect
	}
	return found, used, nil
}

// suspect shuts a passkey whose counter ran backwards, and whatever it opened: the copy may be in other hands, and
// nothing tells which of the two is the person's.
func (p *Passkeys) suspect(ctx context.Context, r PasskeyRecord) error {
	p.log.Warn("a passkey's counter ran backwards: there may be a copy of it", "passkey", r.ID, "name", r.Name)
	r.Suspect = time.Now()
	p.mu.Lock()
	p.keys[r.ID] = &r // first in memory: a failing store must not keep it in use
	p.mu.Unlock()
	p.keeper.endPasskey(r.ID)
	// The thief who hangs up at this moment must not find it open again after the next start.
	err := p.save(context.WithoutCancel(ctx), r)
	if err != nil {
		p.log.Error("a passkey with a copy is shut until the next start only", "passkey", r.ID, "err", err)
	}
	return errors.Join(ErrPasskeySuspect, err)
}

// Presence is what somebody who is signed in shows anew before a passkey is added: a screen left unlocked, or a page that
// rides on a sign-in, must not be enough to make a key that lasts. One of the two.
type Presence struct {
	Passphrase string
	Answer     []byte // to AskPresence
}

// BeginAdd checks the presence and makes the question of a new passkey; options are for navigator.credentials.create.
func (p *Passkeys) BeginAdd(ctx context.Context, by Authority, site Site, shown Presence) (options any, err error) {
	if err := by.May(RightAdmin); err != nil {
		return nil, err
	}
	party, err := site.party()
	if err != nil {
		return nil, err
	}
	if shown.Answer != nil {
		err = p.prove(ctx, by, site, shown.Answer)
	} else {
		err = p.keeper.checkPerson(ctx, p.keeper.known("passkey by "+by.id), shown.Passphrase)
	}
	if err != nil {
		return nil, err
	}
	here := p.of(site.Name, func(*PasskeyRecord) bool { return true })
	who := &holder{keys: here}
	if len(here) > 0 {
		who.handle = here[0].Handle
	} else {
		who.handle = make([]byte, 32)
		rand.Read(who.handle) // never fails: the program would end instead
	}
	made, session, err := party.BeginRegistration(who, webauthn.WithRegistrationOrigin(site.Origin),
		webauthn.WithExclusions(webauthn.Credentials(who.WebAuthnCredentials()).CredentialDescriptors()))
	if err != nil {
		return nil, fmt.Errorf("ask for a new passkey: %w", err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked.put(addKey(by), &ceremony{site: site, session: *session, handle: who.handle})
	return made.Response, nil
}

// Add keeps the passkey that answers the question of [Passkeys.BeginAdd]. record, if not nil, is told of it before it counts; its
// error stops it.
func (p *Passkeys) Add(ctx context.Context, by Authority, site Site, name string, answer []byte, record func(Passkey) error) (Passkey, error) {
	if err := by.May(RightAdmin); err != nil {
		return Passkey{}, err
	}
	name, err := checkPasskeyName(name)
	if err != nil {
		return Passkey{}, err
	}
	p.writing.Lock()
	defer p.writing.Unlock()
	p.mu.Lock()
	asked, err := p.asked.take(addKey(by), site)
	full := len(p.keys) >= maxPasskeys
	p.mu.Unlock()
	switch {
	case err != nil:
		return Passkey{}, err
	case full:
		return Passkey{}, fmt.Errorf("there are %d passkeys: remove one first", maxPasskeys)
	}
	made, err := asked.accept(answer)
	if err != nil {
		p.log.Warn("a new passkey was not accepted", "why", explain(err))
		return Passkey{}, ErrPasskey
	}
	if len(p.of(site.Name, func(r *PasskeyRecord) bool { return bytes.Equal(r.Credential, made.ID) })) > 0 {
		return Passkey{}, fmt.Errorf("%w: it is there already", ErrPasskey)
	}
	r := PasskeyRecord{
		Passkey: Passkey{
			ID: newPasskeyID(), Name: name, Site: site.Name, Synced: made.Flags.BackupEligible, Created: time.Now(), CreatedBy: by.Name(),
		},
		Credential: made.ID, Handle: asked.handle, Key: made.PublicKey, Count: made.Authenticator.SignCount, Backup: made.Flags.BackupState,
	}
	for _, t := range made.Transport {
		r.Transports = append(r.Transports, string(t))
	}
	if record != nil {
		if err := record(r.Passkey); err != nil {
			return Passkey{}, err
		}
	}
	if err := p.save(ctx, r); err != nil {
		// A store may keep what it said it could not. Nobody was told that this passkey counts, so it must not open the
		// console after the next start.
		if gone := p.store.RemovePasskey(context.WithoutCancel(ctx), r.ID); gone != nil {
			p.log.Error("a passkey that was refused may be in the store", "passkey", r.ID, "err", gone)
		}
		return Passkey{}, err
	}
	return r.Passkey, nil
}

// accept verifies the answer of an authenticator that made a passkey.
func (c *ceremony) accept(answer []byte) (*webauthn.Credential, error) {
	party, err := c.site.party()
	if err != nil {
		return nil, err
	}
	if len(answer) > maxAnswer {
		return nil, fmt.Errorf("an answer of %d bytes", len(answer))
	}
	parsed, err := protocol.ParseCredentialCreationResponseBytes(answer)
	if err != nil {
		return nil, err
	}
	return party.CreateCredential(&holder{handle: c.handle}, c.session, parsed)
}

// explain tells the log what the library found. People only learn that it was not accepted.
func explain(err error) string {
	var e *protocol.Error
	if errors.As(err, &e) {
		return e.Details + ": " + e.DevInfo
	}
	return err.Error()
}
