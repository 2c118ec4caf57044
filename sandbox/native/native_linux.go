package native

import (
	"context"
	"log/slog"
	"net"
	"os"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/toolward/toolward/sandbox"
	"github.com/toolward/toolward/sandbox/disk"
	"github.com/toolward/toolward/sandbox/inside"
)

// Engine makes native sandboxes. They end with it.
type Engine struct {
	options Options
	log     *slog.Logger
	root    bool // the gateway is user 0 of the host
	starter *starter
	null    *os.File
	idmaps  idmaps
	live    sync.WaitGroup // processes that were started and not yet waited for
	serial  atomic.Int64
	owner   string // of the groups of this gateway: its process id and start time

	capabilities func() sandbox.Capabilities  // what was found out, once
	groups       func() (*hierarchies, error) // where control groups are made, found once
	sweep        sync.Once                    // of temporary directories

	boxes sandbox.WaitingRoom[*box]
	disk  disk.Book

	supervised supervised

	mu        sync.Mutex
	spares    map[identity][]*spare
	closed    bool
	refilling bool  // a spare is being started
	err       error // why nothing can be started
}

// program is what is executed as the helper.
type program struct {
	file *os.File
	args []string
}

func (e *Engine) program(ctx context.Context) (*program, error) {
	if e.err != nil {
		return nil, e.err
	}
	if e.options.program != nil {
		return &program{file: e.options.program}, nil
	}
	found, err := inside.FindProgram(ctx)
	if err != nil {
		return nil, err
	}
	return &program{file: found.File, args: found.Args}, nil
}

// client is what the connection to the program inside does of a [sandbox.Handle].
type client struct{ *inside.Client }

// box is one sandbox.
type box struct {
	*client
	engine *Engine
	helper *helper
	group  *group
	record *record // of one that goes on without the gateway; nil of others
	// temporary is where a sandbox that cannot have a /tmp of its own has one; "" for others.
	temporary string

	done  chan struct{} // closed when it has ended
	once  sync.Once
	err   error        // of the end
	ended atomic.Int64 // processes that watchMemory has ended

	noting sync.Mutex // held while the record is written or removed

	mu     sync.Mutex
	state  sandbox.State
	reason string // why it was ended, if we did it
}

func (b *box) running() bool {
	select {
	case <-b.done:
		return false
	default:
		return true
	}
}

func (b *box) namespaced() bool { return b.engine.capabilities().Level != sandbox.LevelLandlock }

// helper is a started toolward-inside that carries out plans.
type helper struct {
	pid    int
	id     string        // process id, start time and boot
	conn   *net.UnixConn // nil of one that another gateway has started
	exited chan struct{} // closed when the process has ended and was waited for
	kill   func()
	leave  func() // stops waiting for its end
}

// starter starts processes on one thread that lives as long as the engine. The kernel sends the signal of a parent's
// death when the thread that started a child ends, whatever becomes of the process.
type starter struct {
	requests chan func()
}

func newStarter() *starter {
	s := &starter{requests: make(chan func())}
	go func() {
		// Never unlocked: the thread ends with this goroutine, which is when the engine is closed.
		runtime.LockOSThread()
		for request := range s.requests {
			request()
		}
	}()
	return s
}

func (s *starter) close() { close(s.requests) }

// spare is a helper that has made what every sandbox of a user has, and waits for what this one has beyond that.
type spare struct {
	helper *helper
	group  *group
}

// idmap makes what belongs to one user of the host belong to another, on one mount.
type idmap struct{ fromUID, fromGID, toUID, toGID int }

// idmaps keeps a user namespace for each mapping, which is how the kernel wants to be told.
type idmaps struct {
	mu    sync.Mutex
	known map[idmap]*os.File
}

// identity is who runs inside, in numbers of the host and of the sandbox.
type identity struct{ hostUID, hostGID, uid, gid int }
