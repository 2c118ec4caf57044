package ticket

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/sandbox"
)

// Command is a command that was started for a client's shell. Its Wait returns when all its output was handed over.
type Command interface {
	sandbox.Process
	// Ended lets go of what the command needed, after Wait or in its place. note is for people and the model, behind the
	// command's output, of whose end tail is; dir is where the client's shell is to be then, "" for where it is.
	Ended(status sandbox.ExitStatus, err error, tail []byte) (note, dir string)
}

// Terms is what the shell says of where it stands. None of it chooses what runs.
type Terms struct {
	Dir      string   // its working directory, absolute
	Environ  []string // NAME=value
	Stdin    bool     // there may be something to read
	Merged   bool     // both outputs go to one place, in order
	Reports  bool     // it follows the command into another directory
	Terminal *sandbox.Size
}

// Options is what an Office needs.
type Options struct {
	// Program starts toolward-run: words of a shell, quoted where they must be.
	Program string
	// Start starts the command of a pass. An error refuses it, in words that the model reads.
	Start func(ctx context.Context, pass *toolward.Pass, terms Terms) (Command, error)
	// UserOf is the user at the other end of the connection of a request; false if nobody knows.
	UserOf func(ctx context.Context) (uid int, ok bool)
	Log    *slog.Logger
}

// life bounds how long a ticket is good: clients run a command at once, or when the commands before it have ended.
const life = 10 * time.Minute

// Office issues tickets and redeems them. It is safe for concurrent use.
type Office struct {
	options Options
	log     *slog.Logger

	mu     sync.Mutex
	issued map[[sha256.Size]byte]*Ticket
}

// Open makes an Office without tickets: those of an earlier run are worth nothing, because nobody knows their passes.
func Open(o Options) (*Office, error) {
	if o.Program == "" || o.Start == nil || o.UserOf == nil {
		return nil, errors.New("ticket: an office needs the program, what starts commands, and who is there")
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &Office{options: o, log: o.Log, issued: map[[sha256.Size]byte]*Ticket{}}, nil
}

// Ticket is the right to start the command of one pass. The text of a ticket is kept only in what the client is told.
type Ticket struct {
	office  *Office
	pass    *toolward.Pass
	digest  [sha256.Size]byte
	uid     int
	until   time.Time
	reports bool
	state   atomic.Int32
	begun   chan struct{} // closed when it is redeemed
}

// The states of a ticket. It goes through them in this order and never back.
const (
	issued int32 = iota
	redeemed
	void
)

// Issue makes a ticket for a pass that was started, for the user whose client asks, and the command for the client's shell
// that shows it. moves: the shell follows the command into another directory.
func (o *Office) Issue(ctx context.Context, pass *toolward.Pass, moves bool) (*Ticket, string, error) {
	uid, ok := o.options.UserOf(ctx)
	if !ok {
		return nil, "", errors.New("nobody knows whose client this is")
	}
	var secret [16]byte
	rand.Read(secret[:]) // it never fails
	text := strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(secret[:]))
	t := &Ticket{office: o, pass: pass, digest: sha256.Sum256([]byte(text)), uid: uid, until: time.Now().Add(life), reports: moves, begun: make(chan struct{})}
	o.mu.Lock()
	o.issued[t.digest] = t
	o.mu.Unlock()
	return t, o.command(text, moves), nil
}

// command is what the client's shell runs in the place of the command. Where the shell has to follow the command into another
// directory, toolward-run says so by descriptor 3, which the shell reads while both outputs go where they went.
func (o *Office) command(ticket string, moves bool) string {
	if !moves {
		return o.options.Program + " " + ticket
	}
	return "{ toolward_dir=$(" + o.options.Program + " " + ticket + " --cd 3>&1 >&4 4>&-); toolward_status=$?; } 4>&1; " +
		`case $toolward_dir in /*) cd -- "$toolward_dir";; esac; (exit $toolward_status)`
}

// Redeemed reports whether the command of a ticket was started.
func (t *Ticket) Redeemed() bool { return t.state.Load() == redeemed }

// Begun is closed when the command of a ticket is started.
func (t *Ticket) Begun() <-chan struct{} { return t.begun }

// Void ends a ticket with its pass. What it has started goes on. It reports whether nothing was started by then, nor ever will be.
func (t *Ticket) Void() (unused bool) {
	unused = t.state.CompareAndSwap(issued, void)
	t.office.mu.Lock()
	delete(t.office.issued, t.digest)
	t.office.mu.Unlock()
	return unused
}

// Why nothing ran, in words for the model. None tells a guesser more than that there is nothing to be had.
var (
	errUnknown = errors.New("this ticket is not known: it ends with its call, and with the daemon. The command did not run; repeat the call")
	errUsed    = errors.New("this command was started already: a ticket is good for once. Repeat the call if it is to run again")
	errLate    = errors.New("this ticket is too old. The command did not run; repeat the call")
	errUser    = errors.New("this ticket is of another user. The command did not run")
)

// find is the ticket of a text, for the user who shows it.
func (o *Office) find(text string, uid int) (*Ticket, error) {
	digest := sha256.Sum256([]byte(text))
	o.mu.Lock()
	t := o.issued[digest]
	o.mu.Unlock()
	switch {
	case t == nil:
		return nil, errUnknown
	case t.uid != uid:
		return nil, errUser // it stops one user's program from starting what another's agent was let run
	case time.Now().After(t.until):
		return nil, errLate
	case t.state.Load() != issued:
		return nil, errUsed
	}
	return t, nil
}

// redeem takes the right to start. It stops two runners that race: one of them starts.
func (t *Ticket) redeem() error {
	if !t.state.CompareAndSwap(issued, redeemed) {
		return errUsed
	}
	close(t.begun)
	return nil
}
