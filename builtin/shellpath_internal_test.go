package builtin

import (
	"errors"
	"testing"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/place"
)

// Without a shell the toolbox is there, and only commands that need one are refused.
func TestNoShell(t *testing.T) {
	before := systemDirectories
	t.Cleanup(func() { systemDirectories = before })
	systemDirectories = []string{t.TempDir()}
	b, err := New(Config{}, Deps{Places: func(toolward.Caller) (*place.Classifier, error) { return nil, nil }})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if err := b.prepare(&execPlan{command: "for x in a; do echo $x; done"}, nil); !errors.Is(err, errNoShell) {
		t.Errorf("a text without a shell: %v", err)
	}
	if _, err := New(Config{Shell: "/nowhere/bash"}, b.deps); err == nil {
		t.Error("a configured shell that is not there was taken for none")
	}
}
