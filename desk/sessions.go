package desk

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/audit"
	"github.com/toolward/toolward/session"
)

// Session is a conversation, as the list of them shows it.
type Session struct {
	Session    toolward.SessionKey  `json:"session"`
	Agent      string               `json:"agent"`
	Parent     toolward.SessionKey  `json:"parent,omitempty"` // the conversation that spawned this one
	Level      toolward.Level       `json:"level"`
	Inputs     toolward.LevelInputs `json:"inputs"`
	FloorUntil time.Time            `json:"floorUntil,omitzero"`
	FloorBy    string               `json:"floorBy,omitempty"`
	Sources    int                  `json:"sources"`            // how many; GET /v1/level names them
	Updated    time.Time            `json:"updated,omitzero"`   // when its signals changed last; missing: never
	LastCall   *LastCall            `json:"lastCall,omitempty"` // missing: none among the latest calls of all sessions
	Anomalies  int                  `json:"anomalies"`          // within the last day, among the latest of all sessions
}

// LastCall is the latest call of a conversation.
type LastCall struct {
	Seq     int64     `json:"seq"` // of its decision in the record
	At      time.Time `json:"at"`
	Tool    string    `json:"tool"`
	Verdict string    `json:"verdict"` // allow or deny
}

// Level tells a session's level and what it comes from.
func (d *Desk) Level(ctx context.Context, v Visitor, key toolward.SessionKey) (session.Overview, error) {
	if err := d.may(v, SeeSessions, d.levels != nil); err != nil {
		return session.Overview{}, err
	}
	o, err := d.levels.Overview(ctx, key)
	return o, levelError(err)
}

// Sessions lists the sessions that have called or changed last, the latest first. It looks at the latest
// decisions of all sessions once, not at the whole record for each session.
func (d *Desk) Sessions(ctx context.Context, v Visitor, limit int) ([]Session, error) {
	if err := d.may(v, SeeSessions, d.levels != nil && d.records != nil); err != nil {
		return nil, err
	}
	list, err := d.recentSessions(ctx, limit)
	if err != nil {
		return nil, &Error{Failed, err}
	}
	return list, nil
}

func (d *Desk) recentSessions(ctx context.Context, limit int) ([]Session, error) {
	changed, err := d.levels.Recent(ctx, limit)
	if err != nil {
		return nil, err
	}
	calls, err := d.records.Query(ctx, audit.Filter{Type: audit.TypeDecision, Limit: audit.MaxLimit})
	if err != nil {
		return nil, err
	}
	anomalies, err := d.records.Query(ctx, audit.Filter{Type: audit.TypeAnomaly, Since: time.Now().Add(-24 * time.Hour), Limit: audit.MaxLimit})
	if err != nil {
		return nil, err
	}
	list := []Session{}
	at := map[toolward.SessionKey]int{}
	add := func(o session.Overview) {
		at[o.Key] = len(list)
		list = append(list, Session{
			Session: o.Key, Agent: o.Key.Agent(), Parent: o.Parent, Level: o.Level, Inputs: o.Inputs,
			FloorUntil: o.Floor.Until, FloorBy: o.Floor.By, Sources: len(o.Sources), Updated: o.Updated,
		})
	}
	for _, o := range changed {
		add(o)
	}
	for _, call := range calls {
		key := toolward.SessionKey(call.Session)
		if key.Agent() == "" || key.Agent() != call.Agent {
			continue // a call in a session that is not its caller's: the record has it, the session has not
		}
		if _, known := at[key]; !known {
			o, err := d.levels.Overview(ctx, key)
			if err != nil {
				return nil, err
			}
			add(o)
		}
		if one := &list[at[key]]; one.LastCall == nil {
			one.LastCall = &LastCall{Seq: call.Seq, At: call.Time, Tool: call.Tool, Verdict: call.Verdict}
		}
	}
	for _, anomaly := range anomalies {
		if i, known := at[toolward.SessionKey(anomaly.Session)]; known {
			list[i].Anomalies++
		}
	}
	slices.SortStableFunc(list, func(a, b Session) int {
		return cmp.Or(b.latest().Compare(a.latest()), cmp.Compare(a.Session, b.Session))
	})
	return list[:min(limit, len(list))], nil
}

// Signals are the signals of a session that are not at rest, in words.
func (s *Session) Signals() []string { return SignalWords(&s.Inputs, s.Sources) }

// latest is when a session called or changed last.
func (s *Session) latest() time.Time {
	if s.LastCall != nil && s.LastCall.At.After(s.Updated) {
		return s.LastCall.At
	}
	return s.Updated
}

// SignalWords are the signals that are not at rest, in words.
func SignalWords(in *toolward.LevelInputs, sources int) []string {
	var words []string
	if text := ContextWords(in); text != "" {
		words = append(words, "context "+text)
	}
	if in.Compacted {
		words = append(words, "older text dropped")
	}
	switch {
	case in.External && sources == 1:
		words = append(words, "content from outside, 1 source")
	case in.External:
		words = append(words, fmt.Sprintf("content from outside, %d sources", sources))
	}
	if in.Suspicious {
		words = append(words, "suspicious content")
	}
	if in.Floor != toolward.Normal {
		words = append(words, "floor "+in.Floor.String())
	}
	return words
}

// ContextWords says how full the context is; "" if its client does not tell.
func ContextWords(in *toolward.LevelInputs) string {
	switch {
	case in.ContextTokens < 0:
		return ""
	case in.ContextWindow <= 0:
		return "of unknown size"
	}
	return fmt.Sprintf("%d %% full", in.ContextTokens*100/in.ContextWindow)
}
