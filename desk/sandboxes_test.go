package desk_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/toolward/toolward/desk"
	"github.com/toolward/toolward/sandbox"
	"github.com/toolward/toolward/sandbox/fleet"
)

// boxes are sandboxes that note what becomes of them.
type boxes struct {
	ended []string
	err   error
}

func (b *boxes) end(how, name string) error {
	if b.err == nil {
		b.ended = append(b.ended, how+" "+name)
	}
	return b.err
}

func (b *boxes) Stop(_ context.Context, name, _ string) error   { return b.end("stop", name) }
func (b *boxes) Remove(_ context.Context, name, _ string) error { return b.end("remove", name) }
func (b *boxes) Ports(context.Context, string) ([]fleet.Listening, bool, error) {
	return []fleet.Listening{{Port: 3000, Program: "node", Local: true}}, false, b.err
}

func (b *boxes) Prune(context.Context) (fleet.Pruned, error) {
	return fleet.Pruned{Removed: []string{"old"}}, b.end("prune", "all")
}

func TestSandboxesEnd(t *testing.T) {
	ended := func(what string) func(*world) bool {
		return func(w *world) bool { return strings.Join(w.boxes.ended, ",") == what }
	}
	for _, o := range []operation{
		{"stop", "sandbox-stopped", nil, func(ctx context.Context, w *world, v desk.Visitor) error {
			return w.desk.EndSandbox(ctx, v, "b1", desk.StopSandbox)
		}, ended("stop b1")},
		{"remove", "sandbox-removed", nil, func(ctx context.Context, w *world, v desk.Visitor) error {
			return w.desk.EndSandbox(ctx, v, "b1", desk.RemoveSandbox)
		}, ended("remove b1")},
		{"prune", "sandboxes-pruned", nil, func(ctx context.Context, w *world, v desk.Visitor) error {
			_, err := w.desk.PruneSandboxes(ctx, v)
			return err
		}, ended("prune all")},
	} {
		o.takesAway(t)
	}
}

// What an engine did not do is recorded as not done.
func TestSandboxCodes(t *testing.T) {
	w := newWorld(t)
	w.boxes.err = sandbox.Errorf(sandbox.CodeNotFound, "no such sandbox")
	if err := w.desk.EndSandbox(t.Context(), w.person(), "b1", desk.StopSandbox); desk.CodeOf(err) != desk.Unknown || len(w.events) != 0 {
		t.Errorf("%v, recorded %v", err, w.events)
	}
	w.boxes.err = errors.New("the engine is stuck")
	if err := w.desk.EndSandbox(t.Context(), w.person(), "b1", desk.StopSandbox); desk.CodeOf(err) != desk.Failed || len(w.events) != 1 || w.events[0].Data["event"] != "sandbox-not-stopped" {
		t.Errorf("%v, recorded %v", err, w.events)
	}
}
