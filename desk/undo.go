package desk

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"time"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/audit"
	"github.com/toolward/toolward/undo"
	"github.com/toolward/toolward/undo/kept"
)

// UndoCall is a call that can be taken back. Its texts are not made safe for showing.
type UndoCall struct {
	ID        string       `json:"id"`
	At        time.Time    `json:"at"`
	Agent     string       `json:"agent,omitempty"`
	Session   string       `json:"session,omitempty"`
	Tool      string       `json:"tool"`
	Text      string       `json:"text"`
	Workspace string       `json:"workspace"`
	State     string       `json:"state"`            // done, running, or unknown: it was cut off, and nobody knows what it changed
	Undoes    string       `json:"undoes,omitempty"` // the call that this one took back
	Changes   []kept.Shown `json:"changes"`          // of a call that is done
	Total     int          `json:"total"`            // how many there are, if not all of them stand there
}

// The states of an UndoCall.
const (
	UndoDone    = "done"
	UndoRunning = "running"
	UndoUnknown = "unknown"
)

// UndoFilter selects calls. The zero value selects the latest of all.
type UndoFilter struct {
	Session string
	Limit   int // 1 to 500; 0: 50
}

// UndoCalls lists the calls that can be taken back, newest first.
func (d *Desk) UndoCalls(_ context.Context, v Visitor, f UndoFilter) ([]UndoCall, error) {
	if err := d.may(v, SeeUndo, d.undo != nil); err != nil {
		return nil, err
	}
	limit := min(f.Limit, 500)
	if limit <= 0 {
		limit = 50
	}
	list := []UndoCall{}
	for _, c := range d.undo.Calls() {
		if f.Session != "" && c.Session != f.Session {
			continue
		}
		if len(list) == limit {
			break
		}
		one, err := d.undoCall(&c, false)
		if err != nil {
			return nil, &Error{Failed, err}
		}
		list = append(list, one)
	}
	return list, nil
}

// UndoCall is one call, with the differences.
func (d *Desk) UndoCall(_ context.Context, v Visitor, id string) (UndoCall, error) {
	if err := d.may(v, SeeUndo, d.undo != nil); err != nil {
		return UndoCall{}, err
	}
	for _, c := range d.undo.Calls() {
		if c.ID == id {
			one, err := d.undoCall(&c, true)
			if err != nil {
				return one, &Error{Failed, err}
			}
			return one, nil
		}
	}
	return UndoCall{}, &Error{Unknown, fmt.Errorf("no call %q can be taken back: it changed nothing, or it is not kept any more", id)}
}

func (d *Desk) undoCall(c *kept.Call, diffs bool) (UndoCall, error) {
	one := UndoCall{
		ID: c.ID, At: c.At, Agent: c.Agent, Session: c.Session, Tool: c.Tool, Text: c.Text, Workspace: string(c.Workspace),
		State: UndoUnknown, Undoes: c.Undoes, Changes: []kept.Shown{},
	}
	switch {
	case c.Running:
		one.State = UndoRunning
	case c.Ended():
		one.State = UndoDone
		changes, err := d.undo.Changes(&c.Call)
		if err != nil && !errors.Is(err, undo.ErrGone) { // what goes while it is listed has changed nothing that is known
			return one, err
		}
		one.Changes, one.Total = d.undo.Show(changes, diffs)
	}
	return one, nil
}

// UndoRequest says what to take back: one call, or all that a session did.
type UndoRequest struct {
	Call    string   `json:"call,omitempty"`
	Session string   `json:"session,omitempty"`
	Paths   []string `json:"paths,omitempty"` // within the workspace, with what is below them; none: all

	// Changed is what becomes of what somebody has changed since: keep, replace or beside. "": if there is any, nothing is done.
	Changed string `json:"changed,omitempty"`

	// Everything takes back all that has happened to the workspace since the call began, whoever did it. It is for a call that was
	// cut off.
	Everything bool `json:"everything,omitempty"`
	Preview    bool `json:"preview,omitempty"` // only say what would be done

	// Seen is the stamp of a preview. If what would be done is not the same any more, nothing is done: what somebody has changed
	// after a person looked must not be overwritten. "": nobody has looked.
	Seen string `json:"seen,omitempty"`
}

// undoChoices are the words for what becomes of what has changed since.
var undoChoices = map[string]undo.Choice{"": undo.KeepTheirs, "keep": undo.KeepTheirs, "replace": undo.BringBack, "beside": undo.SideBySide}

// UndoAnswer is what became of a request.
type UndoAnswer struct {
	Done       bool              `json:"done"`
	Workspaces []UndoneWorkspace `json:"workspaces"`
	Stamp      string            `json:"stamp,omitempty"`   // of what would be done
	Unknown    []string          `json:"unknown,omitempty"` // calls of the session that run or were cut off: they are left out
}

// UndoneWorkspace is what became of one workspace.
type UndoneWorkspace struct {
	Workspace string       `json:"workspace"`
	ID        string       `json:"id,omitempty"` // by which this is taken back itself
	Restored  []kept.Shown `json:"restored"`     // what is as it was before
	Conflicts []kept.Shown `json:"conflicts"`    // what somebody has changed since
	Beside    []string     `json:"beside"`       // where copies stand of what it was before
	Lost      []kept.Shown `json:"lost"`         // what was not kept, and stays as it is
}

// TakeBack takes back what calls did. An agent never may, nor whatever descends from one: it would take back what people or other
// agents did, such as the repair of a hole, and write files by a way that no policy looks at.
func (d *Desk) TakeBack(ctx context.Context, v Visitor, r UndoRequest) (UndoAnswer, error) {
	o := TakeCallsBack
	if r.Preview {
		o = SeeUndo
	}
	answer := UndoAnswer{Workspaces: []UndoneWorkspace{}}
	if err := d.may(v, o, d.undo != nil); err != nil {
		return answer, err
	}
	requests, unknown, err := d.undoRequests(&r)
	if err != nil {
		return answer, err
	}
	answer.Unknown = unknown
	conflicts, stamp := 0, sha256.New()
	for _, one := range requests {
		undecided := one.Request
		undecided.Choice = undo.KeepTheirs
		taken, err := d.undo.Preview(ctx, undecided)
		if err != nil {
			return answer, undoError(err)
		}
		conflicts += len(taken.Conflicts)
		stampOf(stamp, taken.Conflicts)
		stampOf(stamp, taken.Restored)
		if r.Preview && one.Choice != undo.KeepTheirs {
			if taken, err = d.undo.Preview(ctx, one.Request); err != nil {
				return answer, undoError(err)
			}
		}
		answer.Workspaces = append(answer.Workspaces, d.undone(one.workspace, "", taken))
	}
	answer.Stamp = hex.EncodeToString(stamp.Sum(nil))
	if r.Seen != "" && r.Seen != answer.Stamp {
		return answer, &Error{Changed, errors.New("something has changed since it was shown: look again")}
	}
	if r.Preview || conflicts > 0 && r.Changed == "" {
		return answer, nil
	}
	answer.Workspaces = answer.Workspaces[:0]
	for _, one := range requests {
		done, err := d.takeBack(ctx, v, &r, one)
		if err != nil {
			return answer, err
		}
		answer.Workspaces = append(answer.Workspaces, done)
	}
	answer.Done = true
	return answer, nil
}

// stampOf adds to a stamp what would be done, and what it is done to.
func stampOf(stamp hash.Hash, changes []undo.Change) {
	fmt.Fprintf(stamp, "%d;", len(changes))
	for _, c := range changes {
		fmt.Fprintf(stamp, "%q %v %v;", c.Path, entryOf(c.Before), entryOf(c.After))
	}
}

func entryOf(e *undo.Entry) undo.Entry {
	if e == nil {
		return undo.Entry{}
	}
	return *e
}

// workspaceRequest is a request about one workspace.
type workspaceRequest struct {
	workspace, session string
	undo.Request
}

// undoRequests finds the calls that a request is about.
func (d *Desk) undoRequests(r *UndoRequest) (list []*workspaceRequest, unknown []string, err error) {
	choice, known := undoChoices[r.Changed]
	if !known {
		return nil, nil, &Error{Invalid, fmt.Errorf("%q says nothing about what has changed since: say keep, replace or beside", r.Changed)}
	}
	if (r.Call == "") == (r.Session == "") {
		return nil, nil, &Error{Invalid, errors.New("name either a call or a session")}
	}
	byWorkspace := map[string]*workspaceRequest{}
	for _, c := range d.undo.Calls() {
		if c.ID != r.Call && (r.Session == "" || c.Session != r.Session) {
			continue
		}
		if r.Session != "" && !c.Ended() {
			unknown = append(unknown, c.ID)
			continue
		}
		workspace := string(c.Workspace)
		if have := byWorkspace[workspace]; have != nil {
			have.With = append(have.With, c.ID)
			continue
		}
		one := &workspaceRequest{workspace, c.Session, undo.Request{ID: c.ID, Paths: r.Paths, Choice: choice, Everything: r.Everything}}
		byWorkspace[workspace] = one
		list = append(list, one)
	}
	if len(list) == 0 {
		return nil, nil, &Error{Unknown, errors.New("there is nothing of it that can be taken back: it changed nothing, or it is not kept any more")}
	}
	return list, unknown, nil
}

// takeBack takes calls of one workspace back. It changes files, so it is recorded before it is done, and what became of it afterwards.
func (d *Desk) takeBack(ctx context.Context, v Visitor, r *UndoRequest, one *workspaceRequest) (UndoneWorkspace, error) {
	as := undo.Call{ID: kept.NewID(), Tool: "undo", Text: "take back " + one.ID + ", by " + v.By.Name()}
	if r.Session != "" {
		as.Text = "take back session " + r.Session + ", by " + v.By.Name()
	}
	data := v.signed(map[string]any{
		"event": "taking back", "undo": as.ID, "calls": append([]string{one.ID}, one.With...), "workspace": one.workspace, "paths": r.Paths,
		"changed": r.Changed, "everything": r.Everything,
	})
	session := toolward.SessionKey(one.session)
	if err := d.record(ctx, audit.Event{Type: audit.TypeUndo, Session: session, Agent: session.Agent(), Data: data}); err != nil {
		return UndoneWorkspace{}, err
	}
	taken, err := d.undo.TakeBack(context.WithoutCancel(ctx), one.Request, as)
	after := v.signed(map[string]any{"event": "taken back", "undo": as.ID})
	if err != nil {
		after["event"], after["why"] = "not taken back", err.Error()
	} else {
		after["restored"], after["left"], after["lost"] = len(taken.Restored), len(taken.Conflicts), len(taken.Lost)
	}
	d.note(ctx, audit.Event{Type: audit.TypeUndo, Session: session, Agent: session.Agent(), Data: after})
	if err != nil {
		return UndoneWorkspace{}, undoError(err)
	}
	if len(taken.Restored)+len(taken.Aside) == 0 {
		as.ID = "" // nothing was changed, so there is nothing to take back
	}
	return d.undone(one.workspace, as.ID, taken), nil
}

func (d *Desk) undone(workspace, id string, t *undo.Taken) UndoneWorkspace {
	u := UndoneWorkspace{Workspace: workspace, ID: id, Beside: append([]string{}, t.Aside...)}
	u.Restored, _ = d.undo.Show(t.Restored, false)
	u.Conflicts, _ = d.undo.Show(t.Conflicts, false)
	u.Lost, _ = d.undo.Show(t.Lost, false)
	return u
}

func undoError(err error) error {
	switch {
	case errors.Is(err, undo.ErrGone):
		return &Error{Unknown, err}
	case errors.Is(err, undo.ErrBusy), errors.Is(err, undo.ErrRunning):
		return &Error{Changed, err}
	}
	return &Error{Failed, err}
}
