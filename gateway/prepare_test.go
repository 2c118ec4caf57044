package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/config"
)

// Everything that a configuration can change is in here, and differs from the defaults.
const everythingChanged = `{
	"teg": {
		"preset": "workspace", "defaultLevel": "elevated", "highWater": 0.5, "shadow": "shadow.jsonc",
		"approval": { "timeoutMs": 1234, "absent": "wait", "maxPendingPerSession": 1 },
		"tools": { "write": "blocked" }
	},
	"tools": { "exec": { "preset": "developer", "safeBins": ["mystery"] } },
	"agents": { "list": [{ "id": "confined", "sandbox": { "mode": "all" } }] },
	"config": { "autoApply": true }
}`

// state is what can be seen of the configuration in force, in every part that has one.
func (l *lab) state(t *testing.T) string {
	t.Helper()
	level, inputs, err := l.sessions.Level(t.Context(), &toolward.Call{Session: "agent:coder:seen"})
	if err != nil {
		t.Fatal(err)
	}
	sandboxed, why := l.sandboxes.Sandboxed("confined", "agent:confined:seen")
	seen, err := json.Marshal([]any{
		l.config.Current().Hash, l.policy.Snapshot().Revision(), l.shadow.path(), level, inputs, sandboxed, why,
		l.explained(t, "ls"), l.asked(t),
	})
	if err != nil {
		t.Fatal(err)
	}
	return string(seen)
}

// asked is what becomes of a question that nobody is there to answer.
func (l *lab) asked(t *testing.T) string {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer stop()
	_, err := l.approver.Ask(ctx, &toolward.Question{Binding: "b", Request: &toolward.Request{
		Call: toolward.Call{Tool: "write", Session: "agent:coder:asked", Caller: toolward.Caller{Agent: "coder"}},
		Tool: &toolward.Tool{Name: "write"}, Params: toolward.NewParams([]byte(`{}`), map[string]any{}),
	}})
	return fmt.Sprint(err)
}

// A configuration is put in force in all parts or in none. The approver used to change before parts that could still fail.
func TestAConfigurationCountsAsAWholeOrNotAtAll(t *testing.T) {
	for _, at := range []int{0, 3, -1} {
		l := newLab(t, map[string]string{config.FileName: unconfined}, nil)
		before, logged := l.state(t), l.log.Len()
		loaded, err := config.Parse("changed.jsonc", []byte(everythingChanged))
		if err != nil {
			t.Fatal(err)
		}
		broken := errors.New("this part cannot")
		parts := l.parts()
		if at < 0 {
			at = len(parts)
		}
		parts = append(parts[:at:at], append([]part{func(*config.Loaded) (func(), error) { return nil, broken }}, parts[at:]...)...)
		commit, err := prepare(loaded, parts)
		if !errors.Is(err, broken) || commit != nil {
			t.Fatalf("%v, and a commit: %v", err, commit != nil)
		}
		if after := l.state(t); after != before || l.log.Len() != logged {
			t.Errorf("the part at %d fails, and something has changed:\n%s\n%s\n%s", at, before, after, l.log)
		}
		l.Close()
	}
}

// What the test above compares does change where nothing fails.
func TestAConfigurationCountsEverywhere(t *testing.T) {
	l := newLab(t, map[string]string{config.FileName: unconfined}, nil)
	defer l.Close()
	var before, after []json.RawMessage
	if err := json.Unmarshal([]byte(l.state(t)), &before); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(l.configPath(), []byte(everythingChanged), 0o600); err != nil {
		t.Fatal(err)
	}
	l.config.Reload()
	if err := json.Unmarshal([]byte(l.state(t)), &after); err != nil {
		t.Fatal(err)
	}
	for i, name := range []string{"hash", "revision", "shadow", "level", "inputs", "sandboxed", "why sandboxed", "commands", "questions"} {
		if string(before[i]) == string(after[i]) {
			t.Errorf("%s does not change: %s", name, before[i])
		}
	}
}
