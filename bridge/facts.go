package bridge

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/toolward/toolward"
)

// facts gives the facts function of a form for this workspace.
func (l *factsFinder) facts(f *form) func(context.Context, *toolward.Request) (toolward.Facts, error) {
	return func(ctx context.Context, r *toolward.Request) (toolward.Facts, error) {
		facts, err := l.command(ctx, r, f)
		if err != nil {
			return toolward.Facts{}, err
		}
		facts.Action = toolward.NormalAction(f.native.action)
		if facts.Analysis == nil { // of a command somebody knows better
			facts.Mutates = f.native.mutates
		}
		for _, a := range f.args {
			if err := l.look(&facts, r, f, a); err != nil {
				return toolward.Facts{}, err
			}
		}
		if f.native.look != nil {
			f.native.look(l, r, &facts)
		}
		return facts, nil
	}
}

// look adds what one argument says.
func (l *factsFinder) look(facts *toolward.Facts, r *toolward.Request, f *form, a argument) error {
	text, given := r.Params.String(a.name)
	switch a.kind {
	case "dir":
		if !given {
			text, given = r.Call.WorkDir, true
		}
		fallthrough
	case "path":
		if !given {
			return nil
		}
		target, err := l.target(r.Call.WorkDir, text, f.native.op)
		if err != nil {
			return err
		}
		facts.Targets = append(facts.Targets, target)
	case "command":
		facts.Command = text
	case "url":
		if given {
			facts.Outbound = append(facts.Outbound, text)
			addAddress(facts, text)
		}
	case "query":
		if given {
			facts.Outbound = append(facts.Outbound, text)
		}
	case "target":
		facts.TargetID = text
	}
	return nil
}

// command is what the text says that the client's shell is given. It runs where the client's event says: the client was
// seen to run a command in the directory that it names to the hook, also when a command beside it changes that
// directory meanwhile (internal/live, TestClaudeCodeCommands).
func (l *factsFinder) command(ctx context.Context, r *toolward.Request, f *form) (toolward.Facts, error) {
	text := f.commandIn(r.Params)
	if text == "" || !f.native.posix || l.commands == nil {
		return toolward.Facts{}, nil
	}
	facts, err := l.commands(ctx, r, text, f.native.machine != nil && f.native.machine(r.Params))
	if err != nil {
		return toolward.Facts{}, err
	}
	if a := facts.Analysis; a != nil && !l.enforces && a.Enforced != "" {
		asWritten := *a
		asWritten.Enforced = "" // records must not name a text that did not run
		facts.Analysis = &asWritten
	}
	return facts, nil
}

// commandIn is the shell text among the parameters of a form; "" if it has none.
func (f *form) commandIn(params toolward.Params) string {
	i := slices.IndexFunc(f.args, func(a argument) bool { return a.kind == "command" })
	if i < 0 {
		return ""
	}
	return params.Text(f.args[i].name)
}

// enforced is the client's call with the text in its command's place that was judged: every program by its path, every
// word as it was expanded. nil if the call runs as it is. A command that a person was asked about runs as they saw it.
func (f *form) enforced(pass *toolward.Pass, input json.RawMessage) (json.RawMessage, error) {
	analysis := pass.Request().Facts.Analysis
	if analysis == nil || analysis.Enforced == "" || !pass.Listed() {
		return nil, nil
	}
	return f.withCommand(input, analysis.Enforced)
}

// withCommand is the client's call with another text in its command's place.
func (f *form) withCommand(input json.RawMessage, command string) (json.RawMessage, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(input, &fields); err != nil {
		return nil, fmt.Errorf("put the judged command into the call: %w", err)
	}
	text, err := json.Marshal(command)
	if err != nil {
		return nil, fmt.Errorf("put the judged command into the call: %w", err)
	}
	for _, a := range f.args {
		if a.kind == "command" {
			fields[a.native] = text
		}
	}
	return json.Marshal(fields)
}
