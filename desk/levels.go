package desk

import (
	"context"
	"errors"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/audit"
	"github.com/toolward/toolward/session"
)

// Levels is how tense sessions are.
type Levels interface {
	// Overview tells a session's level and what it comes from.
	Overview(context.Context, toolward.SessionKey) (session.Overview, error)
	// Recent lists the sessions that changed last, newest first.
	Recent(ctx context.Context, limit int) ([]session.Overview, error)
	// SetFloor keeps a session at least as tense as level until it is cleared.
	SetFloor(ctx context.Context, key toolward.SessionKey, level toolward.Level, by string) error
	// Clear takes the floor away, and if read is the stamp of the sources also the mark that the session has seen
	// what strangers wrote. It is session.ErrSourcesChanged if the sources are no longer those of the stamp.
	Clear(ctx context.Context, key toolward.SessionKey, read, by string) error
}

// SetLevel keeps a session at least as tense as a level. That may be calmer than it was, so it is recorded first.
func (d *Desk) SetLevel(ctx context.Context, v Visitor, key toolward.SessionKey, level toolward.Level) error {
	if err := d.may(v, ChangeLevel, d.levels != nil); err != nil {
		return err
	}
	data := v.signed(map[string]any{"event": "floor set", "to": level.String()})
	if err := d.record(ctx, levelEvent(key, data)); err != nil {
		return err
	}
	return levelError(d.levels.SetFloor(ctx, key, level, v.By.Name()))
}

// ClearLevel takes a session's floor and suspicion away. With the stamp of the sources that the visitor has read it takes away the
// mark of content from outside, too.
func (d *Desk) ClearLevel(ctx context.Context, v Visitor, key toolward.SessionKey, read string) error {
	if err := d.may(v, ChangeLevel, d.levels != nil); err != nil {
		return err
	}
	o, err := d.levels.Overview(ctx, key)
	if err != nil {
		return levelError(err)
	}
	if read != "" && read != o.SourcesStamp() {
		return levelError(session.ErrSourcesChanged)
	}
	data := v.signed(map[string]any{"event": "cleared", "external": read != ""})
	if read != "" {
		if data["sources"] = o.Sources; o.SourcesCut {
			data["sourcesCut"] = true
		}
	}
	if err := d.record(ctx, levelEvent(key, data)); err != nil {
		return err
	}
	return levelError(d.levels.Clear(ctx, key, read, v.By.Name()))
}

func levelEvent(key toolward.SessionKey, data map[string]any) audit.Event {
	return audit.Event{Type: audit.TypeLevel, Session: key, Agent: key.Agent(), Data: data}
}

func levelError(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, session.ErrSourcesChanged):
		return &Error{Changed, err}
	}
	return &Error{Failed, err}
}
