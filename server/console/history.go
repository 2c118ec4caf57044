package console

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/toolward/toolward/audit"
	"github.com/toolward/toolward/desk"
)

// longestSearch bounds each field of a search in bytes.
const longestSearch = 256

// search is what somebody looks for, as they typed it.
type search struct{ Text, Agent, Tool, Session, Verdict, Within, From, To string }

// historyPage is the list of decided calls.
type historyPage struct {
	page
	Tabs     []navItem
	Search   search
	More     bool // something is set that does not stand in the first row
	Verdicts []choice
	Withins  []choice
	Entries  []entry
	Older    string
}

// withins are the ages that the form offers.
var withins = []choice{{Name: "At any time"}, {Value: "1h", Name: "In the last hour"}, {Value: "24h", Name: "In the last day"}, {Value: "168h", Name: "In the last week"}, {Value: "720h", Name: "In the last 30 days"}}

func historyTabs(here string) (tabs []navItem) {
	for _, tab := range []navItem{{Name: "Decisions", Path: "/decisions"}, {Name: "Live log", Path: "/log"}, {Name: "What they changed", Path: "/undo"}} {
		tab.Here = tab.Path == here
		tabs = append(tabs, tab)
	}
	return tabs
}

// showDecisions is GET /c/{key}/decisions: decided calls, newest first, and those that a search finds.
func (s *Server) showDecisions(w http.ResponseWriter, r *http.Request, v *visitor) error {
	query := r.URL.Query()
	p := historyPage{page: s.newPage(v, "Decisions", "/decisions"), Tabs: historyTabs("/decisions"), Search: searchOf(query)}
	p.Style = "sessions.css"
	p.More = p.Search.Agent+p.Search.Tool+p.Search.Session+p.Search.From+p.Search.To != ""
	p.Verdicts = chosen([]choice{{Name: "All"}, {Value: "allow", Name: "Allowed"}, {Value: "deny", Name: "Refused"}}, p.Search.Verdict)
	p.Withins = chosen(withins, p.Search.Within)
	records, why, err := s.find(r, v, p.Search)
	switch {
	case err != nil:
		return err
	case why != "":
		p.Notices = append(p.Notices, notice{"warn", why})
	}
	for i := range records[:min(len(records), pageLength)] {
		p.Entries = append(p.Entries, newEntry(v.base, &records[i]))
	}
	if len(records) > pageLength {
		p.Older = olderLink(v.base+"/decisions", query, records[pageLength-1].Seq, "text", "agent", "tool", "session", "verdict", "within", "from", "to")
	}
	status := http.StatusOK
	if why != "" && len(records) == 0 {
		status = http.StatusUnprocessableEntity
	}
	return renderPage(w, status, "decisions", p)
}

func chosen(all []choice, value string) []choice {
	out := make([]choice, len(all))
	for i, c := range all {
		c.Here = c.Value == value
		out[i] = c
	}
	return out
}

func searchOf(query url.Values) search {
	get := func(name string) string { return strings.TrimSpace(query.Get(name)) }
	return search{get("text"), get("agent"), get("tool"), get("session"), get("verdict"), get("within"), get("from"), get("to")}
}

// find looks for decisions, one more than a page holds. why says in words what is wrong with the search.
func (s *Server) find(r *http.Request, v *visitor, look search) (records []audit.Record, why string, err error) {
	filter, why := look.filter(time.Now())
	if why != "" {
		return nil, why, nil
	}
	if filter.Below, err = belowOf(r.URL.Query()); err != nil {
		return nil, "", err
	}
	ctx, cancel := context.WithTimeout(r.Context(), desk.SearchPatience)
	defer cancel()
	records, err = s.desk.Records(ctx, v.atDesk(), filter)
	switch {
	case err == nil:
		return records, "", nil
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return nil, "The search was given up after 3 seconds. Choose a shorter time.", nil
	}
	return nil, "", err
}

// filter checks a search. Times are those of the gateway's clock, like all times that the console shows.
func (l search) filter(now time.Time) (f audit.Filter, why string) {
	f = audit.Filter{
		Type: audit.TypeDecision, Agent: l.Agent, Tool: l.Tool, Session: l.Session, Verdict: l.Verdict, Text: l.Text, Limit: pageLength + 1,
	}
	for _, field := range []string{l.Text, l.Agent, l.Tool, l.Session} {
		if len(field) > longestSearch {
			return f, "What you look for is longer than " + strconv.Itoa(longestSearch) + " bytes."
		}
	}
	if l.Verdict != "" && l.Verdict != "allow" && l.Verdict != "deny" {
		return f, "A decision is allow or deny."
	}
	if l.Within != "" {
		ago, err := time.ParseDuration(l.Within)
		if err != nil || ago <= 0 {
			return f, "How long ago is a duration such as 24h."
		}
		f.Since = now.Add(-ago)
	}
	for _, edge := range []struct {
		text string
		into *time.Time
		name string
	}{{l.From, &f.Since, "From"}, {l.To, &f.Until, "To"}} {
		if edge.text == "" {
			continue
		}
		t, err := time.ParseInLocation("2006-01-02T15:04", edge.text, time.Local)
		if err != nil {
			return f, edge.name + " is a day and a time such as 2026-11-21T14:00."
		}
		*edge.into = t
	}
	if !f.Since.IsZero() && !f.Until.IsZero() && !f.Since.Before(f.Until) {
		return f, "The time begins after it ends."
	}
	return f, ""
}
