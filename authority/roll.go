package authority

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"
)

// Roll is a statement about rows of the database: those on it are a person's word. It stops a program of the same user that writes
// a token, a passkey, a device or a grant into the database while no gateway runs: without the key its row is on no roll.
type Roll struct {
	keys    *Keys
	subject string
	about   string // in the plural, for people

	// Guarded by the lock of the keys.
	loaded  bool
	dirty   bool // what counts is not what is signed
	rows    map[Row]time.Time
	strange []string // what was found at the start that is not as people left it
}

// Row stands for what of a row gives rights: a digest of it.
type Row [sha256.Size]byte

// Entry is a row and its end.
type Entry struct {
	Row  Row
	Ends time.Time // zero: never; from then on it need not be on the roll any more
	Name string    // for people
}

// RowOf is the row that stands for the fields of v which give rights.
func RowOf(v any) Row {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // of plain fields: two rows that cannot be encoded must not look alike
	}
	return sha256.Sum256(text)
}

// Roll is the roll of a subject; about names its rows for people, in the plural. There is one for each subject, made before anybody
// signs in.
func (k *Keys) Roll(subject, about string) *Roll {
	k.mu.Lock()
	defer k.mu.Unlock()
	r := &Roll{keys: k, subject: subject, about: about, rows: map[Row]time.Time{}}
	k.rolls = append(k.rolls, r)
	return r
}

// Unset says that nobody has set a passphrase yet, so that no person can have let anything in: rows that are there all the same
// were put there before the first start, to be signed with the first passphrase.
func (k *Keys) Unset() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.unset = true
}

// Load takes the rows that the database has and that would count, and those that are there and have ended. It says which count.
// Before anything was ever signed all do, as they did before there was a key; then those that a person added; and none if what was
// signed cannot be trusted.
func (r *Roll) Load(found []Entry, ended ...Row) (counts func(Row) bool) {
	r.keys.mu.Lock()
	defer r.keys.mu.Unlock()
	r.loaded = true
	signed, known := r.signed()
	for _, e := range found {
		_, on := signed[e.Row]
		switch {
		case on || !known:
			r.rows[e.Row] = e.Ends
			delete(signed, e.Row)
		default:
			r.strange = append(r.strange, e.Name)
		}
	}
	gone := len(signed)
	for _, row := range ended {
		if _, on := signed[row]; on {
			gone--
		}
	}
	// Those that nobody finds any more come off the roll as soon as it can be signed: whoever puts them back puts back nothing.
	_, there := r.keys.doc.Statements[r.subject]
	r.dirty = !there || len(signed) > 0 || r.keys.trouble != nil
	r.findings(gone)
	here := maps.Clone(r.rows)
	return func(row Row) bool { _, on := here[row]; return on }
}

// mostNamed is how many rows a finding names: whoever writes the database may write thousands.
const mostNamed = 10

// findings puts into words what is not as people left it. The caller holds the lock.
func (r *Roll) findings(gone int) {
	if n := len(r.strange); n > 0 && r.keys.trouble == nil {
		names := r.strange[:min(n, mostNamed)]
		r.keys.findings = append(r.keys.findings, fmt.Sprintf("%d %s in the database carry no signature: either something without the key of this home wrote or changed them, "+
			"or somebody gave them while nobody had typed the passphrase. They do not count after a start: %q", n, r.about, names))
	}
	if gone > 0 {
		r.keys.findings = append(r.keys.findings, fmt.Sprintf("%d %s that a person accepted are gone from the database: either something else removed them, "+
			"or somebody did who had not typed the passphrase since the gateway started", gone, r.about))
	}
	r.strange = nil
}

// signed is what the statement says; known is false before there was one. One that cannot be read, and any while the file is in
// trouble, says that nothing counts. The caller holds the lock.
func (r *Roll) signed() (rows map[Row]time.Time, known bool) {
	rows = map[Row]time.Time{}
	content, known := r.keys.doc.Statements[r.subject]
	if r.keys.trouble != nil {
		return rows, true
	}
	if !known {
		return rows, r.keys.unset
	}
	const width = len(Row{}) + 8
	if len(content)%width != 0 {
		return rows, true
	}
	for one := range slices.Chunk(content, width) {
		ends := int64(binary.BigEndian.Uint64(one[len(Row{}):]))
		if ends == 0 {
			rows[Row(one[:len(Row{})])] = time.Time{}
		} else if at := time.UnixMilli(ends); time.Now().Before(at) {
			rows[Row(one[:len(Row{})])] = at
		}
	}
	return rows, true
}

// content is the statement about the rows that count. The caller holds the lock.
func (r *Roll) content() []byte {
	now := time.Now()
	out := []byte{}
	for _, row := range slices.SortedFunc(maps.Keys(r.rows), func(a, b Row) int { return bytes.Compare(a[:], b[:]) }) {
		ends := r.rows[row]
		if !ends.IsZero() && !now.Before(ends) {
			delete(r.rows, row)
			continue
		}
		out = append(out, row[:]...)
		ms := int64(0)
		if !ends.IsZero() {
			ms = ends.UnixMilli()
		}
		out = binary.BigEndian.AppendUint64(out, uint64(ms))
	}
	return out
}

// May returns [ErrLocked] if no row can be added now.
func (r *Roll) May() error { return r.keys.Locked() }

// Has reports whether a row is on the roll.
func (r *Roll) Has(row Row) bool {
	r.keys.mu.Lock()
	defer r.keys.mu.Unlock()
	_, on := r.rows[row]
	return on
}

// Add signs a row, in place of others if it replaces any. It has reached the disk when Add returns. It fails with [ErrLocked] while
// nobody has typed the passphrase.
func (r *Roll) Add(ctx context.Context, e Entry, instead ...Row) error {
	return r.change(ctx, e, instead, false)
}

// AddNow lets a row count at once even while nobody can sign it: until the gateway ends, and longer if somebody types the
// passphrase before.
func (r *Roll) AddNow(ctx context.Context, e Entry) error { return r.change(ctx, e, nil, true) }

func (r *Roll) change(_ context.Context, e Entry, instead []Row, unsigned bool) error {
	k := r.keys
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.private == nil && !unsigned {
		return ErrLocked
	}
	before, was := maps.Clone(r.rows), r.dirty
	for _, old := range instead {
		delete(r.rows, old)
	}
	r.rows[e.Row], r.dirty = e.Ends, true
	if k.private == nil {
		return nil
	}
	if err := k.sign(r.subject, nil); err != nil {
		r.rows, r.dirty = before, was
		return err
	}
	return nil
}

// Remove takes rows off the roll. It counts at once, and is signed as soon as the key is open.
func (r *Roll) Remove(rows ...Row) {
	k := r.keys
	k.mu.Lock()
	had := len(r.rows)
	for _, row := range rows {
		delete(r.rows, row)
	}
	if len(r.rows) == had {
		k.mu.Unlock()
		return
	}
	r.dirty = true
	var err error
	if k.private != nil {
		err = k.sign(r.subject, nil)
	}
	k.mu.Unlock()
	if err != nil {
		k.tell(Event{Name: "authority not signed", Subject: r.subject, Key: k.Fingerprint(), Err: err})
	}
}

// due reports whether the roll is not signed as it is. One that was not loaded is left as it was signed. The caller holds the lock.
func (r *Roll) due() bool { return r.loaded && r.dirty }
