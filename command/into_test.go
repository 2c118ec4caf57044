package command

import "testing"

// TestCopiesIntoDirectories: what a copy is called in a directory decides, not the directory alone.
func TestCopiesIntoDirectories(t *testing.T) {
	w := newWorld(t, map[string]string{"/ws/x/.git": "d", "/ws/x/a": "f", "/ws/dir": "d", "/ws/file": "f"})
	for command, satisfied := range map[string]bool{
		"cp x/a dir":       true,
		"cp x/a file":      true, // no directory: file/a is nothing
		"cp -r x/.git new": true,
		"cp -r x/.git dir": false, // dir/.git is a repository with hooks of its own
		"mv x/.git dir/":   false,
		"cp -r x/. dir":    false,
	} {
		if got := w.evaluate(t, onMiss(Developer, "/usr/bin/cp", "/usr/bin/mv"), command); got.Satisfied != satisfied {
			t.Errorf("%s: satisfied %v, want %v: %v", command, got.Satisfied, satisfied, got.Segments[0].Asks)
		}
	}
}
