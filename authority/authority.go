// Package authority signs what loosens. A home has one key: its public half stands in the file authority.json, its private half
// there too, sealed by the passphrase. The private half is in memory only after somebody has typed the passphrase, so a program
// of the same user can write whatever it likes into the files of the home: without the key none of it counts as a person's word.
//
// What was signed is a set of statements, each about one subject: which entries of exec-approvals.json a person has accepted, for
// instance. One signature and one counter cover the whole set, so no older statement can be put beside newer ones.
package authority

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"sync"

	"github.com/toolward/toolward/ownfile"
)

// FileName is the name of the file in the home.
const FileName = "authority.json"

// Errors that callers branch on.
var (
	// ErrLocked means that nobody has typed the passphrase since this process started.
	ErrLocked = errors.New("what lasts is signed with a key that only the passphrase opens, and nobody has signed in with it since the gateway started: " +
		"sign in with the passphrase, then do this again")
	// ErrForeign means that a passphrase which was accepted elsewhere does not open the key.
	ErrForeign = errors.New("this passphrase does not open the key of this home (" + FileName + "): either that file or the stored passphrase was exchanged. " +
		"If you know why, remove the file: everything that lasts then waits until you accept it again")
)

// Event says what happened to the key or to what it signed.
type Event struct {
	Name    string // "authority key made", "authority signed", …
	Subject string
	Key     string // the public half, as [Keys.Fingerprint] gives it
	Serial  uint64
	Err     error // what is wrong; nil: all is as it should be

	public ed25519.PublicKey // the record is to know it, with the number
}

// Keys is the key of a home and what it has signed. It is safe for concurrent use.
type Keys struct {
	dir  string
	tell func(Event)

	mu      sync.Mutex
	doc     document
	onDisk  []byte             // the file as it was last read or written; nil: there is none
	trouble error              // why nothing in the file counts
	private ed25519.PrivateKey // nil while locked
	less    map[string][]byte  // statements that have become tighter since they were signed
	rolls   []*Roll

	findings []string // what the rolls found at the start
	unset    bool     // nobody has set a passphrase

	known     *anchor // what the record said at the start; nil: it knows no key
	exchanged bool    // the file's key is another one
	gone      bool    // there is no file
	mended    string  // what was wrong until somebody signed in
}

// Open reads the file of a home. A file that is wrong is no error: nothing in it counts, see [Keys.Trouble]. tell, if not nil, hears
// of events.
func Open(dir string, tell func(Event)) *Keys {
	if tell == nil {
		tell = func(Event) {}
	}
	k := &Keys{dir: dir, tell: tell, less: map[string][]byte{}}
	content, err := ownfile.Read(filepath.Join(dir, FileName), maxBytes)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		k.trouble = err
	default:
		k.onDisk = content
		k.doc, k.trouble = parse(content)
	}
	return k
}

// Trouble says why nothing that was signed counts; nil if all is well, or nothing was ever signed.
func (k *Keys) Trouble() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.trouble
}

// Fingerprint names the key; "" if there is none.
func (k *Keys) Fingerprint() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.fingerprint()
}

func (k *Keys) fingerprint() string {
	if len(k.doc.Key) == 0 {
		return ""
	}
	return fingerprint(k.doc.Key)
}

func fingerprint(key ed25519.PublicKey) string {
	sum := sha256.Sum256(key)
	return hex.EncodeToString(sum[:8])
}

// Locked returns [ErrLocked] until somebody has typed the passphrase.
func (k *Keys) Locked() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.private == nil {
		return ErrLocked
	}
	return nil
}

// Unlock opens the key with a passphrase that is known to be the person's, or makes a key if there is none. What has become
// tighter while nobody could sign is signed now.
func (k *Keys) Unlock(passphrase string) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case k.trouble != nil && k.gone:
		// Whoever took the file away took all that was accepted with it: it does not come back, and people are told.
		return k.create(passphrase)
	case k.exchanged:
		// A stored passphrase that was exchanged together with the file would open it: it is not this home's key all the same.
		return fmt.Errorf("%w (%w)", ErrForeign, k.trouble)
	case k.trouble != nil && len(k.doc.Seals) == 0:
		return fmt.Errorf("%w (%w)", ErrForeign, k.trouble)
	case len(k.doc.Seals) == 0:
		return k.create(passphrase)
	}
	private, err := k.doc.open(passphrase)
	if err != nil {
		return err
	}
	k.private = private
	if k.trouble != nil {
		// The key is this person's; what stands beside it is not theirs. It is not signed again, and what follows begins anew.
		return k.anew(document{Version: 1, Key: k.doc.Key, Seals: k.doc.Seals, Serial: k.doc.Serial})
	}
	if len(k.less) == 0 && !slices.ContainsFunc(k.rolls, (*Roll).due) {
		return nil
	}
	return k.sign("what changed before", nil)
}

// sign signs the statements that are due, and one more unless it is nil. The caller holds the lock and has the key open.
func (k *Keys) sign(subject string, content []byte) error {
	before := k.doc.Statements
	k.doc.Statements = maps.Clone(before)
	k.takeDue()
	if content != nil {
		k.doc.Statements[subject] = content
	}
	if err := k.write("authority signed", subject); err != nil {
		k.doc.Statements = before
		return err
	}
	k.settled()
	return nil
}

// takeDue puts into the set what is not signed yet.
func (k *Keys) takeDue() {
	maps.Copy(k.doc.Statements, k.less)
	for _, r := range k.rolls {
		if r.due() {
			k.doc.Statements[r.subject] = r.content()
		}
	}
}

// settled notes that all that was due has been signed.
func (k *Keys) settled() {
	clear(k.less)
	for _, r := range k.rolls {
		if r.loaded {
			r.dirty = false
		}
	}
}

// create makes the key. The caller holds the lock.
func (k *Keys) create(passphrase string) error {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return fmt.Errorf("make the key of this home: %w", err)
	}
	sealed, err := sealWith(passphrase, public, private)
	if err != nil {
		return err
	}
	fresh := document{Version: 1, Key: public, Seals: []seal{sealed}, Statements: map[string][]byte{}}
	k.private = private
	if k.trouble != nil {
		err = k.anew(fresh)
	} else {
		k.doc = fresh
		k.takeDue() // what the home had before it had a key
		err = k.write("authority key made", "")
	}
	if err != nil {
		k.doc, k.private = document{}, nil
		return err
	}
	k.settled()
	return nil
}

// anew begins with nothing signed after the file was found wrong, and with a higher number than the record knows. The caller holds
// the lock and has the key open.
func (k *Keys) anew(doc document) error {
	doc.Statements = map[string][]byte{}
	if k.known != nil {
		doc.Serial = max(doc.Serial, k.known.serial)
	}
	before := k.doc
	k.doc = doc
	clear(k.less)
	k.takeDue() // rolls that say that nothing counts: without them everything would after the next start
	if err := k.write("authority begun anew", ""); err != nil {
		k.doc, k.private = before, nil
		return err
	}
	k.settled()
	k.mended = "what lasts began anew at a sign-in, and waits until you accept it again, because " + k.trouble.Error()
	k.trouble = nil
	return nil
}

// Reseal adds a seal of another passphrase, for somebody who knows the present one. commit takes the old ones away: between the
// two either passphrase opens the key, so that a crash locks nobody out.
func (k *Keys) Reseal(old, fresh string) (commit func() error, err error) {
	if err := k.Unlock(old); err != nil {
		return nil, err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	sealed, err := sealWith(fresh, k.doc.Key, k.private)
	if err != nil {
		return nil, err
	}
	before := k.doc.Seals
	k.doc.Seals = append([]seal{sealed}, before...)
	if err := k.write("authority sealed anew", ""); err != nil {
		k.doc.Seals = before
		return nil, err
	}
	return func() error {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.doc.Seals = []seal{sealed}
		return k.write("authority sealed anew", "")
	}, nil
}

// write signs the set as it is and puts it on the disk. The caller holds the lock and has the key open.
func (k *Keys) write(event, subject string) error {
	next := k.doc
	next.Serial++
	next.sign(k.private)
	content, err := next.encode()
	if err != nil {
		return err
	}
	if now, err := ownfile.Read(filepath.Join(k.dir, FileName), maxBytes); k.onDisk != nil && (err != nil || !bytes.Equal(now, k.onDisk)) {
		// Whoever did it could not sign, or had an older copy: neither may be taken over.
		k.tell(Event{
			Name: "authority file exchanged", Key: k.fingerprint(), Serial: k.doc.Serial, public: k.doc.Key,
			Err: errors.New(FileName + " was changed by something else while the gateway ran; it is written anew"),
		})
	}
	if err := replace(k.dir, content); err != nil {
		return fmt.Errorf("write %s: %w", FileName, err)
	}
	k.doc, k.onDisk = next, content
	k.tell(Event{Name: event, Subject: subject, Key: k.fingerprint(), Serial: next.Serial, public: next.Key})
	return nil
}

// Statement is what was signed about one subject.
type Statement struct {
	keys    *Keys
	subject string
}

// About is the statement about a subject.
func (k *Keys) About(subject string) *Statement { return &Statement{k, subject} }

// Accepted is what a person accepted; nil if there is nothing with a good signature.
func (s *Statement) Accepted() []byte {
	s.keys.mu.Lock()
	defer s.keys.mu.Unlock()
	if s.keys.trouble != nil {
		return nil
	}
	if less, ok := s.keys.less[s.subject]; ok {
		return less
	}
	return s.keys.doc.Statements[s.subject]
}

// May returns [ErrLocked] if nothing can be accepted now.
func (s *Statement) May() error { return s.keys.Locked() }

// Accept signs content as what a person accepted. It has reached the disk when it returns.
func (s *Statement) Accept(_ context.Context, content []byte) error {
	k := s.keys
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.private == nil {
		return ErrLocked
	}
	return k.sign(s.subject, append([]byte{}, content...))
}

// Tighten replaces what was accepted by less. It counts at once, and is signed as soon as the key is open: until then a restart
// brings back what was signed.
func (s *Statement) Tighten(content []byte) {
	k := s.keys
	k.mu.Lock()
	k.less[s.subject] = bytes.Clone(content)
	locked := k.private == nil
	k.mu.Unlock()
	if locked {
		return
	}
	if err := s.Accept(context.Background(), content); err != nil {
		k.tell(Event{Name: "authority not signed", Subject: s.subject, Key: k.Fingerprint(), Err: err})
	}
}
