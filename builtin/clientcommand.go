package builtin

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"strings"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/command"
	"github.com/toolward/toolward/command/binding"
	"github.com/toolward/toolward/sandbox/settings"
)

// ClientCommand finds out what a command would touch that a client wants to run, in the directory where its shell stands.
//
// Where the session's commands run in a sandbox, so does this one: [Toolbox.StartForClient] then starts it, and what it is called
// by is of no consequence. machine: the client asks for the machine. There the client's own shell runs it: it is judged as
// exec judges its own, and stricter where only that shell knows what a word means: its variables, aliases and search path
// are the client's.
func (b *Toolbox) ClientCommand(ctx context.Context, r *toolward.Request, line string, machine bool) (toolward.Facts, error) {
	facts := toolward.Facts{Command: line, Mutates: true}
	if strings.ContainsRune(line, 0) {
		return facts, &toolward.InvalidArgs{Field: "command", Text: "contains a NUL character"}
	}
	plan, err := b.clientConfined(ctx, r, line, machineWanted(line, machine), &facts)
	if err != nil || plan != nil {
		return facts, err
	}
	if facts.HostWhy != "" {
		// Whoever is asked reads why this one leaves the sandbox, and that these are the model's words where they are.
		facts.Findings = append(facts.Findings, toolward.Finding{Code: "command_on_machine", Effect: toolward.EffectNote, Detail: "not in its sandbox: " + facts.HostWhy})
	}
	if err = b.clientHere(r, line, &facts); err == nil && facts.HostWhy != "" && facts.Analysis != nil {
		// "Always" is the answer to what is asked: this command on the machine, and not wherever it runs by itself.
		for i := range facts.Analysis.Always {
			facts.Analysis.Always[i].Host = toolward.HostGateway
		}
	}
	return facts, err
}

// machineLine is how a model asks for the machine in the text of a command, where its client has no other way.
var machineLine = regexp.MustCompile(`\A# toolward: machine:[ \t]*([^\r\n]{0,500})`)

// machineWanted says that a model asks for the machine, and in which words: by the first line of its command, or by what its client
// has for that. "" if it does not.
func machineWanted(line string, machine bool) (why string) {
	const asks = "the model asks for the machine"
	switch found := machineLine.FindStringSubmatch(line); {
	case found != nil && strings.TrimSpace(found[1]) != "":
		return asks + ": " + strings.TrimSpace(found[1])
	case found != nil || machine:
		return asks
	}
	return ""
}

// clientConfined is the plan of a command that runs in a sandbox; nil if it runs on the machine.
func (b *Toolbox) clientConfined(ctx context.Context, r *toolward.Request, line, machine string, facts *toolward.Facts) (*execPlan, error) {
	if b.deps.Sandboxes == nil {
		return nil, nil
	}
	box, err := b.deps.Sandboxes.Confinement(ctx, &r.Call)
	if err != nil {
		return nil, noSandbox(r, err)
	}
	if box == nil {
		return nil, nil
	}
	if err := checkCommand(line); err != nil {
		return nil, err
	}
	here, err := b.locateHere(r)
	if err != nil {
		return nil, err
	}
	at, err := box.located(r.Call.WorkDir)
	if err != nil {
		return nil, err
	}
	if _, err := at.table.Map(here.workDir, "", false, settings.Host); err != nil {
		facts.HostWhy = "the shell is in a directory that its sandbox does not show"
		return nil, nil
	}
	plan := &execPlan{command: line, clientDir: here.workDir}
	if plan.dir, err = at.commandDir(""); err != nil {
		return nil, err
	}
	confined := toolward.Facts{
		Host: toolward.HostSandbox, HostWhy: box.Why, Command: line, Mutates: true, Sandbox: at.sandbox(), Bound: append(at.bound(), "workdir "+plan.dir.Real),
	}
	if plan.env, err = box.environment(b.rules, nil); err != nil {
		return nil, fmt.Errorf("environment: %w", err)
	}
	plan.env["PWD"] = plan.dir.Real
	if err := b.judge(plan, r, at, command.HostParams{Machine: machine != ""}, false, &confined); err != nil {
		return nil, err
	}
	if plan.leaves() {
		facts.HostWhy = cmp.Or(machine, "the settings for commands say so (tools.exec.host)")
		return nil, nil
	}
	if plan.ruling != nil {
		if what := plan.ruling.OnlyOnMachine(); what != "" {
			facts.HostWhy = what + " works only on the machine"
			return nil, nil
		}
		if what := plan.ruling.ListedForMachine(); what != "" {
			facts.HostWhy = "an entry has " + what + " run on the machine"
			return nil, nil
		}
	}
	if err := plan.confine(box); err != nil {
		return nil, err
	}
	if box.Offline {
		confined.External = nil // nothing that strangers wrote comes in
	}
	confined.Prepared = plan
	*facts = confined
	return plan, nil
}

// clientHere judges a command that the client's own shell runs on this machine.
func (b *Toolbox) clientHere(r *toolward.Request, line string, facts *toolward.Facts) error {
	at, err := b.locateHere(r)
	if err != nil {
		return err
	}
	plan := &execPlan{command: line, clientDir: at.workDir}
	if plan.dir, err = at.commandDir(""); err != nil {
		return err
	}
	if err := b.judgeClient(plan, r, at, facts); err != nil {
		return err
	}
	if err := b.bindClient(plan, at, facts); err != nil {
		return err
	}
	plan.hold(facts)
	facts.Prepared = plan
	return nil
}

// bindClient binds what a client's command is judged by. What nobody may see is prepared to be started by us, confined: the client's own
// shell would run it with everything its user may do.
func (b *Toolbox) bindClient(plan *execPlan, at located, facts *toolward.Facts) error {
	if plan.light = b.unseen(plan) && b.startsByTicket(); plan.light {
		if err := b.makeJob(plan, at.Classifier); err != nil {
			return err
		}
		b.lightFindings(plan, facts)
	}
	plan.bindable = binding.Bindable{Host: string(toolward.HostGateway), Dir: plan.dir.Real}
	if plan.ruling != nil {
		plan.bindable = plan.ruling.Bindable(plan.bindable)
	}
	plan.bindable.Text = plan.command
	return b.bind(plan)
}

// startsByTicket reports whether a command of a client can be started here.
func (b *Toolbox) startsByTicket() bool { return b.deps.ByTicket != nil && b.deps.ByTicket() }

// judgeClient judges the command of a plan in its directory, as one that the client's own shell runs.
func (b *Toolbox) judgeClient(plan *execPlan, r *toolward.Request, at located, facts *toolward.Facts) (err error) {
	facts.Bound = []string{"workdir " + plan.dir.Real}
	if plan.env, err = b.rules.Build(b.environ, nil, command.RejectOverrides); err != nil {
		return fmt.Errorf("environment: %w", err)
	}
	plan.env["PWD"] = plan.dir.Real
	return b.judge(plan, r, at, command.HostParams{}, true, facts)
}

// PastCommand finds out what a command of the past would touch on this machine, where its client ran it. The directory need not
// be there any more, and nothing is bound, because nothing will run. HostWhy says why it could not have run in a sandbox; "" if it
// could.
func (b *Toolbox) PastCommand(_ context.Context, r *toolward.Request, line string, machine bool) (toolward.Facts, error) {
	facts := toolward.Facts{Command: line, Mutates: true}
	if strings.ContainsRune(line, 0) {
		return facts, &toolward.InvalidArgs{Field: "command", Text: "contains a NUL character"}
	}
	at, err := b.locateHere(r)
	if err != nil {
		return facts, err
	}
	plan := &execPlan{command: line}
	if plan.dir, err = at.Resolve(at.workDir, at.workDir); err != nil {
		return facts, pathError("workdir", err)
	}
	if err := b.judgeClient(plan, r, at, &facts); err != nil {
		return facts, err
	}
	facts.Prepared = plan
	facts.HostWhy = machineWanted(line, machine)
	if facts.HostWhy == "" && plan.ruling != nil && plan.ruling.OnlyOnMachine() != "" {
		facts.HostWhy = plan.ruling.OnlyOnMachine() + " works only on the machine"
	}
	return facts, nil
}

// Assessment is what is known of the command of a call, as it was judged; nil if nobody judged it.
func Assessment(r *toolward.Request) *command.Assessment {
	if plan, ok := r.Facts.Prepared.(*execPlan); ok && plan.ruling != nil {
		return plan.ruling.Assessment
	}
	return nil
}

// RecordUse notes the entries that let a command of a client run, once it has started.
func (b *Toolbox) RecordUse(r *toolward.Request) {
	if plan, ok := r.Facts.Prepared.(*execPlan); ok && plan.box == nil && plan.listed() && b.deps.Commands != nil {
		b.deps.Commands.RecordUse(plan.ruling.Assessment)
	}
}
