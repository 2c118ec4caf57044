package docker

import (
	"fmt"
	"sync"
	"testing"

	"github.com/toolward/toolward/sandbox"
)

// Many sandboxes are made, used and removed at the same time, and nothing of them is left.
func TestManyAtOnce(t *testing.T) {
	e := testEngine(t)
	const many, together = 24, 8
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
	if states, err := e.List(t.Context()); err != nil || len(states) != 0 {
		t.Errorf("there are %v, %v", states, err)
	}
}
