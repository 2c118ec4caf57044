package audit

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// SealKind says what a signed statement about the chain is good for. Each kind
// is signed as such, so that one cannot be shown as the other.
type SealKind string

// The kinds of seals.
const (
	SealCheckpoint SealKind = "checkpoint" // a record in the chain, about the record before it
	SealHead       SealKind = "head"       // the chain reached this record: shows a cut-off end
	SealBase       SealKind = "base"       // the records up to this one were deleted by retention
)

// Seal is a signed statement: the record at Seq had this hash.
//
// Signatures are Ed25519 rather than a keyed hash, so that whoever checks an
// exported log needs the public key only and could not have written the log.
type Seal struct {
	Kind      SealKind
	Seq       int64
	Hash      Hash
	Time      time.Time // to the millisecond
	Open      int64     // the oldest decision without an outcome is not before this position
	Key       string    // public key, lower hex
	Signature string    // lower hex
}

// message is what is signed.
func (s *Seal) message() []byte {
	return fmt.Appendf(nil, "toolward audit %s v1\n%d\n%s\n%d\n%d\n", s.Kind, s.Seq, s.Hash, s.Time.UnixMilli(), s.Open)
}

func (s *Seal) sign(key ed25519.PrivateKey) {
	s.Key = hex.EncodeToString(key.Public().(ed25519.PublicKey))
	s.Signature = hex.EncodeToString(ed25519.Sign(key, s.message()))
}

// check verifies the signature by the given key, not by the one that the seal
// names: that one is the forger's.
func (s *Seal) check(key ed25519.PublicKey) error {
	signature, err := hex.DecodeString(s.Signature)
	if err != nil || !ed25519.Verify(key, s.message(), signature) {
		return fmt.Errorf("the %s at record %d is not signed by this log's key", s.Kind, s.Seq)
	}
	return nil
}

// head is the end of the chain.
type head struct {
	seq        int64
	hash       Hash
	floor      int64 // positions up to this one were given out, even if the records are gone
	sealed     int64 // the last record under a head seal
	checkpoint int64 // the last checkpoint record
	signed     int64 // the last checkpoint record that this process wrote
	asked      bool  // a checkpoint goes with the next write
	due        bool  // seal with the next write
	armed      bool  // the timer will seal
	stale      bool  // a write failed: read the end again first
}

// statement signs the present end of the chain.
func (l *Log) statement(kind SealKind) Seal {
	s := Seal{
		Kind: kind, Seq: l.head.seq, Hash: l.head.hash,
		Time: time.UnixMilli(time.Now().UnixMilli()), Open: l.open.oldest(l.head.seq + 1),
	}
	s.sign(l.key)
	return s
}

// checkpointEntry is a record that holds a seal over the record before it.
func (l *Log) checkpointEntry() *entry {
	s := l.statement(SealCheckpoint)
	e := &entry{}
	b := append(e.buf, `{"checkpoint":{"hash":"`...)
	b = append(b, s.Hash.String()...)
	b = append(b, `","key":"`...)
	b = append(b, s.Key...)
	b = append(b, '"')
	b = intField(b, "open", s.Open)
	b = intField(b, "seq", s.Seq)
	b = textField(b, "signature", s.Signature)
	b = append(b, '}')
	e.prevAt, e.seqAt = len(b), len(b)
	b = timeField(b, s.Time)
	e.buf = append(b, `,"type":"checkpoint","v":1}`...)
	e.record = Record{Time: s.Time, Type: TypeCheckpoint}
	return e
}

// keyFile is the name of the signing key inside a home.
const keyFile = "audit.key"

// LoadKey reads the log's signing key from home, or makes one when there is
// none: 32 random bytes in lower hex, in a file of mode 0600. created tells
// that it was made now; a log that has records already was then written under
// another key.
func LoadKey(home string) (key ed25519.PrivateKey, created bool, err error) {
	path := filepath.Join(home, keyFile)
	key, err = readKey(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return key, false, err
	}
	seed := make([]byte, ed25519.SeedSize)
	_, _ = rand.Read(seed) // never fails
	if err := writeKey(path, seed); err != nil {
		return nil, false, fmt.Errorf("make the audit key: %w", err)
	}
	return ed25519.NewKeyFromSeed(seed), true, nil
}

// ReadKey reads the public half of the signing key, for checking a log.
func ReadKey(home string) (ed25519.PublicKey, error) {
	key, err := readKey(filepath.Join(home, keyFile))
	if err != nil {
		return nil, err
	}
	return key.Public().(ed25519.PublicKey), nil
}

func readKey(path string) (ed25519.PrivateKey, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return nil, fmt.Errorf("read the audit key: %w", err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, fmt.Errorf("read the audit key: %w", err)
	}
	// A key that others could read or replace proves nothing.
	if !info.Mode().IsRegular() || info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("read the audit key: %s has mode %s, want a plain file of mode 0600 (chmod 600 it if nobody else could have read it)", path, info.Mode())
	}
	text := make([]byte, 2*ed25519.SeedSize+2)
	n, _ := file.Read(text)
	seed, err := hex.DecodeString(strings.TrimSpace(string(text[:n])))
	if err != nil || len(seed) != ed25519.SeedSize {
		return nil, fmt.Errorf("read the audit key: %s does not hold %d hex digits (restore it from a backup, or move it away: a new one is made, and older checkpoints can then not be checked)", path, 2*ed25519.SeedSize)
	}
	return ed25519.NewKeyFromSeed(seed), nil
}

// writeKey writes the key beside its place and links it there, so that a crash
// leaves no half a key and two processes end up with one.
func writeKey(path string, seed []byte) error {
	temporary := path + "." + strconv.Itoa(os.Getpid())
	file, err := os.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_EXCL|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return err
	}
	defer os.Remove(temporary)
	_, err = file.WriteString(hex.EncodeToString(seed) + "\n")
	if err := errors.Join(err, file.Sync(), file.Close()); err != nil {
		return err
	}
	if err := os.Link(temporary, path); err != nil {
		return err
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
