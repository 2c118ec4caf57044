package console

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/toolward/toolward/desk"
	"github.com/toolward/toolward/server/api"
	"github.com/toolward/toolward/server/console/difference"
	"github.com/toolward/toolward/undo/kept"
)

// undoLine is one call that can be taken back.
type undoLine struct {
	What, Agent, Workspace, Changed []span
	Clock, Href                     string
}

// showUndo is GET /c/{key}/undo: the calls that can be taken back.
func (s *Server) showUndo(w http.ResponseWriter, r *http.Request, v *visitor) error {
	calls, err := s.desk.UndoCalls(r.Context(), v.atDesk(), desk.UndoFilter{Limit: pageLength})
	if err != nil {
		return api.UndoProblem(err)
	}
	p := struct {
		page
		Tabs  []navItem
		Calls []undoLine
	}{page: s.newPage(v, "What calls changed", "/decisions"), Tabs: historyTabs("/undo")}
	p.Style = "sessions.css"
	for i := range calls {
		c := &calls[i]
		p.Calls = append(p.Calls, undoLine{
			oneLine(c.Tool + " " + c.Text), oneLine(c.Agent), oneLine(c.Workspace), oneLine(changedWords(c)), moment(c.At), undoLink(v, "call", c.ID),
		})
	}
	return renderPage(w, http.StatusOK, "undo", p)
}

func undoLink(v *visitor, what, id string) string {
	return v.base + "/undo/one?" + url.Values{what: {id}}.Encode()
}

// undoWords are the link of a record to what its call changed, "" if nothing was kept for it.
func undoWords(id string) string {
	if id == "" {
		return ""
	}
	return "see and take back"
}

func changedWords(c *desk.UndoCall) string {
	switch c.State {
	case desk.UndoRunning:
		return "it runs"
	case desk.UndoUnknown:
		return "it was cut off: nobody knows"
	}
	const most = 3
	var names []string
	for _, change := range c.Changes[:min(most, len(c.Changes))] {
		names = append(names, change.Path)
	}
	if c.Total > most {
		names = append(names, fmt.Sprintf("and %d more", c.Total-most))
	}
	return strings.Join(names, ", ")
}

// undoPage is what taking a call, or a session, back would do, or has done.
type undoPage struct {
	page
	What, Session []span
	SessionHref   string
	Kind, ID      string // "call" or "session", for the form
	Button        string
	CutOff        bool // only all that has happened since can be taken back
	May           bool
	Blocks        []block
	More          int
	Workspaces    []undoWorkspace
	Conflicts     bool
	Nothing       bool
	Stamp         string
	Unknown       []string // calls that are left out
	Done          bool
}

// undoWorkspace is one workspace of it, path by path.
type undoWorkspace struct {
	Name                      []span
	Restored, Conflicts, Lost []named
	Beside                    [][]span
	Again                     string // where this is taken back itself
}

// showUndoOne is GET /c/{key}/undo/one: what a call changed, and what taking it, or a session, back would do.
func (s *Server) showUndoOne(w http.ResponseWriter, r *http.Request, v *visitor) error {
	request := desk.UndoRequest{Call: r.URL.Query().Get("call"), Session: r.URL.Query().Get("session"), Preview: true}
	p := undoPage{page: s.newPage(v, "Take back", "/decisions"), May: v.atDesk().May(desk.TakeCallsBack) == nil}
	if request.Call != "" {
		call, err := s.desk.UndoCall(r.Context(), v.atDesk(), request.Call)
		if err != nil {
			return api.UndoProblem(err)
		}
		request.Everything = call.State != desk.UndoDone
		p.showCall(v, &call)
	} else {
		p.Kind, p.ID, p.Button, p.What = "session", request.Session, "Back to before this session", oneLine("What session "+request.Session+" changed")
	}
	answer, err := s.desk.TakeBack(r.Context(), v.atDesk(), request)
	if err != nil {
		return api.UndoProblem(err)
	}
	return s.renderUndo(w, v, &p, &answer)
}

func (p *undoPage) showCall(v *visitor, c *desk.UndoCall) {
	p.Kind, p.ID, p.Button, p.What = "call", c.ID, "Take back this call", oneLine(c.Tool+" "+c.Text)
	if p.CutOff = c.State != desk.UndoDone; p.CutOff {
		p.Button = "Take back all that has happened since"
	}
	if c.Session != "" {
		p.Session, p.SessionHref = oneLine(c.Session), undoLink(v, "session", c.Session)
	}
	for i := range c.Changes {
		change := &c.Changes[i]
		b := block{Name: "Change", Label: change.What, Where: oneLine(change.Path)}
		if change.Diff != "" {
			b.Diff = difference.Read(change.Diff)
		} else {
			b.Text = oneLine(fmt.Sprintf("%d bytes before, %d after", change.Before, change.After))
		}
		p.Blocks = append(p.Blocks, b)
	}
	p.More = c.Total - len(c.Changes)
}

func (s *Server) renderUndo(w http.ResponseWriter, v *visitor, p *undoPage, a *desk.UndoAnswer) error {
	p.Style, p.Stamp, p.Unknown, p.Done, p.Nothing = "sessions.css", a.Stamp, a.Unknown, a.Done, true
	for i := range a.Workspaces {
		one := &a.Workspaces[i]
		shown := undoWorkspace{Name: oneLine(one.Workspace), Restored: pathsOf(one.Restored), Conflicts: pathsOf(one.Conflicts), Lost: pathsOf(one.Lost)}
		for _, at := range one.Beside {
			shown.Beside = append(shown.Beside, oneLine(at))
		}
		if one.ID != "" {
			shown.Again = undoLink(v, "call", one.ID)
		}
		p.Conflicts = p.Conflicts || len(one.Conflicts) > 0
		p.Nothing = p.Nothing && len(one.Restored)+len(one.Conflicts)+len(one.Beside) == 0
		p.Workspaces = append(p.Workspaces, shown)
	}
	return renderPage(w, http.StatusOK, "undoone", p)
}

func pathsOf(list []kept.Shown) (paths []named) {
	for i := range list {
		paths = append(paths, named{list[i].What, oneLine(list[i].Path)})
	}
	return paths
}

// takeBackFromPage is POST /c/{key}/undo. The form names the state that was shown: what somebody has changed after the person
// looked must not be overwritten.
func (s *Server) takeBackFromPage(w http.ResponseWriter, r *http.Request, v *visitor) error {
	if err := parseForm(r); err != nil {
		return err
	}
	everything, _ := strconv.ParseBool(r.PostForm.Get("everything")) // anything else is no
	request := desk.UndoRequest{
		Call: r.PostForm.Get("call"), Session: r.PostForm.Get("session"), Changed: r.PostForm.Get("changed"), Everything: everything, Seen: r.PostForm.Get("seen"),
	}
	if request.Seen == "" {
		return api.UndoProblem(&desk.Error{Code: desk.Invalid, Err: fmt.Errorf("the form does not say what was shown")})
	}
	answer, err := s.desk.TakeBack(r.Context(), v.atDesk(), request)
	if err != nil {
		return api.UndoProblem(err)
	}
	p := undoPage{page: s.newPage(v, "Taken back", "/decisions"), What: oneLine("Taken back")}
	if !answer.Done {
		return api.UndoProblem(&desk.Error{Code: desk.Changed, Err: fmt.Errorf("somebody has changed files since: go back, load the page again and choose what becomes of them")})
	}
	return s.renderUndo(w, v, &p, &answer)
}
