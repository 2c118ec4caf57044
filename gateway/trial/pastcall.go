package trial

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/bridge"
	"github.com/toolward/toolward/builtin"
	"github.com/toolward/toolward/command"
	"github.com/toolward/toolward/config"
	"github.com/toolward/toolward/gateway"
	"github.com/toolward/toolward/place"
	"github.com/toolward/toolward/policy"
	"github.com/toolward/toolward/sandbox/fleet"
	"github.com/toolward/toolward/sandbox/settings"
	"github.com/toolward/toolward/shell"
	"github.com/toolward/toolward/transcript"
)

// Where says where a call of a client runs.
type Where string

// The places.
const (
	Inside Where = "inside" // a sandbox
	OnHost Where = "host"   // the machine itself
)

// noDirectory is the directory of calls of which nobody knows where they were made. It is no file's.
const noDirectory = "/toolward/directory-not-known"

// judge says what a candidate would have said of calls that clients made.
type judge struct {
	*Candidate
	gate     *toolward.Gateway
	past     *bridge.Past
	confined *settings.Settings
	started  bool // a gateway has found out what this machine can confine
}

// sandboxing says whether the settings put commands of an agent's sessions into sandboxes, for people.
func (j *judge) sandboxing(agent, session string) (words string, on bool) {
	agent = settings.AgentID(agent)
	switch on, _ = j.confined.Sandboxed(agent, session); {
	case on:
		return "on", true
	case !j.started && j.confined.For(agent).Sources["mode"].Level == settings.FromDefault:
		return "found out at the first start", false
	}
	return "off", false
}

// newJudge judges in sessions of the level that the candidate begins them with.
func newJudge(c *Candidate) (*judge, error) {
	var level toolward.Level
	if err := level.UnmarshalText([]byte(c.loaded.File.TEG.DefaultLevel)); err != nil {
		return nil, err
	}
	j := &judge{Candidate: c}
	layout, err := c.places.Layout()
	if err != nil {
		return nil, err
	}
	j.past, err = bridge.NewPast(bridge.Config{
		Layout: layout, Places: c.places.Of, Command: c.toolbox.PastCommand, EnforceText: c.loaded.File.Bridge.Enforces(),
		Confines: func(caller toolward.Caller) bool {
			_, on := j.sandboxing(caller.Agent, string(caller.Session))
			return on
		},
	})
	if err != nil {
		return nil, err
	}
	machine, started, err := fleet.ReadMachine(c.home)
	if err != nil {
		return nil, err
	}
	compiled, problems := settings.Compile(c.loaded.File.Sandbox(), machine.Surroundings(c.home))
	if len(problems) > 0 {
		return nil, WrongSettings{fmt.Errorf("%s: %s", problems[0].Key, problems[0].Text)}
	}
	j.confined, j.started = compiled, started
	j.gate, err = toolward.New(toolward.Config{
		Policy: policy.NewLive(c.snapshot), Sessions: levelOf(level), Approver: nobody{}, Auditor: nobody{},
	})
	return j, err
}

// with is the same judge with another configuration.
func (j *judge) with(edit func([]byte, *config.File) ([]byte, error)) (*judge, error) {
	source, err := edit(j.loaded.Source, &j.loaded.File)
	if err != nil {
		return nil, err
	}
	loaded, err := gateway.Parse(j.home, j.loaded.Name, source)
	if err != nil {
		return nil, err
	}
	c, err := openLoaded(j.home, loaded, j.around)
	if err != nil {
		return nil, err
	}
	other, err := newJudge(c)
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return other, nil
}

// judged is what would have been said of a call.
type judged struct {
	call       *transcript.Call
	form       string // tool in Toolward's words
	known      bool   // the client's table says what the call means
	command    bool
	facts      toolward.Facts
	assessment *command.Assessment // of a command; nil if nobody looked at it

	host, inside toolward.Trace // inside is that of host for what is no command
	elsewhere    bool           // the command runs in a directory that a sandbox of the workspace does not show
	sandboxed    bool           // the settings put the session's commands into a sandbox
	sandboxing   string         // the same for people
}

// call judges one call. An error says why no gateway would have been asked about it in these words.
func (j *judge) call(ctx context.Context, past *transcript.Call) (*judged, error) {
	workDir := cmp.Or(past.WorkDir, past.Project, noDirectory)
	call, known, err := j.past.Call(&bridge.PastCall{
		Client: past.Client, Session: past.Session, Agent: past.Agent, Project: cmp.Or(past.Project, workDir), WorkDir: workDir,
		ID: past.ID, Tool: past.Tool, Arguments: past.Arguments,
	})
	if err != nil {
		return nil, err
	}
	out := &judged{call: past, form: call.Form.Name, known: known}
	// The facts of a call are found once and judged twice: as they are, and as if it ran in a sandbox.
	form, confined, found := *call.Form, false, (*foundFacts)(nil)
	form.Facts = func(ctx context.Context, r *toolward.Request) (toolward.Facts, error) {
		if found == nil {
			found = &foundFacts{}
			found.facts, found.err = call.Form.Facts(ctx, r)
			out.facts, out.assessment = found.facts, builtin.Assessment(&toolward.Request{Facts: found.facts})
		}
		if confined {
			return found.confined(), found.err
		}
		return found.facts, found.err
	}
	asked := call
	asked.Form = &form
	out.host = j.gate.Explain(ctx, asked, toolward.ExplainOptions{})
	out.inside, out.command = out.host, out.facts.Command != "" && out.form == "exec"
	if out.command {
		confined = true
		out.inside = j.gate.Explain(ctx, asked, toolward.ExplainOptions{})
		out.elsewhere = !place.Within(call.WorkDir, call.Caller.Workspace) && !place.Within(call.WorkDir, past.Project)
		out.sandboxing, out.sandboxed = j.sandboxing(call.Caller.Agent, string(call.Session))
	}
	return out, nil
}

// foundFacts are the facts of a call, or why there are none.
type foundFacts struct {
	facts toolward.Facts
	err   error
}

// confined are the facts of the same command in a sandbox. What exec-approvals.json says is about this machine.
func (f *foundFacts) confined() toolward.Facts {
	facts := f.facts
	facts.Host = toolward.HostSandbox
	if facts.Analysis != nil {
		analysis := *facts.Analysis
		analysis.Security, analysis.Ask = "", ""
		facts.Analysis = &analysis
	}
	return facts
}

// where says where the call would have run, or asked to run, and what would have been said of it there. It is the one place
// that knows, from what the gateway itself goes by: the settings of sandboxes, and why a command needs the machine.
func (o *judged) where(sandboxed bool) (Where, *toolward.Trace) {
	switch {
	case !o.command || !sandboxed || o.facts.HostWhy != "" || o.elsewhere:
		return OnHost, &o.host
	case o.host.Verdict == toolward.Ask && o.inside.Verdict == toolward.Allow && reachesOut(o.assessment):
		return Inside, &o.host // the sandbox asks about the host in the place of the command
	}
	return Inside, &o.inside
}

// reachesOut reports whether a command talks to a host.
func reachesOut(a *command.Assessment) (yes bool) {
	if a != nil {
		a.Each(func(s *command.Segment) {
			yes = yes || slices.ContainsFunc(s.Effects, func(e command.Judged) bool { return e.Kind == shell.Network })
		})
	}
	return yes
}

// programIn is the name of the program of a simple command.
func programIn(s *command.Segment) string {
	if s.Program.Word == "" && len(s.Argv) > 0 {
		return shell.ProgramName(s.Argv[0])
	}
	return shell.ProgramName(s.Program.Word)
}
