package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/display"
	"github.com/toolward/toolward/execpolicy"
	"github.com/toolward/toolward/shell"
)

type shellCommand struct {
	Explain  shellExplainCommand  `cmd:"" help:"Say what a command would start and do, and what an allowlist makes of it. Runs nothing."`
	Profiles shellProfilesCommand `cmd:"" help:"Show what is known of programs and their arguments."`
}

type shellExplainCommand struct {
	Command   string `arg:"" help:"The command, as one word; - reads it from standard input."`
	Agent     string `help:"The agent whose entries of exec-approvals.json count." default:"main"`
	Preset    string `help:"What runs besides the entries: strict or developer." default:"developer" enum:"strict,developer"`
	Workspace string `help:"The agent's own directory; default the present one." type:"existingdir" default:"."`
	Workdir   string `help:"Where the command starts; default the workspace." type:"existingdir"`
}

// Run explains a command without the gateway, by the files of this machine.
func (c *shellExplainCommand) Run(inv *invocation) error {
	text := c.Command
	if text == "-" {
		var err error
		if text, err = readArgument("@-", inv.stdin); err != nil {
			return err
		}
	}
	evaluator, request, err := c.evaluator(inv)
	if err != nil {
		return err
	}
	request.Command = text
	assessment := evaluator.Evaluate(request)
	if inv.json {
		return inv.printJSON(assessment)
	}
	inv.explain(assessment)
	return nil
}

// evaluator judges for the agent as the host's own file says.
func (c *shellExplainCommand) evaluator(inv *invocation) (*execpolicy.Evaluator, *execpolicy.Request, error) {
	places, err := newPlaces(inv.home)
	if err != nil {
		return nil, nil, err
	}
	workspace, err := places.checkWorkspace(c.Workspace)
	if err != nil {
		return nil, nil, err
	}
	classifier, err := places.of(toolward.Caller{Agent: c.Agent, Workspace: workspace})
	if err != nil {
		return nil, nil, err
	}
	approvals := execpolicy.OpenApprovals(inv.home, execpolicy.Options{})
	defer approvals.Close()
	file := approvals.Current()
	if file.Corrupt != nil {
		return nil, nil, &exitErr{exitUnsound, file.Corrupt, "until it is mended every command is refused"}
	}
	preset, err := execpolicy.ParsePreset(c.Preset)
	if err != nil {
		return nil, nil, err
	}
	evaluator, warnings, err := execpolicy.New(execpolicy.Policy{
		Modes: file.Modes(execpolicy.Settings{}, c.Agent), Preset: preset, Entries: file.Allowlist(c.Agent),
	}, places.home, execpolicy.NewResolver(execpolicy.Disk{}))
	if err != nil {
		return nil, nil, err
	}
	for _, w := range warnings {
		fmt.Fprintln(inv.stderr, "toolward: warning:", w)
	}
	dir := workspace
	if c.Workdir != "" {
		if dir, err = filepath.Abs(c.Workdir); err != nil {
			return nil, nil, err
		}
	}
	env := execpolicy.NewEnvironment(nil).Inherited(os.Environ(), nil)
	return evaluator, &execpolicy.Request{
		Dir: dir, Level: toolward.Normal, Places: classifier,
		Getenv: func(name string) (string, bool) { value, set := env[name]; return value, set },
	}, nil
}

var commandOutcomes = map[execpolicy.Outcome]string{
	execpolicy.Run: "It runs without a question.", execpolicy.Person: "A person is asked.", execpolicy.Refuse: "It is refused.",
}

// explain prints an assessment as people are shown it when they are asked.
func (inv *invocation) explain(a *execpolicy.Assessment) {
	fmt.Fprintln(inv.stdout, display.Block(a.Command))
	inv.printOutline("", a.Outline())
	fmt.Fprintln(inv.stdout, commandOutcomes[a.Outcome])
}

// printOutline prints what a call would do.
func (inv *invocation) printOutline(indent string, o *display.Outline) {
	for _, row := range o.Rows(terminalWidth - len(indent)) {
		fmt.Fprintln(inv.stdout, indent+row.Text)
	}
}

// terminalWidth is how many columns one-shot commands print at most where they fold lines.
const terminalWidth = 100

type shellProfilesCommand struct {
	Program string `arg:"" optional:"" help:"Show one program in full."`
}

// programProfile is a profile as it is printed in JSON.
type programProfile struct {
	Names    []string `json:"names"`
	Style    string   `json:"style"`
	Commands int      `json:"commands"` // subcommands
	Options  int      `json:"options"`
	File     string   `json:"file"`
}

// Run lists profiles, or shows the text of one.
func (c *shellProfilesCommand) Run(inv *invocation) error {
	if c.Program != "" {
		return c.one(inv)
	}
	var list []programProfile
	for _, p := range shell.Profiles() {
		row := programProfile{Names: p.Names, Style: string(p.Style), File: p.File}
		for name, section := range p.Sections {
			if name == section.Command && name != "" {
				row.Commands++
			}
			if name == section.Command {
				row.Options += len(section.Options)
			}
		}
		list = append(list, row)
	}
	if inv.json {
		return inv.printJSON(map[string]any{"profiles": list})
	}
	return inv.table("PROGRAM\tSUBCOMMANDS\tOPTIONS\tOTHER NAMES", func(row func(...any)) {
		for _, p := range list {
			row(p.Names[0], p.Commands, p.Options, strings.Join(p.Names[1:], " "))
		}
	})
}

func (c *shellProfilesCommand) one(inv *invocation) error {
	p := shell.ProfileOf(c.Program)
	if p == nil {
		return &exitErr{exitError, errors.New("there is no profile of " + display.Line(c.Program)), "its commands are judged by their path alone, and ask when the session is tense"}
	}
	if inv.json {
		return inv.printJSON(map[string]any{"names": p.Names, "file": p.File, "source": p.Source})
	}
	fmt.Fprint(inv.stdout, p.Source)
	return nil
}
