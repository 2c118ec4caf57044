package tui

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// UndoCalls implements Gateway.
func (d *desk) UndoCalls(context.Context) ([]UndoCall, error) { return d.undo, nil }

// UndoCall implements Gateway.
func (d *desk) UndoCall(_ context.Context, id string) (UndoCall, error) {
	for _, u := range d.undo {
		if u.ID == id {
			return u, nil
		}
	}
	return UndoCall{}, errors.New("it is not kept any more")
}

// TakeBack implements Gateway.
func (d *desk) TakeBack(_ context.Context, r TakeBack) (TakenBack, error) {
	if r.Preview {
		return d.would, nil
	}
	d.taken = append(d.taken, strings.TrimSpace(fmt.Sprintf("%s%s %s", r.Call, r.Session, r.Changed)))
	if r.Seen != d.would.Stamp {
		return TakenBack{}, errors.New("something has changed since it was shown: look again")
	}
	done := d.would
	done.Done = d.fail == nil
	d.fail = nil
	return done, nil
}

func undoDesk(t *testing.T) *desk {
	d := newDesk(t)
	d.undo = []UndoCall{
		{ID: "two", At: time.Now(), Agent: "coder", Session: "agent:coder:main", Tool: "exec", Text: "rm -rf src\x1b[2J", Workspace: "/home/ada/shop", State: UndoDone, Total: 1, Changes: []Change{
			{Path: "src/a.go", What: "deleted a file", Diff: "--- src/a.go\n+++ /dev/null\n-package a\x1b[1m\n"},
		}},
		{ID: "one", At: time.Now(), Agent: "coder", Tool: "exec", Text: "make", Workspace: "/home/ada/shop", State: UndoUnknown},
	}
	d.would = TakenBack{Stamp: "seen", Workspaces: []TakenWorkspace{{
		Workspace: "/home/ada/shop", ID: "three", Restored: []Change{{Path: "src/a.go", What: "created a file"}},
		Lost: []Change{{Path: "db", What: "deleted, and not kept: it is larger than is kept"}},
	}}}
	return d
}

func TestWhatCallsChanged(t *testing.T) {
	at(t, func(t *testing.T) {
		d := undoDesk(t)
		d.press("6")
		d.sees("[6 Undo]", "1 change", "rm -rf src⟦U+001B⟧[2J", "src/a.go: deleted a file", "t: take back")
		d.press("d")
		d.sees("What exec rm -rf src⟦U+001B⟧[2J changed", "│ -package a⟦U+001B⟧[1m")
		d.press("y") // back: nothing was asked
		d.press("down")
		d.sees("it was cut off: nobody knows", "> ")
		if len(d.taken) > 0 {
			t.Errorf("took back %v", d.taken)
		}
	})
}

func TestTakingBack(t *testing.T) {
	at(t, func(t *testing.T) {
		d := undoDesk(t)
		d.press("6")
		d.press("t", "n", "t", "enter", "t", "k", "t", "space", "s", "t")
		if len(d.taken) > 0 {
			t.Errorf("took back %v without a yes", d.taken)
		}
		d.press("t")
		d.sees("Take back exec rm -rf src", "taken back: src/a.go: created a file", "was not kept, and stays as it is: db", "y: take back")
		d.press("y")
		d.sees("Taken back: 1 change. It can be taken back itself: three")
		d.press("s")
		d.sees("Back to before session agent:coder:main?")
		d.press("y")
		d.press("down", "s")
		d.sees("belongs to no session")
		d.press("t")
		d.sees("All that has happened")
		d.press("y")
		if want := []string{"two", "agent:coder:main", "one"}; !slices.Equal(d.taken, want) {
			t.Errorf("took back %q, want %q", d.taken, want)
		}
	})
}

// What somebody has changed since goes only as a person says.
func TestTakingBackWhatHasChangedSince(t *testing.T) {
	at(t, func(t *testing.T) {
		for key, want := range map[string]string{"k": "two keep", "r": "two replace", "b": "two beside", "y": "", "n": "", "enter": ""} {
			d := undoDesk(t)
			d.would.Workspaces[0].Conflicts = []Change{{Path: "notes.txt", What: "changed"}}
			d.press("6", "t")
			d.sees("changed since by somebody else: notes.txt", "k keep it", "r replace it", "b put the old beside it")
			d.press(key)
			if got := strings.Join(d.taken, ","); got != want {
				t.Errorf("%s: took back %q, want %q", key, got, want)
			}
			d.seesNot("k keep it")
		}
		d := undoDesk(t)
		d.press("6", "t")
		d.fail = errors.New("conflicts")
		d.press("y")
		d.sees("Not taken back: somebody has changed files since")
		d.press("t")
		d.would.Stamp = "another"
		d.press("y")
		d.sees("something has changed since it was shown: look again")
	})
}

// A long list counts once its end was on the screen, and a list that changes below a question takes the question away.
func TestTakingBackWhatWasNotRead(t *testing.T) {
	at(t, func(t *testing.T) {
		d := undoDesk(t)
		for i := range 60 {
			d.would.Workspaces[0].Restored = append(d.would.Workspaces[0].Restored, Change{Path: fmt.Sprint("file", i), What: "changed"})
		}
		d.press("6", "t", "y")
		d.sees("Not all of it has been on the screen")
		d.press("pgdown", "y")
		if len(d.taken) > 0 {
			t.Errorf("took back %v unread", d.taken)
		}
		d.press("end")
		d.sees("was not kept, and stays as it is: db")
		d.press("y")
		if !slices.Equal(d.taken, []string{"two"}) {
			t.Errorf("took back %v", d.taken)
		}
		d.press("t")
		d.undo = d.undo[1:]
		time.Sleep(listRhythm)
		d.tell(tickMsg(time.Now()))
		d.seesNot("Take back exec")
		d.press("y")
		if len(d.taken) != 1 {
			t.Errorf("took back %v", d.taken)
		}
		// Nobody is asked about what is as it was.
		d.would.Workspaces[0] = TakenWorkspace{Workspace: "/home/ada/shop"}
		d.press("t")
		d.sees("Everything is as it was before already.", "Any key: back")
		d.press("y")
		if len(d.taken) != 1 {
			t.Errorf("took back %v", d.taken)
		}
	})
}
