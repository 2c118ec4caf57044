package session

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/toolward/toolward"
)

// change alters a conversation's state, keeps it, and tells if the level changed. If it cannot be kept, the change
// still counts in memory when it makes the conversation tenser, and is undone when it does not: a full disk must not
// calm a session.
func (t *Tracker) change(ctx context.Context, key toolward.SessionKey, by string, alter func(*State)) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	e, err := t.get(ctx, key)
	if err != nil {
		return err
	}
	before := e.State
	levelBefore, _ := t.compute(e, toolward.Normal)
	before.Sources, before.Floors = slices.Clone(e.State.Sources), slices.Clone(e.Floors)
	alter(&e.State)
	e.Updated = time.Now()
	level, inputs := t.compute(e, toolward.Normal)
	if err := t.options.Store.SaveSession(ctx, e.State); err != nil {
		if level > levelBefore {
			e.State = before
		}
		return fmt.Errorf("session %s: %w", key, err)
	}
	t.tell(e, level, inputs.Reasons, by)
	return nil
}

// Expose records that a conversation has seen content that strangers wrote. The mark stays until a person clears it
// or the conversation is reset.
func (t *Tracker) Expose(ctx context.Context, key toolward.SessionKey, x toolward.Exposure) error {
	if len(x.External) == 0 {
		return nil
	}
	if t.knows(key, x.External) {
		return nil
	}
	return t.change(ctx, key, "", func(s *State) {
		s.External = true
		for _, source := range x.External {
			s.Sources = slices.DeleteFunc(s.Sources, func(known string) bool { return known == source })
			s.Sources = append(s.Sources, source)
		}
		if extra := len(s.Sources) - maxSources; extra > 0 {
			s.Sources, s.SourcesCut = slices.Delete(s.Sources, 0, extra), true
		}
	})
}

// knows reports whether all of the sources are noted already, so that nothing needs to be written.
func (t *Tracker) knows(key toolward.SessionKey, sources []string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	at, ok := t.entries[key]
	if !ok {
		return false
	}
	e := at.Value.(*entry)
	return e.External && !slices.ContainsFunc(sources, func(s string) bool { return !slices.Contains(e.State.Sources, s) })
}

// Usage records what a client reports about the size of its context, in tokens; tokens is -1 and window 0 where it
// does not know.
func (t *Tracker) Usage(ctx context.Context, key toolward.SessionKey, tokens, window int64) error {
	t.mu.Lock()
	at, ok := t.entries[key]
	same := ok && at.Value.(*entry).Reports && at.Value.(*entry).ContextTokens == tokens && at.Value.(*entry).ContextWindow == window
	t.mu.Unlock()
	if same {
		return nil
	}
	return t.change(ctx, key, "", func(s *State) {
		s.Reports, s.ContextTokens, s.ContextWindow = true, tokens, window
	})
}

// Compacted records that older text of a conversation was dropped or summarized. Rules that stood there are gone.
func (t *Tracker) Compacted(ctx context.Context, key toolward.SessionKey) error {
	return t.change(ctx, key, "", func(s *State) { s.Compacted = true })
}

// Suspect records that strangers' text looked like instructions.
func (t *Tracker) Suspect(ctx context.Context, key toolward.SessionKey) error {
	return t.change(ctx, key, "", func(s *State) { s.Suspicious = true })
}

// Inherit makes a sub-agent's conversation begin with what its parent has seen: spawning must not launder.
func (t *Tracker) Inherit(ctx context.Context, child, parent toolward.SessionKey) error {
	if child == parent {
		return errors.New("a session cannot be its own parent")
	}
	t.mu.Lock()
	p, err := t.get(ctx, parent)
	if err != nil {
		t.mu.Unlock()
		return err
	}
	external, suspicious, cut, sources, floors := p.External, p.Suspicious, p.SourcesCut, slices.Clone(p.State.Sources), slices.Clone(p.Floors)
	t.mu.Unlock()
	return t.change(ctx, child, "", func(s *State) {
		s.Parent = parent
		s.External = s.External || external
		s.Suspicious = s.Suspicious || suspicious
		s.SourcesCut = s.SourcesCut || cut
		for _, source := range sources {
			switch {
			case slices.Contains(s.Sources, source):
			case len(s.Sources) < maxSources:
				s.Sources = append(s.Sources, source)
			default:
				s.SourcesCut = true
			}
		}
		for _, f := range floors {
			if f.Level < s.floor().Level {
				s.put(f)
			}
		}
	})
}

// SetFloor sets the least tense level that a person lets a conversation have, until it is cleared. What an alarm has
// raised stays.
func (t *Tracker) SetFloor(ctx context.Context, key toolward.SessionKey, level toolward.Level, by string) error {
	return t.change(ctx, key, by, func(s *State) { s.put(Floor{Level: level, By: by}) })
}

// RaiseFloor raises the floor for a time from now on; one that is tenser or lasts longer stays.
func (t *Tracker) RaiseFloor(ctx context.Context, key toolward.SessionKey, level toolward.Level, life time.Duration, by string) error {
	until := time.Now().Add(life)
	if t.isRaised(key, level, until) {
		return nil
	}
	return t.change(ctx, key, by, func(s *State) { s.put(Floor{level, until, by}) })
}

// isRaised reports whether the floor is as tense until then, give or take a minute, so that nothing needs to be
// written: an alarm may ask for its floor with every call.
func (t *Tracker) isRaised(key toolward.SessionKey, level toolward.Level, until time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	at, ok := t.entries[key]
	return ok && slices.ContainsFunc(at.Value.(*entry).Floors, func(f Floor) bool {
		return f.Level <= level && f.Until.After(until.Add(-time.Minute)) // a person's has no end, and may be taken back
	})
}

// ErrSourcesChanged is what Clear returns when the session has seen content of further sources since the list was
// read.
var ErrSourcesChanged = errors.New("the list of sources has changed since it was read")

// Clear takes a conversation's floor and suspicion away. With read also the mark of external content: that needs a
// person who has read the list of sources, and read is the stamp of that list ([State.SourcesStamp]). A stamp of
// another list clears nothing, so that nobody clears what came in while they read.
func (t *Tracker) Clear(ctx context.Context, key toolward.SessionKey, read, by string) error {
	var stale error
	err := t.change(ctx, key, by, func(s *State) {
		if read != "" && read != s.SourcesStamp() {
			stale = ErrSourcesChanged
			return
		}
		s.Floors = nil
		s.Suspicious = false
		if read != "" {
			s.External, s.Sources, s.SourcesCut = false, nil, false
		}
	})
	return cmp.Or(stale, err)
}

// SourcesStamp names exactly this list of sources, and whether there were more.
func (s *State) SourcesStamp() string {
	h := sha256.New()
	if s.SourcesCut {
		fmt.Fprint(h, "cut ")
	}
	for _, source := range s.Sources {
		fmt.Fprintf(h, "%d:%s", len(source), source)
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// RaisedStamp names what raises the level beside the sources: floors and suspicion. When a floor ends is not part of it,
// because an alarm that goes on moves that.
func (s *State) RaisedStamp() string {
	h := sha256.New()
	fmt.Fprintf(h, "%t", s.Suspicious)
	for _, f := range s.Floors {
		fmt.Fprintf(h, " %d %d:%s", f.Level, len(f.By), f.By)
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// Reset begins a conversation anew: a fresh context has seen nothing. A floor that a person or an alarm set stays.
func (t *Tracker) Reset(ctx context.Context, key toolward.SessionKey) error {
	return t.change(ctx, key, "", func(s *State) {
		*s = State{
			Key: s.Key, Parent: s.Parent, Reports: s.Reports, ContextWindow: s.ContextWindow,
			Floors: s.Floors,
		}
	})
}
