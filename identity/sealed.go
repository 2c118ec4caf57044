package identity

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/go-webauthn/webauthn/webauthn"
)

// A question at the door is kept by the browser that asked for it, sealed, and by nobody else: a table of them would have an end,
// and whoever fills it would have the person's question thrown out before the answer comes.

// sealed is what a token of [Passkeys.BeginSignIn] holds.
type sealed struct {
	Site    Site                 `json:"site"`
	Session webauthn.SessionData `json:"session"`
	Ends    time.Time            `json:"ends"`
}

func (p *Passkeys) seal(c *ceremony) (token string, err error) {
	body, err := json.Marshal(sealed{c.site, c.session, c.ends})
	if err != nil {
		return "", fmt.Errorf("ask for a passkey: %w", err)
	}
	text := base64.RawURLEncoding.EncodeToString(body)
	return text + "." + p.mark(text), nil
}

func (p *Passkeys) mark(text string) string {
	mark := hmac.New(sha256.New, p.sealer[:])
	mark.Write([]byte("passkey question at the door\x00" + text))
	return base64.RawURLEncoding.EncodeToString(mark.Sum(nil))
}

// unseal returns the question of a token that this process made for a site, whose time is not over and that nobody has answered
// yet: an answer that somebody saw is worth nothing.
func (p *Passkeys) unseal(token string, site Site) (*ceremony, error) {
	text, mark, _ := strings.Cut(token, ".")
	if len(token) > maxQuestion || !equalText(mark, p.mark(text)) {
		return nil, ErrPasskeyLate
	}
	body, err := base64.RawURLEncoding.DecodeString(text)
	var s sealed
	if err == nil {
		err = json.Unmarshal(body, &s)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, again := p.closed[sha256.Sum256([]byte(token))]; err != nil || again || s.Site != site || !time.Now().Before(s.Ends) {
		return nil, ErrPasskeyLate
	}
	return &ceremony{site: s.Site, session: s.Session, ends: s.Ends}, nil
}

const (
	maxQuestion = 4096 // bytes of a token, which travels in a cookie
	maxWrong    = 4096 // questions with a wrong answer that are remembered
)

// answered is a question that had its answer.
type answered struct {
	ends  time.Time
	right bool
}

// close remembers a question until its time is over. Those that were answered rightly are as many as sign-ins, and none is
// forgotten; of the others, which anybody can make, one is for each that comes too many: its right answer was never seen.
func (p *Passkeys) close(token string, ends time.Time, right bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now, wrong := time.Now(), 0
	var one [32]byte
	for question, was := range p.closed {
		switch {
		case !now.Before(was.ends):
			delete(p.closed, question)
		case !was.right:
			wrong++
			one = question
		}
	}
	if wrong >= maxWrong {
		delete(p.closed, one)
	}
	p.closed[sha256.Sum256([]byte(token))] = answered{ends, right}
}
