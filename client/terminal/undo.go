package terminal

import (
	"context"

	"github.com/toolward/toolward/client/local"
	"github.com/toolward/toolward/tui"
	"github.com/toolward/toolward/undo/kept"
)

// undoLength is how many calls are listed that can be taken back: what each changed is looked up whenever they are.
const undoLength = 50

// UndoCalls implements tui.Gateway.
func (g desk) UndoCalls(ctx context.Context) ([]tui.UndoCall, error) {
	list, err := g.Gateway.UndoCalls(ctx, "", undoLength)
	var out []tui.UndoCall
	for i := range list {
		out = append(out, undoCall(&list[i]))
	}
	return out, known(err)
}

// UndoCall implements tui.Gateway.
func (g desk) UndoCall(ctx context.Context, id string) (tui.UndoCall, error) {
	one, err := g.Gateway.UndoCall(ctx, id)
	return undoCall(&one), known(err)
}

func undoCall(u *local.UndoCall) tui.UndoCall {
	return tui.UndoCall{
		ID: u.ID, At: u.At, Agent: u.Agent, Session: u.Session, Tool: u.Tool, Text: u.Text, Workspace: u.Workspace, State: u.State,
		Undoes: u.Undoes, Changes: changes(u.Changes), Total: u.Total,
	}
}

func changes(list []kept.Shown) (out []tui.Change) {
	for _, c := range list {
		out = append(out, tui.Change{Path: c.Path, What: c.What, Diff: c.Diff})
	}
	return out
}

// TakeBack implements tui.Gateway.
func (g desk) TakeBack(ctx context.Context, r tui.TakeBack) (tui.TakenBack, error) {
	answer, err := g.Gateway.TakeBack(ctx, local.UndoRequest{
		Call: r.Call, Session: r.Session, Everything: r.Everything, Changed: r.Changed, Preview: r.Preview, Seen: r.Seen,
	})
	out := tui.TakenBack{Done: answer.Done, Stamp: answer.Stamp, Unknown: answer.Unknown}
	for i := range answer.Workspaces {
		w := &answer.Workspaces[i]
		out.Workspaces = append(out.Workspaces, tui.TakenWorkspace{
			Workspace: w.Workspace, ID: w.ID, Restored: changes(w.Restored), Conflicts: changes(w.Conflicts), Lost: changes(w.Lost),
		})
	}
	return out, known(err)
}
