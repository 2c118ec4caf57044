package main

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/toolward/toolward/client/local"
	"github.com/toolward/toolward/display"
)

type sandboxPortsCommand struct {
	Name string `arg:"" optional:"" help:"Of this sandbox, looked at now; without it, of all that run."`
}

// Run lists what listens in sandboxes, and what of it can be opened on this machine.
func (c *sandboxPortsCommand) Run(inv *invocation) error {
	all, err := c.ports(inv)
	if err != nil {
		return err
	}
	if inv.json {
		return inv.printJSON(all)
	}
	if err := inv.table("SANDBOX\tPORT\tPROGRAM\tOPEN AT", func(row func(...any)) {
		for _, s := range all {
			for _, p := range s.Ports {
				row(s.Name, p.Port, p.Program, openAt(&s.SandboxPorts, p.Port, p.Local))
			}
		}
	}); err != nil {
		return err
	}
	for _, s := range all {
		if s.More {
			fmt.Fprintf(inv.stdout, "%s has more, which are not shown.\n", display.Line(s.Name))
		}
	}
	fmt.Fprintln(inv.stdout, "\nopen one on this machine with: toolward sandbox forward SANDBOX PORT")
	return nil
}

// portsOfSandbox is what listens in one sandbox.
type portsOfSandbox struct {
	Name string `json:"containerName"`
	local.SandboxPorts
}

func (c *sandboxPortsCommand) ports(inv *invocation) ([]portsOfSandbox, error) {
	if c.Name != "" {
		ports, err := inv.daemon().SandboxPorts(inv, c.Name)
		return []portsOfSandbox{{c.Name, ports}}, err
	}
	list, err := inv.daemon().Sandboxes(inv)
	if err != nil {
		return nil, err
	}
	all := []portsOfSandbox{}
	for _, s := range list.Containers {
		if !s.Running {
			continue
		}
		ports, err := inv.daemon().SandboxPorts(inv, s.Name)
		if err != nil { // it has ended meanwhile, or does not answer
			fmt.Fprintf(inv.stderr, "%s: %s\n", display.Line(s.Name), display.Line(err.Error()))
			continue
		}
		all = append(all, portsOfSandbox{s.Name, ports})
	}
	return all, nil
}

// openAt says where a port of a sandbox is reached on this machine.
func openAt(s *local.SandboxPorts, port uint16, local bool) string {
	for _, f := range s.Forwards {
		if f.Port == port {
			return f.URL()
		}
	}
	if !local {
		return "– (it does not listen at the sandbox's localhost)"
	}
	return "–"
}

type sandboxForwardCommand struct {
	Name string `arg:"" help:"The sandbox, as toolward sandbox ports names it."`
	Port uint16 `arg:"" help:"The port inside."`
	To   uint16 `help:"The port of this machine's loopback address; the same number unless it is taken." placeholder:"PORT"`
	Stop bool   `help:"End the forward."`
}

// Run opens a port of a sandbox on this machine, or ends that.
func (c *sandboxForwardCommand) Run(inv *invocation) error {
	if c.Stop {
		if c.To != 0 {
			return &exitErr{exitError, errors.New("--to is for a forward that begins"), "leave it out"}
		}
		if err := inv.daemon().StopForward(inv, c.Name, c.Port); err != nil {
			return err
		}
		return inv.done("stopped", fmt.Sprintf("Port %d of %s is no longer open to this machine.", c.Port, display.Line(c.Name)))
	}
	f, err := inv.daemon().ForwardPort(inv, c.Name, c.Port, c.To)
	if err != nil {
		return err
	}
	if inv.json {
		return inv.printJSON(f)
	}
	if f.Why != "" {
		fmt.Fprintf(inv.stdout, "%s: it is %d.\n", display.Line(f.Why), f.Local)
	}
	fmt.Fprintf(inv.stdout, "%s leads to port %d of %s, for the programs of this machine, until the sandbox ends or nothing has used it for half an hour.\n", f.At, f.Port, display.Line(f.Sandbox))
	fmt.Fprintln(inv.stdout, "What answers there was written by an agent, or by strangers: it is no page of yours.")
	return nil
}

// portNumbers are ports in one word.
func portNumbers(ports []local.ListeningPort) string {
	const most = 4
	words := []string{}
	for _, p := range ports[:min(len(ports), most)] {
		words = append(words, strconv.Itoa(int(p.Port)))
	}
	if len(ports) > most {
		words = append(words, "…")
	}
	return cmp.Or(strings.Join(words, ","), "–")
}
