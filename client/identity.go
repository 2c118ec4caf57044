package client

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/toolward/toolward/identity"
)

// Identity is the key of a device. Whoever holds it has what people approved for the device, so an agent must not be able
// to read it: keep the key of a program that answers under another user or on another machine.
type Identity struct {
	key ed25519.PrivateKey
}

// NewIdentity makes an identity of a private key. The zero Identity is none.
func NewIdentity(key ed25519.PrivateKey) (*Identity, error) {
	if len(key) != ed25519.PrivateKeySize {
		return nil, fmt.Errorf("device key: %d bytes instead of %d", len(key), ed25519.PrivateKeySize)
	}
	return &Identity{append(ed25519.PrivateKey(nil), key...)}, nil
}

// LoadIdentity reads the key in a file (PKCS #8, PEM), which only its owner may be able to read. If there is no such file it
// makes a key and the file.
func LoadIdentity(path string) (*Identity, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return createIdentity(path)
	}
	if err != nil {
		return nil, fmt.Errorf("device key: %w", err)
	}
	if !info.Mode().IsRegular() || info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("device key %s has mode %04o: others could read it; run: chmod 600 %s", path, info.Mode().Perm(), path)
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("device key: %w", err)
	}
	block, _ := pem.Decode(raw)
	if block == nil {
		return nil, fmt.Errorf("device key %s: no PEM block", path)
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("device key %s: %w", path, err)
	}
	key, ok := parsed.(ed25519.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("device key %s: not an Ed25519 key", path)
	}
	return NewIdentity(key)
}

func createIdentity(path string) (*Identity, error) {
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("device key: %w", err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("device key: %w", err)
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("device key %s: another program is making it: try again", path)
	}
	if err != nil {
		return nil, fmt.Errorf("device key: %w", err)
	}
	err = errors.Join(pem.Encode(file, &pem.Block{Type: "PRIVATE KEY", Bytes: der}), file.Sync(), file.Close())
	if err != nil {
		_ = os.Remove(path) // half a key is no key
		return nil, fmt.Errorf("device key: %w", err)
	}
	return NewIdentity(key)
}

// ID is the device's id, as people see it.
func (i *Identity) ID() string { return identity.DeviceID(i.key.Public().(ed25519.PublicKey)) }
