package api

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/toolward/toolward/audit"
	"github.com/toolward/toolward/desk"
	"github.com/toolward/toolward/server/door"
)

// Records is the answer of GET /v1/audit and /v1/decisions, newest first.
type Records struct {
	Records []audit.Record `json:"records"`
}

func (s *Server) apiAudit(w http.ResponseWriter, r *http.Request, c Caller) error {
	filter, err := readFilter(r.URL.Query())
	if err != nil {
		return err
	}
	return s.sendRecords(w, r, c, filter)
}

// apiDecisions is apiAudit for decisions only.
func (s *Server) apiDecisions(w http.ResponseWriter, r *http.Request, c Caller) error {
	filter, err := readFilter(r.URL.Query())
	if err != nil {
		return err
	}
	filter.Type = audit.TypeDecision
	return s.sendRecords(w, r, c, filter)
}

func (s *Server) sendRecords(w http.ResponseWriter, r *http.Request, c Caller, filter audit.Filter) error {
	records, err := s.desk.Records(r.Context(), c.visitor(), filter)
	if err != nil {
		return door.NewProblem(http.StatusBadRequest, "", "%s", err.Error())
	}
	door.WriteJSON(w, http.StatusOK, Records{records})
	return nil
}

// readFilter reads a filter from a query; a name that is not known is an error, so that a typing mistake never
// shows more than was asked for.
func readFilter(query url.Values) (audit.Filter, error) {
	var f audit.Filter
	for name, values := range query {
		if len(values) != 1 {
			return f, door.NewProblem(http.StatusBadRequest, "", "%s is given more than once", name)
		}
		value := values[0]
		var err error
		switch name {
		case "since":
			f.Since, err = readTime(value)
		case "until":
			f.Until, err = readTime(value)
		case "session":
			f.Session = value
		case "agent":
			f.Agent = value
		case "tool":
			f.Tool = value
		case "verdict":
			f.Verdict = value
		case "status":
			f.Status = value
		case "type":
			f.Type = audit.Type(value)
		case "text":
			f.Text = value
		case "ref":
			f.Ref, err = strconv.ParseInt(value, 10, 64)
		case "below":
			f.Below, err = strconv.ParseInt(value, 10, 64)
		case "limit":
			f.Limit, err = strconv.Atoi(value)
		default:
			err = errors.New("there is no such filter")
		}
		if err != nil {
			return f, door.NewProblem(http.StatusBadRequest,
				"filters: since, until, session, agent, tool, verdict, status, type, text, ref, below, limit", "%s: %s", name, err)
		}
	}
	return f, nil
}

// readTime reads a moment, or how long ago it was.
func readTime(text string) (time.Time, error) {
	if ago, err := time.ParseDuration(text); err == nil {
		return time.Now().Add(-ago.Abs()), nil
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return t, fmt.Errorf("%s is neither a time such as 2026-11-21T14:00:00Z nor a duration such as 90m", door.QuoteShort(text))
	}
	return t, nil
}

// apiAuditTail follows the record as NDJSON: the newest records first (last=n), then each as it is committed.
func (s *Server) apiAuditTail(w http.ResponseWriter, r *http.Request, c Caller) error {
	last := 10
	if text := r.URL.Query().Get("last"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 || n > audit.MaxLimit {
			return door.NewProblem(http.StatusBadRequest, "", "last: expected 0 to %d", audit.MaxLimit)
		}
		last = n
	}
	if !s.streams.Enter() {
		return door.NewProblem(http.StatusServiceUnavailable, "close some of them", "%d event streams are open already", door.MaxStreams)
	}
	defer s.streams.Leave()
	ctx, cancel := s.streams.EndedBy(r)
	defer cancel()
	tail, err := s.desk.FollowRecords(c.visitor()) // before the query, so that nothing falls between the two
	if err != nil {
		return Problem(err)
	}
	defer tail.Close()
	var shown int64
	lines := newLineWriter(w, typeNDJSON)
	if last > 0 {
		records, err := s.desk.Records(ctx, c.visitor(), audit.Filter{Limit: last})
		if err != nil {
			return err
		}
		for i := len(records) - 1; i >= 0; i-- {
			lines.add(&records[i])
			shown = records[i].Seq
		}
	}
	if lines.flush() != nil {
		return nil // the reader has gone
	}
	for {
		select {
		case record, open := <-tail.C:
			// The sign-in may end while the tail is open.
			if !open || c.By.MayAnswer() != nil {
				return nil
			}
			if record.Seq <= shown {
				continue
			}
			lines.add(&record)
			if lines.flush() != nil {
				return nil
			}
		case <-ctx.Done():
			return nil
		}
	}
}

// lineWriter writes records as NDJSON to a reader that may be slow, but not for ever.
type lineWriter struct {
	w       http.ResponseWriter
	control *http.ResponseController
	buf     []byte
}

func newLineWriter(w http.ResponseWriter, kind string) *lineWriter {
	w.Header().Set("Content-Type", kind)
	w.WriteHeader(http.StatusOK)
	return &lineWriter{w: w, control: http.NewResponseController(w)}
}

func (l *lineWriter) add(r *audit.Record) { l.buf = r.AppendNDJSON(l.buf) }

func (l *lineWriter) flush() error {
	if _, err := l.Write(l.buf); err != nil {
		return err
	}
	l.buf = l.buf[:0]
	return l.control.Flush()
}

// Write lets the lines be written directly; every write has a deadline.
func (l *lineWriter) Write(b []byte) (int, error) {
	if err := l.control.SetWriteDeadline(time.Now().Add(door.WritePatience)); err != nil {
		return 0, err
	}
	return l.w.Write(b)
}

// Verified is the answer of GET /v1/audit/verify.
type Verified struct {
	audit.Report
	Sound  bool   `json:"sound"`
	Broken *Break `json:"broken,omitempty"`
}

// Break is where a log is not what was written.
type Break struct {
	Seq    int64  `json:"seq"`
	Kind   string `json:"kind"`
	Detail string `json:"detail"`
}

func (s *Server) apiAuditVerify(w http.ResponseWriter, r *http.Request, c Caller) error {
	report, broken, err := s.desk.VerifyRecords(r.Context(), c.visitor())
	if err != nil {
		return err
	}
	out := Verified{Report: report, Sound: broken == nil}
	if broken != nil {
		out.Broken = &Break{broken.Seq, broken.Kind, broken.Detail}
	}
	door.WriteJSON(w, http.StatusOK, out)
	return nil
}

// The types of what is written line by line.
const (
	typeNDJSON = "application/x-ndjson"
	typeCSV    = "text/csv; charset=utf-8"
)

// apiAuditExport writes the whole record, or what follows position from, as NDJSON or as a table. An export that breaks off is cut
// by closing the connection, never ended as if it were whole.
func (s *Server) apiAuditExport(w http.ResponseWriter, r *http.Request, c Caller) error {
	var from int64
	if text := r.URL.Query().Get("from"); text != "" {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < 0 {
			return door.NewProblem(http.StatusBadRequest, "", "from: %s is not a position", door.QuoteShort(text))
		}
		from = n
	}
	export, kind := desk.Export(audit.Export), typeNDJSON
	switch format := r.URL.Query().Get("format"); format {
	case "", "json":
	case "csv":
		export, kind = audit.ExportCSV, typeCSV
	default:
		return door.NewProblem(http.StatusBadRequest, "", "format: %s: use json or csv", door.QuoteShort(format))
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	err := s.desk.ExportRecords(ctx, c.visitor(), export, func() io.Writer { return newLineWriter(w, kind) }, from)
	if desk.CodeOf(err) == desk.NotAllowed {
		return Problem(err)
	}
	if err != nil {
		s.log.Warn("an export broke off", "err", err)
		panic(http.ErrAbortHandler)
	}
	return nil
}
