package command

import (
	"testing"

	"github.com/toolward/toolward"
)

// What means the working directory in the search path is skipped, but makes every program that is found through it
// one to ask about.
func TestASearchPathThatLeadsHereAsks(t *testing.T) {
	for _, dirs := range [][]string{{"", "/usr/bin"}, {"/usr/bin", "."}, {"/usr/bin", "bin"}} {
		w := newWorld(t, nil)
		w.path = dirs
		a := w.evaluate(t, onMiss(Strict, "/usr/bin/git"), "git status")
		if verdict(a) != toolward.Ask || len(a.Segments) != 1 || a.Segments[0].Program.Path != "/usr/bin/git" {
			t.Errorf("%q: %s, %+v", dirs, verdict(a), a.Segments)
		}
	}
	w := newWorld(t, nil)
	if a := w.evaluate(t, onMiss(Strict, "/usr/bin/git"), "git status"); verdict(a) != toolward.Allow {
		t.Errorf("a search path of absolute directories: %s", verdict(a))
	}
}
