package light

import (
	"context"
	"sync"
	"syscall"

	"github.com/toolward/toolward/job"
)

// Confine has every program of a plan started in a box. Parts that are about the same share one, so that they see each
// other's processes; a part that is about keys has another one than those that are not.
func (l *Light) Confine(plan *job.Plan, scene *Scene) error {
	mode := l.Check().Mode
	if mode == None {
		return &Unavailable{l.Check()}
	}
	signs := signsCommits(scene.Layout.Home)
	boxes := map[Need]*lazyBox{}
	for i := range plan.Segments {
		segment := &plan.Segments[i]
		if segment.Chdir != nil {
			continue
		}
		var need Need
		if i < len(scene.Calls) {
			for _, call := range scene.Calls[i] {
				need |= NeedOf(call, signs)
			}
		}
		if boxes[need] == nil {
			boxes[need] = &lazyBox{light: l, scene: scene, need: need, mode: mode}
		}
		segment.Elsewhere = boxes[need]
	}
	return nil
}

// lazyBox is a box that is made when the first program starts in it.
type lazyBox struct {
	light *Light
	scene *Scene
	need  Need
	mode  Mode

	mu    sync.Mutex
	box   *box
	err   error // why there is none
	ended bool
}

// Start starts a program, in the box that the first one makes.
func (b *lazyBox) Start(launch job.Launch) (job.Started, error) {
	made, err := b.made()
	if err != nil {
		return nil, err
	}
	launch.Env = environment(launch.Env, b.need)
	return made.Start(launch)
}

func (b *lazyBox) made() (*box, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.box != nil || b.err != nil {
		return b.box, b.err
	}
	if b.ended {
		return nil, job.ErrStopped
	}
	made, err := b.light.take(context.Background(), b.mode)
	if err == nil {
		if err = made.confine(b.scene.setupFor(b.need, b.mode)); err != nil {
			made.End()
		}
	}
	if err != nil {
		// The number of the error would be taken for that of a program that the system does not start.
		b.err = &job.Refusal{What: "light confinement", Err: err}
		return nil, b.err
	}
	b.box = made
	return made, nil
}

// Signal reaches everything in the box.
func (b *lazyBox) Signal(signal syscall.Signal) {
	b.mu.Lock()
	made := b.box
	b.mu.Unlock()
	if made != nil {
		made.Signal(signal)
	}
}

// End ends the box.
func (b *lazyBox) End() {
	b.mu.Lock()
	made := b.box
	b.ended = true
	b.mu.Unlock()
	if made != nil {
		made.End()
	}
}
