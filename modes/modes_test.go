package modes

import (
	"cmp"
	"encoding/json"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/internal/gatetest"
)

// strictness orders modes: a higher number lets less through.
func strictness(m Modes) (security, ask int) {
	return len(securities) - slices.Index(securities, m.Security), len(asks) - slices.Index(asks, m.Ask)
}

// TestMergeOnlyTightens: whatever the file says, and whatever a call asks for, nothing gets looser than the
// configuration, nor than the file.
func TestMergeOnlyTightens(t *testing.T) {
	words := func(list ...string) string { return list[rand.IntN(len(list))] }
	random := func() Settings {
		return Settings{
			Security: Security(words("", "deny", "allowlist", "full", "FULL", "open")), Ask: Ask(words("", "off", "on-miss", "always", "never")),
			AskFallback: Fallback(words("", "deny", "allowlist", "full", "x")),
		}
	}
	looser := func(a, b Modes) bool {
		s1, a1 := strictness(a)
		s2, a2 := strictness(b)
		return s1 < s2 || a1 < a2
	}
	for range 20_000 {
		config, file, other := random(), random(), random()
		merged := Merge(config, file)
		if looser(merged, Merge(config, Settings{})) {
			t.Fatalf("the file %v loosens the configuration %v to %v", file, config, merged)
		}
		if file.Security != "" && looser(merged, Modes{Security: known(securities, file.Security), Ask: known(asks, cmp.Or(file.Ask, AskOff))}) {
			t.Fatalf("the configuration %v loosens the file %v to %v", config, file, merged)
		}
		if looser(merged.Tightened(other.Security, other.Ask), merged) {
			t.Fatalf("a call with %v loosens %v", other, merged)
		}
		file.Security, file.Ask = "nonsense", "nonsense"
		if m := Merge(config, file); m.Security != SecurityDeny || m.Ask != AskAlways {
			t.Fatalf("words that are not known leave %v", m)
		}
	}
}

func TestSettingsOver(t *testing.T) {
	yes, no := true, false
	wide := Settings{Security: SecurityFull, Ask: AskOff, AutoAllowSkills: &yes}
	narrow := Settings{Ask: AskAlways, AutoAllowSkills: &no}
	got := narrow.Over(wide)
	if got.Security != SecurityFull || got.Ask != AskAlways || *got.AutoAllowSkills {
		t.Errorf("got %+v", got)
	}
}

func TestRequiresVectors(t *testing.T) {
	gatetest.Run(t, "exec.json", "requires", func(t *testing.T, input json.RawMessage) any {
		var in struct {
			Ask                            Ask
			Security                       Security
			AnalysisOK, AllowlistSatisfied bool
		}
		gatetest.Decode(t, input, &in)
		m := Modes{Security: in.Security, Ask: in.Ask}
		return map[string]any{"requires": m.asks(&toolward.CommandAnalysis{Understood: in.AnalysisOK, Covered: in.AllowlistSatisfied})}
	})
}

// A level that nobody knows is judged as lockdown: a number out of range must not pass for a calm session.
func TestUnknownLevelIsLockdown(t *testing.T) {
	for _, m := range []Modes{{}, {Security: SecurityFull, Ask: AskOff}, {Security: SecurityAllowlist, Ask: AskOnMiss}} {
		for _, a := range []*toolward.CommandAnalysis{nil, {Understood: true, Covered: true}} {
			want := Judge(m, toolward.HostGateway, toolward.Lockdown, a)
			if got := Judge(m, toolward.HostGateway, toolward.Normal+1, a); got != want {
				t.Errorf("%+v of %+v: %v, in lockdown %v", m, a, got, want)
			}
		}
	}
}
