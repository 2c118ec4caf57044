package console

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/approval"
	"github.com/toolward/toolward/audit"
	"github.com/toolward/toolward/desk"
	"github.com/toolward/toolward/server/door"
)

// How far back people are told what an "always" would have allowed, and how long it may take to find out.
const (
	pastAge      = 7 * 24 * time.Hour
	pastPatience = 2 * time.Second
	pastExamples = 6
)

// pastView is what an "always" would have let run.
type pastView struct {
	Words    []span // what would be saved
	Text     string
	Warning  string // what people said no to
	Limits   string // what is not counted
	Examples []entry
}

// pastPage is the page of it, for those without script.
type pastPage struct {
	page
	ID   string
	Past *pastView
}

// showPast is GET /c/{key}/approvals/{id}/past/{proposal}: what an "always" would have allowed in the last week. The
// console's script asks for the part alone.
func (s *Server) showPast(w http.ResponseWriter, r *http.Request, v *visitor) error {
	rec, err := s.desk.Approval(r.Context(), v.atDesk(), r.PathValue("id"))
	if desk.CodeOf(err) == desk.Unknown {
		return door.NewProblem(http.StatusNotFound, "it may have been decided long ago; see Decisions", "there is no such call")
	} else if err != nil {
		return err
	}
	proposal, err := strconv.Atoi(r.PathValue("proposal"))
	if err != nil {
		proposal = -1
	}
	grant, ok := rec.WouldHaveAllowed(proposal)
	if !ok {
		return door.NewProblem(http.StatusNotFound, "load the call again", "there is no such proposal")
	}
	past, err := s.past(r.Context(), v, grant)
	if err != nil {
		return err
	}
	past.Words = oneLine(sentence(rec.Request.Proposals[proposal].Text))
	if r.Header.Get("Accept") == "application/json" {
		html, err := renderPart("pastpart", past)
		if err != nil {
			return err
		}
		door.WriteJSON(w, http.StatusOK, cardEvent{html})
		return nil
	}
	p := pastPage{page: s.newPage(v, "What “always” would have allowed", ""), ID: rec.ID, Past: past}
	p.Style = "sessions.css"
	return renderPage(w, http.StatusOK, "past", p)
}

// past goes through the decisions of the last week, newest first, for a bounded time.
func (s *Server) past(ctx context.Context, v *visitor, grant *approval.PastGrant) (*pastView, error) {
	ctx, cancel := context.WithTimeout(ctx, pastPatience)
	defer cancel()
	since := time.Now().Add(-pastAge)
	filter := audit.Filter{Type: audit.TypeDecision, Agent: grant.Agent(), Tool: grant.Tool(), Since: since, Limit: audit.MaxLimit}
	var t pastTally
	view := &pastView{}
	for whole := false; !whole; {
		records, err := s.desk.Records(ctx, v.atDesk(), filter)
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			t.cut = true
			break
		} else if err != nil {
			return nil, err
		}
		for i := range records {
			if t.count(&records[i], grant) && len(view.Examples) < pastExamples {
				view.Examples = append(view.Examples, newEntry(v.base, &records[i]))
			}
		}
		if whole = len(records) < audit.MaxLimit; !whole {
			filter.Below = records[len(records)-1].Seq
		}
	}
	view.Text, view.Warning, view.Limits = t.words(), t.warning(), t.limits(grant)
	return view, nil
}

// pastTally counts calls that people had to be asked about and that would have run unasked.
type pastTally struct {
	covered, allowed, denied, unanswered int
	unread                               int // their records do not hold enough
	cut                                  bool
}

// count looks at one decision and reports whether it would have been covered. What ran without a question anyway, and
// what no grant may cover, says nothing.
func (t *pastTally) count(r *audit.Record, grant *approval.PastGrant) bool {
	past, err := audit.ReadDecision(r)
	if err != nil || past.Gap != "" {
		t.unread++
		return false
	}
	if past.Judged == nil || past.Judged.Verdict != toolward.Ask || !past.Judged.GrantOK {
		return false
	}
	var args struct {
		Preview string `json:"preview"`
	}
	var shown struct {
		Command string `json:"command"`
	}
	_ = json.Unmarshal([]byte(r.JSON), &args) // what cannot be read is no command
	_ = json.Unmarshal([]byte(args.Preview), &shown)
	if !grant.Covers(&approval.PastCall{Request: past.Request, Digest: past.Digest, Command: shown.Command}) {
		return false
	}
	t.covered++
	switch {
	case past.Decision.Allows():
		t.allowed++
	case past.Decision == toolward.DenyCall:
		t.denied++
	case past.Verdict != toolward.Allow:
		t.unanswered++
	}
	return true
}

func (t *pastTally) words() string {
	switch t.covered {
	case 0:
		return "In the last 7 days it would have spared no question."
	case 1:
		return "In the last 7 days it would have let 1 call run without a question" + t.split()
	}
	return fmt.Sprintf("In the last 7 days it would have let %d calls run without a question", t.covered) + t.split()
}

func (t *pastTally) split() string {
	return fmt.Sprintf(": you allowed %d, denied %d, and %d were not answered.", t.allowed, t.denied, t.unanswered)
}

func (t *pastTally) warning() string {
	if t.denied == 0 {
		return ""
	}
	return "Among them are calls that you denied. Do not save this if you would deny them again."
}

// limits says what the count leaves out.
func (t *pastTally) limits(grant *approval.PastGrant) string {
	text := ""
	if grant.Partial() {
		text = "Only this very call is recognised in the record; others that it may cover are not counted. "
	}
	if t.cut {
		text += "There was more to look through than two seconds allow: older calls are not counted. "
	}
	if t.unread > 0 {
		text += fmt.Sprintf("%d calls could not be judged from the record.", t.unread)
	}
	return text
}
