package console

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/audit"
	"github.com/toolward/toolward/desk"
	"github.com/toolward/toolward/server/api"
	"github.com/toolward/toolward/server/door"
	"github.com/toolward/toolward/session"
)

// Lengths of the lists of sessions and of what is known of one.
const (
	sessionsShown  = 100
	sessionCalls   = 15
	sessionAnomaly = 10
)

// sessionLine is one line of the list of sessions.
type sessionLine struct {
	Key, Agent []span
	Href       string
	Level      string
	Why        []span
	Signals    []string
	LastTool   []span
	LastKind   string // allow or deny
	Last       string
	Anomalies  int
}

// showSessions is GET /c/{key}/sessions: the sessions that called or changed last.
func (s *Server) showSessions(w http.ResponseWriter, r *http.Request, v *visitor) error {
	list, err := s.desk.Sessions(r.Context(), v.atDesk(), sessionsShown)
	if err != nil {
		return err
	}
	p := struct {
		page
		Sessions []sessionLine
	}{page: s.newPage(v, "Sessions", "/sessions")}
	p.Style = "sessions.css"
	for i := range list {
		p.Sessions = append(p.Sessions, newSessionLine(v, &list[i]))
	}
	return renderPage(w, http.StatusOK, "sessions", p)
}

func newSessionLine(v *visitor, one *desk.Session) sessionLine {
	line := sessionLine{
		Key: oneLine(string(one.Session)), Agent: oneLine(one.Agent), Href: sessionLink(v, one.Session), Level: one.Level.String(),
		Why: oneLine(strings.Join(one.Inputs.Reasons, "; ")), Signals: desk.SignalWords(&one.Inputs, one.Sources), Anomalies: one.Anomalies,
	}
	if one.LastCall != nil {
		line.LastTool, line.LastKind, line.Last = oneLine(one.LastCall.Tool), one.LastCall.Verdict, moment(one.LastCall.At)
	}
	return line
}

func sessionLink(v *visitor, key toolward.SessionKey) string {
	return v.base + "/sessions/one?" + url.Values{"session": {string(key)}}.Encode()
}

// sessionPage is one session.
type sessionPage struct {
	page
	Key, Agent []span
	Raw        string // for forms
	Level      string
	Reasons    [][]span
	Signals    []signal
	Sources    [][]span
	SourcesCut bool
	Stamp      string
	Raised     string // stamp of floors and suspicion as they are shown
	External   bool
	Parent     *sessionRef
	Calls      []entry
	AllCalls   string
	Undo       string // where all that it changed can be taken back
	Anomalies  []anomalyLine
	Levels     []choice
	Clearable  bool
}

type sessionRef struct {
	Name []span
	Href string
}

// signal is one signal of a session's level. Raised says that it is not at rest.
type signal struct {
	Name   string
	Value  []span
	Raised bool
}

// showSession is GET /c/{key}/sessions/one: level, signals, sources and last calls of a session.
func (s *Server) showSession(w http.ResponseWriter, r *http.Request, v *visitor) error {
	key, err := api.SessionOf(r)
	if err != nil {
		return err
	}
	o, err := s.desk.Level(r.Context(), v.atDesk(), key)
	if err != nil {
		return err
	}
	calls, err := s.desk.Records(r.Context(), v.atDesk(), audit.Filter{Type: audit.TypeDecision, Session: string(key), Limit: sessionCalls})
	if err != nil {
		return door.NewProblem(http.StatusBadRequest, "", "%s", err.Error())
	}
	noticed, err := s.desk.Anomalies(r.Context(), v.atDesk(), audit.Filter{Session: string(key), Limit: sessionAnomaly})
	if err != nil {
		return err
	}
	p := sessionPage{
		page: s.newPage(v, "Session", "/sessions"), Key: oneLine(string(key)), Agent: oneLine(key.Agent()), Raw: string(key),
		Level: o.Level.String(), Signals: signalsOf(&o), Stamp: o.SourcesStamp(), Raised: o.RaisedStamp(), SourcesCut: o.SourcesCut, External: o.External || len(o.Sources) > 0,
		AllCalls: v.base + "/decisions?" + url.Values{"session": {string(key)}}.Encode(),
		Undo:     undoLink(v, "session", string(key)),
		Levels:   levelChoices(o.Floor.Level), Clearable: o.Floor.Level != toolward.Normal || o.Suspicious,
	}
	p.Style = "sessions.css"
	for _, text := range o.Inputs.Reasons {
		p.Reasons = append(p.Reasons, oneLine(sentence(text)))
	}
	for _, source := range o.Sources {
		p.Sources = append(p.Sources, oneLine(source))
	}
	if o.Parent != "" {
		p.Parent = &sessionRef{oneLine(string(o.Parent)), sessionLink(v, o.Parent)}
	}
	for i := range calls {
		p.Calls = append(p.Calls, newEntry(v.base, &calls[i]))
	}
	for i := range noticed {
		line := newAnomalyLine(v, &noticed[i])
		line.Session = nil // it is this one
		p.Anomalies = append(p.Anomalies, line)
	}
	return renderPage(w, http.StatusOK, "session", p)
}

func signalsOf(o *session.Overview) []signal {
	in := &o.Inputs
	full := desk.ContextWords(in)
	if full == "" {
		full = "its client does not tell"
	} else if in.ContextWindow > 0 {
		full = fmt.Sprintf("%s: %d of %d tokens", full, in.ContextTokens, in.ContextWindow)
	}
	yes := func(b bool, what string) []span {
		if b {
			return oneLine(what)
		}
		return oneLine("no")
	}
	floor := in.Floor.String()
	switch {
	case in.Floor == toolward.Normal:
		floor = "none"
	case o.Floor.Until.IsZero():
		floor += ", until somebody clears it"
	default:
		floor += ", until " + moment(o.Floor.Until)
	}
	if o.Floor.By != "" {
		floor += "; set by " + o.Floor.By
	}
	return []signal{
		{"Context", oneLine(full), false},
		{"Older text dropped", yes(in.Compacted, "yes"), in.Compacted},
		{"Content from outside", yes(in.External, fmt.Sprintf("yes, %d sources", len(o.Sources))), in.External},
		{"Suspicious content", yes(in.Suspicious, "yes: some looked like instructions"), in.Suspicious},
		{"Floor", oneLine(floor), in.Floor != toolward.Normal},
	}
}

// setFloorFromPage is POST /c/{key}/sessions/floor.
func (s *Server) setFloorFromPage(w http.ResponseWriter, r *http.Request, v *visitor) error {
	key, err := sessionForm(r)
	if err != nil {
		return err
	}
	level, err := api.ParseLevel(r.PostForm.Get("level"))
	if err != nil {
		return err
	}
	if err := s.desk.SetLevel(r.Context(), v.atDesk(), key, level); err != nil {
		return api.LevelProblem(err)
	}
	http.Redirect(w, r, sessionLink(v, key), http.StatusSeeOther)
	return nil
}

// clearFromPage is POST /c/{key}/sessions/clear: the floor and the suspicion. With "external" also the mark of content
// from outside: that form has a box by which a person says that they read the list, and its value is the stamp of the
// list that was shown.
func (s *Server) clearFromPage(w http.ResponseWriter, r *http.Request, v *visitor) error {
	key, err := sessionForm(r)
	if err != nil {
		return err
	}
	read := r.PostForm.Get("read")
	if r.PostForm.Has("external") && read == "" {
		return door.NewProblem(http.StatusUnprocessableEntity, "go back, read the list of sources and tick the box below it", "the list of sources was not confirmed as read")
	}
	o, err := s.desk.Level(r.Context(), v.atDesk(), key)
	if err != nil {
		return err
	}
	if r.PostForm.Get("raised") != o.RaisedStamp() {
		// A page may be old: an alarm that has gone off since then must not be cleared by somebody who has not seen it.
		return door.NewProblem(http.StatusConflict, "load the session again and look at its floor", "what raises the level has changed since it was shown")
	}
	if err := s.desk.ClearLevel(r.Context(), v.atDesk(), key, read); err != nil {
		return api.LevelProblem(err)
	}
	http.Redirect(w, r, sessionLink(v, key), http.StatusSeeOther)
	return nil
}

// sessionForm reads the session of a form.
func sessionForm(r *http.Request) (toolward.SessionKey, error) {
	if err := parseForm(r); err != nil {
		return "", err
	}
	return api.CheckSession(r.PostForm.Get("session"))
}

// anomalyLine is one alarm.
type anomalyLine struct {
	ID       string
	Detector []span
	Text     []span
	Action   string
	Grave    bool
	Agent    []span
	Tool     []span
	Session  *sessionRef
	Time     time.Time
	Clock    string
}

func newAnomalyLine(v *visitor, a *desk.Anomaly) anomalyLine {
	line := anomalyLine{
		ID: strconv.FormatInt(a.Seq, 10), Detector: oneLine(a.Detector), Text: oneLine(sentence(a.Text)), Action: a.Action,
		Grave: a.Action != "" && a.Action != "alert" && a.Action != "ask", Agent: oneLine(a.Agent), Tool: oneLine(a.Tool), Time: a.At, Clock: moment(a.At),
	}
	if a.Session.Agent() != "" {
		line.Session = &sessionRef{oneLine(string(a.Session)), sessionLink(v, a.Session)}
	}
	return line
}

// showAnomalies is GET /c/{key}/anomalies: what the detectors noticed, newest first.
func (s *Server) showAnomalies(w http.ResponseWriter, r *http.Request, v *visitor) error {
	query := r.URL.Query()
	filter := audit.Filter{Agent: query.Get("agent"), Text: query.Get("text"), Limit: pageLength + 1}
	below, err := belowOf(query)
	if err != nil {
		return err
	}
	filter.Below = below
	list, err := s.desk.Anomalies(r.Context(), v.atDesk(), filter)
	if err != nil {
		return door.NewProblem(http.StatusBadRequest, "", "%s", err.Error())
	}
	p := struct {
		page
		Filter    audit.Filter
		Anomalies []anomalyLine
		Older     string
	}{page: s.newPage(v, "Anomalies", "/sessions"), Filter: filter}
	p.Style = "sessions.css"
	for i := range list[:min(len(list), pageLength)] {
		p.Anomalies = append(p.Anomalies, newAnomalyLine(v, &list[i]))
	}
	if len(list) > pageLength {
		p.Older = olderLink(v.base+"/anomalies", query, list[pageLength-1].Seq, "agent", "text")
	}
	return renderPage(w, http.StatusOK, "anomalies", p)
}
