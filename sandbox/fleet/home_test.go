package fleet

import (
	"testing"

	"github.com/toolward/toolward/sandbox/settings"

	"github.com/toolward/toolward/internal/gatetest"
)

// home is a home of the gateway and a workspace of an agent on a real disk.
type home struct{ *gatetest.World }

func newHome(t *testing.T) *home { return &home{gatetest.NewWorld(t)} }

func (h *home) settings(t *testing.T, c settings.Config) *settings.Settings {
	t.Helper()
	around := settings.Surroundings{StateDir: h.State, Home: h.Home, Instance: "test", Undecided: settings.ModeNonMain}
	compiled, problems := settings.Compile(settings.Configuration{Defaults: settings.Defaults{Config: c}}, around)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	return compiled
}
