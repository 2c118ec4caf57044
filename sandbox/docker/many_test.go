package docker

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/toolward/toolward/internal/live"
	"github.com/toolward/toolward/sandbox"
)

// Many sandboxes are made, used and removed at the same time, and nothing of them is left. TOOLWARD_SANDBOXES says how
// many; 200 take minutes.
func TestManyAtOnce(t *testing.T) {
	e := testEngine(t)
	manyAtOnce(t, e, 2) // what is kept for the next ones is there from now on
	doors, err := e.doorDirectory("any")
	if err != nil {
		t.Fatal(err)
	}
	before, containers, began := live.Hold(), docker(t, "ps", "--all", "--quiet", "--filter", "label="+labelInstance+"="+t.Name()), time.Now()
	many := live.Count(t, "TOOLWARD_SANDBOXES", 24, 24)
	manyAtOnce(t, e, many)
	t.Logf("%d sandboxes in %v", many, time.Since(began).Round(time.Millisecond))
	before.MustLetGo(t)
	if after := docker(t, "ps", "--all", "--quiet", "--filter", "label="+labelInstance+"="+t.Name()); containers != "" || after != "" {
		t.Errorf("containers are left: %q, %q", containers, after)
	}
	if left, err := os.ReadDir(filepath.Dir(doors)); err == nil && len(left) > 0 {
		t.Errorf("places of sockets are left: %v", left)
	}
	if states, err := e.List(t.Context()); err != nil || len(states) != 0 {
		t.Errorf("there are %v, %v", states, err)
	}
}

func manyAtOnce(t *testing.T, e *Engine, many int) {
	t.Helper()
	const together = 8
	specs := make(chan *sandbox.Spec, many)
	for i := range many {
		spec := testSpec(t, newWorkspace(t))
		spec.Name = fmt.Sprintf("%s-%d", spec.Name, i)
		specs <- spec
	}
	close(specs)
	var working sync.WaitGroup
	for range together {
		working.Go(func() {
			for spec := range specs {
				h, err := e.Ensure(t.Context(), spec)
				if err != nil {
					t.Error(err)
					continue
				}
				p, err := h.Start(t.Context(), sandbox.Command{Argv: []string{"touch", "here"}})
				if err != nil {
					t.Error(err)
				} else if status, err := p.Wait(t.Context()); err != nil || status.Code != 0 {
					t.Errorf("%+v, %v", status, err)
				}
				if err := e.Remove(t.Context(), spec.Name); err != nil {
					t.Error(err)
				}
			}
		})
	}
	working.Wait()
}
