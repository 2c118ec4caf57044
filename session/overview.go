package session

import (
	"context"
	"fmt"
	"slices"

	"github.com/toolward/toolward"
)

// Overview is what is known of one conversation, for people.
type Overview struct {
	State
	Level  toolward.Level // that its next run would begin with
	Inputs toolward.LevelInputs
	Floor  Floor // in force now; level Normal if there is none
}

// Overview says how tense a conversation is, and why. One that is not known is as a new one.
func (t *Tracker) Overview(ctx context.Context, key toolward.SessionKey) (Overview, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if at, ok := t.entries[key]; ok {
		return t.view(at.Value.(*entry)), nil
	}
	// Not by get: whoever looks through old conversations must not push out those that are going on.
	e, err := t.load(ctx, key)
	if err != nil {
		return Overview{}, err
	}
	return t.view(e), nil
}

// Recent lists the conversations that have changed last, newest first, at most limit. Those that nothing has ever
// happened to are kept nowhere and not listed.
func (t *Tracker) Recent(ctx context.Context, limit int) ([]Overview, error) {
	states, err := t.options.Store.RecentSessions(ctx, limit)
	if err != nil {
		return nil, fmt.Errorf("list sessions: %w", err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	list := make([]Overview, len(states))
	for i, state := range states {
		if at, ok := t.entries[state.Key]; ok {
			list[i] = t.view(at.Value.(*entry))
		} else {
			list[i] = t.view(&entry{State: state})
		}
	}
	return list, nil
}

// view copies an entry for somebody outside.
func (t *Tracker) view(e *entry) Overview {
	level, inputs := t.compute(e, toolward.Normal)
	o := Overview{State: e.State, Level: level, Inputs: inputs, Floor: e.floor()}
	o.State.Sources, o.Floors = slices.Clone(e.State.Sources), slices.Clone(e.Floors)
	return o
}
