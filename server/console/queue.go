package console

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/approval"
	"github.com/toolward/toolward/audit"
	"github.com/toolward/toolward/server/api"
)

// maxCards is how many waiting calls a page shows; the others follow as these are answered.
const maxCards = 40

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

// arrangement is the order in which a person wants to see what waits.
type arrangement struct {
	Risk      bool // critical calls first, else in the order in which they came
	BySession bool // the calls of one session together
}

func arrangementOf(query url.Values) arrangement {
	return arrangement{Risk: query.Get("order") == "risk", BySession: query.Get("group") == "session"}
}

// Query is the arrangement as a link carries it.
func (a arrangement) Query() string {
	query := url.Values{"order": {"arrival"}}
	if a.Risk {
		query.Set("order", "risk")
	}
	if a.BySession {
		query.Set("group", "session")
	}
	return query.Encode()
}

// Ordered is the same arrangement in another order.
func (a arrangement) Ordered(risk bool) arrangement { return arrangement{risk, a.BySession} }

// Grouped is the same arrangement with the sessions apart, or not.
func (a arrangement) Grouped(by bool) arrangement { return arrangement{a.Risk, by} }

// sort puts the calls into the order. Groups stand where the first of their calls would stand alone.
func (a arrangement) sort(list []*approval.Record) {
	slices.SortStableFunc(list, func(x, y *approval.Record) int {
		risk := 0
		if a.Risk {
			risk = cmp.Compare(x.Request.Severity, y.Request.Severity) // critical is the smallest
		}
		return cmp.Or(risk, cmp.Compare(x.CreatedMs, y.CreatedMs), strings.Compare(x.ID, y.ID))
	})
	if !a.BySession {
		return
	}
	place := map[toolward.SessionKey]int{}
	for i, r := range list {
		if _, known := place[r.Request.Session]; !known {
			place[r.Request.Session] = i
		}
	}
	slices.SortStableFunc(list, func(x, y *approval.Record) int {
		return cmp.Compare(place[x.Request.Session], place[y.Request.Session])
	})
}

// sameCall names what a call is bound to: two approvals with the same name let exactly the same call run. It is ""
// if the approval is bound to nothing that could be compared.
func sameCall(r *approval.Record) string {
	if r.Binding == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(r.Binding + "\x00" + r.Request.Digest))
	return hex.EncodeToString(sum[:12])
}

// showQueue is GET /c/{key}/.
func (s *Server) showQueue(w http.ResponseWriter, r *http.Request, v *visitor) error {
	if err := s.looked(v); err != nil {
		return err
	}
	waiting, err := s.api.Waiting(r, v.by)
	if err != nil {
		return err
	}
	recent, err := s.audit.Query(r.Context(), audit.Filter{Type: audit.TypeDecision, Limit: logLength})
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
		c.Seen, c.First, c.Arranged = s.approvals.MarkShown(rec.ID, v.by), i == 0, a.Query()
		c.Leads = a.BySession && (i == 0 || list[i-1].Request.Session != rec.Request.Session)
		if at, known := first[c.Same]; known && c.Same != "" {
			leader := &cards[at]
			if leader.Batch == nil {
				leader.Batch = []shownCall{{leader.ID, leader.Seen}}
			}
			leader.Batch = append(leader.Batch, shownCall{c.ID, c.Seen})
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
		if rec, err := s.approvals.Get(r.Context(), v.by, done); err == nil && rec.State != approval.StatePending {
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
