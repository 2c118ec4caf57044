package trial

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/command"
	"github.com/toolward/toolward/gateway"
	"github.com/toolward/toolward/modes"
)

// Asked is a command about which somebody wants to know.
type Asked struct {
	Command, Agent, Preset string
	Workspace, Workdir     string // Workdir "" is the workspace
}

// Command says what a gateway would make of a command. An error with ErrCorrupt is about exec-approvals.json.
func (c *Candidate) Command(ctx context.Context, a Asked) (*Command, error) {
	return c.commandAt(ctx, toolward.Normal, a)
}

// commandAt is Command in a session of that level.
func (c *Candidate) commandAt(ctx context.Context, level toolward.Level, a Asked) (*Command, error) {
	c.commands.last = nil
	if a.Preset != "" {
		commands := c.loaded.File.Commands()
		section := commands.Agents[strings.ToLower(a.Agent)]
		section.Preset = command.Preset(a.Preset)
		commands.Agents[strings.ToLower(a.Agent)] = section
		if _, err := c.commands.Configure(commands); err != nil {
			return nil, err
		}
	}
	call, err := c.exec(a)
	if err != nil {
		return nil, err
	}
	trace, err := c.explain(ctx, level, call)
	if err != nil {
		return nil, err
	}
	explained := &Command{Verdict: trace.Verdict, Code: trace.Code, Reasons: trace.Reasons}
	if ruling := c.commands.last; ruling != nil {
		if ruling.Corrupt != nil {
			return nil, corrupt{ruling.Corrupt}
		}
		explained.Judged = &Judged{ruling.Assessment, trace.Verdict == toolward.Ask, outcomes[trace.Verdict]}
		// What would happen without any setting of the policy is explained by the command itself.
		if modes.Judge(modes.Default(), toolward.HostGateway, toolward.Normal, ruling.Analysis()) == trace.Verdict {
			explained.Reasons = nil
		}
	}
	return explained, nil
}

// ErrCorrupt says that the allowlist cannot be read.
var ErrCorrupt = errors.New("exec-approvals.json is corrupt")

type corrupt struct{ error }

func (corrupt) Is(target error) bool { return target == ErrCorrupt }

// exec is the call that would run a command.
func (c *Candidate) exec(a Asked) (toolward.Call, error) {
	places, err := gateway.NewTerritory(c.home)
	if err != nil {
		return toolward.Call{}, err
	}
	workspace, err := places.CheckWorkspace(a.Workspace)
	if err != nil {
		return toolward.Call{}, err
	}
	arguments := map[string]string{"command": a.Command}
	if a.Workdir != "" {
		if arguments["workdir"], err = filepath.Abs(a.Workdir); err != nil {
			return toolward.Call{}, err
		}
	}
	encoded, err := json.Marshal(arguments)
	return toolward.Call{
		Tool: "exec", Arguments: encoded, Session: toolward.SessionKey("agent:" + a.Agent + ":explain"), Surface: toolward.SurfaceMCP,
		WorkDir: workspace, Host: toolward.HostGateway,
		Caller: toolward.Caller{Agent: a.Agent, Context: "main", Workspace: workspace},
	}, err
}

// Command is what analysis knows of a command, and what a gateway would make of it.
type Command struct {
	*Judged                   // nil if the call is refused before anybody looks at the command
	Verdict toolward.Verdict  `json:"verdict"`
	Code    toolward.Code     `json:"code,omitempty"`
	Reasons []toolward.Reason `json:"reasons,omitempty"` // where the command alone does not explain the verdict
}

// Judged is what is known of a command, with the verdict in the words of scripts that read it.
type Judged struct {
	*command.Assessment
	Requires bool   `json:"requiresApproval"`
	Outcome  string `json:"outcome"`
}

// outcomes are verdicts in the words of scripts that read them.
var outcomes = map[toolward.Verdict]string{toolward.Allow: "run", toolward.Ask: "ask", toolward.Deny: "deny"}
