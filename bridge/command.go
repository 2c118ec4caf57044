package bridge

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/toolward/toolward"
)

// commandFacts finds out what a command would do that the client's own shell runs in dir. Only commands of POSIX shells
// are given to it: in another shell's language the same text means something else.
type commandFacts func(ctx context.Context, r *toolward.Request, command, dir string) (toolward.Facts, error)

// command is what the text says that the client's shell is given. It runs where the client's event says: the client was
// seen to run a command in the directory that it names to the hook, also when a command beside it changes that
// directory meanwhile (internal/live, TestClaudeCodeCommands).
func (l *factsFinder) command(ctx context.Context, r *toolward.Request, f *form) (toolward.Facts, error) {
	text := f.commandIn(r.Params)
	if text == "" || !f.native.posix || l.commands == nil {
		return toolward.Facts{}, nil
	}
	facts, err := l.commands(ctx, r, text, r.Call.WorkDir)
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
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(input, &fields); err != nil {
		return nil, fmt.Errorf("put the judged command into the call: %w", err)
	}
	for _, a := range f.args {
		if a.kind == "command" {
			text, err := json.Marshal(analysis.Enforced)
			if err != nil {
				return nil, fmt.Errorf("put the judged command into the call: %w", err)
			}
			fields[a.native] = text
		}
	}
	return json.Marshal(fields)
}

// ran reports whether the arguments that the client says it ran are those that it was allowed to run.
func (c *call) ran(input json.RawMessage) bool {
	if c.updated == nil {
		return c.pass.Matches(input)
	}
	var allowed, reported any
	return decodeExactly(c.updated, &allowed) == nil && decodeExactly(input, &reported) == nil && equalJSON(allowed, reported)
}

// decodeExactly keeps numbers as they are written.
func decodeExactly(raw json.RawMessage, v any) error {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	return decoder.Decode(v)
}

func equalJSON(a, b any) bool {
	x, err := json.Marshal(a)
	y, err2 := json.Marshal(b)
	return err == nil && err2 == nil && bytes.Equal(x, y)
}

// sources names what a command may have brought from strangers whose decision is not known any more: the gateway was
// started anew while it ran. In doubt it has.
func (s *claudeSession) sources(ctx context.Context) []string {
	row := s.row()
	if row == nil || !row.native.posix || s.finder.commands == nil {
		return nil
	}
	unknown := []string{s.event.Tool}
	if !row.knows(s.event.Input) {
		return unknown
	}
	params, err := row.decode(s.event.Input)
	if err != nil {
		return unknown
	}
	call, _, err := s.call()
	if err != nil {
		return unknown
	}
	facts, err := s.finder.command(ctx, &toolward.Request{Call: call, Tool: call.Form, Params: params}, row)
	if err != nil {
		return unknown
	}
	return facts.External
}
