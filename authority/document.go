package authority

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/ed25519"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"

	"golang.org/x/crypto/argon2"
	"golang.org/x/text/unicode/norm"
)

// document is the file.
type document struct {
	Version    int               `json:"version"`
	Key        []byte            `json:"key"` // public
	Seals      []seal            `json:"seals"`
	Serial     uint64            `json:"serial"`     // of the signature: each is one higher than the last
	Statements map[string][]byte `json:"statements"` // by subject
	Signature  []byte            `json:"signature"`
}

// seal is the private half under a key that a passphrase gives.
type seal struct {
	Salt   []byte `json:"salt"`
	Memory uint32 `json:"memoryKiB"`
	Passes uint32 `json:"passes"`
	Lanes  uint8  `json:"lanes"`
	Nonce  []byte `json:"nonce"`
	Box    []byte `json:"box"` // AES-256-GCM
}

// Cost of guessing one passphrase: that of the stored passphrase, for the same reasons. What a file asks for is bounded, so that
// a tampered one neither exhausts the machine nor makes guesses cheap.
const (
	deriveMemory, maxMemory = 19 * 1024, 256 * 1024 // KiB
	derivePasses, maxPasses = 2, 16
	deriveLanes, maxLanes   = 1, 16
	saltLen                 = 16
	maxSeals                = 4
)

func parse(content []byte) (document, error) {
	var d document
	decoder := json.NewDecoder(bytes.NewReader(content))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&d); err != nil {
		return document{}, fmt.Errorf("%s cannot be read: %w", FileName, err)
	}
	if d.Version != 1 || len(d.Key) != ed25519.PublicKeySize || len(d.Seals) == 0 || len(d.Seals) > maxSeals {
		return document{}, fmt.Errorf("%s is not of a form that this version knows", FileName)
	}
	for _, s := range d.Seals {
		if len(s.Salt) < saltLen || s.Memory < deriveMemory || s.Memory > maxMemory || s.Passes < derivePasses || s.Passes > maxPasses ||
			s.Lanes < 1 || s.Lanes > maxLanes {
			return document{}, fmt.Errorf("%s: a seal is damaged or weaker than allowed", FileName)
		}
	}
	if !ed25519.Verify(d.Key, d.message(), d.Signature) {
		// The seals are kept: the person's passphrase still opens the key, and everything else begins anew.
		return d, fmt.Errorf("%s: the signature is wrong: something without the key has changed it", FileName)
	}
	if d.Statements == nil {
		d.Statements = map[string][]byte{}
	}
	return d, nil
}

// message is what is signed: everything but the seals, which prove themselves, and the signature.
func (d *document) message() []byte {
	body, err := json.Marshal(struct {
		Purpose    string            `json:"purpose"`
		Key        []byte            `json:"key"`
		Serial     uint64            `json:"serial"`
		Statements map[string][]byte `json:"statements"`
	}{"toolward authority v1", d.Key, d.Serial, d.Statements})
	if err != nil {
		panic(err) // bytes and numbers only: a set that cannot be encoded must not be signed as an empty one
	}
	return body
}

func (d *document) sign(private ed25519.PrivateKey) {
	d.Signature = ed25519.Sign(private, d.message())
}

func (d *document) encode() ([]byte, error) {
	content, err := json.MarshalIndent(d, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", FileName, err)
	}
	return append(content, '\n'), nil
}

// open is the private half, if the passphrase opens one of the seals.
func (d *document) open(passphrase string) (ed25519.PrivateKey, error) {
	for _, s := range d.Seals {
		box, err := s.cipher(passphrase)
		if err != nil {
			return nil, err
		}
		if len(s.Nonce) != box.NonceSize() {
			continue
		}
		seed, err := box.Open(nil, s.Nonce, s.Box, d.Key)
		if err != nil || len(seed) != ed25519.SeedSize {
			continue
		}
		private := ed25519.NewKeyFromSeed(seed)
		clear(seed)
		if bytes.Equal(private.Public().(ed25519.PublicKey), d.Key) {
			return private, nil
		}
	}
	return nil, ErrForeign
}

func sealWith(passphrase string, public ed25519.PublicKey, private ed25519.PrivateKey) (seal, error) {
	s := seal{Salt: make([]byte, saltLen), Memory: deriveMemory, Passes: derivePasses, Lanes: deriveLanes}
	rand.Read(s.Salt) // never fails: the program would end instead
	box, err := s.cipher(passphrase)
	if err != nil {
		return seal{}, err
	}
	s.Nonce = make([]byte, box.NonceSize())
	rand.Read(s.Nonce)
	s.Box = box.Seal(nil, s.Nonce, private.Seed(), public)
	return s, nil
}

func (s *seal) cipher(passphrase string) (cipher.AEAD, error) {
	derived := argon2.IDKey([]byte(norm.NFKC.String(passphrase)), s.Salt, s.Passes, s.Memory, s.Lanes, 32)
	key, err := hkdf.Key(sha256.New, derived, nil, "toolward authority seal v1", 32)
	clear(derived)
	debug.FreeOSMemory() // a daemon that once had a sign-in must not stay large
	if err != nil {
		return nil, fmt.Errorf("derive the key of a seal: %w", err)
	}
	block, err := aes.NewCipher(key)
	clear(key)
	if err != nil {
		return nil, errors.Join(errors.New("open a seal"), err)
	}
	return cipher.NewGCM(block)
}
