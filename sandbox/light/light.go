package light

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"sync"
	"time"
)

// Options are what light confinement needs.
type Options struct {
	// Program finds toolward-inside: its file, and the arguments before its own where the big program stands in.
	Program func(context.Context) (file *os.File, args []string, err error)
	Log     *slog.Logger // optional
}

// Light makes light confinements. It is safe for concurrent use.
type Light struct {
	options Options
	log     *slog.Logger

	check func() Check // what was found out, once
	life  context.Context
	end   context.CancelFunc // of what is being found out

	mu     sync.Mutex
	closed bool
	spare  *box        // made before anybody needs it; nil: there is none
	making bool        // one is being made
	idle   *time.Timer // ends a spare that nobody needed
}

// Mode is how commands are confined.
type Mode string

// The modes.
const (
	Namespaces Mode = "namespaces"
	Landlock   Mode = "landlock" // no user namespaces: files alone, and those only where no other way leads there
	None       Mode = "none"
)

// Check is what this machine can do.
type Check struct {
	Mode  Mode
	Found string // why it is not the best, for people
	Fix   string // what to do about it
}

// ErrClosed says that nothing is confined any more.
var ErrClosed = errors.New("the gateway is stopping")

// New makes no box yet.
func New(o Options) *Light {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	l := &Light{options: o, log: o.Log}
	l.life, l.end = context.WithCancel(context.Background())
	l.check = sync.OnceValue(l.probe)
	return l
}

// Check says what this machine can do. The first time it tries.
func (l *Light) Check() Check { return l.check() }

// Close ends what waits to be used. Boxes of jobs end with their jobs.
func (l *Light) Close() {
	l.end()
	l.check() // it waits for what is being tried, which ends now; what nobody has tried fails at once
	l.mu.Lock()
	l.closed = true
	spare := l.spare
	l.spare = nil
	if l.idle != nil {
		l.idle.Stop()
	}
	l.mu.Unlock()
	if spare != nil {
		spare.End()
	}
}

// Unavailable is the error of a machine that can confine nothing.
type Unavailable struct{ Check Check }

func (u *Unavailable) Error() string {
	return "commands cannot be confined lightly here: " + u.Check.Found + " (" + u.Check.Fix + ")"
}
