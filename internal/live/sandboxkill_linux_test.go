package live_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/toolward/toolward/internal/live"
	"github.com/toolward/toolward/sandbox/fleet"
)

// eachEngine runs a test with both engines, as root and as an ordinary user.
func eachEngine(t *testing.T, test func(t *testing.T, engine string)) {
	for _, engine := range []string{"native", "docker"} {
		t.Run(engine, func(t *testing.T) {
			if os.Geteuid() == 0 {
				t.Run("root", func(t *testing.T) { test(t, engine) })
			}
			t.Run("user", func(t *testing.T) {
				if os.Geteuid() == 0 {
					asUser(t, engine)
					return
				}
				test(t, engine)
			})
		})
	}
}

// TestKilledWithCommandsInSandboxes kills the daemon while twenty commands run in four sandboxes: all of them end, the next
// start leaves nothing of it, the record calls them lost, and none is tried again.
func TestKilledWithCommandsInSandboxes(t *testing.T) {
	eachEngine(t, func(t *testing.T, engine string) {
		b := newBoxed(t, engine, "")
		b.start()
		agents := []string{"one", "two", "three", "four"}
		marker := strconv.Itoa(1_000_000 + os.Getpid()) // seconds that nobody else sleeps
		ctx, cancel := context.WithCancel(t.Context())
		var callers sync.WaitGroup
		defer callers.Wait()
		defer cancel()
		for _, agent := range agents {
			b.token(agent)
			session, err := b.connect(ctx, agent, "test")
			if err != nil {
				t.Fatal(err)
			}
			for i := range 5 {
				command := fmt.Sprintf("echo x >> ran-%s-%d; setsid sleep %s & sleep %s", agent, i, marker, marker)
				callers.Go(func() {
					if said, err := callTool(ctx, session, "exec", map[string]any{"command": command}); err == nil && !strings.Contains(said, "unavailable") {
						t.Errorf("a command whose daemon was killed says %q", said)
					}
				})
			}
		}
		eventually(t, "all commands run", func() bool { return sleeping(marker) >= 40 })
		inside := descend(b.Pid())
		b.Kill()
		took := mustEnd(t, inside)
		began := time.Now()
		eventually(t, "what ran in the sandboxes has ended", func() bool { return sleeping(marker) == 0 })
		t.Logf("%d processes of the daemon ended within %v, all commands within %v", len(inside), took, took+time.Since(began))
		b.mustHaveSoundFiles()

		b.start()
		b.mustBeSwept(true)
		b.mustList(engine, len(agents))
		for _, agent := range agents {
			if said := b.do(agent, "exec", map[string]any{"command": "cat ran-" + agent + "-*"}); strings.TrimSpace(said) != "x\nx\nx\nx\nx" {
				t.Errorf("the commands of %s ran %q", agent, said)
			}
		}
		if n := sleeping(marker); n > 0 {
			t.Errorf("%d commands run again", n)
		}
		if lost := b.lost("exec"); lost != 20 {
			t.Errorf("the record calls %d commands lost, and 20 were", lost)
		}
		b.removeAll()
		b.Stop()
		b.mustBeSwept(false)
		if engine == "docker" && len(b.containers()) > 0 {
			t.Errorf("containers are left: %v", b.containers())
		}
	})
}

// mustList fails unless the sandboxes of before are known as far as they are there: native ones ended with their daemon.
func (b *boxed) mustList(engine string, before int) {
	b.t.Helper()
	known := b.list()
	if engine == "native" {
		before = 0
	} else {
		there := b.containers()
		for _, i := range known {
			if _, ok := there[i.Name]; !ok || i.Missing {
				b.t.Errorf("%s is listed and not there", i.Name)
			}
			delete(there, i.Name)
		}
		for name := range there {
			b.t.Errorf("the container %s is there and not listed", name)
		}
	}
	if len(known) != before && before >= 0 {
		b.t.Errorf("%d sandboxes are listed, want %d", len(known), before)
	}
	// What a container engine was asked to start by a gateway that was killed may begin even now. It ends by itself.
	eventually(b.t, "nothing runs after the start", func() bool {
		return !slices.ContainsFunc(b.list(), func(i fleet.Info) bool { return i.Running || i.Users > 0 })
	})
}

// lost counts the calls of a tool whose outcome is "lost" in the record, each of which must have one decision.
func (b *boxed) lost(tool string) int {
	b.t.Helper()
	db := copyDatabase(b.t, b.State)
	defer db.Close()
	var count int
	err := db.QueryRow(`SELECT count(*) FROM audit d JOIN audit o ON o.ref = d.seq AND o.type = 'outcome'
		WHERE d.type = 'decision' AND d.verdict = 'allow' AND o.status = 'lost' AND json_extract(d.record, '$.tool') = ?`, tool).Scan(&count)
	if err != nil {
		b.t.Fatal(err)
	}
	return count
}

// How often the daemon is killed while sandboxes are made.
const (
	someBoxKills = 5
	allBoxKills  = 12
	killedAgents = 12 // each has a sandbox
)

// TestKilledWhileSandboxesAreMade kills the daemon at random moments while clients have sandboxes made, used and started
// again: the registry can always be read, everything inside ends, and after the next start what is listed is what is
// there. TOOLWARD_KILLS says how often (the full count is 100), TOOLWARD_SEED repeats a run.
func TestKilledWhileSandboxesAreMade(t *testing.T) {
	kills := live.Count(t, "TOOLWARD_KILLS", someBoxKills, allBoxKills)
	now := int(time.Now().UnixNano() & 0xffffff)
	seed := uint64(live.Count(t, "TOOLWARD_SEED", now, now))
	for _, engine := range []string{"native", "docker"} {
		t.Run(engine, func(t *testing.T) {
			b := newBoxed(t, engine, "")
			random := rand.New(rand.NewPCG(seed, 0))
			b.start()
			for i := range killedAgents {
				b.token(fmt.Sprintf("agent-%d", i))
			}
			made := 0
			for range kills {
				made += b.killed(random)
				b.start()
				b.mustBeSwept(true)
				b.mustList(engine, -1)
				if t.Failed() {
					t.Fatalf("seed %d", seed)
				}
			}
			t.Logf("%d kills with seed %d, %d calls were answered before them, %d sandboxes are listed at the end", kills, seed, made, len(b.list()))
			if made == 0 && len(b.list()) == 0 {
				t.Error("no sandbox was ever made in time")
			}
			b.removeAll()
			b.Stop()
			b.mustBeSwept(false)
			if engine == "docker" && len(b.containers()) > 0 {
				t.Errorf("containers are left: %v", b.containers())
			}
		})
	}
}

// killed kills the daemon at a random moment under load, and returns how many calls were answered.
func (b *boxed) killed(random *rand.Rand) (answered int) {
	b.t.Helper()
	const clients = 4
	ctx, cancel := context.WithCancel(b.t.Context())
	var load sync.WaitGroup
	counts := make([]int, clients)
	for i := range clients {
		first := random.IntN(killedAgents)
		load.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				session, err := b.connect(ctx, fmt.Sprintf("agent-%d", (first+n)%killedAgents), "test")
				if err != nil {
					return
				}
				if _, err := callTool(ctx, session, "exec", map[string]any{"command": "echo x > file; sleep 0.01"}); err == nil {
					counts[i]++
				}
				session.Close()
			}
		})
	}
	time.Sleep(time.Duration(random.Int64N(int64(longestRun))))
	inside := descend(b.Pid())
	b.Kill()
	cancel()
	load.Wait()
	mustEnd(b.t, inside)
	b.mustHaveSoundFiles()
	if b.engine == "docker" {
		eventually(b.t, "the containers have ended", func() bool {
			for _, runs := range b.containers() {
				if runs {
					return false
				}
			}
			return true
		})
	}
	for _, n := range counts {
		answered += n
	}
	return answered
}
