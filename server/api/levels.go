package api

import (
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/audit"
	"github.com/toolward/toolward/desk"
	"github.com/toolward/toolward/server/door"
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

func (s *Server) apiLevel(w http.ResponseWriter, r *http.Request, c Caller) error {
	key, err := SessionOf(r)
	if err != nil {
		return err
	}
	return s.sendLevel(w, r, c, key)
}

func (s *Server) sendLevel(w http.ResponseWriter, r *http.Request, c Caller, key toolward.SessionKey) error {
	o, err := s.desk.Level(r.Context(), c.visitor(), key)
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
	return s.sendLevel(w, r, c, key)
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
	return s.sendLevel(w, r, c, key)
}

// LevelProblem says why a level was not changed.
func LevelProblem(err error) error {
	if desk.CodeOf(err) == desk.Changed {
		return door.NewProblem(http.StatusConflict, "read the list of sources and send the stamp that comes with it", "%s", err.Error())
	}
	return Problem(err)
}

// Sessions is the answer of GET /v1/sessions, the latest first.
type Sessions struct {
	Sessions []desk.Session `json:"sessions"`
}

func (s *Server) apiSessions(w http.ResponseWriter, r *http.Request, c Caller) error {
	limit, err := limitOf(r.URL.Query())
	if err != nil {
		return err
	}
	list, err := s.desk.Sessions(r.Context(), c.visitor(), limit)
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
