package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A file of checkpoints in the home would be changed together with the record, by whatever name it is reached.
func TestCheckpointsInTheHome(t *testing.T) {
	home, away := t.TempDir(), t.TempDir()
	if err := os.Symlink(home, filepath.Join(away, "link")); err != nil {
		t.Fatal(err)
	}
	for path, ok := range map[string]bool{
		filepath.Join(away, "checkpoints"):         true,
		filepath.Join(home, "checkpoints"):         false,
		filepath.Join(home, "a", "checkpoints"):    false,
		filepath.Join(away, "link", "checkpoints"): false,
	} {
		_, err := Parse(FileName, []byte("{\n\"teg\": {\"audit\": {\"checkpoints\": {\"file\": \""+path+"\"}}}}"), CheckCheckpoints(home))
		if ok != (err == nil) || err != nil && !strings.Contains(err.Error(), "toolward.jsonc:2:43: teg.audit.checkpoints.file: ") {
			t.Errorf("%s: %v", path, err)
		}
	}
}
