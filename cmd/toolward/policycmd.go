package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/bridge"
	"github.com/toolward/toolward/builtin"
	"github.com/toolward/toolward/command"
	"github.com/toolward/toolward/command/allowlist"
	"github.com/toolward/toolward/config"
	"github.com/toolward/toolward/gateway"
	"github.com/toolward/toolward/place"
	"github.com/toolward/toolward/policy"
	"github.com/toolward/toolward/redact"
)

type policyCommand struct {
	Test    policyTestCommand    `cmd:"" help:"Check a policy against a file of cases."`
	Replay  policyReplayCommand  `cmd:"" help:"Judge recorded calls again, by another policy, and show what differs."`
	Suggest policySuggestCommand `cmd:"" help:"Suggest rules for what people allowed again and again. Applies nothing."`
}

// candidate is a policy that is tried without a gateway, with the tools that a gateway would have.
type candidate struct {
	loaded   *config.Loaded
	tools    []*toolward.Tool
	around   policy.Surroundings
	snapshot *policy.Snapshot
	commands *judgedCommands
	close    func() error
}

// judgedCommands judges commands as a gateway does, and remembers the last ruling so that people can see it.
type judgedCommands struct {
	*command.Commands
	last *command.Ruling
}

// Judge judges and remembers.
func (j *judgedCommands) Judge(caller toolward.Caller, params command.HostParams, r *command.Request) (*command.Ruling, error) {
	ruling, err := j.Commands.Judge(caller, params, r)
	j.last = ruling
	return ruling, err
}

// pastCandidate is candidate for calls of the past.
func (inv *invocation) pastCandidate(file string) (*candidate, error) {
	return inv.candidateAround(file, policy.Surroundings{Recipients: policy.PastRecipients{}})
}

// candidate compiles a configuration file; "" is the one in the home.
func (inv *invocation) candidate(file string) (*candidate, error) {
	return inv.candidateAround(file, policy.Surroundings{Secrets: redact.New()})
}

func (inv *invocation) candidateAround(file string, around policy.Surroundings) (_ *candidate, err error) {
	around.ClientTools = bridge.ToolNames()
	c := &candidate{around: around}
	if c.loaded, err = inv.load(file); err != nil {
		return nil, err
	}
	if c.loaded.Source == nil && file != "" {
		return nil, fmt.Errorf("%s does not exist", file)
	}
	places, err := gateway.NewTerritory(inv.home)
	if err != nil {
		return nil, err
	}
	places.Protect(c.loaded.File.Plugins.Files())
	approvals := allowlist.Open(inv.home, allowlist.Options{})
	c.commands = &judgedCommands{Commands: command.NewCommands(approvals, places.Home, place.FoldsCase(inv.home))}
	c.close = func() error { approvals.Close(); return nil }
	if _, err = c.commands.Configure(c.loaded.File.Commands()); err == nil {
		err = c.open(places)
	}
	if err != nil {
		return nil, errors.Join(err, c.close())
	}
	return c, nil
}

// open makes the tools and compiles the policy for them.
func (c *candidate) open(places *gateway.Territory) error {
	toolbox, err := builtin.New(c.loaded.File.Builtin(), builtin.Deps{
		Places: places.Of, Commands: c.commands,
		MayUse: func(caller toolward.Caller, tool string) bool {
			found, _ := c.snapshot.Find(caller, tool)
			return found != nil
		},
	})
	if err != nil {
		return err
	}
	closeCommands := c.close
	c.tools, c.close = toolbox.Tools(), func() error { return errors.Join(toolbox.Close(), closeCommands()) }
	c.snapshot, err = c.compile(c.loaded.File.Policy())
	return err
}

// explain says what a gateway with this policy would make of a call in a session of that level.
func (c *candidate) explain(ctx context.Context, level toolward.Level, call toolward.Call) (toolward.Trace, error) {
	gateway, err := toolward.New(toolward.Config{
		Policy: policy.NewLive(c.snapshot), Sessions: levelOf(level), Approver: nobody{}, Auditor: nobody{},
	})
	if err != nil {
		return toolward.Trace{}, err
	}
	return gateway.Explain(ctx, call, toolward.ExplainOptions{}), nil
}

// compile compiles a policy for the same tools.
func (c *candidate) compile(p policy.Config) (*policy.Snapshot, error) {
	p.Around = c.around
	snapshot, _, err := policy.Compile(p, c.tools)
	return snapshot, err
}

// name is the candidate's file for people.
func (c *candidate) name() string {
	if c.loaded.Source == nil {
		return "the defaults (there is no " + filepath.Base(c.loaded.Name) + ")"
	}
	return c.loaded.Name
}
