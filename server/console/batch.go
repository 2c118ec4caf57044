package console

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/toolward/toolward/desk"
	"github.com/toolward/toolward/server/api"
	"github.com/toolward/toolward/server/door"
)

// answeredCall is what became of one of several identical calls.
type answeredCall struct {
	ID string `json:"id"`
	answered
	Error string `json:"error,omitempty"`
}

// answerAll is POST /c/{key}/approvals: one answer for several identical calls.
func (s *Server) answerAll(w http.ResponseWriter, r *http.Request, v *visitor) error {
	if err := parseForm(r); err != nil {
		return err
	}
	calls, err := shownCalls(r.PostForm["call"])
	if err != nil {
		return err
	}
	decision := r.PostForm.Get("decision")
	list, err := s.desk.AnswerAlike(r.Context(), v.atDesk(), calls, decision)
	if err != nil {
		return batchProblem(err, decision)
	}
	var all []answeredCall
	done := 0
	for _, a := range list {
		if a.Err == nil {
			done++
		}
		all = append(all, s.answeredCallOf(r, v, a))
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

// shownCalls reads the calls of a form.
func shownCalls(values []string) ([]desk.Shown, error) {
	if len(values) == 0 || len(values) > maxCards {
		return nil, door.NewProblem(http.StatusBadRequest, "load the page again", "%d calls at once, expected 1 to %d", len(values), maxCards)
	}
	var calls []desk.Shown
	for _, value := range values {
		id, seen, _ := strings.Cut(value, " ")
		calls = append(calls, desk.Shown{ID: id, Seen: seen})
	}
	return calls, nil
}

// batchProblem says why none of several calls was answered.
func batchProblem(err error, decision string) error {
	switch desk.CodeOf(err) {
	case desk.Invalid:
		return door.NewProblem(http.StatusBadRequest, "use deny or allow-once", "several calls at once cannot be answered with %s", door.QuoteShort(decision))
	case desk.Different:
		return door.NewProblem(http.StatusUnprocessableEntity, "answer them one by one", "%s", err)
	}
	return api.AnswerProblem(err)
}

func (s *Server) answeredCallOf(r *http.Request, v *visitor, a desk.Answered) answeredCall {
	if a.Err == nil {
		return answeredCall{ID: a.ID, answered: answered{api.Said(a.Record), outcomeOf(a.Record)}}
	}
	one := answeredCall{ID: a.ID, Error: door.ProblemOf(api.AnswerProblem(a.Err)).Message}
	if now := s.decided(r, v, a.ID, a.Err); now != nil {
		one.answered = answered{"Already decided. " + api.Said(now), outcomeOf(now)}
	}
	return one
}
