package egress

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/sandbox/fleet"
)

// A session that used a sandbox under an earlier gateway counts as if it had let go of it just now: what it left there
// must not connect under the name of a calm one.
func TestSessionsOfAnEarlierGatewayCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, hosts("a.example"))
		w.Outlived(map[string][]fleet.Former{box: {{Agent: "coder", Session: "agent:coder:tense"}}})
		w.levels.set("agent:coder:tense", toolward.Lockdown)
		asked := func(when string) {
			t.Helper()
			go func() { _, _ = w.connect(t.Context(), "a.example") }()
			q := <-w.people.asked
			if q.Request.Call.Session != "agent:coder:tense" || q.Request.Call.Caller.Agent != "coder" || q.Request.Level != toolward.Lockdown {
				t.Errorf("%s: in the name of %s of %s", when, q.Request.Call.Session, q.Request.Call.Caller.Agent)
			}
			q.answer <- toolward.Answer{Decision: toolward.DenyCall}
			synctest.Wait()
		}
		delete(w.ways, box) // it was not used yet by this gateway
		failed, err := w.Enter(box, &toolward.Call{Session: "agent:coder:other", Caller: toolward.Caller{Agent: "coder"}}, "")
		if err != nil {
			t.Fatal(err)
		}
		failed.Leave()
		w.ways[box] = w.way
		asked("nobody is at work")
		calm := w.enter(t, "agent:coder:calm")
		asked("a calm session is at work")
		calm.Leave()
		calm = w.enter(t, "agent:coder:calm")
		calm.Started(2) // the life of a sandbox begins for this gateway with its first use
		asked("the calm one uses it again")
		time.Sleep(3 * forgetAfter)
		asked("much later")
		w.levels.set("agent:coder:tense", toolward.Normal)
		if _, err := w.connect(t.Context(), "a.example"); err != nil {
			t.Error(err)
		}
		w.people.none(t)
	})
}

// When the sandbox ends, nothing of those sessions is there any more.
func TestSessionsOfAnEarlierGatewayEndWithTheSandbox(t *testing.T) {
	w, _ := opened(t)
	w.Outlived(map[string][]fleet.Former{box: {{Agent: "coder", Session: "agent:coder:tense"}}})
	w.Close(box)
	if calls, err := w.callers(t.Context(), box); err == nil {
		t.Errorf("connections are made in the name of %v", calls)
	}
}

// The directory that is mounted in a sandbox that goes on is the same one for the next gateway: another one of its name would
// lead nowhere. Of the others nothing stays, and without a gateway there is nobody to reach.
func TestDirectoriesOfOutlivedSandboxesStay(t *testing.T) {
	w, _ := opened(t)
	inode := func() uint64 {
		t.Helper()
		info, err := os.Stat(filepath.Join(w.options.Dir, box))
		if err != nil {
			t.Fatal(err)
		}
		return info.Sys().(*syscall.Stat_t).Ino
	}
	if _, err := w.Open("ends"); err != nil {
		t.Fatal(err)
	}
	before := inode()
	kept := map[string][]fleet.Former{box: {{Agent: "coder", Session: "agent:coder:a"}}}
	w.Outlived(kept)
	w.Shutdown()
	if entries, err := os.ReadDir(w.options.Dir); err != nil || len(entries) != 1 || entries[0].Name() != box {
		t.Errorf("left: %v %v", entries, err)
	}
	if entries, err := os.ReadDir(filepath.Join(w.options.Dir, box)); err != nil || len(entries) != 0 {
		t.Errorf("there is somebody to reach: %v %v", entries, err)
	}
	if err := os.WriteFile(filepath.Join(w.options.Dir, box, SocketName), nil, 0o600); err != nil { // as of a gateway that was killed
		t.Fatal(err)
	}
	next, err := New(w.options)
	if err != nil {
		t.Fatal(err)
	}
	next.Outlived(kept)
	if _, err := next.Open(box); err != nil || inode() != before {
		t.Errorf("another directory, or none: %v", err)
	}
	info, err := os.Stat(filepath.Join(w.options.Dir, box, SocketName))
	if err != nil || info.Mode()&os.ModeSocket == 0 {
		t.Errorf("nobody listens: %v", err)
	}
	next.Close(box)
	if entries, err := os.ReadDir(w.options.Dir); err != nil || len(entries) > 0 {
		t.Errorf("left: %v %v", entries, err)
	}
	next.Shutdown()
}
