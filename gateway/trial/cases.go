package trial

import (
	"context"
	"os"
	"path/filepath"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/config"
)

// Tested is a case, and what the candidate makes of it.
type Tested struct {
	Name   string         `json:"name"`
	Line   int            `json:"line"`
	Passed bool           `json:"passed"`
	Want   string         `json:"want"`
	Got    string         `json:"got"`
	Trace  toolward.Trace `json:"trace"`
}

// Try explains the call of a case, whose workspace is relative to dir.
func (c *Candidate) Try(ctx context.Context, k *config.Case, dir string) (Tested, error) {
	workspace, done, err := workspaceOf(k, dir)
	if err != nil {
		return Tested{}, err
	}
	defer done()
	trace, err := c.explain(ctx, k.At, toolward.Call{
		Tool: k.Tool, Arguments: k.Args, Session: toolward.SessionKey(k.Session), Surface: toolward.Surface(k.Surface),
		WorkDir: workspace, Host: toolward.HostGateway,
		Caller: toolward.Caller{
			Agent: k.Agent, Owner: k.Owner, Depth: k.Depth, Context: "main", Workspace: workspace,
			Channel: k.Channel, Sender: k.Sender, Provider: k.Provider, Model: k.Model,
		},
	})
	if err != nil {
		return Tested{}, err
	}
	result := Tested{
		Name: k.Name, Line: k.Line, Trace: trace,
		Want: outcomeWords(k.Expect, k.Code, k.Row), Got: outcomeWords(trace.Verdict.String(), string(trace.Code), trace.Row),
	}
	result.Passed = trace.Verdict == k.Verdict && (k.Code == "" || string(trace.Code) == k.Code) && (k.Row == "" || trace.Row == k.Row)
	return result, nil
}

// workspaceOf is the directory of a case: its own, or an empty one that done removes.
func workspaceOf(k *config.Case, dir string) (workspace string, done func(), err error) {
	if k.Workspace == "" {
		empty, err := os.MkdirTemp("", "toolward-case-")
		if err != nil {
			return "", nil, err
		}
		workspace, err = filepath.EvalSymlinks(empty)
		return workspace, func() { _ = os.RemoveAll(empty) }, err
	}
	if !filepath.IsAbs(k.Workspace) {
		k.Workspace = filepath.Join(dir, k.Workspace)
	}
	if workspace, err = filepath.Abs(k.Workspace); err != nil {
		return "", nil, err
	}
	workspace, err = filepath.EvalSymlinks(workspace)
	return workspace, func() {}, err
}

func outcomeWords(verdict, code, row string) string {
	text := verdict
	if code != "" {
		text += " " + code
	}
	if row != "" {
		text += " (" + row + ")"
	}
	return text
}
