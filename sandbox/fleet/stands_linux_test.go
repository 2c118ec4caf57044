package fleet

import (
	"os"
	"slices"
	"testing"

	"github.com/toolward/toolward/sandbox/settings"
)

// TestAnotherWorkspaceAtThePath: a project that was removed and cloned again is not worked on in the directory that is gone.
func TestAnotherWorkspaceAtThePath(t *testing.T) {
	m := manage(t, newHome(t), newFake("native"), settings.Config{Mode: "all"})
	m.lease(t, "x").Release()
	m.lease(t, "x").Release()
	if kinds := m.events.kinds(); !slices.Equal(kinds, []EventKind{EventCreated}) {
		t.Fatal(kinds)
	}
	away := m.home.Workspace + ".away"
	if err := os.Rename(m.home.Workspace, away); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(m.home.Workspace, 0o700); err != nil {
		t.Fatal(err)
	}
	m.lease(t, "x").Release()
	m.lease(t, "x").Release()
	if kinds := m.events.kinds(); !slices.Equal(kinds, []EventKind{EventCreated, EventRecreated}) {
		t.Errorf("%v, want it made anew once", kinds)
	}
}
