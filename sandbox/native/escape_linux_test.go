package native

import (
	"os"
	"testing"

	"github.com/toolward/toolward/internal/escape"
)

func TestEscapeBattery(t *testing.T) { battery(t) }

// An ordinary user's gateway makes sandboxes in another way: no mount is made for it, and no limit is set.
func TestEscapeBatteryAsUser(t *testing.T) {
	if !asUser(t) {
		battery(t)
	}
}

func battery(t *testing.T) {
	t.Helper()
	e := testEngine(t, Options{})
	home, err := os.UserHomeDir()
	if err != nil {
		t.Fatal(err)
	}
	escape.Run(t, escape.Target{
		Engine: e, Spec: testSpec, Hidden: []string{home, t.TempDir(), "/etc/passwd-", "/var/lib/dpkg"},
	})
}
