package fleet

import (
	"testing"

	"github.com/toolward/toolward/internal/gatetest"
	"github.com/toolward/toolward/sandbox"
)

// home is a home of the gateway and a workspace of an agent on a real disk.
type home struct{ *gatetest.World }

func newHome(t *testing.T) *home { return &home{gatetest.NewWorld(t)} }

func (h *home) settings(t *testing.T, c sandbox.Config) *sandbox.Settings {
	t.Helper()
	around := sandbox.Surroundings{StateDir: h.State, Home: h.Home, Instance: "test", Undecided: sandbox.ModeNonMain}
	settings, problems := sandbox.Compile(sandbox.Configuration{Defaults: sandbox.Defaults{Config: c}}, around)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	return settings
}
