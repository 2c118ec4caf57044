package docker

import (
	"os"
	"testing"

	"github.com/toolward/toolward/internal/escape"
	"github.com/toolward/toolward/sandbox"
)

func TestEscapeBattery(t *testing.T) {
	e := testEngine(t)
	home, err := os.UserHomeDir()
	if err != nil {
		t.Fatal(err)
	}
	escape.Run(t, escape.Target{
		Engine: e, Hidden: []string{home, t.TempDir(), "/etc/passwd-", "/var/lib/dpkg"},
		Spec: func(t *testing.T, workspace string) *sandbox.Spec { return testSpec(t, workspace) },
	})
}
