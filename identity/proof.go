package identity

import (
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Proof is what a device signs to show that it holds its key: a fresh challenge of this very connection, and who it
// claims to be. A proof that was overheard is worth nothing on another connection.
type Proof struct {
	DeviceID   string // hex SHA-256 of the raw key
	PublicKey  string // raw Ed25519 key in base64url, or PEM
	Signature  string // base64url
	SignedAtMs int64
	Nonce      string // of the challenge

	// What is signed besides.
	ClientID, ClientMode string
	Role                 Role
	Scopes               []string // in the order in which they were sent
	Token                string   // the credential that was sent, or ""
	Platform, Family     string
}

// proofSkew is how far a device's clock may be off.
const proofSkew = 120 * time.Second

// ProofError says what is wrong with a proof.
type ProofError struct {
	Code   string // such as SIGNATURE_INVALID
	Reason string // the protocol's word for it
	Text   string
}

func (e *ProofError) Error() string { return e.Text }

// What can be wrong with a proof.
var (
	errProofID      = &ProofError{"DEVICE_ID_MISMATCH", "device-id-mismatch", "device identity mismatch"}
	errProofExpired = &ProofError{"SIGNATURE_EXPIRED", "device-signature-stale", "device signature expired"}
	errProofNoNonce = &ProofError{"NONCE_REQUIRED", "device-nonce-missing", "device nonce required"}
	errProofNonce   = &ProofError{"NONCE_MISMATCH", "device-nonce-mismatch", "device nonce mismatch"}
	errProofSigned  = &ProofError{"SIGNATURE_INVALID", "device-signature", "device signature invalid"}
	errProofKey     = &ProofError{"PUBLIC_KEY_INVALID", "device-public-key", "device public key invalid"}
)

// Verify checks the proof against the challenge of this connection and returns the device's raw key. Every error is a
// *ProofError.
func (p *Proof) Verify(challenge string, now time.Time) (ed25519.PublicKey, error) {
	key, err := parseDeviceKey(p.PublicKey)
	switch {
	case err != nil:
		return nil, errProofKey
	case DeviceID(key) != p.DeviceID:
		return nil, errProofID
	case now.Sub(time.UnixMilli(p.SignedAtMs)).Abs() > proofSkew:
		return nil, errProofExpired
	case strings.TrimSpace(p.Nonce) == "":
		return nil, errProofNoNonce
	case challenge == "" || p.Nonce != challenge:
		return nil, errProofNonce
	}
	if _, err := p.Signed(key); err != nil {
		return nil, err
	}
	return key, nil
}

// Signed checks the signature alone and tells which form of the payload it is over: "v3" or "v2".
func (p *Proof) Signed(key ed25519.PublicKey) (version string, err error) {
	signature, err := decodeBase64(p.Signature)
	if err != nil || len(signature) != ed25519.SignatureSize || len(key) != ed25519.PublicKeySize {
		return "", errProofSigned
	}
	for _, version := range []string{"v3", "v2"} {
		if ed25519.Verify(key, []byte(p.Payload(version)), signature) {
			return version, nil
		}
	}
	return "", errProofSigned
}

// Key is the raw key that the proof names.
func (p *Proof) Key() (ed25519.PublicKey, error) { return parseDeviceKey(p.PublicKey) }

// Payload is the text that is signed. The older form v2 lacks the platform, which is then believed without a proof; it
// is accepted because the pinned platform can only be lost by it, never gained.
func (p *Proof) Payload(version string) string {
	parts := []string{
		version, p.DeviceID, p.ClientID, p.ClientMode, string(p.Role), strings.Join(p.Scopes, ","),
		strconv.FormatInt(p.SignedAtMs, 10), p.Token, p.Nonce,
	}
	if version == "v3" {
		parts = append(parts, FoldPlatform(p.Platform), FoldPlatform(p.Family))
	}
	return strings.Join(parts, "|")
}

// FoldPlatform brings the name of a platform to the form that is signed and pinned: trimmed, ASCII letters in lower
// case.
func FoldPlatform(name string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'A' && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}, strings.TrimSpace(name))
}

// DeviceID is the id of the device with this key.
func DeviceID(key ed25519.PublicKey) string {
	sum := sha256.Sum256(key)
	return hex.EncodeToString(sum[:])
}

func parseDeviceKey(text string) (ed25519.PublicKey, error) {
	if strings.Contains(text, "-----BEGIN") {
		block, _ := pem.Decode([]byte(text))
		if block == nil {
			return nil, errors.New("device key: the PEM block is not readable")
		}
		parsed, err := x509.ParsePKIXPublicKey(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("device key: %w", err)
		}
		key, ok := parsed.(ed25519.PublicKey)
		if !ok {
			return nil, errors.New("device key: not an Ed25519 key")
		}
		return key, nil
	}
	raw, err := decodeBase64(text)
	if err != nil || len(raw) != ed25519.PublicKeySize {
		return nil, errors.New("device key: not 32 bytes in base64url")
	}
	return raw, nil
}

// decodeBase64 reads base64url as clients write it: with or without padding, or in the standard alphabet.
func decodeBase64(text string) ([]byte, error) {
	text = strings.NewReplacer("+", "-", "/", "_").Replace(strings.TrimRight(text, "="))
	return base64.RawURLEncoding.DecodeString(text)
}
