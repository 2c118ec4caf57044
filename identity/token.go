package identity

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// Token identifies an agent to the MCP and HTTP faces: it gives agent and workspace. It makes a requester, never a
// person. A token without an agent reads metrics, or opens the gateway protocol, and nothing else.
type Token struct {
	ID        string    `json:"id"`     // public; part of session keys
	Prefix    string    `json:"prefix"` // first characters of the secret, to recognize it by
	Name      string    `json:"name,omitempty"`
	Agent     string    `json:"agent"`
	Workspace string    `json:"workspace"`         // absolute
	Owner     bool      `json:"owner"`             // calls count as the owner's
	Gateway   bool      `json:"gateway,omitempty"` // it opens the gateway protocol, for programs of an operator
	Created   time.Time `json:"created"`
	CreatedBy string    `json:"createdBy"`
	Expires   time.Time `json:"expires,omitzero"` // zero: does not expire
	LastUsed  time.Time `json:"lastUsed,omitzero"`
	Revoked   time.Time `json:"revoked,omitzero"`
}

// ForMetrics reports whether the token reads metrics and is no agent's.
func (t *Token) ForMetrics() bool { return t.Agent == "" && !t.Gateway }

// TokenSpec says what a new token is for.
type TokenSpec struct {
	Name      string
	Metrics   bool // it reads metrics; then it has neither agent nor workspace
	Gateway   bool // it opens the gateway protocol; then neither, too
	Agent     string
	Workspace string
	Owner     bool
	Life      time.Duration // zero: does not expire
}

const (
	tokenStart   = "tw_"
	shownPrefix  = 8 // characters of the secret that lists show
	maxTokens    = 1000
	touchEvery   = time.Minute
	longestAgent = 64
)

// tokens is the agents' tokens in memory, by the hash of their secret.
type tokens struct {
	mu     sync.RWMutex
	byHash map[[32]byte]*TokenRecord
}

func (k *Keeper) loadTokens(ctx context.Context) error {
	list, err := k.store.AgentTokens(ctx)
	if err != nil {
		return fmt.Errorf("load agent tokens: %w", err)
	}
	k.tokens.byHash = make(map[[32]byte]*TokenRecord, len(list))
	for _, t := range list {
		k.tokens.byHash[t.Hash] = &t
	}
	return nil
}

// CheckAgent accepts an agent id: lower-case letters, digits, "-" and "_", at most 64.
func CheckAgent(id string) error {
	if id == "" || len(id) > longestAgent {
		return fmt.Errorf("agent id %q: expected 1 to %d characters", id, longestAgent)
	}
	for i := range len(id) {
		switch c := id[i]; {
		case c >= 'a' && c <= 'z', c >= '0' && c <= '9', i > 0 && (c == '-' || c == '_'):
		default:
			return fmt.Errorf("agent id %q: character %d: expected lower-case letters, digits, - and _, beginning with a letter or digit", id, i+1)
		}
	}
	return nil
}

// CreateToken makes a token. secret is returned once and kept nowhere. It needs a signed-in person: an agent that
// could make tokens could make itself the owner. record, if not nil, is told of the token before it counts; its error stops it.
func (k *Keeper) CreateToken(ctx context.Context, by Authority, spec TokenSpec, record func(Token) error) (secret string, t Token, err error) {
	if err := by.May(RightAdmin); err != nil {
		return "", Token{}, err
	}
	ofAgent := !spec.Metrics && !spec.Gateway
	if !ofAgent && (spec.Agent != "" || spec.Workspace != "" || spec.Owner || spec.Metrics && spec.Gateway) {
		return "", Token{}, errors.New("a token that reads metrics or opens the gateway protocol does only that, and has no agent, no workspace and no owner")
	}
	if ofAgent {
		if err := CheckAgent(spec.Agent); err != nil {
			return "", Token{}, err
		}
	}
	switch {
	case ofAgent && (!filepath.IsAbs(spec.Workspace) || filepath.Clean(spec.Workspace) != spec.Workspace):
		return "", Token{}, fmt.Errorf("workspace %q: expected an absolute path without dot segments", spec.Workspace)
	case spec.Life < 0:
		return "", Token{}, fmt.Errorf("life of the token: %s is negative", spec.Life)
	case len(spec.Name) > 100:
		return "", Token{}, errors.New("name of the token: longer than 100 bytes")
	}
	now := time.Now()
	secret = tokenStart + rand.Text()
	made := &TokenRecord{Hash: sha256.Sum256([]byte(secret)), Token: Token{
		ID: "t" + strings.ToLower(rand.Text()[:10]), Prefix: secret[:shownPrefix], Name: spec.Name, Agent: spec.Agent,
		Workspace: spec.Workspace, Owner: spec.Owner, Gateway: spec.Gateway, Created: now, CreatedBy: by.Name(),
	}}
	if spec.Life > 0 {
		made.Expires = now.Add(spec.Life)
	}
	k.tokens.mu.Lock()
	defer k.tokens.mu.Unlock()
	if len(k.tokens.byHash) >= maxTokens {
		return "", Token{}, fmt.Errorf("there are %d agent tokens, which is the limit", maxTokens)
	}
	if record != nil {
		if err := record(made.Token); err != nil {
			return "", Token{}, err
		}
	}
	if err := k.store.AddAgentToken(ctx, *made); err != nil {
		return "", Token{}, fmt.Errorf("save agent token: %w", err)
	}
	k.tokens.byHash[made.Hash] = made
	return secret, made.Token, nil
}

// Token recognizes the secret of an agent token. The secret is hashed before anything is compared, so the time it
// takes tells nothing about the secrets that exist.
func (k *Keeper) Token(ctx context.Context, secret string) (Token, error) {
	t, err := k.recognize(ctx, secret)
	if err != nil || t.Agent == "" {
		return Token{}, ErrToken
	}
	return t, nil
}

// GatewayToken accepts the secret of a token that opens the gateway protocol. An agent's own token does not: the
// programs behind that door may ask for more than calls.
func (k *Keeper) GatewayToken(ctx context.Context, secret string) error {
	t, err := k.recognize(ctx, secret)
	if err != nil || !t.Gateway {
		return ErrToken
	}
	return nil
}

// HasGatewayToken reports whether a token in force opens the gateway protocol.
func (k *Keeper) HasGatewayToken() bool {
	now := time.Now()
	k.tokens.mu.RLock()
	defer k.tokens.mu.RUnlock()
	for _, r := range k.tokens.byHash {
		if r.Gateway && r.Revoked.IsZero() && (r.Expires.IsZero() || now.Before(r.Expires)) {
			return true
		}
	}
	return false
}

// MetricsToken accepts the secret of a token that reads metrics. An agent's own token does not: what other agents do
// is none of its business.
func (k *Keeper) MetricsToken(ctx context.Context, secret string) error {
	t, err := k.recognize(ctx, secret)
	if err != nil || !t.ForMetrics() {
		return ErrToken
	}
	return nil
}

// recognize finds the token in force with this secret, and notes its use.
func (k *Keeper) recognize(ctx context.Context, secret string) (Token, error) {
	if !strings.HasPrefix(secret, tokenStart) || len(secret) > 256 {
		return Token{}, ErrToken
	}
	hash := sha256.Sum256([]byte(secret))
	now := time.Now()
	k.tokens.mu.RLock()
	r := k.tokens.byHash[hash]
	if r == nil || subtle.ConstantTimeCompare(r.Hash[:], hash[:]) != 1 || !r.Revoked.IsZero() ||
		!r.Expires.IsZero() && !now.Before(r.Expires) {
		k.tokens.mu.RUnlock()
		return Token{}, ErrToken
	}
	t := r.Token
	k.tokens.mu.RUnlock()
	if now.Sub(t.LastUsed) >= touchEvery {
		k.touchToken(ctx, hash, now)
	}
	return t, nil
}

// touchToken notes a use, at most once a minute. That a note fails does not matter to the caller.
func (k *Keeper) touchToken(ctx context.Context, hash [32]byte, now time.Time) {
	k.tokens.mu.Lock()
	r := k.tokens.byHash[hash]
	if r == nil || now.Sub(r.LastUsed) < touchEvery {
		k.tokens.mu.Unlock()
		return
	}
	r.LastUsed = now
	id := r.ID
	k.tokens.mu.Unlock()
	if err := k.store.TouchAgentToken(ctx, id, now); err != nil {
		k.log.Warn("last use of an agent token was not noted", "token", id, "err", err)
	}
}

// Tokens lists the agent tokens, revoked and expired ones included, newest first.
func (k *Keeper) Tokens(by Authority) ([]Token, error) {
	if err := by.May(RightAdmin); err != nil {
		return nil, err
	}
	k.tokens.mu.RLock()
	defer k.tokens.mu.RUnlock()
	out := make([]Token, 0, len(k.tokens.byHash))
	for _, r := range k.tokens.byHash {
		out = append(out, r.Token)
	}
	slices.SortFunc(out, func(a, b Token) int {
		return cmp.Or(b.Created.Compare(a.Created), strings.Compare(a.ID, b.ID))
	})
	return out, nil
}

// RevokeToken ends a token at once, named by its id or its shown prefix.
func (k *Keeper) RevokeToken(ctx context.Context, by Authority, name string) (Token, error) {
	if err := by.May(RightAdmin); err != nil {
		return Token{}, err
	}
	k.tokens.mu.Lock()
	defer k.tokens.mu.Unlock()
	var found *TokenRecord
	for _, r := range k.tokens.byHash {
		if !r.Revoked.IsZero() || r.ID != name && r.Prefix != name {
			continue
		}
		if found != nil {
			return Token{}, fmt.Errorf("agent token %q: several have this prefix, use the id", name)
		}
		found = r
	}
	if found == nil {
		return Token{}, fmt.Errorf("agent token %q: no such token in force", name)
	}
	now := time.Now()
	found.Revoked = now // first in memory: a failing store must not keep it alive
	// Whoever goes away meanwhile must not bring it back at the next start.
	if _, err := k.store.RevokeAgentToken(context.WithoutCancel(ctx), found.ID, now); err != nil {
		return found.Token, fmt.Errorf("the token is revoked until the next start only, the store failed: %w", err)
	}
	return found.Token, nil
}
