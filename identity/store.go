package identity

import (
	"context"
	"time"
)

// Store keeps the passphrase's verifier and the agent tokens. Writes are durable when they return.
type Store interface {
	// Verifier returns the verifier of the person's passphrase; found is false before the first setup.
	Verifier(ctx context.Context) (v Verifier, found bool, err error)
	// SaveVerifier replaces the verifier. When first is true it fails if there is one already: two setups at the
	// same moment must not both succeed.
	SaveVerifier(ctx context.Context, v Verifier, first bool) error

	// AgentTokens returns every token that was not removed, revoked ones included.
	AgentTokens(ctx context.Context) ([]TokenRecord, error)
	// AddAgentToken inserts a token.
	AddAgentToken(ctx context.Context, t TokenRecord) error
	// RevokeAgentToken marks a token revoked; false if there is no such token or it is revoked already.
	RevokeAgentToken(ctx context.Context, id string, at time.Time) (bool, error)
	// TouchAgentToken notes when a token was last used. It need not be durable.
	TouchAgentToken(ctx context.Context, id string, at time.Time) error
}

// Verifier recognizes a passphrase without holding it. The key derived from the passphrase is never stored: Check
// is a one-way function of it.
type Verifier struct {
	Person  string
	Salt    []byte // 16 random bytes
	Memory  uint32 // argon2id memory in KiB
	Passes  uint32
	Lanes   uint8
	Check   []byte // HKDF-SHA-256 of the derived key
	Changed time.Time
}

// TokenRecord is a token as stored: everything but the secret, which is kept as SHA-256. A plain hash is right
// here, because the secret has 130 random bits and cannot be guessed.
type TokenRecord struct {
	Token
	Hash [32]byte
}
