package live_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/toolward/toolward/internal/live"
)

// How often the daemon is killed in all, and on one machine.
const (
	someKills       = 15
	allKills        = 200
	killsPerMachine = 25
)

// TestKills kills the daemon at random moments while many calls run, wait and are being answered. After every start
// the record is whole, everything that ran has its decision in it, and no answer was used twice. TOOLWARD_KILLS says
// how often.
func TestKills(t *testing.T) {
	t.Parallel()
	kills := live.Count(t, "TOOLWARD_KILLS", someKills, allKills)
	for done := 0; done < kills; done += killsPerMachine {
		n := min(killsPerMachine, kills-done)
		t.Run(fmt.Sprintf("%d to %d", done+1, done+n), func(t *testing.T) {
			t.Parallel()
			k := &killing{
				t: t, Machine: live.NewQuickMachine(t, killConfig), answers: map[string]int{}, calls: map[string]*tried{},
				checked: checked{open: map[int64]string{}, decided: map[string][]string{}},
				random:  rand.New(rand.NewPCG(uint64(done), uint64(time.Now().UnixNano()))),
			}
			writeFile(t, filepath.Join(k.Workspace, "hello.txt"), "hello")
			for range n {
				k.round()
			}
			k.end()
			t.Logf("%d kills: %s", n, k.summary())
		})
	}
}

// killConfig lets reads and writes run at once; patches and commands ask. So many calls are odd indeed: the detectors
// that count them would raise the level, and everything would ask.
const killConfig = `{
  "teg": {
    "preset": "workspace", "tools": {"apply_patch": "needs_approval"}, "approval": {"timeoutMs": 120000, "maxPendingPerSession": 200},
    "anomaly": {
      "burst": {"enabled": false}, "rate": {"enabled": false}, "writes": {"enabled": false}, "denied": {"enabled": false},
      "evasion": {"enabled": false},
    },
  },
  "limits": {"pendingPerSession": 200, "pendingPerConnection": 200}
}`

// killing is a machine whose daemon is killed again and again.
type killing struct {
	*live.Machine
	t       *testing.T
	random  *rand.Rand
	token   string
	rounds  int
	asked   int
	checked checked

	mu        sync.Mutex
	answers   map[string]int // by approval: how many answers the daemon has taken
	calls     map[string]*tried
	returning []*returning
}

// tried is what is known about a call from outside: its marker tells whether it ran.
type tried struct {
	tool         string
	ran, refused bool // as its client was told
}

// returning is a call whose client comes back after a kill.
type returning struct {
	name, tool, arguments, state string
}

const (
	readers    = 2
	writers    = 3
	askers     = 8
	longestRun = 900 * time.Millisecond
	// Clients rest a little between calls, else the tests beside this one hardly get on.
	betweenCalls = 5 * time.Millisecond
)

// round starts the daemon, puts it under load, kills it and checks what it left behind.
func (k *killing) round() {
	k.t.Helper()
	k.rounds++
	if k.random.IntN(5) == 0 {
		k.killWhileStarting()
	}
	k.Start()
	ctx, stop := context.WithCancel(k.t.Context())
	var load sync.WaitGroup
	first, second := k.signIn(ctx), k.signIn(ctx)
	k.verify(ctx, first)
	k.load(ctx, &load, first, second)
	time.Sleep(time.Duration(k.random.Int64N(int64(longestRun))))
	k.Kill()
	stop()
	load.Wait()
	k.check()
}

// killWhileStarting kills a daemon that is about to open, recover or serve.
func (k *killing) killWhileStarting() {
	k.t.Helper()
	command := k.Command("toolward", "up", "--listen", "127.0.0.1:0")
	if err := command.Start(); err != nil {
		k.t.Fatal(err)
	}
	time.Sleep(time.Duration(k.random.Int64N(int64(60 * time.Millisecond))))
	_ = command.Process.Kill()
	_ = command.Wait() // killed: that is no news
}

func (k *killing) signIn(ctx context.Context) *consolePerson {
	k.t.Helper()
	person, err := signInAtConsole(ctx, k.URL)
	if err != nil {
		k.t.Fatal(err)
	}
	return person
}

// verify has the daemon check its record, and at the first start makes a token.
func (k *killing) verify(ctx context.Context, person *consolePerson) {
	k.t.Helper()
	var verified struct {
		Sound  bool
		Broken any
	}
	if err := person.api(ctx, http.MethodGet, "/v1/audit/verify", nil, &verified); err != nil || !verified.Sound {
		k.t.Fatalf("after kill %d the record is broken: %v %+v", k.rounds-1, err, verified)
	}
	if k.token == "" {
		var made struct{ Secret string }
		if err := person.api(ctx, http.MethodPost, "/v1/tokens", map[string]string{"agent": "coder", "workspace": k.Workspace}, &made); err != nil {
			k.t.Fatal(err)
		}
		k.token = made.Secret
	}
}

// load runs clients, and people who answer, until ctx ends.
func (k *killing) load(ctx context.Context, all *sync.WaitGroup, people ...*consolePerson) {
	for _, person := range people {
		k.answer(ctx, all, person)
	}
	w := k.http()
	if k.rounds%3 == 0 {
		local := dialStdio(k.t, k.Machine, "coder")
		all.Go(func() {
			defer local.kill()
			for n := 0; k.tryOnStream(ctx, local, fmt.Sprintf("k%d-99-%d", k.rounds, n)); n++ {
			}
		})
	}
	for i := range readers + writers + askers {
		all.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				name := fmt.Sprintf("k%d-%d-%d", k.rounds, i, n)
				time.Sleep(rand.N(2 * betweenCalls))
				switch {
				case i < readers:
					_, _ = w.call(ctx, "read", `{"path":"hello.txt"}`, "") // what it says is of no interest
				case i < readers+writers:
					k.try(ctx, w, &returning{name: name, tool: "write", arguments: fmt.Sprintf(`{"path":%q,"content":"x"}`, "write-"+name)})
				default:
					k.try(ctx, w, k.nextToAsk(name))
				}
			}
		})
	}
}

// nextToAsk is a call that comes back after a kill, if there is one, else a new one of this name.
func (k *killing) nextToAsk(name string) *returning {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.returning) > 0 {
		r := k.returning[0]
		k.returning = k.returning[1:]
		return r
	}
	if k.asked++; k.asked%2 == 0 {
		return &returning{name: name, tool: "exec", arguments: fmt.Sprintf(`{"command":"echo %s >> ran"}`, name)}
	}
	patch := "*** Begin Patch\n*** Add File: patch-" + name + "\n+x\n*** End Patch\n"
	return &returning{name: name, tool: "apply_patch", arguments: fmt.Sprintf(`{"patch":%q}`, patch)}
}

func (k *killing) http() *httpWire { return newestHTTP(k.t, k.URL, k.token) }

// answer has a person answer all that comes. When it returns they are there.
func (k *killing) answer(ctx context.Context, all *sync.WaitGroup, person *consolePerson) {
	k.t.Helper()
	stream, err := person.watch(ctx)
	if err != nil {
		k.t.Fatal(err)
	}
	decide := func(id string) string {
		if id[0] == '0' {
			return "deny"
		}
		return "allow-once"
	}
	taken := func(id, _ string) {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.answers[id]++
	}
	all.Go(func() {
		defer person.client.CloseIdleConnections()
		person.answerAll(ctx, stream, decide, taken)
	})
}

// try makes a call to its end, or to that of the daemon: then its client comes back later.
func (k *killing) try(ctx context.Context, w *httpWire, r *returning) {
	k.mu.Lock()
	call := k.calls[r.name]
	if call == nil {
		call = &tried{tool: r.tool}
		k.calls[r.name] = call
	}
	k.mu.Unlock()
	for {
		answer, err := w.call(ctx, r.tool, r.arguments, r.state)
		k.mu.Lock()
		switch {
		case err == nil && answer.Result.RequestState != "":
			r.state = answer.Result.RequestState
			k.mu.Unlock()
			continue
		case err == nil && answer.refused():
			call.refused = true
			k.expect(r, answer.said())
		case err == nil:
			call.ran = true
		case r.state != "":
			k.returning = append(k.returning, r)
		}
		k.mu.Unlock()
		return
	}
}

// tryOnStream writes a marker over a stream, whose calls end with the daemon. It reports whether the daemon lives.
func (k *killing) tryOnStream(ctx context.Context, w *stdioWire, name string) bool {
	k.mu.Lock()
	call := &tried{tool: "write"}
	k.calls[name] = call
	k.mu.Unlock()
	answer, err := w.send(ctx, toolCall("write", fmt.Sprintf(`{"path":%q,"content":"x"}`, "write-"+name)))
	if err != nil {
		return false
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	call.ran, call.refused = !answer.refused(), answer.refused()
	return true
}

// expect fails the test when a call is refused for a reason that has nothing to do with people, or with a patch that
// the daemon before has made already.
func (k *killing) expect(r *returning, said string) {
	again := r.tool == "apply_patch" && r.state != "" && strings.Contains(said, "target_changed")
	if !again && !strings.Contains(said, "denied_by_user") {
		k.t.Errorf("%s %s: %s", r.tool, r.name, said)
	}
}

// end lets the calls that wait come to their end, stops the daemon as a person would, and checks everything again.
func (k *killing) end() {
	k.t.Helper()
	k.Start()
	ctx, stop := context.WithCancel(k.t.Context())
	var load, back sync.WaitGroup
	person := k.signIn(ctx)
	k.verify(ctx, person)
	k.answer(ctx, &load, person)
	for _, r := range k.returning {
		back.Go(func() { k.try(ctx, k.http(), r) })
	}
	back.Wait()
	stop()
	load.Wait()
	if status := k.Stop(); status != 0 {
		k.t.Errorf("the daemon ended with %d", status)
	}
	k.check()
	for seq, what := range k.checked.open {
		k.t.Errorf("decision %d (%s) has no outcome after the end", seq, what)
	}
}

func (k *killing) summary() string {
	ran, refused := 0, 0
	for _, c := range k.calls {
		switch {
		case c.ran:
			ran++
		case c.refused:
			refused++
		}
	}
	return fmt.Sprintf("%d calls ran, %d were refused, %d ended unknown to their clients; %d answers, %d decisions, %d calls lost",
		ran, refused, len(k.calls)-ran-refused, len(k.answers), k.checked.decisions, k.checked.lost)
}

// markers are the calls that have run, and how often: from what they left in the workspace.
func (k *killing) markers() map[string]int {
	k.t.Helper()
	ran := map[string]int{}
	files, err := os.ReadDir(k.Workspace)
	if err != nil {
		k.t.Fatal(err)
	}
	for _, f := range files {
		for _, kind := range []string{"write-", "patch-"} {
			if name, ok := strings.CutPrefix(f.Name(), kind); ok {
				ran[name]++
			}
		}
	}
	commands, _ := os.ReadFile(filepath.Join(k.Workspace, "ran")) // no command has run, if it is not there
	for name := range strings.Lines(string(commands)) {
		ran[strings.TrimSpace(name)]++
	}
	return ran
}
