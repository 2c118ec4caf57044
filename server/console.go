package server

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/approval"
	"github.com/toolward/toolward/audit"
	"github.com/toolward/toolward/device"
)

// maxCards is how many waiting calls a page shows; the others follow as these are answered.
const maxCards = 40

// logLength is how many recent decisions stand beside the queue.
const logLength = 12

// visitor is a signed-in person in a browser.
type visitor struct {
	by   device.Authority
	base string // path of their console
	key  string
}

func (v *visitor) connection() string { return "console:" + v.by.Session() }

// queuePage is the console's front page.
type queuePage struct {
	page
	Headline, Subline string
	Config            *configCard
	Cards             []card
	Fresh             bool // nothing has ever been decided
	Beyond            int  // waiting calls that do not fit
	Recent            []entry
}

// newPage is the frame of a console page; here is the path of the page in the navigation.
func (s *Server) newPage(v *visitor, title, here string) page {
	p := page{Title: title, Base: v.base, Waiting: s.approvals.Count(), Observe: s.observes}
	for _, item := range []navItem{
		{Name: "Waiting", Path: "/", Count: true},
		{Name: "Decisions", Path: "/decisions"},
		{Name: "Tools", Path: "/tools"},
		{Name: "Sessions", Path: "/sessions"},
		{Name: "Grants", Path: "/grants"},
		{Name: "Access", Path: "/sign-ins"},
	} {
		item.Here = item.Path == here
		p.Nav = append(p.Nav, item)
	}
	return p
}

// showQueue is GET /c/{key}/.
func (s *Server) showQueue(w http.ResponseWriter, r *http.Request, v *visitor) error {
	if err := s.looked(v); err != nil {
		return err
	}
	waiting, err := s.waiting(r, v.by)
	if err != nil {
		return err
	}
	recent, err := s.audit.Query(r.Context(), audit.Filter{Type: audit.TypeDecision, Limit: logLength})
	if err != nil {
		return err
	}
	p := queuePage{page: s.newPage(v, "Waiting", "/"), Fresh: len(recent) == 0}
	p.Script, p.Live = "console.js", true
	p.Headline, p.Subline = headline(len(waiting))
	p.Config = s.configCard(v)
	if done := r.URL.Query().Get("done"); done != "" {
		if rec, err := s.approvals.Get(r.Context(), v.by, done); err == nil && rec.State != approval.StatePending {
			p.Notices = append(p.Notices, notice{Text: rec.Request.Title + " — " + said(rec)})
		}
	}
	now := time.Now()
	for _, rec := range waiting[:min(len(waiting), maxCards)] {
		c := newCard(v.base, rec, now)
		c.Seen, c.First = s.approvals.MarkShown(rec.ID, v.by), len(p.Cards) == 0
		p.Cards = append(p.Cards, c)
	}
	p.Beyond = len(waiting) - len(p.Cards)
	for i := range recent {
		p.Recent = append(p.Recent, newEntry(&recent[i]))
	}
	return renderPage(w, http.StatusOK, "queue", p)
}

// waiting lists pending approvals in the order in which they arrived, so that a new one never pushes another away
// from under a person's finger.
func (s *Server) waiting(r *http.Request, by approval.Authority) ([]*approval.Record, error) {
	list, err := s.approvals.Pending(r.Context(), by)
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(list, func(a, b *approval.Record) int {
		if a.CreatedMs != b.CreatedMs {
			return int(a.CreatedMs - b.CreatedMs)
		}
		return strings.Compare(a.ID, b.ID)
	})
	return list, nil
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

// showOne is GET /c/{key}/approvals/{id}: one call, waiting or decided. Links in chats and clients lead here.
func (s *Server) showOne(w http.ResponseWriter, r *http.Request, v *visitor) error {
	rec, err := s.approvals.Get(r.Context(), v.by, r.PathValue("id"))
	if errors.Is(err, approval.ErrUnknown) {
		return problem(http.StatusNotFound, "it may have been decided long ago; see Decisions", "there is no such call")
	} else if err != nil {
		return err
	}
	p := struct {
		page
		Card card
	}{s.newPage(v, rec.Request.Title, ""), newCard(v.base, rec, time.Now())}
	p.Script = "console.js"
	p.Card.Seen, p.Card.First = s.approvals.MarkShown(rec.ID, v.by), true
	return renderPage(w, http.StatusOK, "one", p)
}

// answered is what the console's script is told about an answer.
type answered struct {
	Said    string `json:"said,omitempty"`
	Outcome string `json:"outcome,omitempty"`
}

// answer is POST /c/{key}/approvals/{id}: a person's answer from a form, with or without script.
func (s *Server) answer(w http.ResponseWriter, r *http.Request, v *visitor) error {
	if err := parseForm(r); err != nil {
		return err
	}
	decision, key, _ := strings.Cut(r.PostForm.Get("decision"), " ")
	proposal, err := strconv.Atoi(key)
	if decision == toolward.AllowAlways.String() && err != nil {
		return problem(http.StatusBadRequest, "load the page again", "the answer does not say what it saves")
	}
	reason := strings.TrimSpace(r.PostForm.Get("reason"))
	if decision != toolward.DenyCall.String() {
		reason = "" // typed, then allowed: the reason was for a denial
	}
	if p := checkAnswer(decision, reason); p != nil {
		return p
	}
	id := r.PathValue("id")
	rec, err := s.approvals.Resolve(r.Context(), approval.Response{
		ID: id, Decision: decision, Reason: reason, Proposal: proposal, By: v.by,
		Connection: v.connection(), Shown: r.PostForm.Get("seen"),
	})
	script := r.Header.Get("Accept") == "application/json"
	if err != nil && rec == nil {
		if now := s.decided(r, v.by, id, err); now != nil && script {
			writeJSON(w, http.StatusConflict, answered{"Already decided. " + said(now), outcomeOf(now)})
			return nil
		}
		return answerProblem(err)
	}
	if err != nil {
		s.log.Error("an answer counts, but could not be recorded", "approval", id, "err", err)
	}
	if script {
		writeJSON(w, http.StatusOK, answered{said(rec), outcomeOf(rec)})
		return nil
	}
	http.Redirect(w, r, v.base+"/?done="+rec.ID, http.StatusSeeOther)
	return nil
}

// checkAnswer refuses an answer that could mean nothing, or whose reason could not be passed on.
func checkAnswer(decision, reason string) *Problem {
	if _, err := toolward.ParseDecision(decision); err != nil {
		return problem(http.StatusBadRequest, "use allow-once, allow-always or deny", "%s", err.Error())
	}
	switch n := utf8.RuneCountInString(reason); {
	case n > maxReason:
		return problem(http.StatusBadRequest, "", "the reason has %d characters, at most %d are passed on", n, maxReason)
	case !utf8.ValidString(reason):
		return problem(http.StatusBadRequest, "", "the reason is not valid text (UTF-8)")
	}
	if i := strings.IndexFunc(reason, func(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' }); i >= 0 {
		return problem(http.StatusBadRequest, "", "the reason has a control character")
	}
	return nil
}

// maxReason is the longest reason in characters.
const maxReason = 500

// decided returns what became of a call when an answer came too late, because somebody else was first or time ran
// out; nil if that was not the problem. The winner's answer may still be on its way to the disk.
func (s *Server) decided(r *http.Request, by approval.Authority, id string, why error) *approval.Record {
	if !errors.Is(why, approval.ErrResolved) && !errors.Is(why, approval.ErrUnknown) {
		return nil
	}
	ctx, cancel := context.WithTimeout(r.Context(), writePatience)
	defer cancel()
	_, _ = s.approvals.Wait(ctx, id) // unknown by now: the record below still tells
	rec, err := s.approvals.Get(ctx, by, id)
	if err != nil || rec.State == approval.StatePending {
		return nil
	}
	return rec
}

// answerProblem turns the manager's refusals of an answer into words for the person.
func answerProblem(err error) error {
	for _, known := range []struct {
		err    error
		status int
	}{
		{approval.ErrTooSoon, http.StatusTooEarly},
		{approval.ErrNotShown, http.StatusPreconditionFailed},
		{approval.ErrResolved, http.StatusConflict},
		{approval.ErrUnknown, http.StatusNotFound},
		{approval.ErrNotOffered, http.StatusUnprocessableEntity},
		{approval.ErrSelfApproval, http.StatusForbidden},
		{approval.ErrNotAllowed, http.StatusForbidden},
		{device.ErrNotSignedIn, http.StatusUnauthorized},
	} {
		if errors.Is(err, known.err) {
			return problem(known.status, "", "%s", err.Error())
		}
	}
	return err
}

func parseForm(r *http.Request) error {
	if err := r.ParseForm(); err != nil {
		var tooLarge *http.MaxBytesError
		if errors.As(err, &tooLarge) {
			return err
		}
		return problem(http.StatusBadRequest, "", "the form cannot be read")
	}
	return nil
}
