package native

import (
	"os"
	"path/filepath"
	"testing"
)

// What a sandbox leaves in a workspace never runs as its owner, whoever has the gateway: on the machine, the owner is the person.
func TestNoFileRunsAsItsOwner(t *testing.T) {
	workspace := t.TempDir()
	e := testEngine(t, Options{})
	handle, err := e.Ensure(t.Context(), testSpec(t, workspace))
	if err != nil {
		t.Fatal(err)
	}
	for _, command := range []string{
		"cp /bin/true a; chmod u+s a", "cp /bin/true b; chmod 2755 b", "cp /bin/true c; chmod 6711 c", "install -m 4755 /bin/true d", "cp /bin/true e && chmod 755 e",
		"mkdir f; chmod g+s f",
	} {
		if _, err := output(t.Context(), handle, command+"; true"); err != nil {
			t.Error(err)
		}
	}
	entries, err := os.ReadDir(workspace)
	if err != nil || len(entries) < 5 {
		t.Fatalf("%d files, %v", len(entries), err)
	}
	for _, entry := range entries {
		info, err := os.Lstat(filepath.Join(workspace, entry.Name()))
		if err != nil || info.Mode()&(os.ModeSetuid|os.ModeSetgid) != 0 {
			t.Errorf("%s is %v, %v", entry.Name(), info.Mode(), err)
		}
	}
	if info, err := os.Stat(filepath.Join(workspace, "e")); err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("an ordinary mode: %v, %v", info, err)
	}
}

func TestNoFileRunsAsItsOwnerForAnOrdinaryUser(t *testing.T) {
	if !asUser(t) {
		TestNoFileRunsAsItsOwner(t)
	}
}
