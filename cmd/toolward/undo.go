package main

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/toolward/toolward/client/local"
	"github.com/toolward/toolward/display"
)

type undoCommand struct {
	Take undoTakeCommand `cmd:"" default:"withargs" help:"List the calls that can be taken back, or take one back. This is what \"undo\" alone does."`
	Show undoShowCommand `cmd:"" help:"Show what a call changed."`
}

type undoTakeCommand struct {
	Call       string   `arg:"" optional:"" help:"Call to take back; without one they are listed."`
	Paths      []string `arg:"" optional:"" name:"path" help:"Only these files and directories of the workspace."`
	Session    string   `help:"All that a session did, or with --list its calls only." placeholder:"KEY"`
	List       bool     `help:"Only list."`
	Limit      int      `help:"Calls to list." default:"20"`
	Keep       bool     `xor:"changed" help:"What somebody has changed since stays."`
	Replace    bool     `xor:"changed" help:"What somebody has changed since is replaced by what it was before."`
	Beside     bool     `xor:"changed" help:"What it was before is put beside what somebody has changed since."`
	Everything bool     `help:"Take back all that happened to the workspace since the call began, whoever did it: for a call that was cut off."`
	Preview    bool     `help:"Only say what would be done."`
}

// Run lists calls, or takes some back.
func (c *undoTakeCommand) Run(inv *invocation) error {
	switch {
	case c.List || c.Call == "" && c.Session == "":
		return c.list(inv)
	case c.Call != "" && c.Session != "":
		return &exitErr{exitUsage, errors.New("name either a call or a session"), "toolward undo lists the calls"}
	}
	request := local.UndoRequest{Call: c.Call, Session: c.Session, Paths: c.Paths, Everything: c.Everything, Preview: c.Preview}
	switch {
	case c.Keep:
		request.Changed = "keep"
	case c.Replace:
		request.Changed = "replace"
	case c.Beside:
		request.Changed = "beside"
	}
	answer, err := inv.daemon().TakeBack(inv, request)
	if err != nil {
		return err
	}
	if inv.json {
		err = inv.printJSON(answer)
	} else {
		inv.printUndone(answer)
	}
	if err == nil && !answer.Done && !c.Preview {
		return &exitErr{exitError, errors.New("nothing was taken back: somebody has changed files since"), "say what becomes of them: --keep, --replace or --beside"}
	}
	return err
}

func (c *undoTakeCommand) list(inv *invocation) error {
	calls, err := inv.daemon().UndoCalls(inv, c.Session, c.Limit)
	if err != nil {
		return err
	}
	if inv.json {
		return inv.printJSON(calls)
	}
	if len(calls) == 0 {
		fmt.Fprintln(inv.stdout, "There is no call that can be taken back.")
		return nil
	}
	return inv.table("CALL\tTIME\tAGENT\tWHAT\tCHANGED\tWORKSPACE", func(row func(...any)) {
		for _, one := range calls {
			row(one.ID, one.At.Local().Format(time.DateTime), one.Agent, one.Tool+" "+shortened(one.Text, 60), changedText(one), one.Workspace)
		}
	})
}

func shortened(text string, most int) string {
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most-1]) + "…"
	}
	return text
}

// changedText says in a few words what a call changed.
func changedText(c local.UndoCall) string {
	switch c.State {
	case "running":
		return "(it runs)"
	case "unknown":
		return "(it was cut off: nobody knows)"
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

func (inv *invocation) printUndone(a local.UndoAnswer) {
	verb := "would become"
	if a.Done {
		verb = "taken back"
	}
	for _, w := range a.Workspaces {
		fmt.Fprintf(inv.stdout, "%s\n", display.Line(w.Workspace))
		for _, c := range w.Restored {
			fmt.Fprintf(inv.stdout, "  %s  %s: %s\n", verb, display.Line(c.Path), display.Line(c.What))
		}
		for _, c := range w.Conflicts {
			fmt.Fprintf(inv.stdout, "  changed since, %s  %s\n", map[bool]string{true: "and left", false: "so nothing is done"}[a.Done], display.Line(c.Path))
		}
		for _, at := range w.Beside {
			fmt.Fprintf(inv.stdout, "  put beside  %s\n", display.Line(at))
		}
		for _, c := range w.Lost {
			fmt.Fprintf(inv.stdout, "  not kept, so it stays  %s: %s\n", display.Line(c.Path), display.Line(c.What))
		}
		switch {
		case w.ID != "":
			fmt.Fprintf(inv.stdout, "  to take that back: toolward undo %s\n", w.ID)
		case a.Done && len(w.Conflicts) == 0:
			fmt.Fprintln(inv.stdout, "  it is as it was already")
		}
	}
	for _, id := range a.Unknown {
		fmt.Fprintf(inv.stdout, "left out, because it runs or was cut off: %s\n", display.Line(id))
	}
}

type undoShowCommand struct {
	Call string `arg:"" help:"Call."`
}

// Run shows what a call changed: texts as a difference, all else by size.
func (c *undoShowCommand) Run(inv *invocation) error {
	call, err := inv.daemon().UndoCall(inv, c.Call)
	if err != nil {
		return err
	}
	if inv.json {
		return inv.printJSON(call)
	}
	fmt.Fprintf(inv.stdout, "%s  %s  %s %s\n", call.ID, call.At.Local().Format(time.DateTime), display.Line(call.Tool), display.Line(call.Text))
	fmt.Fprintf(inv.stdout, "in %s\n", display.Line(call.Workspace))
	if call.Session != "" {
		fmt.Fprintf(inv.stdout, "session %s\n", display.Line(call.Session))
	}
	if call.State != "done" {
		fmt.Fprintln(inv.stdout, changedText(call))
	}
	for _, change := range call.Changes {
		fmt.Fprintf(inv.stdout, "\n%s: %s\n", display.Line(change.Path), display.Line(change.What))
		if change.Diff != "" {
			fmt.Fprint(inv.stdout, change.Diff)
		} else if change.Before != change.After {
			fmt.Fprintf(inv.stdout, "%d bytes before, %d after\n", change.Before, change.After)
		}
	}
	if more := call.Total - len(call.Changes); more > 0 {
		fmt.Fprintf(inv.stdout, "\nand %d more\n", more)
	}
	return nil
}
