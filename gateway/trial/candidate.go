// Package trial says what a gateway would decide, without one: about cases, about calls of the past, and about commands. It
// makes no call and changes nothing.
package trial

import (
	"cmp"
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
	"github.com/toolward/toolward/job"
	"github.com/toolward/toolward/place"
	"github.com/toolward/toolward/policy"
	"github.com/toolward/toolward/redact"
	"github.com/toolward/toolward/sandbox/light"
)

// Candidate is a policy that is tried without a gateway, with the tools that a gateway would have.
type Candidate struct {
	home     string
	loaded   *config.Loaded
	tools    []*toolward.Tool
	around   policy.Surroundings
	snapshot *policy.Snapshot
	commands *rememberedCommands
	places   *gateway.Territory
	toolbox  *builtin.Toolbox
	close    func() error
}

// Close ends what a candidate has opened.
func (c *Candidate) Close() error { return c.close() }

// rememberedCommands judges commands as a gateway does, and remembers the last ruling so that people can see it.
type rememberedCommands struct {
	*command.Commands
	last *command.Ruling
}

// Judge judges and remembers.
func (j *rememberedCommands) Judge(caller toolward.Caller, params command.HostParams, r *command.Request) (*command.Ruling, error) {
	ruling, err := j.Commands.Judge(caller, params, r)
	j.last = ruling
	return ruling, err
}

// Open compiles a configuration file for the gateway of a home; "" is the file in the home. What is wrong with the file comes
// as config.Problems.
func Open(home, file string) (*Candidate, error) {
	return open(home, file, policy.Surroundings{Secrets: redact.New()})
}

// OpenPast is Open for calls of the past.
func OpenPast(home, file string) (*Candidate, error) {
	return open(home, file, policy.Surroundings{Recipients: policy.PastRecipients{}})
}

func open(home, file string, around policy.Surroundings) (*Candidate, error) {
	loaded, err := gateway.Load(home, cmp.Or(file, filepath.Join(home, config.FileName)))
	if err != nil {
		return nil, err
	}
	if loaded.Source == nil && file != "" {
		return nil, fmt.Errorf("%s does not exist", file)
	}
	return openLoaded(home, loaded, around)
}

func openLoaded(home string, loaded *config.Loaded, around policy.Surroundings) (_ *Candidate, err error) {
	around.ClientTools = bridge.ToolNames()
	c := &Candidate{home: home, around: around, loaded: loaded}
	if c.places, err = gateway.NewTerritory(home); err != nil {
		return nil, err
	}
	c.places.Protect(c.loaded.File.Plugins.Files())
	approvals := allowlist.Open(home, allowlist.Options{Ledger: gateway.Accepted(home)})
	c.commands = &rememberedCommands{Commands: command.NewCommands(approvals, c.places.Home, place.FoldsCase(home))}
	c.close = func() error { approvals.Close(); return nil }
	if _, err = c.commands.Configure(c.loaded.File.Commands()); err == nil {
		err = c.open()
	}
	if err != nil {
		return nil, errors.Join(err, c.close())
	}
	return c, nil
}

// open makes the tools and compiles the policy for them.
func (c *Candidate) open() (err error) {
	c.toolbox, err = builtin.New(c.loaded.File.Builtin(), builtin.Deps{
		Places: c.places.Of, Commands: c.commands, Light: c.confiner(), Kept: c.loaded.File.Undo.Keeps(),
		MayUse: func(caller toolward.Caller, tool string) bool {
			found, _ := c.snapshot.Find(caller, tool)
			return found != nil
		},
	})
	if err != nil {
		return err
	}
	closeCommands := c.close
	c.tools, c.close = c.toolbox.Tools(), func() error { return errors.Join(c.toolbox.Close(), closeCommands()) }
	c.snapshot, err = c.compile(c.loaded.File.Policy())
	return err
}

// confiner stands for light confinement. Cases and past calls are judged as on a machine that can confine, on whatever
// machine they are tried: "toolward doctor" says what this one can.
func (c *Candidate) confiner() builtin.Confiner {
	if !c.loaded.File.ConfinesLightly() {
		return nil
	}
	return confining{}
}

type confining struct{}

func (confining) Check() light.Check { return light.Check{Mode: light.Namespaces} }

func (confining) Confine(*job.Plan, *light.Scene) error { return errNothingRuns }

var errNothingRuns = errors.New("nothing runs in a trial")

// explain says what a gateway with this policy would make of a call in a session of that level.
func (c *Candidate) explain(ctx context.Context, level toolward.Level, call toolward.Call) (toolward.Trace, error) {
	gate, err := toolward.New(toolward.Config{
		Policy: policy.NewLive(c.snapshot), Sessions: levelOf(level), Approver: nobody{}, Auditor: nobody{},
	})
	if err != nil {
		return toolward.Trace{}, err
	}
	return gate.Explain(ctx, call, toolward.ExplainOptions{}), nil
}

// compile compiles a policy for the same tools.
func (c *Candidate) compile(p policy.Config) (*policy.Snapshot, error) {
	p.Around = c.around
	snapshot, _, err := policy.Compile(p, c.tools)
	return snapshot, err
}

// Name is the candidate's file for people.
func (c *Candidate) Name() string {
	if c.loaded.Source == nil {
		return "the defaults (there is no " + filepath.Base(c.loaded.Name) + ")"
	}
	return c.loaded.Name
}

// File is the candidate's configuration.
func (c *Candidate) File() *config.File { return &c.loaded.File }
