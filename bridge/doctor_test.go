package bridge_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/bridge"
)

// TestDoctorOnEnforcedText: doctor says what comes of the setting, and nothing of it where it is off.
func TestDoctorOnEnforcedText(t *testing.T) {
	r := newRig(t, toolward.Allow)
	setup := r.setup()
	plan, err := bridge.PlanInstall(setup)
	apply(t, plan, err)
	r.serve()
	state := func() bridge.State {
		checks := bridge.Doctor(t.Context(), setup)
		if i := slices.IndexFunc(checks, func(c bridge.Check) bool { return c.Name == "enforceText" }); i >= 0 {
			return checks[i].State
		}
		return ""
	}
	if got := state(); got != "" {
		t.Errorf("off: %s", got)
	}
	setup.EnforceText = true
	if got := state(); got != bridge.Passed {
		t.Errorf("on: %s", got)
	}
	now, err := os.ReadFile(r.settingsFile())
	if err != nil {
		t.Fatal(err)
	}
	other := strings.Replace(string(now), `"PreToolUse": [`, `"PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "rewrite"}]},`, 1)
	write(t, r.settingsFile(), other, 0o600)
	if got := state(); got != bridge.Warned {
		t.Errorf("with a hook of somebody else: %s", got)
	}
}
