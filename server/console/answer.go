package console

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/approval"
	"github.com/toolward/toolward/desk"
	"github.com/toolward/toolward/server/api"
	"github.com/toolward/toolward/server/door"
)

// showOne is GET /c/{key}/approvals/{id}: one call, waiting or decided. Links in chats and clients lead here.
func (s *Server) showOne(w http.ResponseWriter, r *http.Request, v *visitor) error {
	rec, err := s.desk.Approval(r.Context(), v.atDesk(), r.PathValue("id"))
	if desk.CodeOf(err) == desk.Unknown {
		return door.NewProblem(http.StatusNotFound, "it may have been decided long ago; see Decisions", "there is no such call")
	} else if err != nil {
		return err
	}
	p := struct {
		page
		Card card
	}{s.newPage(v, rec.Request.Title, ""), newCard(v.base, rec, time.Now())}
	p.Script = "console.js"
	p.Card.Seen, p.Card.First = s.approvals.MarkShown(rec, v.by), true
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
		return door.NewProblem(http.StatusBadRequest, "load the page again", "the answer does not say what it saves")
	}
	reason := strings.TrimSpace(r.PostForm.Get("reason"))
	if decision != toolward.DenyCall.String() {
		reason = "" // typed, then allowed: the reason was for a denial
	}
	if p := api.CheckAnswer(decision, reason); p != nil {
		return p
	}
	var narrow approval.Narrow
	if decision == toolward.AllowAlways.String() { // typed, then allowed once or denied: it was for an "always"
		if narrow, err = narrowOf(r.PostForm); err != nil {
			return err
		}
	}
	id := r.PathValue("id")
	rec, err := s.desk.Answer(r.Context(), v.atDesk(), desk.Answer{
		ID: id, Decision: decision, Reason: reason, Proposal: proposal, Narrow: narrow, Seen: r.PostForm.Get("seen"),
	})
	script := r.Header.Get("Accept") == "application/json"
	if err != nil {
		if now := s.decided(r, v, id, err); now != nil && script {
			door.WriteJSON(w, http.StatusConflict, answered{"Already decided. " + api.Said(now), outcomeOf(now)})
			return nil
		}
		return api.AnswerProblem(err)
	}
	if script {
		door.WriteJSON(w, http.StatusOK, answered{api.Said(rec), outcomeOf(rec)})
		return nil
	}
	http.Redirect(w, r, v.base+"/?done="+url.QueryEscape(rec.ID)+"&"+arrangedOf(r).Query(), http.StatusSeeOther)
	return nil
}

// decided returns what became of a call when an answer came too late, because somebody else was first or time ran
// out; nil if that was not the problem. The winner's answer may still be on its way to the disk.
func (s *Server) decided(r *http.Request, v *visitor, id string, why error) *approval.Record {
	if code := desk.CodeOf(why); code != desk.Resolved && code != desk.Unknown {
		return nil
	}
	ctx, cancel := context.WithTimeout(r.Context(), door.WritePatience)
	defer cancel()
	_, _ = s.approvals.Wait(ctx, id) // unknown by now: the record below still tells
	rec, err := s.desk.Approval(ctx, v.atDesk(), id)
	if err != nil || rec.State == approval.StatePending {
		return nil
	}
	return rec
}

// narrowOf reads what a form keeps less of an "always" than was proposed.
func narrowOf(form url.Values) (n approval.Narrow, err error) {
	number := func(field, hint string) (int64, error) {
		text := strings.TrimSpace(form.Get(field))
		if text == "" {
			return 0, nil
		}
		value, err := strconv.ParseInt(text, 10, 32)
		if err != nil || value < 1 {
			return 0, door.NewProblem(http.StatusBadRequest, hint, "%s: %s is not a whole number above 0", field, door.QuoteShort(text))
		}
		return value, nil
	}
	minutes, err := number("minutes", "leave the field empty for the time that is proposed")
	if err != nil {
		return n, err
	}
	uses, err := number("uses", "leave the field empty for any number of calls")
	return approval.Narrow{Life: time.Duration(minutes) * time.Minute, Uses: uses}, err
}
