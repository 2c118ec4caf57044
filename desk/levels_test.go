package desk_test

import (
	"context"
	"testing"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/desk"
)

const conversation = toolward.SessionKey("agent:coder:main")

func (w *world) level() toolward.Level {
	o, err := w.sessions.Overview(w.t.Context(), conversation)
	must(w.t, err)
	return o.Level
}

func TestLevels(t *testing.T) {
	lock := func(t *testing.T, w *world) {
		must(t, w.sessions.SetFloor(t.Context(), conversation, toolward.Lockdown, "test"))
	}
	for _, o := range []operation{
		{"set", "floor set", nil, func(ctx context.Context, w *world, v desk.Visitor) error {
			return w.desk.SetLevel(ctx, v, conversation, toolward.Elevated)
		}, func(w *world) bool { return w.level() == toolward.Elevated }},
		{"calm", "floor set", lock, func(ctx context.Context, w *world, v desk.Visitor) error {
			return w.desk.SetLevel(ctx, v, conversation, toolward.Normal)
		}, func(w *world) bool { return w.level() == toolward.Normal }},
		{"clear", "cleared", lock, func(ctx context.Context, w *world, v desk.Visitor) error {
			return w.desk.ClearLevel(ctx, v, conversation, "")
		}, func(w *world) bool { return w.level() == toolward.Normal }},
	} {
		o.loosens(t)
	}
}

// Whoever has read other sources than there are clears nothing.
func TestSourcesMustBeRead(t *testing.T) {
	w := newWorld(t)
	must(t, w.sessions.SetFloor(t.Context(), conversation, toolward.Lockdown, "test"))
	err := w.desk.ClearLevel(t.Context(), w.person(), conversation, "what I have read")
	if desk.CodeOf(err) != desk.Changed || w.level() != toolward.Lockdown || len(w.events) != 0 {
		t.Errorf("%v, level %s, recorded %v", err, w.level(), w.events)
	}
}
