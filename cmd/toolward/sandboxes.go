package main

import (
	"os"

	"github.com/toolward/toolward/place"
	"github.com/toolward/toolward/sandbox"
)

// sandboxAround is what the configuration does not say about sandboxes. A home directory that cannot be found is "": the
// rules about what lies in it have nothing to protect then.
func sandboxAround(stateDir string) sandbox.Surroundings {
	home, _ := os.UserHomeDir()
	return sandbox.Surroundings{StateDir: withoutLinks(stateDir), Home: withoutLinks(home), FoldCase: place.FoldsCase(stateDir)}
}
