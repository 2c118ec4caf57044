package console

import (
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/approval"
	"github.com/toolward/toolward/server/api"
	"github.com/toolward/toolward/server/door"
)

// answeredCall is what became of one of several identical calls.
type answeredCall struct {
	ID string `json:"id"`
	answered
	Error string `json:"error,omitempty"`
}

// answerAll is POST /c/{key}/approvals: one answer for several identical calls. Each is answered on its own, with the
// stamp of its own showing, so that a call which has just come in is never among those that a person meant.
func (s *Server) answerAll(w http.ResponseWriter, r *http.Request, v *visitor) error {
	if err := parseForm(r); err != nil {
		return err
	}
	decision := r.PostForm.Get("decision")
	if decision != toolward.DenyCall.String() && decision != toolward.AllowOnce.String() {
		return door.NewProblem(http.StatusBadRequest, "use deny or allow-once", "several calls at once cannot be answered with %s", door.QuoteShort(decision))
	}
	calls, err := s.identicalCalls(r, v, r.PostForm["call"])
	if err != nil {
		return err
	}
	var all []answeredCall
	done := 0
	for _, c := range calls {
		one := s.answerOne(r, v, c, decision)
		if one.Error == "" {
			done++
		}
		all = append(all, one)
	}
	if r.Header.Get("Accept") == "application/json" {
		door.WriteJSON(w, http.StatusOK, struct {
			Calls []answeredCall `json:"calls"`
		}{all})
		return nil
	}
	back := url.Values{"answered": {strconv.Itoa(done)}, "of": {strconv.Itoa(len(all))}}
	http.Redirect(w, r, v.base+"/?"+back.Encode()+"&"+arrangedOf(r).Query(), http.StatusSeeOther)
	return nil
}

// identicalCalls reads the calls of a form and refuses the whole if two of them differ in what they are bound to: a
// person who says "these are all the same" was shown one of them.
func (s *Server) identicalCalls(r *http.Request, v *visitor, values []string) ([]shownCall, error) {
	if len(values) == 0 || len(values) > maxCards {
		return nil, door.NewProblem(http.StatusBadRequest, "load the page again", "%d calls at once, expected 1 to %d", len(values), maxCards)
	}
	var calls []shownCall
	same := ""
	for _, value := range values {
		id, seen, _ := strings.Cut(value, " ")
		rec, err := s.approvals.Get(r.Context(), v.by, id)
		switch {
		case errors.Is(err, approval.ErrUnknown):
			seen = "" // ended long ago, and never to be resolved without having been compared
		case err != nil:
			return nil, api.AnswerProblem(err)
		case sameCall(rec) == "" || same != "" && sameCall(rec) != same:
			return nil, door.NewProblem(http.StatusUnprocessableEntity, "answer them one by one", "these calls are not identical")
		default:
			same = sameCall(rec)
		}
		calls = append(calls, shownCall{id, seen})
	}
	return calls, nil
}

func (s *Server) answerOne(r *http.Request, v *visitor, c shownCall, decision string) answeredCall {
	rec, err := s.approvals.Resolve(r.Context(), approval.Response{
		ID: c.ID, Decision: decision, By: v.by, Connection: v.connection(), Shown: c.Seen,
	})
	if err != nil && rec == nil {
		one := answeredCall{ID: c.ID, Error: door.ProblemOf(api.AnswerProblem(err)).Message}
		if now := s.decided(r, v.by, c.ID, err); now != nil {
			one.answered = answered{"Already decided. " + api.Said(now), outcomeOf(now)}
		}
		return one
	}
	if err != nil {
		s.log.Error("an answer counts, but could not be recorded", "approval", c.ID, "err", err)
	}
	return answeredCall{ID: c.ID, answered: answered{api.Said(rec), outcomeOf(rec)}}
}
