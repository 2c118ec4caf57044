package settings

import (
	"slices"
	"testing"
	"time"

	"github.com/toolward/toolward/sandbox"
)

// detached is a configuration of sandboxes that go on without a gateway.
var detached = Config{Native: NativeConfig{Detach: new(true)}}

// How long a sandbox goes on without a gateway follows from pruning, has an end, and is no reason to make it anew.
func TestAlone(t *testing.T) {
	w := newWorld(t)
	hash := ""
	for hours, want := range map[int64]time.Duration{0: maxAlone, 2: 2 * time.Hour, 24 * 30: maxAlone} {
		c := detached
		c.Prune.IdleHours = &hours
		plan, err := w.plan(t, sandbox.EngineNative, c)
		if err != nil {
			t.Fatal(err)
		}
		if plan.Spec.Detach != want {
			t.Errorf("%d hours: %v, want %v", hours, plan.Spec.Detach, want)
		}
		if hash != "" && plan.Spec.Hash != hash {
			t.Error("the time is a reason to make it anew")
		}
		hash = plan.Spec.Hash
	}
	without, err := w.plan(t, sandbox.EngineNative, Config{})
	if err != nil || without.Spec.Detach != 0 || without.Spec.Hash == hash {
		t.Errorf("without: %+v %v", without.Spec, err)
	}
	if container, err := w.plan(t, sandbox.EngineDocker, detached); err != nil || container.Spec.Detach != 0 {
		t.Errorf("a container: %v %v", container.Spec.Detach, err)
	}
}

// Where the setting comes from is said.
func TestDetachIsExplained(t *testing.T) {
	settings, problems := Compile(Configuration{Agents: []AgentConfig{{"a", detached}}}, newWorld(t).around())
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	for agent, want := range map[string]Setting{
		"a":     {"native.detach", "true", Source{FromAgent, "agents.list[].sandbox.native.detach"}},
		"other": {"native.detach", "false", Source{FromDefault, "agents.defaults.sandbox.native.detach"}},
	} {
		if !slices.Contains(settings.For(agent).Settings(), want) {
			t.Errorf("%s: no %+v in %+v", agent, want, settings.For(agent).Settings())
		}
	}
}
