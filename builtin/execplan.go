package builtin

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/command"
	"github.com/toolward/toolward/command/binding"
	"github.com/toolward/toolward/display"
	"github.com/toolward/toolward/job"
	"github.com/toolward/toolward/place"
	"github.com/toolward/toolward/sandbox"
)

// execPlan is what exec hands from Facts to Run. Nothing in it is parsed or looked up again.
type execPlan struct {
	command   string
	dir       place.Resolved
	overrides map[string]string // what the call sets
	env       map[string]string // the whole environment
	timing    execTiming
	tty       bool
	scope     string

	ruling   *command.Ruling // nil if nobody judged the command
	bindable binding.Bindable
	binding  *binding.Binding
	job      job.Plan
	light    bool // it is confined lightly, unless a person sees it

	box       *Confinement // nil: the command runs on this machine
	inside    sandbox.Command
	clientDir string // where the client's shell stands, on this machine
}

// listed reports whether the allowlist let the command run.
func (p *execPlan) listed() bool { return p.ruling != nil && p.ruling.Satisfied }

func (b *Toolbox) execFacts(ctx context.Context, r *toolward.Request) (toolward.Facts, error) {
	at, err := b.locate(ctx, r)
	if err != nil {
		return toolward.Facts{}, err
	}
	plan, facts, err := b.execPlan(r, at)
	if err == nil && at.box != nil && plan.leaves() {
		// The settings for commands send this one to the machine: it is judged as one that runs there.
		if at, err = b.locateHere(r); err != nil {
			return toolward.Facts{}, err
		}
		plan, facts, err = b.execPlan(r, at)
	}
	if err != nil || plan.env == nil {
		return facts, err
	}
	if at.box != nil {
		err = plan.confine(at.box)
	} else if err = b.prepare(plan, at.Classifier); err == nil {
		plan.hold(&facts)
		b.lightFindings(plan, &facts)
	}
	facts.Prepared = plan
	return facts, err
}

// leaves reports whether a command that was judged for the sandbox does not run there.
func (p *execPlan) leaves() bool {
	return p.ruling != nil && p.ruling.Place.Host != command.HostSandbox
}

// execPlan reads a call and has its command judged where it would run. A plan without an environment is refused by its
// findings.
func (b *Toolbox) execPlan(r *toolward.Request, at located) (*execPlan, toolward.Facts, error) {
	plan := &execPlan{command: r.Params.Text("command"), scope: b.scope(r)}
	facts := toolward.Facts{Host: toolward.HostGateway, Command: plan.command, Mutates: true}
	if at.box != nil {
		facts.Host = toolward.HostSandbox
	}
	if err := checkCommand(plan.command); err != nil {
		return plan, toolward.Facts{}, err
	}
	if node := strings.TrimSpace(r.Params.Text("node")); node != "" {
		return plan, toolward.Facts{}, &toolward.InvalidArgs{Field: "node", Text: "there is no node of this name"}
	}
	var err error
	if plan.dir, err = at.commandDir(r.Params.Text("workdir")); err != nil {
		return plan, toolward.Facts{}, err
	}
	plan.tty = wantsTerminal(r.Params, toolward.HostGateway)
	plan.timing = b.timing(r.Params, b.backgroundAllowed(r.Call.Caller))
	facts.Sandbox, facts.Bound = at.sandbox(), append(at.bound(), "workdir "+plan.dir.Real)
	facts.Elevated, _ = r.Params.Bool("elevated")
	if !b.environment(plan, r.Params, at, &facts) {
		return plan, facts, nil
	}
	return plan, facts, b.judge(plan, r, at, hostParams(r.Params), false, &facts)
}

// environment builds the environment of the command; false if the call sets what it may not. In a sandbox it is that of the
// sandbox: people who are asked must not read what "$HOME" is here.
func (b *Toolbox) environment(plan *execPlan, params toolward.Params, at located, facts *toolward.Facts) bool {
	plan.overrides = map[string]string{}
	if values, ok := params.Value("env").(map[string]any); ok {
		for name, value := range values {
			plan.overrides[name], _ = value.(string)
			facts.Outbound = append(facts.Outbound, plan.overrides[name])
		}
	}
	slices.Sort(facts.Outbound) // maps have no order, and the same call must give the same facts
	hash, _ := binding.EnvironmentHash(plan.overrides)
	facts.Bound = append(facts.Bound, "environment "+hash)
	var err error
	if at.box != nil {
		plan.env, err = at.box.environment(b.rules, plan.overrides)
	} else if plan.env, err = b.rules.Build(b.environ, plan.overrides, command.RejectOverrides); err == nil {
		facts.Findings = append(facts.Findings, reached(plan, at)...)
	}
	if err != nil {
		// The variable would make an ordinary program run or trust something else than the person who approves sees.
		facts.Findings = append(facts.Findings, toolward.Finding{Code: "env_dangerous", Effect: toolward.EffectDeny, Detail: err.Error()})
		return false
	}
	plan.env["PWD"] = plan.dir.Real
	if _, chosen := plan.overrides["TERM"]; plan.tty && !chosen {
		plan.env["TERM"] = "xterm-256color"
	}
	return true
}

// reached are the findings about variables that name files: a program reads, writes or runs them, whatever the command seems to do.
func reached(plan *execPlan, at located) (found []toolward.Finding) {
	for _, name := range slices.Sorted(maps.Keys(plan.overrides)) {
		to := command.Reach(at.Classifier, plan.dir.Real, plan.overrides[name])
		if to.Real == "" {
			continue
		}
		finding := toolward.Finding{
			Code: "env_path", Effect: toolward.EffectAsk,
			Detail: fmt.Sprintf("the variable %s names %s: %s", name, display.Words(to.Real), to.Zone),
		}
		if to.Zone <= place.Secret && to.Kind != place.KindMissing {
			finding.Code, finding.Effect = "env_dangerous", toolward.EffectDeny
		}
		found = append(found, finding)
	}
	return found
}

// start starts what was judged.
func (p *execPlan) start(ctx context.Context, streams job.Streams) (running, error) {
	if p.box != nil {
		return p.startConfined(ctx, streams)
	}
	started, err := job.Start(p.job, streams)
	if err != nil {
		return nil, err
	}
	return started, nil
}

func hostParams(p toolward.Params) command.HostParams {
	params := command.HostParams{Host: p.Text("host"), Security: p.Text("security"), Ask: p.Text("ask")}
	if elevated, ok := p.Bool("elevated"); ok {
		params.Elevated = &elevated
	}
	return params
}

// prepare makes what will run of what was judged, and binds both to the files as they are now.
func (b *Toolbox) prepare(plan *execPlan, places *place.Classifier) (err error) {
	if err := b.makeJob(plan, places); err != nil {
		return err
	}
	plan.bindable = binding.Bindable{Host: string(toolward.HostGateway), Dir: plan.dir.Real, Env: plan.overrides, Text: plan.command}
	if plan.ruling != nil {
		plan.bindable = plan.ruling.Bindable(plan.bindable)
	}
	return b.bind(plan)
}

// makeJob makes what will run of what was judged.
func (b *Toolbox) makeJob(plan *execPlan, places *place.Classifier) (err error) {
	env := command.EnvironmentList(plan.env)
	if plan.ruling != nil && plan.ruling.ByShell == "" {
		plan.job, err = plan.ruling.Plan(plan.dir, places, env)
	} else if b.shell == "" {
		err = errNoShell
	} else {
		text := plan.command
		if plan.ruling != nil {
			text = plan.ruling.ShellText()
		}
		plan.job, err = command.ShellPlan(b.shell, text, plan.dir, env)
	}
	if err != nil {
		return fmt.Errorf("prepare the command: %w", err)
	}
	return nil
}

func (b *Toolbox) bind(plan *execPlan) (err error) {
	if plan.binding, err = b.binder.Bind(plan.bindable); err != nil {
		return fmt.Errorf("bind the command: %w", err)
	}
	return nil
}

// hold tells what an approval holds on to, and what it cannot.
func (p *execPlan) hold(facts *toolward.Facts) {
	facts.Bound = append(facts.Bound, "command "+p.binding.Digest())
	if p.ruling != nil {
		facts.Findings = append(facts.Findings, p.ruling.BoundFindings(p.binding.Left())...)
	}
}

// unchanged looks again, at the last moment, at everything that the decision is bound to: programs, scripts and the
// directory may have been exchanged since.
func (b *Toolbox) unchanged(plan *execPlan) error {
	if plan.box != nil {
		return nil // it only ever meets what is in its sandbox
	}
	now, err := b.binder.Bind(plan.bindable)
	if err != nil {
		return err
	}
	return plan.binding.Check(now)
}
