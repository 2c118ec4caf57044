package live_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/toolward/toolward/sandbox/fleet"

	"github.com/toolward/toolward/internal/live"
	"github.com/toolward/toolward/server/api"
)

// detached has the daemon's sandboxes go on without it, and nothing go on after the test.
func detached(t *testing.T, more string) *boxed {
	t.Helper()
	b := newBoxed(t, "native", detachSettings+more)
	t.Cleanup(func() {
		for _, id := range b.supervisors() {
			t.Errorf("the supervisor %s goes on after the test", id)
			number, _, _ := strings.Cut(id, ":")
			if pid, err := strconv.Atoi(number); err == nil && pid > 1 {
				syscall.Kill(pid, syscall.SIGKILL)
			}
		}
	})
	return b
}

const detachSettings = `, "native": {"detach": true}`

// supervisors are the first processes of this home's sandboxes that go on without a daemon.
func (b *boxed) supervisors() (ids []string) {
	paths, _ := filepath.Glob(filepath.Join(b.State, "sandbox", "supervisors", "*.json"))
	for _, path := range paths {
		var r struct{ EngineID string }
		if data, err := os.ReadFile(path); err == nil && json.Unmarshal(data, &r) == nil {
			ids = append(ids, r.EngineID)
		}
	}
	return ids
}

// configuration is what is written.
func (b *boxed) configuration() string {
	b.t.Helper()
	data, err := os.ReadFile(filepath.Join(b.State, "toolward.jsonc"))
	if err != nil {
		b.t.Fatal(err)
	}
	return string(data)
}

// change changes the configuration of the daemon, which runs, and has its person agree.
func (b *boxed) change(old, new string) {
	b.t.Helper()
	b.Configure(strings.Replace(b.configuration(), old, new, 1))
	var pending api.ConfigAnswer
	eventually(b.t, "the change is seen", func() bool {
		return b.person.api(b.t.Context(), http.MethodGet, "/v1/config/pending", nil, &pending) == nil
	})
	eventually(b.t, "the change is agreed to", func() bool { // nobody reads as fast as a program
		return b.person.api(b.t.Context(), http.MethodPost, "/v1/config/apply", pending, nil) == nil
	})
}

// only is the one sandbox of this home.
func (b *boxed) only() fleet.Info {
	b.t.Helper()
	list := b.list()
	if len(list) != 1 {
		b.t.Fatalf("there are %d sandboxes: %+v", len(list), list)
	}
	return list[0]
}

// told are the kinds of what happened to sandboxes, by the record.
func (b *boxed) told() (kinds []string) {
	b.t.Helper()
	db := copyDatabase(b.t, b.State)
	defer db.Close()
	rows, err := db.Query(`SELECT json_extract(record, '$.data.event') FROM audit WHERE type = 'sandbox' ORDER BY seq`)
	if err != nil {
		b.t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var kind string
		if err := rows.Scan(&kind); err != nil {
			b.t.Fatal(err)
		}
		kinds = append(kinds, kind)
	}
	return kinds
}

// daemonizes is a command that leaves a process which belongs to nobody.
func daemonizes(seconds string) string {
	return "echo kept > /tmp/file; setsid -f sh -c 'touch /tmp/up; exec sleep " + seconds + "' </dev/null >/dev/null 2>&1; until test -e /tmp/up; do sleep 0.01; done"
}

// asRootAndUser runs a test as both, if it can.
func asRootAndUser(t *testing.T, test func(t *testing.T)) {
	if os.Geteuid() == 0 {
		t.Run("root", test)
	}
	t.Run("user", func(t *testing.T) {
		if os.Geteuid() == 0 {
			asUser(t, "native")
			return
		}
		test(t)
	})
}

// TestSandboxOutlivesTheDaemon: with native.detach a sandbox goes on when the daemon is killed or stopped, with what has
// daemonized in it, and the next daemon uses it; the calls of the killed one are lost and not tried again. What the
// configuration does not want any more is ended.
func TestSandboxOutlivesTheDaemon(t *testing.T) {
	asRootAndUser(t, func(t *testing.T) {
		b := detached(t, "")
		daemon, foreground := strconv.Itoa(2_000_000+os.Getpid()), strconv.Itoa(3_000_000+os.Getpid())
		b.start()
		b.token("one")
		if said := b.do("one", "exec", map[string]any{"command": daemonizes(daemon) + "; echo done"}); !strings.Contains(said, "done") {
			t.Fatal(said)
		}
		before := b.only()
		if !before.Detached {
			t.Errorf("it is not said that it goes on: %+v", before)
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		session, err := b.connect(ctx, "one", "test")
		if err != nil {
			t.Fatal(err)
		}
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			callTool(ctx, session, "exec", map[string]any{"command": "echo x >> ran; trap '' TERM; sleep " + foreground})
		}()
		eventually(t, "both run", func() bool { return sleeping(daemon) == 1 && sleeping(foreground) == 1 })

		b.Kill()
		cancel()
		<-ended
		eventually(t, "what the daemon had running has ended", func() bool { return sleeping(foreground) == 0 })
		if sleeping(daemon) != 1 {
			t.Fatal("what had daemonised has ended")
		}
		b.start()
		if after := b.only(); after.EngineID != before.EngineID || !after.Running || !after.Created.Equal(before.Created) {
			t.Errorf("found %+v, was %+v", after, before)
		}
		if lost := b.lost("exec"); lost != 1 {
			t.Errorf("the record calls %d commands lost, and 1 was", lost)
		}
		look := map[string]any{"command": "cat /tmp/file ran; pgrep -fc 'sleep " + daemon + "'"}
		if said := b.do("one", "exec", look); !strings.Contains(said, "kept\nx\n1") {
			t.Errorf("inside there is %q", said)
		}
		if said := b.do("one", "process", map[string]any{"action": "list"}); strings.Contains(said, foreground) {
			t.Errorf("a command of the killed daemon is listed: %s", said)
		}

		b.Stop()
		b.start()
		if after := b.only(); after.EngineID != before.EngineID {
			t.Errorf("after a stop in order there is %+v, was %+v", after, before)
		}
		if said := b.do("one", "exec", look); !strings.Contains(said, "kept\nx\n1") {
			t.Errorf("after a stop in order there is %q", said)
		}
		kinds := b.told()
		if want := []string{"created", "found", "left", "found"}; !slices.Equal(kinds, want) {
			t.Errorf("the record tells %v, want %v", kinds, want)
		}

		// Another configuration makes it anew at its next use; what is left of the one before is nothing.
		b.Stop()
		b.start()
		b.change(detachSettings, detachSettings+`, "env": {"NEW": "yes"}`)
		if said := b.do("one", "exec", map[string]any{"command": "cat /tmp/file; printenv"}); strings.Contains(said, "kept") || !strings.Contains(said, "NEW=yes") {
			t.Errorf("another configuration has %q", said)
		}
		if after := b.only(); after.EngineID == before.EngineID || sleeping(daemon) != 0 {
			t.Errorf("it was not made anew: %+v, %d", after, sleeping(daemon))
		}
		if said := b.do("one", "exec", map[string]any{"command": daemonizes(daemon)}); sleeping(daemon) != 1 {
			t.Errorf("nothing goes on: %q", said)
		}

		// What is not wanted any more ends at the next start, used or not.
		b.change(`"detach": true`, `"detach": false`)
		b.Kill()
		if sleeping(daemon) != 1 {
			t.Error("what goes on has ended with the daemon")
		}
		b.start()
		if sleeping(daemon) != 0 || len(b.supervisors()) != 0 || len(b.list()) != 0 {
			t.Errorf("it goes on: %v, %+v", b.supervisors(), b.list())
		}
		b.Stop()
		b.mustBeSwept(false)
	})
}

// TestOutlivedSandboxCanBeEnded: what people ask for works right after a restart on sandboxes that nobody has used since.
func TestOutlivedSandboxCanBeEnded(t *testing.T) {
	b := detached(t, `, "scope": "session"`)
	daemon := strconv.Itoa(4_000_000 + os.Getpid())
	b.start()
	for _, agent := range []string{"one", "two", "three"} {
		b.token(agent)
		b.do(agent, "exec", map[string]any{"command": daemonizes(daemon)})
	}
	if n := sleeping(daemon); n != 3 {
		t.Fatalf("%d go on", n)
	}
	b.Kill()
	b.start()
	list := b.list()
	if len(list) != 3 || slices.ContainsFunc(list, func(i fleet.Info) bool { return !i.Running || i.Users != 0 }) {
		t.Fatalf("found %+v", list)
	}
	for i, action := range []string{"stop", "remove"} {
		if err := b.person.api(t.Context(), http.MethodPost, "/v1/sandboxes/"+list[i].Name+"/"+action, struct{}{}, nil); err != nil {
			t.Error(err)
		}
		if n := sleeping(daemon); n != 2-i {
			t.Errorf("after %s, %d go on", action, n)
		}
	}
	b.removeAll()
	if sleeping(daemon) != 0 {
		t.Errorf("%d go on", sleeping(daemon))
	}
	b.Stop()
	b.mustBeSwept(false)
}

// TestKilledWhileLastingSandboxesAreMade kills the daemon at random moments while sandboxes that go on are made, used and made
// anew: after each start what is listed is what goes on, each of them can be used, and in the end nothing is left.
// TOOLWARD_KILLS says how often, TOOLWARD_SEED repeats a run.
func TestKilledWhileLastingSandboxesAreMade(t *testing.T) {
	kills := live.Count(t, "TOOLWARD_KILLS", someBoxKills, allBoxKills)
	now := int(time.Now().UnixNano() & 0xffffff)
	seed := uint64(live.Count(t, "TOOLWARD_SEED", now, now))
	random := rand.New(rand.NewPCG(seed, 0))
	const agents = 6
	b := detached(t, "")
	b.start()
	for i := range agents {
		b.token(fmt.Sprintf("agent-%d", i))
	}
	for range kills {
		ctx, cancel := context.WithCancel(t.Context())
		var load sync.WaitGroup
		for i := range agents {
			load.Go(func() {
				for ctx.Err() == nil {
					session, err := b.connect(ctx, fmt.Sprintf("agent-%d", i), "test")
					if err != nil {
						return
					}
					callTool(ctx, session, "exec", map[string]any{"command": "echo x > file; sleep 0.01"}) // it may be killed meanwhile
					session.Close()
				}
			})
		}
		load.Go(func() { // some are removed meanwhile
			for _, i := range b.names() {
				b.person.api(ctx, http.MethodPost, "/v1/sandboxes/"+i+"/remove", struct{}{}, nil) // as above
			}
		})
		time.Sleep(time.Duration(random.Int64N(int64(longestRun))))
		b.Kill()
		cancel()
		load.Wait()
		b.mustHaveSoundFiles()
		b.start()
		list := b.list()
		if supervisors := b.supervisors(); len(supervisors) != len(list) || slices.ContainsFunc(list, func(i fleet.Info) bool {
			return !i.Running || !slices.Contains(supervisors, i.EngineID)
		}) {
			t.Fatalf("seed %d: %v go on, and listed are %+v", seed, supervisors, list)
		}
		for i := range agents {
			if said := b.do(fmt.Sprintf("agent-%d", i), "exec", map[string]any{"command": "echo works"}); !strings.Contains(said, "works") {
				t.Fatalf("seed %d: agent %d is told %q", seed, i, said)
			}
		}
	}
	b.removeAll()
	b.Stop()
	b.mustBeSwept(false)
	if t.Failed() {
		t.Logf("seed %d", seed)
	}
}

// names are those of the sandboxes; none if the daemon does not answer any more.
func (b *boxed) names() (names []string) {
	var list api.SandboxList
	if b.person.api(b.t.Context(), http.MethodGet, "/v1/sandboxes", nil, &list) != nil {
		return nil
	}
	for _, i := range list.Containers {
		names = append(names, i.Name)
	}
	return names
}
