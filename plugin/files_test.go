package plugin_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/toolward/toolward/plugin"
)

// A program that is not there yet would be started as soon as somebody puts it there: it is kept from agents, too.
func TestFilesOfPluginsIncludeMissingOnes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	script, missing := filepath.Join(dir, "guard.py"), filepath.Join(dir, "rules.py")
	if err := os.WriteFile(script, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	c := plugin.Config{Entries: map[string]plugin.Entry{"guard": {Kind: plugin.KindCommand, Command: []string{"/bin/sh", script, missing, dir, "guard.py"}}}}
	want := []string{script, missing}
	if os.Geteuid() == 0 {
		want = slices.Insert(want, 0, "/bin/sh") // of this user as well
	}
	if got := c.Files(); !slices.Equal(got, want) {
		t.Errorf("files %q, want %q", got, want)
	}
}
