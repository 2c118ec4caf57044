package main

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/bridge"
	"github.com/toolward/toolward/builtin"
	"github.com/toolward/toolward/config"
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
	close    func() error
}

// pastCandidate is candidate for calls of the past.
func (inv *invocation) pastCandidate(file string) (*candidate, error) {
	return inv.candidateAround(file, policy.Surroundings{Recipients: policy.PastRecipients{}})
}

// candidate compiles a configuration file; "" is the one in the home.
func (inv *invocation) candidate(file string) (*candidate, error) {
	return inv.candidateAround(file, policy.Surroundings{Secrets: redact.New()})
}

func (inv *invocation) candidateAround(file string, around policy.Surroundings) (*candidate, error) {
	around.ClientTools = bridge.ToolNames()
	places, err := newPlaces(inv.home)
	if err != nil {
		return nil, err
	}
	c := &candidate{around: around}
	toolbox, err := builtin.New(builtin.Config{}, builtin.Deps{Places: places.of, MayUse: func(caller toolward.Caller, tool string) bool {
		found, _ := c.snapshot.Find(caller, tool)
		return found != nil
	}})
	if err != nil {
		return nil, err
	}
	c.tools, c.close = toolbox.Tools(), toolbox.Close
	if c.loaded, err = inv.load(file); err == nil && c.loaded.Source == nil && file != "" {
		err = fmt.Errorf("%s does not exist", file)
	}
	if err == nil {
		places.protect(c.loaded.File.Plugins.Files())
		c.snapshot, err = c.compile(c.loaded.File.Policy())
	}
	if err != nil {
		return nil, errors.Join(err, c.close())
	}
	return c, nil
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
