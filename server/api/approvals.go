package api

import (
	"cmp"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/approval"
	"github.com/toolward/toolward/desk"
	"github.com/toolward/toolward/identity"
	"github.com/toolward/toolward/server/door"
)

// Approval is an approval as the API shows it: the record, and what an answer must bring back.
type Approval struct {
	*approval.Record
	Slug string `json:"slug"`           // short id that people may type
	Seen string `json:"seen,omitempty"` // stamp of this showing, for the answer
	Said string `json:"said"`           // what became of it, in words
}

// Waits reports whether nobody has answered yet.
func (a *Approval) Waits() bool { return a.Record != nil && a.State == approval.StatePending }

func (s *Server) apiApprovalOf(r *approval.Record, by approval.Authority) Approval {
	a := Approval{Record: r, Slug: r.Slug(), Said: Said(r)}
	if r.State == approval.StatePending {
		a.Seen = s.approvals.MarkShown(r, by)
	}
	return a
}

// Approvals is the answer of GET /v1/approvals, in the order of arrival.
type Approvals struct {
	Approvals []Approval `json:"approvals"`
}

func (s *Server) apiApprovals(w http.ResponseWriter, r *http.Request, c Caller) error {
	var list []*approval.Record
	var err error
	switch state := r.URL.Query().Get("state"); state {
	case "", "pending":
		list, err = s.Waiting(r, c.visitor())
	case "recent":
		list, err = s.desk.RecentlyAnswered(r.Context(), c.visitor(), 100)
	default:
		return door.NewProblem(http.StatusBadRequest, "use state=pending or state=recent", "unknown state %s", door.QuoteShort(state))
	}
	if err != nil {
		return AnswerProblem(err)
	}
	out := Approvals{Approvals: make([]Approval, 0, len(list))}
	for _, rec := range list {
		out.Approvals = append(out.Approvals, s.apiApprovalOf(rec, c.By))
	}
	door.WriteJSON(w, http.StatusOK, out)
	return nil
}

func (s *Server) apiApproval(w http.ResponseWriter, r *http.Request, c Caller) error {
	rec, err := s.desk.Approval(r.Context(), c.visitor(), r.PathValue("id"))
	if err != nil {
		return AnswerProblem(err)
	}
	door.WriteJSON(w, http.StatusOK, s.apiApprovalOf(rec, c.By))
	return nil
}

// Answer is the body of POST /v1/approvals/{id}.
type Answer struct {
	Decision string `json:"decision"`           // allow-once, allow-always or deny
	Reason   string `json:"reason,omitempty"`   // with deny: at most 500 characters, for the model
	Proposal int    `json:"proposal,omitempty"` // with allow-always: which of the proposals; the first is 0
	Life     string `json:"life,omitempty"`     // with allow-always: shorter than proposed, such as "10m"
	Uses     int64  `json:"uses,omitempty"`     // with allow-always: how many later calls it allows; 0 is any number
	// Seen is the stamp that the approval was listed with. In a terminal it may be left out when a person typed
	// the id; the approval must then be half a second old.
	Seen string `json:"seen,omitempty"`
}

// narrow is what an "always" keeps less than its proposal.
func (a *Answer) narrow() (n approval.Narrow, err error) {
	n.Uses = a.Uses
	if a.Life != "" {
		if n.Life, err = time.ParseDuration(a.Life); err != nil || n.Life <= 0 {
			return n, door.NewProblem(http.StatusBadRequest, "write it as 10m or 24h", "life %s is not a time", door.QuoteShort(a.Life))
		}
	}
	return n, nil
}

func (s *Server) apiResolve(w http.ResponseWriter, r *http.Request, c Caller) error {
	var a Answer
	if err := door.ReadJSON(r, &a); err != nil {
		return err
	}
	if p := CheckAnswer(a.Decision, a.Reason); p != nil {
		return p
	}
	narrow, err := a.narrow()
	if err != nil {
		return err
	}
	rec, err := s.desk.Answer(r.Context(), c.visitor(), desk.Answer{
		ID: r.PathValue("id"), Decision: a.Decision, Reason: a.Reason, Proposal: a.Proposal, Narrow: narrow,
		Seen: a.Seen, Typed: c.Terminal && a.Seen == "",
	})
	if err != nil {
		return AnswerProblem(err)
	}
	door.WriteJSON(w, http.StatusOK, s.apiApprovalOf(rec, c.By))
	return nil
}

// WatchEvent is the data of the events "approval" and "resolved" of GET /v1/approvals/events. The event "sync" has
// an Approvals: everything that waits now; it comes first and whenever events were lost.
type WatchEvent = Approval

// apiWatch follows approvals. Whoever watches counts as an approver, so it needs the right to answer.
func (s *Server) apiWatch(w http.ResponseWriter, r *http.Request, c Caller) error {
	if !s.streams.Enter() {
		return door.NewProblem(http.StatusServiceUnavailable, "close some of them", "%d event streams are open already", door.MaxStreams)
	}
	defer s.streams.Leave()
	ctx, cancel := s.streams.EndedBy(r)
	defer cancel()
	news, err := s.approvals.Subscribe(c.By, door.EventBuffer)
	if err != nil {
		return AnswerProblem(err)
	}
	defer news.Close()
	presence, err := s.approvals.Attach(approval.Approver{Name: "watch", By: c.By, Connection: c.Connection})
	if err != nil {
		return AnswerProblem(err)
	}
	defer presence.Close()
	out, err := door.OpenStream(w, door.WritePatience)
	if err != nil {
		return nil // the reader has gone; there is nobody to tell
	}
	sync := func() error {
		list, err := s.Waiting(r, c.visitor())
		if err != nil {
			return err
		}
		all := Approvals{Approvals: make([]Approval, 0, len(list))}
		for _, rec := range list {
			all.Approvals = append(all.Approvals, s.apiApprovalOf(rec, c.By))
		}
		return out.Send("sync", all)
	}
	err = sync()
	beats := time.NewTicker(door.Heartbeat)
	defer beats.Stop()
	for err == nil && ctx.Err() == nil {
		select {
		case event, open := <-news.C:
			switch {
			case !open:
				return nil
			case event.Missed:
				err = sync()
			case event.Type == approval.EventRequested:
				err = out.Send("approval", s.apiApprovalOf(&event.Approval, c.By))
			default:
				err = out.Send("resolved", s.apiApprovalOf(&event.Approval, c.By))
			}
		case <-beats.C:
			err = out.Beat()
		case <-ctx.Done():
		}
	}
	return nil
}

// Waiting lists pending approvals in the order in which they arrived, so that a new one never pushes another away
// from under a person's finger.
func (s *Server) Waiting(r *http.Request, v desk.Visitor) ([]*approval.Record, error) {
	list, err := s.desk.Waiting(r.Context(), v)
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(list, func(x, y *approval.Record) int {
		return cmp.Or(cmp.Compare(x.CreatedMs, y.CreatedMs), strings.Compare(x.ID, y.ID))
	})
	return list, nil
}

// said tells what became of an approval.
func Said(r *approval.Record) string {
	switch {
	case r.State == approval.StatePending:
		return "Waiting"
	case r.State == approval.StateVoid:
		return "Allowed before a restart, not used in time, so it did not run"
	case r.Decision == toolward.AllowOnce:
		return "Allowed once by " + r.ResolvedBy
	case len(r.Saved) > 0:
		return "Allowed by " + r.ResolvedBy + ", and from now on without a question"
	case r.Decision == toolward.AllowAlways:
		return "Allowed by " + r.ResolvedBy + ", and saved as a grant"
	case r.Decision == toolward.DenyCall && r.Reason != "":
		return "Denied by " + r.ResolvedBy + ": " + r.Reason
	case r.Decision == toolward.DenyCall:
		return "Denied by " + r.ResolvedBy
	case r.ResolvedBy == approval.ByRequesterGone:
		return "The agent went away; the call did not run"
	case r.ResolvedBy == approval.ByCanceled:
		return "The agent took the call back"
	case r.ResolvedBy == approval.ByNoApprover:
		return "Nobody was there to answer; the call was refused"
	}
	return "Nobody answered in time; the call was refused"
}

// checkAnswer refuses an answer that could mean nothing, or whose reason could not be passed on.
func CheckAnswer(decision, reason string) *door.Problem {
	if _, err := toolward.ParseDecision(decision); err != nil {
		return door.NewProblem(http.StatusBadRequest, "use allow-once, allow-always or deny", "%s", err.Error())
	}
	switch n := utf8.RuneCountInString(reason); {
	case n > maxReason:
		return door.NewProblem(http.StatusBadRequest, "", "the reason has %d characters, at most %d are passed on", n, maxReason)
	case !utf8.ValidString(reason):
		return door.NewProblem(http.StatusBadRequest, "", "the reason is not valid text (UTF-8)")
	}
	if i := strings.IndexFunc(reason, func(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' }); i >= 0 {
		return door.NewProblem(http.StatusBadRequest, "", "the reason has a control character")
	}
	return nil
}

// maxReason is the longest reason in characters.
const maxReason = 500

// AnswerProblem puts the refusal of an answer in the form of HTTP, with the words for the person.
func AnswerProblem(err error) error {
	status, known := answerStatus[desk.CodeOf(err)]
	switch {
	case known:
	case errors.Is(err, identity.ErrNotSignedIn):
		status = http.StatusUnauthorized
	default:
		return err
	}
	return door.NewProblem(status, "", "%s", err.Error())
}

var answerStatus = map[desk.Code]int{
	desk.TooSoon:     http.StatusTooEarly,
	desk.NotShown:    http.StatusPreconditionFailed,
	desk.Changed:     http.StatusPreconditionFailed,
	desk.Resolved:    http.StatusConflict,
	desk.Unknown:     http.StatusNotFound,
	desk.NotOffered:  http.StatusUnprocessableEntity,
	desk.OwnQuestion: http.StatusForbidden,
	desk.NotAllowed:  http.StatusUnauthorized,
}
