package api

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/audit"
	"github.com/toolward/toolward/desk"
	"github.com/toolward/toolward/server/door"
	"github.com/toolward/toolward/session"
)

// Level is the answer of GET /v1/level.
type Level struct {
	Session    toolward.SessionKey  `json:"session"`
	Level      toolward.Level       `json:"level"`
	Inputs     toolward.LevelInputs `json:"inputs"`
	FloorUntil time.Time            `json:"floorUntil,omitzero"`  // without it a floor stays until a person clears it
	FloorBy    string               `json:"floorBy,omitempty"`    // the person or alarm that set the floor
	Sources    []string             `json:"sources"`              // of content that strangers wrote, newest last
	SourcesCut bool                 `json:"sourcesCut,omitempty"` // there were more sources, which are not kept
	Stamp      string               `json:"stamp"`                // of the sources: who clears them brings it back
}

func SessionOf(r *http.Request) (toolward.SessionKey, error) {
	return CheckSession(r.URL.Query().Get("session"))
}

func CheckSession(text string) (toolward.SessionKey, error) {
	key := toolward.SessionKey(text)
	if key.Agent() == "" {
		return "", door.NewProblem(http.StatusBadRequest, "sessions are named agent:<id>:<rest>; see audit tail", "session %s is not a session key", door.QuoteShort(text))
	}
	return key, nil
}

func (s *Server) apiLevel(w http.ResponseWriter, r *http.Request, _ Caller) error {
	key, err := SessionOf(r)
	if err != nil {
		return err
	}
	return s.sendLevel(w, r, key)
}

func (s *Server) sendLevel(w http.ResponseWriter, r *http.Request, key toolward.SessionKey) error {
	o, err := s.levels.Overview(r.Context(), key)
	if err != nil {
		return err
	}
	door.WriteJSON(w, http.StatusOK, Level{
		Session: key, Level: o.Level, Inputs: o.Inputs, FloorUntil: o.Floor.Until, FloorBy: o.Floor.By,
		Sources: append([]string{}, o.Sources...), SourcesCut: o.SourcesCut, Stamp: o.SourcesStamp(),
	})
	return nil
}

// LevelFloor is the body of POST /v1/level.
type LevelFloor struct {
	Level string `json:"level"` // normal, elevated or lockdown
}

func (s *Server) apiSetLevel(w http.ResponseWriter, r *http.Request, c Caller) error {
	key, err := SessionOf(r)
	if err != nil {
		return err
	}
	var body LevelFloor
	if err := door.ReadJSON(r, &body); err != nil {
		return err
	}
	level, err := ParseLevel(body.Level)
	if err != nil {
		return err
	}
	if err := s.desk.SetLevel(r.Context(), c.visitor(), key, level); err != nil {
		return LevelProblem(err)
	}
	return s.sendLevel(w, r, key)
}

// ParseLevel reads a level.
func ParseLevel(text string) (level toolward.Level, err error) {
	if err := level.UnmarshalText([]byte(text)); err != nil {
		return level, door.NewProblem(http.StatusBadRequest, "use normal, elevated or lockdown", "%s", err.Error())
	}
	return level, nil
}

// apiClearLevel takes a session's floor away; with external=STAMP also the mark that it has seen what strangers
// wrote, which is the caller's word that a person has read the list of sources that has this stamp.
func (s *Server) apiClearLevel(w http.ResponseWriter, r *http.Request, c Caller) error {
	key, err := SessionOf(r)
	if err != nil {
		return err
	}
	if err := s.desk.ClearLevel(r.Context(), c.visitor(), key, r.URL.Query().Get("external")); err != nil {
		return LevelProblem(err)
	}
	return s.sendLevel(w, r, key)
}

// LevelProblem says why a level was not changed.
func LevelProblem(err error) error {
	if desk.CodeOf(err) == desk.Changed {
		return door.NewProblem(http.StatusConflict, "read the list of sources and send the stamp that comes with it", "%s", err.Error())
	}
	return Problem(err)
}

// Session is a conversation in the answer of GET /v1/sessions.
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

// Sessions is the answer of GET /v1/sessions, the latest first.
type Sessions struct {
	Sessions []Session `json:"sessions"`
}

func (s *Server) apiSessions(w http.ResponseWriter, r *http.Request, _ Caller) error {
	limit, err := limitOf(r.URL.Query())
	if err != nil {
		return err
	}
	list, err := s.RecentSessions(r, limit)
	if err != nil {
		return err
	}
	door.WriteJSON(w, http.StatusOK, Sessions{list})
	return nil
}

// limitOf reads a limit, of a query that may have nothing else.
func limitOf(query url.Values) (int, error) {
	limit := audit.DefaultLimit
	for name, values := range query {
		n, err := strconv.Atoi(values[0])
		if name != "limit" || len(values) > 1 || err != nil || n < 1 || n > audit.MaxLimit {
			return 0, door.NewProblem(http.StatusBadRequest, "only limit can be given, 1 to 1000", "%s: %s", name, door.QuoteShort(values[0]))
		}
		limit = n
	}
	return limit, nil
}

// recentSessions lists the sessions that have called or changed last, the latest first. It looks at the latest
// decisions of all sessions once, not at the whole record for each session.
func (s *Server) RecentSessions(r *http.Request, limit int) ([]Session, error) {
	ctx := r.Context()
	changed, err := s.levels.Recent(ctx, limit)
	if err != nil {
		return nil, err
	}
	calls, err := s.audit.Query(ctx, audit.Filter{Type: audit.TypeDecision, Limit: audit.MaxLimit})
	if err != nil {
		return nil, err
	}
	anomalies, err := s.audit.Query(ctx, audit.Filter{Type: audit.TypeAnomaly, Since: time.Now().Add(-24 * time.Hour), Limit: audit.MaxLimit})
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
			o, err := s.levels.Overview(ctx, key)
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

// Signals are the signals that are not at rest, in words.
func (s *Session) Signals() []string { return SignalWords(&s.Inputs, s.Sources) }

// latest is when a session called or changed last.
func (s *Session) latest() time.Time {
	if s.LastCall != nil && s.LastCall.At.After(s.Updated) {
		return s.LastCall.At
	}
	return s.Updated
}

// signalWords are the signals that are not at rest, in words.
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

// contextWords says how full the context is; "" if its client does not tell.
func ContextWords(in *toolward.LevelInputs) string {
	switch {
	case in.ContextTokens < 0:
		return ""
	case in.ContextWindow <= 0:
		return "of unknown size"
	}
	return fmt.Sprintf("%d %% full", in.ContextTokens*100/in.ContextWindow)
}
