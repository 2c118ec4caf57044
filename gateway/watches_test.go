package gateway

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/audit"
)

// The real gateway watches: what is odd is in the record, raises the level, outlives a restart, and ends when a person
// clears it.
func TestTheDaemonWatches(t *testing.T) {
	home := shortHome(t)
	workspace := filepath.Join(home, "project")
	if err := os.MkdirAll(workspace, 0o755); err != nil {
		t.Fatal(err)
	}
	const key = toolward.SessionKey("agent:coder:mcp:laptop:1")
	start := func() *Gateway {
		d, err := Open(t.Context(), optionsFor(home, "127.0.0.1:0"))
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	refuse := func(d *Gateway, n int) {
		t.Helper()
		call := toolward.Call{
			ID: fmt.Sprint(n), Run: "r", Tool: "no_such_tool", Arguments: json.RawMessage(`{}`), Session: key, Surface: toolward.SurfaceMCP,
			WorkDir: workspace, Host: toolward.HostGateway, Caller: toolward.Caller{Agent: "coder", Context: "main", Workspace: workspace},
		}
		if _, err := d.Admit(t.Context(), call); err == nil {
			t.Fatal("a tool that is not there was admitted")
		}
	}
	level := func(d *Gateway) toolward.Level {
		o, err := d.sessions.Overview(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		return o.Level
	}
	d := start()
	for n := range 5 {
		refuse(d, n)
		if want := []toolward.Level{toolward.Normal, toolward.Normal, toolward.Elevated, toolward.Elevated, toolward.Elevated}[n]; level(d) != want {
			t.Errorf("after refusal %d: %v", n+1, level(d))
		}
	}
	d.Close()
	d = start()
	defer func() { d.Close() }()
	if level(d) != toolward.Elevated {
		t.Errorf("after a restart: %v", level(d))
	}
	refuse(d, 6)
	if level(d) != toolward.Lockdown {
		t.Errorf("the sixth refusal, after a restart: %v", level(d))
	}
	if err := (levels{d.sessions, d.watcher}).Clear(t.Context(), key, "", "owner"); err != nil {
		t.Fatal(err)
	}
	refuse(d, 7)
	if level(d) != toolward.Normal {
		t.Errorf("cleared by a person, and one refusal later: %v", level(d))
	}
	var fired []string
	for deadline := time.Now().Add(time.Minute); len(fired) < 2 && time.Now().Before(deadline); {
		records, err := d.audit.Query(t.Context(), audit.Filter{Type: audit.TypeAnomaly, Session: string(key)})
		if err != nil {
			t.Fatal(err)
		}
		fired = nil
		for _, r := range slices.Backward(records) {
			var record struct {
				Data struct{ Detector, Action, Run, Text string }
			}
			if err := json.Unmarshal([]byte(r.JSON), &record); err != nil {
				t.Fatal(err)
			}
			fired = append(fired, fmt.Sprint(record.Data))
		}
	}
	want := []string{"{denied elevate r 3 calls refused within 5 minutes}", "{denied lockdown r 6 calls refused within 5 minutes}"}
	if !slices.Equal(fired, want) {
		t.Errorf("the record says %q, want %q", fired, want)
	}
}
