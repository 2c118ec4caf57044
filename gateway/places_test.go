package gateway

import (
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"testing"

	"github.com/toolward/toolward/sandbox/settings"
)

func TestWorkspacesThatAreRefused(t *testing.T) {
	home := shortHome(t)
	state := filepath.Join(home, ".toolward")
	linked := filepath.Join(home, "linked-state")
	for _, dir := range []string{state, filepath.Join(state, "inside"), filepath.Join(home, "project")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for from, to := range map[string]string{linked: state, filepath.Join(home, "to-project"): filepath.Join(home, "project")} {
		if err := os.Symlink(to, from); err != nil {
			t.Fatal(err)
		}
	}
	for _, stateDir := range []string{state, linked} {
		p, err := NewTerritory(stateDir)
		if err != nil {
			t.Fatal(err)
		}
		for _, test := range []struct {
			name, dir string
			allowed   bool
		}{
			{"a project", filepath.Join(home, "project"), true},
			{"a link to a project", filepath.Join(home, "to-project"), true},
			{"the home", home, false},
			{"above the home", filepath.Dir(home), false},
			{"the state", state, false},
			{"a link to the state", linked, false},
			{"inside the state", filepath.Join(state, "inside"), false},
			{"inside the state, through a link", filepath.Join(linked, "inside"), false},
			{"relative", "project", false},
			{"absent", filepath.Join(home, "absent"), false},
		} {
			t.Run(filepath.Base(stateDir)+"/"+test.name, func(t *testing.T) {
				real, err := p.CheckWorkspace(test.dir)
				if (err == nil) != test.allowed {
					t.Errorf("%q, %v", real, err)
				}
			})
		}
	}
}

// Whoever starts the gateway with another HOME has keys in the home of the account all the same.
func TestSandboxesKeepKeysOfTheAccount(t *testing.T) {
	account, err := user.Current()
	if err != nil || account.HomeDir == "/" {
		t.Skip("this machine's accounts name no home directory")
	}
	t.Setenv("HOME", t.TempDir())
	if around := settings.OnThisMachine(t.TempDir()); !slices.Contains(around.OtherHomes, withoutLinks(account.HomeDir)) {
		t.Errorf("%s is not known as a home: %+v", account.HomeDir, around)
	}
}
