package fleet

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/toolward/toolward/sandbox/settings"

	"github.com/toolward/toolward/internal/gatetest"
	"github.com/toolward/toolward/sandbox"
)

const vectorFile = "sandbox.json"

func TestLifecycleVectors(t *testing.T) {
	gatetest.Run(t, vectorFile, "recreate", func(t *testing.T, input json.RawMessage) any {
		var in struct {
			Exists, Running               bool
			Label, RegistryHash, Expected string
			IdleMs                        *int64
			SecurityRelevant              bool
			Owned                         *bool
			Labels                        map[string]string
			ScopeKey                      string
		}
		gatetest.Decode(t, input, &in)
		e := Existing{Exists: in.Exists, Running: in.Running, Label: in.Label, Recorded: in.RegistryHash, Security: in.SecurityRelevant}
		state := sandbox.State{Instance: "1", ScopeKey: in.ScopeKey}
		if in.Owned != nil && !*in.Owned {
			state.Instance = "of another"
		}
		if in.Labels != nil {
			state.Instance, state.ScopeKey = in.Labels["toolward.sandbox"], in.Labels["toolward.sessionKey"]
		}
		e.Foreign = foreign(&state, "1", in.ScopeKey)
		if in.IdleMs != nil {
			idle := time.Duration(*in.IdleMs) * time.Millisecond
			e.Idle = &idle
		}
		return map[string]any{"action": e.Decide(in.Expected)}
	})
	gatetest.Run(t, vectorFile, "prune", func(t *testing.T, input json.RawMessage) any {
		var in struct {
			NowMs         int64
			Entry         Registered
			Prune         settings.PruneConfig
			Live, Running bool
		}
		gatetest.Decode(t, input, &in)
		compiled, problems := settings.Compile(settings.Configuration{Defaults: settings.Defaults{Config: settings.Config{Prune: in.Prune}}}, settings.Surroundings{StateDir: "/home/gw/.toolward", Home: "/home/gw"})
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		rules := compiled.For("main").PruneRules()
		action := rules.Decide(time.UnixMilli(in.NowMs), time.UnixMilli(in.Entry.CreatedMs), time.UnixMilli(in.Entry.UsedMs), in.Live, in.Running)
		return map[string]any{"action": action}
	})
}

func TestRegistryVectors(t *testing.T) {
	gatetest.Run(t, vectorFile, "registry", func(t *testing.T, input json.RawMessage) any {
		var in struct {
			Entries []Registered
			Op      struct {
				Upsert, Recreate *Registered
				Remove           *string
			}
			File *string
			Read string
		}
		gatetest.Decode(t, input, &in)
		entries, written := in.Entries, true
		switch {
		case in.Op.Upsert != nil:
			entries = Upsert(entries, *in.Op.Upsert)
		case in.Op.Recreate != nil:
			entries = Replace(entries, *in.Op.Recreate)
		case in.Op.Remove != nil:
			entries, written = Drop(entries, *in.Op.Remove)
		default:
			var content []byte
			if in.File != nil {
				content = []byte(*in.File)
			}
			var err error
			if entries, err = ParseRegistry(content); err != nil && in.Read == "strict" {
				return map[string]any{"error": sandbox.CodeOf(err)}
			}
		}
		if !written {
			return map[string]any{"written": false}
		}
		return map[string]any{"entries": nonNil(entries)}
	})
}
