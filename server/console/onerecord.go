package console

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"

	"github.com/toolward/toolward/audit"
	"github.com/toolward/toolward/desk"
	"github.com/toolward/toolward/server/door"
)

// recordPage is one entry of the record, whole.
type recordPage struct {
	page
	Number string
	Kind   string // allow, deny or ""
	How    []span
	What   []span
	Facts  []fact
	Blocks []block
}

// fact is something about a record, with where it leads.
type fact struct {
	Name  string
	Value []span
	Href  string
}

// showRecord is GET /c/{key}/record/{seq}: one record as it is kept, and what became of the call.
func (s *Server) showRecord(w http.ResponseWriter, r *http.Request, v *visitor) error {
	seq, err := strconv.ParseInt(r.PathValue("seq"), 10, 64)
	if err != nil || seq < 1 {
		return door.NewProblem(http.StatusBadRequest, "", "%s is not a position in the record", door.QuoteShort(r.PathValue("seq")))
	}
	found, err := s.desk.Records(r.Context(), v.atDesk(), audit.Filter{Below: seq + 1, Limit: 1})
	if err != nil {
		return err
	}
	if len(found) == 0 || found[0].Seq != seq {
		return door.NewProblem(http.StatusNotFound, "old records are deleted after the time that the configuration names", "there is no record %d", seq)
	}
	rec := &found[0]
	p := recordPage{page: s.newPage(v, "Record "+strconv.FormatInt(seq, 10), "/decisions"), Number: strconv.FormatInt(seq, 10), Kind: rec.Verdict}
	p.Style = "sessions.css"
	if rec.Type == audit.TypeDecision {
		e := newEntry(v.base, rec)
		p.How, p.What = e.How, e.What
	}
	p.Facts = factsOfRecord(v, rec)
	p.Blocks = append(p.Blocks, block{Name: "Record", Label: "As it is kept", Text: spans(indented(rec.JSON))})
	for _, outcome := range s.outcomesOf(r, v, rec) {
		p.Blocks = append(p.Blocks, block{Name: "Outcome", Label: "Outcome, record " + strconv.FormatInt(outcome.Seq, 10), Text: spans(indented(outcome.JSON))})
	}
	return renderPage(w, http.StatusOK, "record", p)
}

func factsOfRecord(v *visitor, rec *audit.Record) []fact {
	var d desk.DecisionRecord
	_ = json.Unmarshal([]byte(rec.JSON), &d) // what cannot be read stands below as it is
	facts := []fact{{Name: "When", Value: oneLine(rec.Time.Local().Format("2 Jan 2006 15:04:05.000 MST"))}, {Name: "Type", Value: oneLine(string(rec.Type))}}
	add := func(name, value, href string) {
		if value != "" {
			facts = append(facts, fact{name, oneLine(value), href})
		}
	}
	link := func(name, value string) string { return v.base + "/decisions?" + url.Values{name: {value}}.Encode() }
	add("Tool", rec.Tool, link("tool", rec.Tool))
	add("Agent", rec.Agent, link("agent", rec.Agent))
	add("Session", rec.Session, v.base+"/sessions/one?"+url.Values{"session": {rec.Session}}.Encode())
	add("Level", d.Level, "")
	if d.Facts.HostWhy != "" {
		add("Ran on", d.Host+": "+d.Facts.HostWhy, "")
	}
	add("Changed", undoWords(d.Undo), undoLink(v, "call", d.Undo))
	add("Digest", shortDigest(d.Digest), link("text", d.Digest))
	if rec.Ref != 0 {
		add("Decided in", "record "+strconv.FormatInt(rec.Ref, 10), v.base+"/record/"+strconv.FormatInt(rec.Ref, 10))
	}
	add("Hash", rec.Hash.String(), "")
	return facts
}

// outcomesOf looks for what became of a decided call, for as long as a search may take. Nothing found is nothing shown:
// the decision is what the page is about.
func (s *Server) outcomesOf(r *http.Request, v *visitor, rec *audit.Record) []audit.Record {
	if rec.Type != audit.TypeDecision {
		return nil
	}
	ctx, cancel := context.WithTimeout(r.Context(), desk.SearchPatience)
	defer cancel()
	list, err := s.desk.Records(ctx, v.atDesk(), audit.Filter{Type: audit.TypeOutcome, Ref: rec.Seq, Since: rec.Time, Limit: 3})
	if err != nil {
		s.log.Debug("the outcome of a call was not found", "record", rec.Seq, "err", err)
	}
	return list
}

// indented is JSON for reading. What is no JSON stays as it is.
func indented(text string) string {
	var b bytes.Buffer
	if json.Indent(&b, []byte(text), "", "  ") != nil {
		return text
	}
	return b.String()
}
