package desk_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/approval"
	"github.com/toolward/toolward/audit"
	"github.com/toolward/toolward/command/allowlist"
	"github.com/toolward/toolward/desk"
	"github.com/toolward/toolward/identity"
	"github.com/toolward/toolward/internal/gatetest"
	"github.com/toolward/toolward/session"
	"github.com/toolward/toolward/store"
)

const passphrase = "correct horse battery"

// world is a desk on real parts, with a record that can fail and that looks what is there when it is written.
type world struct {
	t         *testing.T
	home      string
	desk      *desk.Desk
	people    identity.Store
	keeper    *identity.Keeper
	allowlist *allowlist.Store
	ledger    gatetest.Ledger
	devices   *identity.Pairings
	passkeys  *identity.Passkeys
	sessions  *session.Tracker
	boxes     *boxes
	forwards  *forwards
	file      *file
	db        *store.DB
	approvals *approval.Manager
	salt      []byte // of the token that the device had before

	mu      sync.Mutex
	full    bool
	locked  error // why nothing that lasts can be signed
	events  []audit.Event
	changed func() bool // looked at with each record
	early   []bool      // what changed said
}

var errFull = errors.New("no space left on device")

// Append is the record.
func (w *world) Append(_ context.Context, e audit.Event) (int64, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.full {
		return 0, errFull
	}
	if w.changed != nil {
		w.early = append(w.early, w.changed())
	}
	w.events = append(w.events, e)
	return int64(len(w.events)), nil
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, home: t.TempDir()}
	db, err := store.Open(t.Context(), w.home, store.Options{})
	must(t, err)
	t.Cleanup(func() { must(t, db.Close()) })
	w.db = db
	w.people = store.NewDevices(db)
	w.keeper, err = identity.Open(t.Context(), identity.Options{Store: w.people})
	must(t, err)
	w.devices, err = identity.OpenPairings(t.Context(), store.NewPaired(db), make([]byte, 32))
	must(t, err)
	w.allowlist = allowlist.Open(w.home, allowlist.Options{Ledger: &w.ledger})
	t.Cleanup(w.allowlist.Close)
	w.passkeys, err = identity.OpenPasskeys(t.Context(), w.keeper, store.NewPasskeys(db))
	must(t, err)
	w.sessions, err = session.New(session.Options{Store: store.NewSessions(db), Settings: session.Settings{DefaultLevel: toolward.Normal}})
	must(t, err)
	w.boxes, w.forwards, w.file = &boxes{}, &forwards{}, &file{}
	w.desk, err = desk.New(desk.Options{
		Locked: func() error { return w.locked },
		Audit:  w, Allowlist: w.allowlist, People: w.keeper, Passkeys: w.passkeys, Devices: w.devices, Levels: w.sessions, Sandboxes: w.boxes, Forwards: w.forwards, Config: w.file,
	})
	must(t, err)
	return w
}

// person is somebody who signed in. All tests have the same one, and the same one who left: a passphrase takes its time.
func (w *world) person() desk.Visitor { return desk.Visitor{By: somebody.here, Client: "cli"} }

// strangers are visitors who may do nothing.
func strangers() map[string]desk.Visitor {
	return map[string]desk.Visitor{"nobody": {}, "an agent": {By: identity.Requester()}, "somebody who has left": {By: somebody.gone}}
}

var somebody struct{ here, gone identity.Authority }

func TestMain(m *testing.M) {
	home, err := os.MkdirTemp("", "desk")
	if err == nil {
		err = signIn(home)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	os.RemoveAll(home)
	os.Exit(code)
}

func signIn(home string) error {
	ctx := context.Background()
	db, err := store.Open(ctx, home, store.Options{})
	if err != nil {
		return err
	}
	keeper, err := identity.Open(ctx, identity.Options{Store: store.NewDevices(db)})
	if err != nil {
		return err
	}
	if err := keeper.SetUp(ctx, "test", keeper.SetupCode(), passphrase); err != nil {
		return err
	}
	if somebody.here, err = keeper.SignInForeground(ctx, passphrase); err != nil {
		return err
	}
	if somebody.gone, err = keeper.SignInForeground(ctx, passphrase); err != nil {
		return err
	}
	keeper.SignOut(somebody.gone)
	return nil
}

// operation is one operation on a world, and how to see that it was done.
type operation struct {
	name    string
	event   string // what its record is called
	prepare func(*testing.T, *world)
	do      func(context.Context, *world, desk.Visitor) error
	done    func(*world) bool
}

// loosens checks an operation that gives something: nobody does it without the right, nor without a record, and the record
// stands before the change.
func (o *operation) loosens(t *testing.T) { t.Run(o.name, o.loosening) }

// loosening is loosens for a bubble, which can run no further test.
func (o *operation) loosening(t *testing.T) {
	o.needsRight(t)
	w := o.world(t)
	w.full = true
	if err := o.do(t.Context(), w, w.person()); desk.CodeOf(err) != desk.Unrecorded || !errors.Is(err, errFull) || o.done(w) {
		t.Errorf("without a record: %v, done %v", err, o.done(w))
	}
	w.full, w.changed = false, func() bool { return o.done(w) }
	must(t, o.do(t.Context(), w, w.person()))
	if !slices.Equal(w.early, []bool{false}) {
		t.Errorf("%d records; changed before they stood: %v", len(w.events), w.early)
	}
	o.isRecorded(t, w)
}

// takesAway checks an operation that takes something away: nobody does it without the right, and what cannot be recorded is done all
// the same.
func (o *operation) takesAway(t *testing.T) {
	t.Run(o.name, func(t *testing.T) {
		o.needsRight(t)
		w := o.world(t)
		w.full = true
		if err := o.do(t.Context(), w, w.person()); err != nil || !o.done(w) {
			t.Errorf("without a record: %v, done %v", err, o.done(w))
		}
		w = o.world(t)
		must(t, o.do(t.Context(), w, w.person()))
		o.isRecorded(t, w)
	})
}

func (o *operation) world(t *testing.T) *world {
	t.Helper()
	w := newWorld(t)
	if o.prepare != nil {
		o.prepare(t, w)
	}
	w.events = nil
	return w
}

// needsRight checks that nobody but a person does it, and that nothing is recorded as done.
func (o *operation) needsRight(t *testing.T) {
	t.Helper()
	w := o.world(t)
	for who, visitor := range strangers() {
		if err := o.do(t.Context(), w, visitor); desk.CodeOf(err) != desk.NotAllowed || !errors.Is(err, identity.ErrNotSignedIn) {
			t.Errorf("%s: %v", who, err)
		}
		if o.done(w) || len(w.events) != 0 {
			t.Errorf("%s: done %v, recorded %v", who, o.done(w), w.events)
		}
	}
}

// isRecorded checks that the operation was done, and that its one record says by whom.
func (o *operation) isRecorded(t *testing.T, w *world) {
	t.Helper()
	if !o.done(w) || len(w.events) != 1 {
		t.Fatalf("done %v, records: %v", o.done(w), w.events)
	}
	data := w.events[0].Data
	if by, _ := data["by"].(string); data["event"] != o.event || !strings.HasPrefix(by, "owner") || !w.events[0].Durable {
		t.Errorf("recorded: %+v", w.events[0])
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
