package console

import (
	"net/http"
	"strconv"
	"time"

	"github.com/toolward/toolward/approval"
	"github.com/toolward/toolward/audit"
	"github.com/toolward/toolward/desk"
	"github.com/toolward/toolward/server/api"
)

// logLength is how many recent decisions stand beside the queue.
const logLength = 12

// queuePage is the console's front page.
type queuePage struct {
	page
	Headline, Subline string
	Arranged          arrangement
	Config            *configCard
	Cards             []card
	Fresh             bool // nothing has ever been decided
	Beyond            int  // waiting calls that do not fit
	Recent            []entry
}

// showQueue is GET /c/{key}/.
func (s *Server) showQueue(w http.ResponseWriter, r *http.Request, v *visitor) error {
	if err := s.present.note(s.approvals, v); err != nil {
		return err
	}
	waiting, err := s.api.Waiting(r, v.atDesk())
	if err != nil {
		return err
	}
	recent, err := s.desk.Records(r.Context(), v.atDesk(), audit.Filter{Type: audit.TypeDecision, Limit: logLength})
	if err != nil {
		return err
	}
	p := queuePage{page: s.newPage(v, "Waiting", "/"), Fresh: len(recent) == 0, Arranged: arrangementOf(r.URL.Query())}
	p.Script, p.Live = "console.js", true
	p.Headline, p.Subline = headline(len(waiting))
	p.Config = s.configCard(v)
	p.Notices = s.answeredNotices(r, v)
	p.Arranged.sort(waiting)
	p.Cards = s.cardsOf(v, waiting[:min(len(waiting), maxCards)], p.Arranged)
	p.Beyond = len(waiting) - len(p.Cards)
	for i := range recent {
		p.Recent = append(p.Recent, newEntry(v.base, &recent[i]))
	}
	return renderPage(w, http.StatusOK, "queue", p)
}

// cardsOf makes the cards of a whole page: with the heads of sessions, and beside the first of several identical calls
// what answers all of them.
func (s *Server) cardsOf(v *visitor, list []*approval.Record, a arrangement) []card {
	now := time.Now()
	var cards []card
	first := map[string]int{} // card by call
	for i, rec := range list {
		c := newCard(v.base, rec, now)
		c.Seen, c.First, c.Arranged = s.approvals.MarkShown(rec, v.by), i == 0, a.Query()
		c.Leads = a.BySession && (i == 0 || list[i-1].Request.Session != rec.Request.Session)
		if at, known := first[c.Same]; known && c.Same != "" {
			leader := &cards[at]
			if leader.Batch == nil {
				leader.Batch = []desk.Shown{{ID: leader.ID, Seen: leader.Seen}}
			}
			leader.Batch = append(leader.Batch, desk.Shown{ID: c.ID, Seen: c.Seen})
		} else {
			first[c.Same] = i
		}
		cards = append(cards, c)
	}
	return cards
}

// answeredNotices says what became of an answer that was given without script.
func (s *Server) answeredNotices(r *http.Request, v *visitor) []notice {
	query := r.URL.Query()
	if done := query.Get("done"); done != "" {
		if rec, err := s.desk.Approval(r.Context(), v.atDesk(), done); err == nil && rec.State != approval.StatePending {
			return []notice{{Text: rec.Request.Title + " — " + api.Said(rec)}}
		}
	}
	n, errN := strconv.Atoi(query.Get("answered"))
	of, errOf := strconv.Atoi(query.Get("of"))
	if errN != nil || errOf != nil || n < 0 || of < n || of > maxCards {
		return nil
	}
	if n < of {
		return []notice{{"warn", strconv.Itoa(n) + " of " + strconv.Itoa(of) + " identical calls answered. The others had ended, or had not been on the screen for half a second."}}
	}
	return []notice{{Text: strconv.Itoa(n) + " identical calls answered."}}
}

func headline(waiting int) (head, sub string) {
	switch waiting {
	case 0:
		return "Waiting calls", ""
	case 1:
		return "1 call is waiting", "Without an answer it is refused"
	}
	return strconv.Itoa(waiting) + " calls are waiting", "Without an answer they are refused"
}
