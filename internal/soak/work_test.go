package soak

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/approval"
	"github.com/toolward/toolward/store"
)

const (
	restartEvery = 2500 * time.Millisecond // of the manager and the database, in the same process
	lifeOfOne    = 3 * time.Second         // how long a question waits
	seenFor      = 600 * time.Millisecond
	sessions     = 40
	usesOfGrant  = 3
	endsWithin   = time.Minute // after the last question, everything must be over
)

// worker is one process: agents that ask, people that answer, and a gateway that restarts under them.
type worker struct {
	t    *testing.T
	home string

	mu      sync.RWMutex // held to use the manager, and to replace it
	manager *approval.Manager
	db      *store.DB
	gone    chan struct{} // closed when the manager's people go
	round   atomic.Int64  // counts restarts
	number  atomic.Int64
	asking  sync.WaitGroup
	people  sync.WaitGroup
	say     sync.Mutex

	began   time.Time
	rate    int
	waiting atomic.Int64 // calls that are not over
	posed   atomic.Int64 // approvals
	told    int64        // of them
}

// work asks so many questions a second: without an end, or for the time that the drain says.
func work(t *testing.T, home string, drain bool) {
	w := &worker{t: t, home: home, began: time.Now(), rate: rateOf(t)}
	if ms, err := strconv.ParseInt(os.Getenv(beganChild), 10, 64); err == nil {
		w.began = time.UnixMilli(ms) // what the start took is caught up with
	}
	before := runtime.NumGoroutine()
	w.open()
	stop := make(chan struct{})
	var around sync.WaitGroup
	every := func(d time.Duration, do func()) {
		around.Go(func() {
			tick := time.NewTicker(d)
			defer tick.Stop()
			for {
				select {
				case <-tick.C:
					do()
				case <-stop:
					return
				}
			}
		})
	}
	every(5*time.Millisecond, w.keepPace)
	every(restartEvery, w.restart)
	every(100*time.Millisecond, w.count)
	every(2*time.Second, w.measure)
	if !drain {
		select {} // until the kill
	}
	life, err := time.ParseDuration(os.Getenv(drainChild))
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Until(w.began.Add(life)))
	close(stop)
	around.Wait()
	w.settle()
	w.close()
	w.count()
	w.tell("left %d", w.goroutines(before)-before)
	w.tell("done")
}

// keepPace begins calls until there are as many approvals as are due. Not every call makes one: some share a prompt, or
// have a grant. A tenth of what is missing at a time leaves them the time to get there. A machine that cannot keep up is
// not buried in calls.
func (w *worker) keepPace() {
	due := int64(time.Since(w.began).Seconds() * float64(w.rate))
	for range (due - w.posed.Load() + 9) / 10 {
		if w.waiting.Load() >= int64(w.rate)*10 {
			return
		}
		w.waiting.Add(1)
		w.asking.Go(func() {
			defer w.waiting.Add(-1)
			w.call()
		})
	}
}

// count tells of the approvals since the last time.
func (w *worker) count() {
	n := w.posed.Load()
	w.tell("posed %d", n-w.told)
	w.told = n
}

// tell says one thing to the parent, in one write: a kill cuts lines, never mixes them.
func (w *worker) tell(format string, values ...any) {
	w.say.Lock()
	defer w.say.Unlock()
	fmt.Fprintf(os.Stdout, format+" .\n", values...)
}

func (w *worker) wrong(format string, values ...any) { w.tell("wrong "+format, values...) }

// open starts a manager on the home, and two people in front of it.
func (w *worker) open() {
	db, err := store.Open(context.Background(), w.home, store.Options{})
	if err != nil {
		w.t.Fatal(err)
	}
	m, err := approval.Open(context.Background(), approval.Options{
		Store: store.NewApprovals(db), Redact: func(s string) string { return s },
		Settings: approval.Settings{Timeout: lifeOfOne, PerSession: 20_000, PerConn: 20_000, Total: 20_000},
		Observe: func(e approval.Event) {
			if e.Type == approval.EventRequested {
				w.posed.Add(1)
			}
		},
	})
	if err != nil {
		w.t.Fatal(err)
	}
	gone := make(chan struct{})
	w.manager, w.db, w.gone = m, db, gone
	for _, name := range []string{"alice", "bob"} {
		who := person(name)
		presence, err := m.Attach(approval.Approver{Name: name, By: who, Connection: "console-" + name})
		if err != nil {
			w.t.Fatal(err)
		}
		news, err := m.Subscribe(who, 4096)
		if err != nil {
			w.t.Fatal(err)
		}
		see := func(r *approval.Record) { w.people.Go(func() { w.answer(m, who, r, gone) }) }
		waits, err := m.Pending(context.Background(), who) // what was there before the restart
		if err != nil {
			w.t.Fatal(err)
		}
		for _, r := range waits {
			see(r)
		}
		w.people.Go(func() {
			defer presence.Close()
			defer news.Close()
			for e := range news.C {
				if e.Type == approval.EventRequested {
					see(&e.Approval)
				}
			}
		})
	}
}

func (w *worker) close() {
	w.manager.Close()
	close(w.gone)
	w.people.Wait()
	if err := w.db.Close(); err != nil {
		w.wrong("close the state: %v", err)
	}
}

func (w *worker) restart() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.round.Add(1)
	w.close()
	w.open()
	w.tell("restart")
}

// settle waits until everything that was asked is over.
func (w *worker) settle() {
	over := make(chan struct{})
	go func() { w.asking.Wait(); close(over) }()
	select {
	case <-over:
	case <-time.After(endsWithin):
		w.wrong("calls are stuck a minute after the last question")
	}
	for begin := time.Now(); w.manager.Count() > 0; time.Sleep(100 * time.Millisecond) {
		if time.Since(begin) > endsWithin {
			w.wrong("%d approvals are stuck a minute after the last question", w.manager.Count())
			return
		}
	}
}

// measure tells what is really held: memory that the runtime keeps for later goes back to the system before, because how
// much that is depends on when the last collections were.
func (w *worker) measure() {
	debug.FreeOSMemory()
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	w.tell("heap %.2f %.2f", float64(s.HeapInuse)/(1<<20), float64(resident())/(1<<10))
}

// resident is how many KiB of memory the system has given the process for its own; 0 if it does not say.
func resident() (kib int64) {
	raw, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(raw)) {
		if rest, ok := strings.CutPrefix(line, "RssAnon:"); ok {
			_, _ = fmt.Sscan(rest, &kib)
		}
	}
	return kib
}

// goroutines waits a little for those that are ending.
func (w *worker) goroutines(want int) int {
	for range 100 {
		if runtime.NumGoroutine() <= want {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	return runtime.NumGoroutine()
}

// person answers; a real sign-in is tested elsewhere.
type person string

func (person) MayAnswer() error { return nil }
func (person) MayGrant() error  { return nil }
func (p person) Name() string   { return string(p) }
func (p person) SignIn() string { return "session-of-" + string(p) }
func (p person) Means() string  { return "" }

// answer reads a question for a while and then says something, or nothing. Two people do so for each question; the
// first counts.
func (w *worker) answer(m *approval.Manager, who person, shown *approval.Record, gone <-chan struct{}) {
	if rand.IntN(10) == 0 {
		return // looks away
	}
	stamp := m.MarkShown(shown, who)
	reads := time.NewTimer(seenFor + time.Duration(rand.Int64N(int64(800*time.Millisecond))))
	defer reads.Stop()
	select {
	case <-reads.C:
	case <-gone:
		return // the page is gone with the gateway
	}
	r := approval.Response{ID: shown.ID, Decision: "allow-once", By: who, Shown: stamp}
	switch rand.IntN(20) {
	case 0, 1, 2, 3, 4, 5:
		r.Decision = "deny"
	case 6:
		r.Decision, r.Narrow = "allow-always", approval.Narrow{Life: 2 * time.Second, Uses: usesOfGrant}
	}
	got, err := m.Resolve(context.Background(), r)
	switch {
	case err == nil && got.Decision.String() == r.Decision:
		w.tell("answered %s %d %s", shown.ID, shown.CreatedMs, r.Decision)
	case err == nil && got.Decision == toolward.AllowOnce && strings.Contains(got.Reason, approval.ErrOnlyOnce.Error()): // asked before a restart
		w.tell("answered %s %d %s", shown.ID, shown.CreatedMs, got.Decision)
	case err == nil:
		w.wrong("%s answered %s and %s was taken", who, r.Decision, got.Decision)
	case errors.Is(err, approval.ErrResolved), errors.Is(err, approval.ErrUnknown): // another was first, or nobody waits any more
	default:
		w.wrong("answer of %s: %v", who, err)
	}
}

// call is one call of an agent: it asks, perhaps goes away, perhaps comes back, and runs if it may.
func (w *worker) call() {
	n := w.number.Add(1)
	if rand.IntN(20) == 0 && n > 5 {
		n -= rand.Int64N(5) // the same call as another one, which shares its prompt and needs a yes of its own
	}
	q := question(n)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	switch rand.IntN(10) {
	case 0: // disconnects
		defer time.AfterFunc(time.Duration(rand.Int64N(int64(time.Second))), cancel).Stop()
	case 1, 2:
		q.Request.Call.Detach = true
	}
	w.tell("asked")
	round := w.round.Load()
	answer, err := w.ask(ctx, q)
	var waiting *toolward.Pending
	for errors.As(err, &waiting) { // comes back, also after a restart
		time.Sleep(time.Duration(rand.Int64N(int64(time.Second))))
		q.Request.Call.Approval = waiting.ID
		waiting, round = nil, w.round.Load()
		answer, err = w.ask(ctx, q)
	}
	if err != nil || !answer.Decision.Allows() {
		w.tell("ended")
		return
	}
	w.mu.RLock()
	err = w.manager.Consume(context.Background(), answer.ApprovalID, q.Binding)
	same := round == w.round.Load()
	w.mu.RUnlock()
	switch {
	case err == nil:
		w.tell("ran %s", answer.ApprovalID)
	case same && ctx.Err() == nil && !q.Request.Call.Detach:
		// Twins that came back may both be told of one answer; only one of them gets it. An answer in the last
		// moment may be too late for a slow machine.
		if strings.Contains(err.Error(), "it has expired") {
			return
		}
		w.wrong("an answer could not be used: %v", err)
	}
}

// ask uses the manager of the moment; a restart meanwhile ends the question for who waits.
func (w *worker) ask(ctx context.Context, q *toolward.Question) (toolward.Answer, error) {
	w.mu.RLock()
	m := w.manager
	w.mu.RUnlock()
	if q.Request.Call.Approval == "" {
		if grant, ok, err := m.Granted(ctx, q); ok {
			w.tell("used %s", grant)
			return toolward.Answer{}, errGranted
		} else if err != nil {
			return toolward.Answer{}, err
		}
	}
	answer, err := m.Ask(ctx, q)
	if answer.Grant != "" {
		w.tell("used %s", answer.Grant)
	}
	return answer, err
}

// errGranted ends a call that needed no answer.
var errGranted = errors.New("granted")

// question asks to write a file, one of many in a few directories. The process is part of the binding, so that
// processes do not take up each other's numbers.
func question(n int64) *toolward.Question {
	path := fmt.Sprintf("/ws/src/%d/%d.go", n%100, n)
	session := toolward.SessionKey(fmt.Sprintf("agent:coder:%d", n%sessions))
	params := toolward.NewParams(fmt.Appendf(nil, `{"path":%q}`, path), map[string]any{"path": path})
	return &toolward.Question{
		Binding: fmt.Sprintf("binding %d %d", os.Getpid(), n),
		Request: &toolward.Request{
			Tool: &toolward.Tool{Name: "write"}, Params: params, Level: toolward.Normal, Digest: params.Digest("write", "coder", session),
			Facts: toolward.Facts{Targets: []toolward.Target{{Path: path, Real: path, Op: toolward.OpWrite, Zone: "workspace"}}},
			Call: toolward.Call{
				ID: fmt.Sprint(n), Run: fmt.Sprintf("run %d %d", os.Getpid(), n), Tool: "write", Session: session, Host: toolward.HostGateway, WorkDir: "/ws",
				Caller: toolward.Caller{Agent: "coder", Owner: true, Context: "main", Workspace: "/ws", Connection: fmt.Sprint("agent-", n%7), Device: "token-1"},
			},
		},
		Judgment: toolward.Judgment{
			Verdict: toolward.Ask, GrantOK: true, AllowAlways: true,
			Class: toolward.Classification{Class: toolward.NeedsApproval, Severity: toolward.Warning, Grant: toolward.GrantPath},
		},
	}
}
