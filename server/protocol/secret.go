package protocol

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/toolward/toolward/server/door"
)

// standing is what a client's shared secret is worth.
type standing struct {
	ok     bool
	method string // token, password, trusted-proxy or none
	user   string // with trusted-proxy
	reason string // why not, as a detail code
	wrong  bool   // a secret was sent, and it is not the right one
	shared bool   // it is a shared secret that was proven
	retry  time.Duration
}

// Detail codes of a refused credential.
const (
	detailTokenMissing     = "AUTH_TOKEN_MISSING"
	detailTokenMismatch    = "AUTH_TOKEN_MISMATCH"
	detailTokenUnset       = "AUTH_TOKEN_NOT_CONFIGURED"
	detailPasswordMissing  = "AUTH_PASSWORD_MISSING"
	detailPasswordMismatch = "AUTH_PASSWORD_MISMATCH"
	detailPasswordUnset    = "AUTH_PASSWORD_NOT_CONFIGURED"
	detailDeviceToken      = "AUTH_DEVICE_TOKEN_MISMATCH"
	detailDeviceScope      = "AUTH_SCOPE_MISMATCH"
	detailLimited          = "AUTH_RATE_LIMITED"
	detailUnauthorized     = "AUTH_UNAUTHORIZED"
)

// doorkeeper knows the shared secrets.
type doorkeeper struct {
	config    Config
	proxies   door.Proxies
	tokens    Tokens
	limits    *door.Limiter                      // of programs
	browsers  *door.Limiter                      // of pages: for them this machine is no exception, since any page can try
	lockedOut func(at door.Source, class string) // told of whoever guesses too often; optional
}

// limiter is the one that counts for a request.
func (d *doorkeeper) limiter(at door.Source) *door.Limiter {
	if at.HasOrigin {
		return d.browsers
	}
	return d.limits
}

// judge looks at a token and a password as they were sent. It counts nothing: see blame and forgive.
func (d *doorkeeper) judge(ctx context.Context, at door.Source, h http.Header, token, password string) standing {
	mode := d.config.Auth.mode()
	if mode == ModeToken || mode == ModePassword {
		if s := d.limiter(at).Check(classShared, at.Client, time.Now()); !s.Allowed {
			return standing{reason: detailLimited, retry: s.RetryAfter, method: mode}
		}
	}
	switch mode {
	case ModeToken:
		return d.judgeToken(ctx, token)
	case ModePassword:
		return judgePassword(d.config.Auth.Password, password)
	case ModeTrustedProxy:
		return d.judgeProxy(at, h)
	case ModeNone:
		return standing{ok: true, method: ModeNone}
	}
	return standing{reason: detailUnauthorized}
}

func (d *doorkeeper) judgeToken(ctx context.Context, token string) standing {
	configured := d.config.Auth.Token
	s := standing{method: ModeToken}
	switch {
	case configured == "" && (d.tokens == nil || !d.tokens.HasGatewayToken()):
		s.reason = detailTokenUnset
	case token == "":
		s.reason = detailTokenMissing
	case configured != "" && sameSecret(configured, token), d.tokens != nil && d.tokens.GatewayToken(ctx, token) == nil:
		s.ok, s.shared = true, true
	default:
		s.reason, s.wrong = detailTokenMismatch, true
	}
	return s
}

func judgePassword(configured, password string) standing {
	s := standing{method: ModePassword}
	switch {
	case configured == "":
		s.reason = detailPasswordUnset
	case password == "":
		s.reason = detailPasswordMissing
	case sameSecret(configured, password):
		s.ok, s.shared = true, true
	default:
		s.reason, s.wrong = detailPasswordMismatch, true
	}
	return s
}

// judgeProxy believes a header only if the socket's peer is the proxy: everybody else could write it.
func (d *doorkeeper) judgeProxy(at door.Source, h http.Header) standing {
	t := d.config.Auth.TrustedProxy
	s := standing{method: ModeTrustedProxy, reason: detailUnauthorized}
	values := h.Values(t.UserHeader)
	if !at.ByProxy || t.UserHeader == "" || len(values) != 1 || strings.TrimSpace(values[0]) == "" {
		return s
	}
	for _, name := range t.RequiredHeaders {
		if h.Get(name) == "" {
			return s
		}
	}
	user := strings.TrimSpace(values[0])
	if len(t.AllowUsers) > 0 && !slices.Contains(t.AllowUsers, user) {
		return s
	}
	return standing{ok: true, method: ModeTrustedProxy, user: user}
}

// blame counts a wrong secret.
func (d *doorkeeper) blame(at door.Source, class string) {
	if d.limiter(at).Fail(class, at.Client, time.Now()) && d.lockedOut != nil {
		d.lockedOut(at, class)
	}
}

// forgive forgets the wrong ones of a client that has the right one.
func (d *doorkeeper) forgive(at door.Source, class string) { d.limiter(at).Reset(class, at.Client) }

func (d *doorkeeper) locked(at door.Source, class string) (time.Duration, bool) {
	s := d.limiter(at).Check(class, at.Client, time.Now())
	return s.RetryAfter, !s.Allowed
}

// sameSecret compares in a time that tells nothing, not even the length.
func sameSecret(a, b string) bool {
	x, y := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
	return subtle.ConstantTimeCompare(x[:], y[:]) == 1
}

// addressOf is an address for records; "" if it is not known.
func addressOf(ip netip.Addr) string {
	if !ip.IsValid() {
		return ""
	}
	return ip.String()
}

// Classes of credentials.
const (
	classShared = "shared-secret"
	classDevice = "device-token"
)
