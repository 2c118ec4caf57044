package desk_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/approval"
	"github.com/toolward/toolward/desk"
	"github.com/toolward/toolward/store"
)

// rows are the rows of approvals, on a disk that can be full.
type rows struct {
	approval.Store
	full bool
}

func (r *rows) ResolveApproval(ctx context.Context, key approval.Key, end approval.Resolution, g *approval.Grant) error {
	if r.full {
		return errFull
	}
	return r.Store.ResolveApproval(ctx, key, end, g)
}

// waits opens the approver of a world in which calls wait, by id and by what they are bound to.
func (w *world) waits(t *testing.T, calls map[string]string) *rows {
	t.Helper()
	rows := &rows{Store: store.NewApprovals(w.db)}
	var err error
	w.approvals, err = approval.Open(t.Context(), approval.Options{Store: rows, Redact: func(s string) string { return s }})
	must(t, err)
	t.Cleanup(w.approvals.Close)
	w.desk, err = desk.New(desk.Options{Audit: w, Approvals: w.approvals})
	must(t, err)
	for id, binding := range calls {
		_, err := w.approvals.Register(t.Context(), approval.Record{
			ID: id, Kind: approval.KindTool, Binding: binding, Connection: "of the asker",
			Request: &approval.Details{Tool: "write", Agent: "coder", Digest: "d"},
			Allowed: []toolward.Decision{toolward.AllowOnce, toolward.DenyCall},
		}, time.Minute)
		must(t, err)
	}
	return rows
}

// stays checks that calls still wait.
func (w *world) stays(t *testing.T, ids ...string) {
	t.Helper()
	for _, id := range ids {
		if r, err := w.approvals.Get(t.Context(), somebody.here, id); err != nil || r.State != approval.StatePending {
			t.Errorf("%s was answered: %+v, %v", id, r, err)
		}
	}
}

// Nobody but a person sees or answers what waits, and nothing is answered when they try.
func TestAnswersNeedRight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.waits(t, map[string]string{"call-one": "b", "call-two": "b"})
		seen := w.shown("call-one", "call-two")
		time.Sleep(510 * time.Millisecond)
		for who, v := range strangers() {
			for what, do := range map[string]func() error{
				"lists":  func() error { _, err := w.desk.Waiting(t.Context(), v); return err },
				"looks":  func() error { _, err := w.desk.Approval(t.Context(), v, "call-one"); return err },
				"recent": func() error { _, err := w.desk.RecentlyAnswered(t.Context(), v, 5); return err },
				"allows": func() error {
					_, err := w.desk.Answer(t.Context(), v, desk.Answer{ID: "call-one", Decision: "allow-once", Typed: true})
					return err
				},
				"denies": func() error {
					_, err := w.desk.Answer(t.Context(), v, desk.Answer{ID: "call-one", Decision: "deny", Seen: seen[0].Seen})
					return err
				},
				"alike": func() error { _, err := w.desk.AnswerAlike(t.Context(), v, seen, "allow-once"); return err },
			} {
				if err := do(); desk.CodeOf(err) != desk.NotAllowed {
					t.Errorf("%s %s: %v", who, what, err)
				}
				w.stays(t, "call-one", "call-two")
			}
		}
	})
}

func (w *world) shown(ids ...string) (list []desk.Shown) {
	for _, id := range ids {
		r, err := w.approvals.Get(context.Background(), somebody.here, id)
		if err != nil {
			r = &approval.Record{ID: id}
		}
		list = append(list, desk.Shown{ID: id, Seen: w.approvals.MarkShown(r, somebody.here)})
	}
	return list
}

func TestAnswerCodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.waits(t, map[string]string{"call-one": "b", "call-two": "b"})
		person := w.person()
		answer := func(want desk.Code, v desk.Visitor, a desk.Answer) {
			t.Helper()
			a.ID = "call-one"
			if _, err := w.desk.Answer(t.Context(), v, a); desk.CodeOf(err) != want {
				t.Errorf("%v, want %q", err, want)
			}
			if want != "" && want != desk.Resolved {
				w.stays(t, "call-one")
			}
		}
		asker := person
		asker.Connection = "of the asker"
		answer(desk.OwnQuestion, asker, desk.Answer{Decision: "allow-once", Typed: true})
		answer(desk.TooSoon, person, desk.Answer{Decision: "allow-once", Seen: w.shown("call-one")[0].Seen})
		answer(desk.NotShown, person, desk.Answer{Decision: "allow-once", Seen: w.shown("call-two")[0].Seen})
		answer(desk.Changed, person, desk.Answer{Decision: "allow-once", Typed: true, Binding: "another"})
		answer(desk.NotOffered, person, desk.Answer{Decision: "allow-always", Typed: true})
		answer(desk.Failed, person, desk.Answer{Decision: "perhaps", Typed: true})
		if _, err := w.desk.Answer(t.Context(), person, desk.Answer{ID: "no-such-call", Decision: "deny", Typed: true}); desk.CodeOf(err) != desk.Unknown {
			t.Errorf("no such call: %v", err)
		}
		time.Sleep(510 * time.Millisecond)
		answer("", person, desk.Answer{Decision: "allow-once", Typed: true, Binding: "b"})
		answer(desk.Resolved, person, desk.Answer{Decision: "deny", Typed: true})
		if list, err := w.desk.RecentlyAnswered(t.Context(), person, 5); err != nil || len(list) != 1 || list[0].Decision != toolward.AllowOnce {
			t.Errorf("answered: %+v, %v", list, err)
		}
		if list, err := w.desk.Waiting(t.Context(), person); err != nil || len(list) != 1 || list[0].ID != "call-two" {
			t.Errorf("waiting: %+v, %v", list, err)
		}
		none, err := desk.New(desk.Options{Audit: w})
		must(t, err)
		if _, err := none.Waiting(t.Context(), person); desk.CodeOf(err) != desk.NotKept {
			t.Errorf("a gateway without an approver: %v", err)
		}
	})
}

// Several calls are answered at once only if they are one and the same, for this once, and each as it was shown.
func TestIdenticalCallsAreAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.waits(t, map[string]string{"call-one": "b", "call-two": "b", "call-late": "b", "call-other": "another"})
		person := w.person()
		seen := w.shown("call-one", "call-two", "call-other")
		time.Sleep(510 * time.Millisecond)
		for want, try := range map[desk.Code]func() error{
			desk.Different: func() error { _, err := w.desk.AnswerAlike(t.Context(), person, seen, "allow-once"); return err },
			desk.Invalid:   func() error { _, err := w.desk.AnswerAlike(t.Context(), person, seen[:2], "allow-always"); return err },
		} {
			if err := try(); desk.CodeOf(err) != want {
				t.Errorf("%v, want %s", err, want)
			}
			w.stays(t, "call-one", "call-two", "call-other")
		}
		late := append(seen[:2:2], w.shown("call-late")...)
		list, err := w.desk.AnswerAlike(t.Context(), person, append(late, desk.Shown{ID: "gone-call", Seen: "x"}), "allow-once")
		must(t, err)
		for i, want := range []desk.Code{"", "", desk.TooSoon, desk.Unknown} {
			if desk.CodeOf(list[i].Err) != want || want == "" && list[i].Record.Decision != toolward.AllowOnce {
				t.Errorf("%s: %+v, %v, want %q", list[i].ID, list[i].Record, list[i].Err, want)
			}
		}
		w.stays(t, "call-late", "call-other")
	})
}

// An "allow" that cannot be written allows nothing; a "deny" counts all the same.
func TestUnwrittenAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		rows := w.waits(t, map[string]string{"call-one": "b"})
		rows.full = true
		time.Sleep(510 * time.Millisecond)
		answer := func(decision string) (*approval.Record, error) {
			return w.desk.Answer(t.Context(), w.person(), desk.Answer{ID: "call-one", Decision: decision, Typed: true})
		}
		if record, err := answer("allow-once"); record != nil || desk.CodeOf(err) != desk.Failed || !errors.Is(err, errFull) {
			t.Errorf("allowed without a record: %+v, %v", record, err)
		}
		w.stays(t, "call-one")
		if record, err := answer("deny"); err != nil || record.Decision != toolward.DenyCall {
			t.Errorf("not denied: %+v, %v", record, err)
		}
	})
}
