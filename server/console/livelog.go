package console

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/audit"
	"github.com/toolward/toolward/desk"
	"github.com/toolward/toolward/server/api"
	"github.com/toolward/toolward/server/door"
)

// Lengths of the live log.
const (
	linesShown  = 100 // of a fresh page, and after a connection was lost
	linesAtOnce = 50  // in one go; what comes faster nobody reads, and the page says how much it was
)

// logLine is one record in a line.
type logLine struct {
	Seq   string
	Href  string
	Kind  string // allow, deny, odd or ""
	Type  string
	Time  time.Time
	Clock string
	Agent []span
	Tool  []span
	Text  []span
}

// logPage is the record as it grows.
type logPage struct {
	page
	Tabs  []navItem
	Type  string
	Types []choice
	Lines []logLine
	Last  string // position of the newest line
	Older string
}

var recordTypes = []audit.Type{
	audit.TypeDecision, audit.TypeOutcome, audit.TypeApproval, audit.TypeGrant, audit.TypeLevel, audit.TypeAnomaly,
	audit.TypeExternal, audit.TypeConfig, audit.TypeSandbox, audit.TypeUndo, audit.TypeCheckpoint, audit.TypeRetention,
}

// typeOf reads the type of records that a page is restricted to.
func typeOf(query url.Values) (audit.Type, error) {
	kind := audit.Type(query.Get("type"))
	if kind != "" && !slices.Contains(recordTypes, kind) {
		return "", door.NewProblem(http.StatusBadRequest, "", "there are no records of type %s", door.QuoteShort(string(kind)))
	}
	return kind, nil
}

// showLog is GET /c/{key}/log.
func (s *Server) showLog(w http.ResponseWriter, r *http.Request, v *visitor) error {
	query := r.URL.Query()
	kind, err := typeOf(query)
	if err != nil {
		return err
	}
	below, err := belowOf(query)
	if err != nil {
		return err
	}
	records, err := s.desk.Records(r.Context(), v.atDesk(), audit.Filter{Type: kind, Below: below, Limit: linesShown + 1})
	if err != nil {
		return err
	}
	p := logPage{page: s.newPage(v, "Live log", "/decisions"), Tabs: historyTabs("/log"), Type: string(kind), Last: "0"}
	p.Style = "sessions.css"
	if below == 0 {
		p.Script, p.Live = "log.js", true
	}
	p.Types = chosen(typeChoices(), string(kind))
	for i := range records[:min(len(records), linesShown)] {
		p.Lines = append(p.Lines, newLogLine(v.base, &records[i]))
	}
	if len(p.Lines) > 0 {
		p.Last = p.Lines[0].Seq
	}
	if len(records) > linesShown {
		p.Older = olderLink(v.base+"/log", query, records[linesShown-1].Seq, "type")
	}
	return renderPage(w, http.StatusOK, "log", p)
}

func typeChoices() []choice {
	out := []choice{{Name: "Everything"}}
	for _, t := range recordTypes {
		out = append(out, choice{Value: string(t), Name: string(t)})
	}
	return out
}

// followLog is GET /c/{key}/log/events: each record as it is committed. After a connection was lost the newest ones
// come again; the page knows which it has.
func (s *Server) followLog(w http.ResponseWriter, r *http.Request, v *visitor) error {
	kind, err := typeOf(r.URL.Query())
	if err != nil {
		return err
	}
	if !s.streams.Enter() {
		return door.NewProblem(http.StatusServiceUnavailable, "close some of them", "%d event streams are open already", door.MaxStreams)
	}
	defer s.streams.Leave()
	ctx, cancel := s.streams.EndedBy(r)
	defer cancel()
	tail, err := s.desk.FollowRecords(v.atDesk()) // before the query, so that nothing falls between the two
	if err != nil {
		return api.Problem(err)
	}
	defer func() { tail.Close() }()
	newest, err := s.desk.Records(ctx, v.atDesk(), audit.Filter{Type: kind, Limit: linesShown})
	if err != nil {
		return err
	}
	out, err := door.OpenStream(w, door.WritePatience)
	if err != nil {
		return nil // the browser has gone
	}
	l := &logFollower{out: out, base: v.base, kind: kind}
	slices.Reverse(newest)
	for _, record := range newest {
		l.take(record, linesShown)
	}
	err = l.flush()
	beats := time.NewTicker(door.Heartbeat)
	defer beats.Stop()
	for err == nil && ctx.Err() == nil {
		select {
		case record, open := <-tail.C:
			if !open {
				l.missed++ // how many is not known; the page says that some are missing
				tail, err = s.followAgain(ctx, v, tail)
				continue
			}
			l.take(record, linesAtOnce)
		case <-l.due:
			// The sign-in may have ended while the page was open.
			if v.atDesk().May(desk.SeeRecords) != nil {
				_ = out.Send("reload", struct{}{})
				return nil
			}
			err = l.flush()
		case <-beats.C:
			err = out.Beat()
		case <-ctx.Done():
		}
	}
	return nil
}

// logFollower is one open page of the live log.
type logFollower struct {
	out    *door.EventStream
	base   string
	kind   audit.Type
	lines  []audit.Record
	missed int
	last   int64
	due    <-chan time.Time
}

type linesEvent struct {
	HTML   []string `json:"html"` // oldest first
	Missed int      `json:"missed,omitempty"`
}

func (l *logFollower) take(r audit.Record, most int) {
	if r.Seq <= l.last || l.kind != "" && r.Type != l.kind {
		return
	}
	l.last = r.Seq
	if len(l.lines) == most {
		l.lines, l.missed = append(l.lines[:0], l.lines[1:]...), l.missed+1
	}
	l.lines = append(l.lines, r)
	if l.due == nil {
		l.due = time.After(logRhythm)
	}
}

func (l *logFollower) flush() error {
	event := linesEvent{HTML: []string{}, Missed: l.missed}
	for i := range l.lines {
		html, err := renderPart("logline", newLogLine(l.base, &l.lines[i]))
		if err != nil {
			return err
		}
		event.HTML = append(event.HTML, html)
	}
	l.lines, l.missed, l.due = l.lines[:0], 0, nil
	return l.out.Send("lines", event)
}

// newLogLine is a record in one line.
func newLogLine(base string, r *audit.Record) logLine {
	seq := strconv.FormatInt(r.Seq, 10)
	line := logLine{
		Seq: seq, Href: base + "/record/" + seq, Kind: r.Verdict, Type: string(r.Type), Time: r.Time,
		Clock: r.Time.Local().Format("15:04:05"), Agent: oneLine(r.Agent), Tool: oneLine(r.Tool),
	}
	if !sameDay(r.Time, time.Now()) {
		line.Clock = r.Time.Local().Format("2 Jan 15:04:05")
	}
	switch r.Type {
	case audit.TypeDecision:
		var d desk.DecisionRecord
		if json.Unmarshal([]byte(r.JSON), &d) == nil {
			line.Text = oneLine(strings.TrimSpace(desk.AboutOf(&d) + " — " + desk.HowOf(&d)))
		}
	case audit.TypeOutcome:
		line.Text = oneLine(outcomeInWords(r))
		if r.Status != string(toolward.StatusOK) {
			line.Kind = "odd"
		}
	default:
		if r.Type == audit.TypeAnomaly {
			line.Kind = "odd"
		}
		line.Text = oneLine(eventInWords(r))
	}
	return line
}

func outcomeInWords(r *audit.Record) string {
	var o struct {
		DurationMs int64  `json:"durationMs"`
		Error      string `json:"error"`
		Decision   int64  `json:"decision"`
	}
	if json.Unmarshal([]byte(r.JSON), &o) != nil {
		return r.Status
	}
	text := fmt.Sprintf("%s after %s, decided in %d", r.Status, time.Duration(o.DurationMs)*time.Millisecond, o.Decision)
	if o.Error != "" {
		text += ": " + desk.Shortened(o.Error)
	}
	return text
}

// eventInWords is what an event holds: its own words, or its fields.
func eventInWords(r *audit.Record) string {
	var e struct {
		Data map[string]any `json:"data"`
	}
	if json.Unmarshal([]byte(r.JSON), &e) != nil || len(e.Data) == 0 {
		return ""
	}
	if text, ok := e.Data["text"].(string); ok && text != "" {
		return desk.Shortened(text)
	}
	var parts []string
	for name, value := range e.Data {
		parts = append(parts, fmt.Sprintf("%s %v", name, value))
	}
	slices.Sort(parts)
	return desk.Shortened(strings.Join(parts, ", "))
}
