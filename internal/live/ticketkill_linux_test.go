package live_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/toolward/toolward/internal/live"
	"github.com/toolward/toolward/server/api"
)

// quietAgent is confinedAgent without the detectors that count: so many calls are odd indeed.
const quietAgent = `{
  "agents": {"defaults": {"sandbox": {"mode": "all"}}}, "tools": {"exec": {"preset": "developer"}},
  "teg": {
    "preset": "workspace", "approval": {"timeoutMs": 60000},
    "anomaly": {
      "burst": {"enabled": false}, "rate": {"enabled": false}, "writes": {"enabled": false}, "denied": {"enabled": false},
      "evasion": {"enabled": false},
    },
  },
}`

// TestKilledRunners kills, at random moments, what runs a client's commands: toolward-run, the shell that has started it, or the daemon.
// Nothing runs twice or without a record, and nothing of what was killed stays. TOOLWARD_KILLS says how often.
func TestKilledRunners(t *testing.T) {
	kills := live.Count(t, "TOOLWARD_KILLS", someKills, allKills)
	for _, engine := range []string{"native", "docker"} {
		t.Run(engine, func(t *testing.T) {
			k := &runnerKills{
				t: t, random: rand.New(rand.NewPCG(1, uint64(time.Now().UnixNano()))),
				marker: strconv.Itoa(2_000_000 + os.Getpid()), // seconds that nobody else sleeps
			}
			if engine == "native" {
				k.ticketDesk = newTicketDesk(t, quietAgent)
			} else {
				kills = max(1, kills/5) // a container takes long to make
				k.ticketDesk = k.containers()
			}
			k.signIn()
			if got := k.shell(k.told("true")); got != (seen{}) { // the sandbox is there
				t.Fatalf("%+v", got)
			}
			for range kills {
				k.round()
				if t.Failed() {
					return
				}
			}
			k.end()
			if len(k.ran()) == 0 {
				t.Error("no command ever began in time")
			}
			t.Logf("%d kills: %d commands were decided, %d began, the last went within %v of a kill of the runner, the shell, the daemon", kills, k.decided, len(k.ran()), k.slowest)
		})
	}
}

// containers is a desk whose sandboxes are containers.
func (k *runnerKills) containers() *ticketDesk {
	b := newBoxed(k.t, "docker", "")
	b.Configure(strings.Replace(quietAgent, `"mode": "all"`, fmt.Sprintf(`"mode": "all", "engine": "docker", "degradeOk": ["cgroup"], "docker": {"image": %q}`, b.image()), 1))
	b.start()
	return &ticketDesk{Machine: b.Machine, t: k.t}
}

type runnerKills struct {
	*ticketDesk
	t       *testing.T
	random  *rand.Rand
	marker  string
	person  *consolePerson
	rounds  int
	decided int
	slowest [victims]time.Duration // from a kill until nothing was left
}

// Whom a round kills.
const (
	killRunner = iota
	killShell
	killDaemon
	victims
)

// ticketClient is a client that runs one command.
type ticketClient struct {
	name, text, command string
	mu                  sync.Mutex
	shell               *exec.Cmd // nil: it has not started
	killed              bool
}

func (k *runnerKills) signIn() {
	k.t.Helper()
	var err error
	if k.person, err = signInAtConsole(k.t.Context(), k.URL); err != nil {
		k.t.Fatal(err)
	}
}

// round has three clients run commands, kills, and looks at what is there then.
func (k *runnerKills) round() {
	k.t.Helper()
	k.rounds++
	victim := k.random.IntN(victims)
	clients := make([]*ticketClient, 3)
	var all sync.WaitGroup
	for i := range clients {
		c := &ticketClient{name: fmt.Sprintf("k%d-%d-0", k.rounds, i)}
		clients[i] = c
		// The shell's child is not the shell's: as without us, it goes on without it, and is to come to its end.
		c.text = fmt.Sprintf("echo %s >> ran; sleep %s & one=$!; sleep 0.05; kill $one", c.name, k.marker)
		if victim != killShell && i > 0 {
			c.text = fmt.Sprintf("echo %s >> ran; (setsid sleep %s & sleep %s) & timeout 900 sleep %s", c.name, k.marker, k.marker, k.marker)
		}
		all.Go(func() { k.run(c, victim == killShell) })
	}
	// A call takes some 50 ms, and with a new sandbox some 500.
	longest := 80 * time.Millisecond
	if k.random.IntN(4) == 0 {
		longest = 600 * time.Millisecond
	}
	time.Sleep(time.Duration(k.random.Int64N(int64(longest))))
	if victim == killDaemon {
		k.Kill()
	}
	for _, c := range clients {
		c.kill(victim == killDaemon)
	}
	began := time.Now()
	all.Wait()
	k.mustBeGone(victim, began)
	if victim == killDaemon {
		k.Start()
		k.signIn()
	}
	k.mustBeIdle()
	ran := k.ran()
	for _, c := range clients {
		if c.command == "" {
			continue
		}
		k.decided++
		// What did not begin may still, as its ticket is good; not twice, and not after a restart.
		if ran[c.name] > 0 || victim == killDaemon {
			got := k.shell(c.command)
			if !got.refused("epeat the call") {
				k.t.Errorf("round %d: %s again: %+v", k.rounds, c.name, got)
			}
		}
	}
	for name, times := range k.ran() {
		if times > 1 || times != ran[name] {
			k.t.Errorf("round %d, victim %d: %s ran %d times", k.rounds, victim, name, times)
		}
	}
}

// run is a client with one command.
func (k *runnerKills) run(c *ticketClient, keepsShell bool) {
	command, err := k.decide(k.t.Context(), c.name, c.text)
	if err != nil {
		return // the daemon was killed
	}
	text := command
	if keepsShell {
		text += "; exit $?"
	}
	shell := exec.Command("bash", "-c", text)
	shell.Dir, shell.Env = k.Workspace, k.Environment()
	c.mu.Lock()
	c.command = command
	if c.killed {
		c.mu.Unlock()
		return
	}
	err = shell.Start()
	c.shell = shell
	c.mu.Unlock()
	if err != nil {
		k.t.Error(err)
		return
	}
	if shell.Wait() == nil {
		_, _ = k.hook(k.t.Context(), k.bashEvent("PostToolUse", c.name, command, map[string]any{"tool_response": map[string]any{"stdout": "", "stderr": ""}})) // the daemon may be gone
	}
}

// kill ends the client as kill -9 does. With the daemon gone, it goes on until its commands have ended.
func (c *ticketClient) kill(goesOn bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if goesOn {
		return
	}
	if c.killed = true; c.shell != nil {
		_ = c.shell.Process.Kill() // it may have ended
	}
}

// mustBeGone waits until nothing of the commands is left.
func (k *runnerKills) mustBeGone(victim int, began time.Time) {
	k.t.Helper()
	// The timeout of busybox leaves a daemon of its own behind, which looks once a second whether there is anything to end.
	for sleeping(k.marker) > 0 {
		if time.Since(began) > 10*time.Second { // a second, but for machines that have much else to do
			k.t.Errorf("round %d: %d processes are left", k.rounds, sleeping(k.marker))
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	k.slowest[victim] = max(k.slowest[victim], time.Since(began))
}

// mustBeIdle waits until nobody uses a sandbox.
func (k *runnerKills) mustBeIdle() {
	k.t.Helper()
	eventually(k.t, "no sandbox is in use", func() bool {
		var list api.SandboxList
		if err := k.person.api(k.t.Context(), http.MethodGet, "/v1/sandboxes", nil, &list); err != nil {
			k.t.Fatal(err)
		}
		for _, one := range list.Containers {
			if one.Users > 0 {
				return false
			}
		}
		return true
	})
}

// ran is how often each command has begun.
func (k *runnerKills) ran() map[string]int {
	text, _ := os.ReadFile(filepath.Join(k.Workspace, "ran")) // nothing has run, if it is not there
	times := map[string]int{}
	for name := range strings.Lines(string(text)) {
		times[strings.TrimSpace(name)]++
	}
	return times
}

// end ends the session, and compares what has run with the record.
func (k *runnerKills) end() {
	k.t.Helper()
	if _, err := k.hook(context.WithoutCancel(k.t.Context()), map[string]any{"hook_event_name": "SessionEnd", "session_id": "desk", "cwd": k.Workspace, "reason": "other"}); err != nil {
		k.t.Error(err)
	}
	k.Stop()
	db := copyDatabase(k.t, k.State)
	defer db.Close()
	for name := range k.ran() {
		var decisions, open int
		err := db.QueryRow(`SELECT count(*), count(*) FILTER (WHERE NOT EXISTS (SELECT 1 FROM audit o WHERE o.type = 'outcome' AND o.ref = d.seq))
			FROM audit d WHERE d.type = 'decision' AND d.verdict = 'allow' AND json_extract(d.record, '$.callId') = ?`, name).Scan(&decisions, &open)
		if err != nil || decisions != 1 || open > 0 {
			k.t.Errorf("%s ran with %d decisions, %d of which have no outcome: %v", name, decisions, open, err)
		}
	}
}
