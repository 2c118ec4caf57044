package main

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/toolward/toolward/client/local"
	"github.com/toolward/toolward/display"
	"github.com/toolward/toolward/gateway"
)

type sandboxCommand struct {
	List     sandboxListCommand     `cmd:"" help:"List the sandboxes."`
	Ports    sandboxPortsCommand    `cmd:"" help:"List the ports on which programs in sandboxes listen."`
	Forward  sandboxForwardCommand  `cmd:"" help:"Open a port of a sandbox on this machine's loopback address."`
	Explain  sandboxExplainCommand  `cmd:"" help:"Say whether a session is sandboxed, why, and by which settings."`
	Recreate sandboxRecreateCommand `cmd:"" help:"Remove sandboxes; the next call makes them anew."`
	Prune    sandboxPruneCommand    `cmd:"" help:"End the sandboxes that are old or unused, now."`
	Probe    sandboxProbeCommand    `cmd:"" help:"Try what this machine can enforce."`
	Image    sandboxImageCommand    `cmd:"" help:"Make images for the docker engine."`
}

type sandboxListCommand struct {
	Browser bool `help:"Only those of browsers."`
}

// Run lists sandboxes.
func (c *sandboxListCommand) Run(inv *invocation) error {
	list, err := inv.daemon().Sandboxes(inv)
	if err != nil {
		return err
	}
	if inv.json {
		return inv.printJSON(list)
	}
	shown := list.Containers
	if c.Browser {
		shown = list.Browsers
	}
	if list.Warning != "" {
		fmt.Fprintln(inv.stderr, "warning:", display.Line(list.Warning))
	}
	if err := inv.printSandboxes(shown); err != nil {
		return err
	}
	running, other := 0, 0
	for _, i := range shown {
		if i.Running {
			running++
		}
		if !i.ImageMatch {
			other++
		}
	}
	fmt.Fprintf(inv.stdout, "\n%d sandboxes, %d running, %d of another image than the configured one\n", len(shown), running, other)
	if other > 0 {
		fmt.Fprintln(inv.stdout, "make them anew with: toolward sandbox recreate --all")
	}
	return nil
}

func (inv *invocation) printSandboxes(list []local.Sandbox) error {
	return inv.table("NAME\tENGINE\tSTATE\tIMAGE\tAGE\tIDLE\tIN USE\tCPU\tMEMORY\tPORTS\tOF", func(row func(...any)) {
		for _, i := range list {
			state, image := "stopped", i.Image
			switch {
			case i.Silent:
				state = "no answer"
			case i.Missing:
				state = "gone"
			case i.Running:
				state = "running"
			}
			if !i.ImageMatch {
				image += " (not the configured one)"
			}
			words := i.Words()
			row(i.Name, i.Engine, state, image, since(i.Created), since(i.Used), i.Users, words.CPU, words.Memory, portNumbers(i.Ports), i.ScopeKey)
		}
	})
}

// since is how long ago something was, for people.
func since(t time.Time) string { return max(0, time.Since(t)).Round(time.Second).String() }

type sandboxRecreateCommand struct {
	All     bool   `help:"All of them."`
	Session string `help:"That of a session or another scope key." placeholder:"KEY"`
	Agent   string `help:"Those of an agent." placeholder:"ID"`
	Browser bool   `help:"Only those of browsers."`
	Force   bool   `help:"Do not ask."`
}

// Run removes sandboxes after showing which.
func (c *sandboxRecreateCommand) Run(inv *invocation) error {
	chosen := 0
	for _, given := range []bool{c.All, c.Session != "", c.Agent != ""} {
		if given {
			chosen++
		}
	}
	if chosen != 1 {
		return &exitErr{exitError, errors.New("name exactly one of --all, --session and --agent"), "toolward sandbox list shows them"}
	}
	list, err := inv.daemon().Sandboxes(inv)
	if err != nil {
		return err
	}
	meant := list.Choose(c.Browser, c.All, c.Agent, c.Session)
	if len(meant) == 0 {
		return inv.done("none", "There is none.")
	}
	if !inv.json {
		if err := inv.printSandboxes(meant); err != nil {
			return err
		}
	}
	if !c.Force && !confirm(inv.stdin, inv.stderr, "Remove them? What runs inside ends.") {
		return &exitErr{code: exitError, err: errors.New("nothing was removed")}
	}
	return c.remove(inv, meant)
}

func (c *sandboxRecreateCommand) remove(inv *invocation, meant []local.Sandbox) error {
	failed := 0
	for _, i := range meant {
		if err := inv.daemon().RemoveSandbox(inv, i.Name); err != nil {
			failed++
			fmt.Fprintf(inv.stderr, "%s: %s\n", i.Name, display.Line(err.Error()))
		}
	}
	if failed > 0 {
		return &exitErr{exitError, fmt.Errorf("%d of %d could not be removed", failed, len(meant)), "toolward sandbox list"}
	}
	return inv.done("removed", fmt.Sprintf("Removed %d. The next call makes them anew.", len(meant)))
}

type sandboxPruneCommand struct{}

// Run prunes now.
func (sandboxPruneCommand) Run(inv *invocation) error {
	pruned, err := inv.daemon().PruneSandboxes(inv)
	if err != nil {
		return err
	}
	if inv.json {
		return inv.printJSON(pruned)
	}
	for word, names := range map[string][]string{"stopped": pruned.Stopped, "removed": pruned.Removed, "failed": pruned.Failed} {
		for _, name := range names {
			fmt.Fprintf(inv.stdout, "%-8s %s\n", word, display.Line(name))
		}
	}
	if len(pruned.Failed) > 0 {
		return &exitErr{code: exitError, err: errors.New("some could not be ended")}
	}
	if len(pruned.Stopped)+len(pruned.Removed) == 0 {
		fmt.Fprintln(inv.stdout, "Nothing to end.")
	}
	return nil
}

type sandboxProbeCommand struct{}

// Run tries the engines. It needs no gateway.
func (sandboxProbeCommand) Run(inv *invocation) error {
	loaded, err := inv.load("")
	if err != nil {
		return err
	}
	found, machine, err := gateway.ProbeEngines(inv, inv.home, loaded)
	if err != nil {
		return err
	}
	works := slices.ContainsFunc(found, func(e gateway.ProbedEngine) bool { return e.Works })
	if inv.json {
		err = inv.printJSON(map[string]any{"engines": found, "machine": machine})
	} else {
		inv.printProbe(found)
		inv.printTools(machine.Tools)
	}
	if err == nil && !works {
		err = &exitErr{exitUnsound, errors.New("no engine works on this machine"), "mend one of the above"}
	}
	return err
}

// printTools says which of the person's programs sandboxes show.
func (inv *invocation) printTools(found *gateway.Toolchains) {
	if found == nil {
		return
	}
	if len(found.Dirs)+len(found.Caches) > 0 {
		fmt.Fprintf(inv.stdout, "toolchains: shown read-only from the next start on; %s changes that\n", gateway.ToolchainsKey)
	}
	for _, d := range found.Dirs {
		fmt.Fprintf(inv.stdout, "  ok  %s: %s\n", display.Line(d.Tool), display.Line(d.Path))
	}
	for _, d := range found.Caches {
		fmt.Fprintf(inv.stdout, "  ok  %s: %s\n", display.Line(d.Tool), display.Line(d.Path))
	}
	for _, name := range found.Withheld {
		fmt.Fprintf(inv.stdout, "  no  %s: it may log in somewhere\n", display.Line(name))
	}
	for _, r := range found.Refused {
		fmt.Fprintf(inv.stdout, "  no  %s: %s: %s\n", display.Line(r.Tool), display.Line(r.Path), display.Line(r.Why))
	}
}

func (inv *invocation) printProbe(found []gateway.ProbedEngine) {
	for _, e := range found {
		fmt.Fprintf(inv.stdout, "%s: enforces %s %s\n", e.Engine, e.Level, e.Version)
		for _, c := range e.Checks {
			mark := "ok"
			if !c.OK {
				mark = "no"
			}
			fmt.Fprintf(inv.stdout, "  %-3s %s: %s\n", mark, display.Line(c.Name), display.Line(c.Found))
			if c.Fix != "" && !c.OK {
				fmt.Fprintf(inv.stdout, "      → %s\n", display.Line(c.Fix))
			}
		}
	}
}
